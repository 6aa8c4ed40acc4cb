/*
 * run_pipeline.c: pipelined updates: the sums of a step get through while the next step runs, and are applied behind it.
 *
 * A training step has two plans of the same graphs. They differ in the set of gradients at the head of the arena on which they work; activations, inputs
 * and kernels are the same memory. A step runs one plan up to its update, then the update of the plan that ran before, whose sums had
 * all that time. What belongs to a gradient goes with it: the rate, and the step's number for the optimiser.
 *
 *     step t      forward, backward on set 0: sums of t start    update by set 1: step t - 1
 *     step t + 1  forward, backward on set 1: sums of t go on    update by set 0: step t
 *
 * Source: Kurth et al. 2018, Exascale deep learning for climate analytics, section V-B4 (gradient lag).
 */
#include <string.h>

#include "run/run_program.h"

/* ---- planning ---- */

static const cvy_buffer *find_step_buffer(const cvy_plan *plan, const char *name)
{
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_STEP && strcmp(plan->buffer[i].name, name) == 0)
            return &plan->buffer[i];
    return NULL;
}

/* Where the losses are, and that sets lie at the same places whatever step made them. */
cvy_status cvy_pipeline_check(cvy_program *p)
{
    const cvy_plan *first = NULL;
    for (int i = 0; i < p->nstep; i++) {
        cvy_program_step_info *s = p->step[i];
        first = first || !s->twin ? first : s->plan;
        CVY_CHECK(!s->twin || s->plan->step_bytes == first->step_bytes, CVY_E_UNSUPPORTED,
                  "pipelined updates need training steps of the same weights and losses, but step %d has %zu bytes of gradients and losses, and the first one %zu", i,
                  s->plan->step_bytes, first->step_bytes);
        for (int k = 0; k < s->nloss; k++) {
            const cvy_buffer *loss = find_step_buffer(s->plan, s->loss_value[k]);
            s->loss_bucket[k] = loss ? loss->bucket : -1;
        }
    }
    return CVY_OK;
}

/* ---- steps ---- */

void cvy_pending_feed(const cvy_pending *late)
{
    const cvy_program_step_info *s = late->step;
    if (s->lr)
        *s->lr = late->lr;
    if (s->step_number)
        *s->step_number = late->number;
}

static cvy_status update(const cvy_pending *late, cvy_step_time *time)
{
    cvy_pending_feed(late);
    return cvy_plan_run_part(late->plan, late->plan->update_at, late->plan->ninstr, time);
}

/* A loss is told with its step. Its sum began in forward, so it is here, unless another rank is late by a whole backward pass. */
cvy_status cvy_step_wait_losses(const cvy_program_step_info *s, cvy_plan *plan, cvy_step_time *time)
{
    double waited = 0;
    for (int i = 0; i < s->nloss; i++) {
        const cvy_bucket *bucket = s->loss_bucket[i] >= 0 ? &plan->bucket[s->loss_bucket[i]] : NULL;
        if (!bucket || !bucket->active)
            continue;
        const double begin = cvy_clock_s();
        CVY_TRY(cvy_plan_wait(plan, bucket));
        waited += cvy_clock_s() - begin;
    }
    time->total += waited;
    time->exposed_comm += waited;
    return CVY_OK;
}

cvy_status cvy_pipeline_step(cvy_program *p, cvy_program_step_info *s, double lr)
{
    const int64_t number = s->step_number ? *s->step_number : 0;
    if (p->late && p->pending.plan && p->pending.step != s)
        CVY_TRY(cvy_pipeline_settle(p)); /* another batch's plan reads weights in another order */
    const cvy_pending late = p->pending;
    cvy_plan *plan = late.plan && late.plan->set == 0 ? s->twin : s->plan;
    const int between = p->late && late.plan;
    s->time = (cvy_step_time){0};
    plan->beside = late.plan;
    if (late.plan)
        late.plan->beside = plan;
    CVY_TRY(between ? cvy_late_run(plan, &late, &s->time) : cvy_plan_run_part(plan, 0, plan->update_at, &s->time));
    CVY_TRY(cvy_step_wait_losses(s, plan, &s->time));
    if (late.plan && !between)
        CVY_TRY(update(&late, &s->time));
    plan->beside = NULL;
    s->latest = plan;
    p->pending = (cvy_pending){s, plan, lr, number};
    p->context->pending = p;
    return CVY_OK;
}

static void forget(cvy_program *p)
{
    p->pending.plan->beside = NULL;
    p->pending = (cvy_pending){0};
    p->context->pending = NULL;
}

cvy_status cvy_pipeline_settle(cvy_program *p)
{
    const cvy_pending late = p->pending;
    if (!late.plan)
        return CVY_OK;
    forget(p);
    return update(&late, &late.step->time);
}

cvy_status cvy_pipeline_drop(cvy_program *p)
{
    cvy_plan *plan = p->pending.plan;
    if (!plan)
        return CVY_OK;
    forget(p);
    return cvy_plan_wait_all(plan);
}

/* ---- checkpoints ---- */

/* Of the value in the unit's graph, as its producer leaves it. */
static cvy_layout layout_of(const cvy_plan *plan, const cvy_buffer *b)
{
    const cvy_unit *u = plan->unit[plan->nmicro - 1];
    for (int i = 0; i < u->nloc; i++)
        if (u->loc[i].home && strcmp(u->loc[i].value->name, b->name) == 0)
            return u->loc[i].layout;
    return (cvy_layout){""};
}

/* All that the update reads, over the memory where it lies. */
static cvy_status list_pending(const cvy_plan *plan, cvy_vars *vars)
{
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_buffer *b = &plan->buffer[i];
        cvy_variable *v = NULL;
        if (b->region != CVY_REGION_STEP || b->root != i || b->last < plan->update_at)
            continue;
        CVY_TRY(cvy_vars_declare(vars, b->name, CVY_ROLE_STATE, b->value->dtype, &b->value->shape, NULL, &v));
        v->in_common = 1;              /* its memory is not its own */
        v->layout = layout_of(plan, b);
        v->bytes = b->bytes;
        v->data = b->data;
    }
    return CVY_OK;
}

static cvy_status make_list(const cvy_plan *plan, cvy_vars **out)
{
    cvy_vars *vars = NULL;
    CVY_TRY(cvy_vars_create(&vars));
    const cvy_status status = list_pending(plan, vars);
    if (status != CVY_OK)
        cvy_vars_destroy(&vars);
    else
        *out = vars;
    return status;
}

/* Where each of a node's ranks has a part of the sums, rank 0 gets the others' of its node behind its own: they follow in the order of the ranks. */
static cvy_status gather_parts(const cvy_plan *plan)
{
    cvy_comm *comm = plan->opts.comm;
    size_t *bytes_of = NULL;
    CVY_TRY(cvy_comm_alloc(comm, sizeof *bytes_of * (size_t)comm->nranks, &bytes_of));
    cvy_status status = CVY_OK;
    for (int b = 0; b < plan->nbucket && status == CVY_OK; b++) {
        const cvy_bucket *bucket = &plan->bucket[b];
        float *sums = bucket->data;
        const int sends = bucket->dtype == CVY_DTYPE_F32 && comm->node == 0 && comm->rank != 0;
        const size_t mine = sends ? sizeof *sums * (size_t)(bucket->part.end - bucket->part.first) : 0;
        status = comm->ops->allgather(comm, &mine, sizeof mine, bytes_of);
        if (status == CVY_OK)
            status = comm->ops->gatherv(comm, sums + bucket->part.first, mine, sums + bucket->part.end, bytes_of, 0);
    }
    cvy_mem_free(&bytes_of);
    return cvy_comm_agree(comm, status);
}

cvy_status cvy_pipeline_save(cvy_program *p, cvy_vars **out)
{
    cvy_plan *plan = p->pending.plan;
    *out = NULL;
    if (!plan)
        return CVY_OK;
    plan->beside = NULL;
    CVY_TRY(cvy_plan_wait_all(plan));
    if (plan->in_parts)
        CVY_TRY(gather_parts(plan));
    return make_list(plan, out);
}

cvy_status cvy_pipeline_resume(cvy_program *p, int step, double lr, int64_t number, cvy_vars **out)
{
    cvy_program_step_info *s = p->step[step];
    CVY_CHECK(s->twin, CVY_E_ARGUMENT, "an update is pending, but step %d is not pipelined", step);
    CVY_TRY(make_list(s->plan, out));
    p->pending = (cvy_pending){s, s->plan, lr, number};
    return CVY_OK;
}
