/*
 * update_none.c: no update (opts.gradients_only): a training task computes its losses and all gradients, and ends
 * there. `convoy bench --mode forward-backward` times it.
 *
 * A training task is planned for this rank alone, as with local updates: the samples are its own rows, batch norm
 * groups lie within them, and nothing is sent. The graph has no update of weights (program_plan.c). Gradients are
 * accumulators, so the pass `prune` keeps them although nothing reads them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_impl.h"

typedef struct cvy_none {
    cvy_comm *self; /* this rank alone */
} cvy_none;

static int is_asked_for(const cvy_program_opts *opts)
{
    return opts->gradients_only && opts->shards == 0; /* deterministic training rejects it */
}

static int conflict(const cvy_program_opts *o, cvy_update_conflict *out)
{
    const struct {
        int given;
        cvy_update_conflict what;
    } others[] = {
        {o->update_mode != CVY_UPDATE_SYNC, {"update_mode", NULL, "says how weights are updated: leave it out"}},
        {o->overlap == CVY_OVERLAP_FORWARD, {"overlap", "forward", "says when weights are updated: leave it out"}},
    };
    for (int i = 0; i < CVY_COUNT(others); i++)
        if (others[i].given) {
            *out = others[i].what;
            return 1;
        }
    return 0;
}

static cvy_status create(cvy_program *p)
{
    cvy_none *n = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *n, &n));
    p->update.state = n;
    CVY_TRY(cvy_comm_create_self(&n->self));
    n->self->rank = p->context->comm->rank; /* for traces */
    return CVY_OK;
}

static void shape(const cvy_program *p, cvy_update_shape *shape)
{
    const cvy_none *n = p->update.state;
    shape->comm = n->self;
    shape->own_samples = 1;
    shape->no_update = 1;
    shape->own_losses = 1;
    shape->shares_memory = 0;
    shape->shares_weights = 0;
}

/* A rank without rows computes nothing; nor do the other stages of its pipeline, which have the same rows. */
static cvy_status none_step(cvy_program *p, cvy_program_task *s, double lr)
{
    (void)lr;
    s->time = (cvy_step_time){0};
    if (s->feed.norm)
        *s->feed.norm = (double)s->plan->rows;
    if (s->plan->rows == 0)
        return CVY_OK;
    CVY_TRY(cvy_plan_execute(s->plan, &s->time));
    return cvy_program_share_losses(p, s);
}

/* The losses of this rank's rows. A rank without rows has none. */
static const double *loss(const cvy_program *p, const cvy_program_task *s, int i)
{
    static const double zero;
    (void)p;
    return s->plan->rows > 0 ? cvy_program_loss_part(s, i, 0) : &zero;
}

static void destroy(cvy_program *p)
{
    cvy_none *n = p->update.state;
    if (n->self)
        n->self->ops->destroy(n->self);
    cvy_mem_free(&p->update.state);
}

CVY_UPDATE_DEFINE(none) = {
    .name = "none",
    .summary = "gradients are computed, but neither reduced nor applied; for measurements",
    .mode = -1,
    .any_space = 1,
    .asked_for = is_asked_for,
    .plan.conflict = conflict,
    .plan.create = create,
    .plan.shape = shape,
    .step = none_step,
    .loss = loss,
    .destroy = destroy,
};
