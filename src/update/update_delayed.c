/*
 * update_delayed.c: delayed updates: the gradients of a step are summed over ranks while the next step runs, and are
 * applied after it.
 *
 * A training step has two plans of the same graphs. Each works on its own set of gradients at the head of the arena;
 * activations, inputs and kernels use the same memory. A step runs one plan up to its update. Then it runs the update
 * of the other plan, the one of the step before: its reductions had all that time. The learning rate and the step's
 * number for the optimiser are kept with the gradients.
 *
 *     step t      forward, backward on set 0: reductions of t start      update by set 1: step t - 1
 *     step t + 1  forward, backward on set 1: reductions of t go on      update by set 0: step t
 *
 * Source: Kurth et al. 2018, Exascale deep learning for climate analytics, section V-B4 (gradient lag).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/text/base_duration.h"
#include "program/program_impl.h"
#include "update/update_delayed.h"

/* ---- planning ---- */

/* Finds where the losses are, and checks that the sets of gradients are at the same positions for all training
 * tasks. */
cvy_status cvy_delayed_planned(cvy_program *p)
{
    const cvy_plan *first = NULL;
    for (int i = 0; i < p->ntask; i++) {
        cvy_program_task *s = p->task[i];
        first = first || !s->alternate ? first : s->plan;
        CVY_CHECK(!s->alternate || s->plan->head.bytes == first->head.bytes, CVY_E_UNSUPPORTED,
                  "delayed updates need training steps of the same weights and losses, but step %d has %zu bytes of "
                  "gradients and losses, and the first one %zu",
                  i, s->plan->head.bytes, first->head.bytes);
        for (int k = 0; k < s->nloss; k++) {
            const cvy_buffer *loss = cvy_plan_step_buffer(s->plan, s->loss[k].value);
            s->loss[k].bucket = loss ? loss->bucket : -1;
        }
    }
    return CVY_OK;
}

/* ---- its state ---- */

static cvy_pending *pending_of(const cvy_program *p)
{
    return p->update.state;
}

cvy_status cvy_delayed_create(cvy_program *p)
{
    cvy_pending *pending = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *pending, &pending));
    p->update.state = pending;
    return CVY_OK;
}

void cvy_delayed_destroy(cvy_program *p)
{
    cvy_mem_free(&p->update.state);
}

const cvy_pending *cvy_delayed_pending(const cvy_program *p)
{
    return pending_of(p);
}

static void shape(const cvy_program *p, cvy_update_shape *shape)
{
    (void)p;
    shape->gradient_sets = 2;
}

/* ---- steps ---- */

/* On a device the feed itself is left as it is, because it may be on its way there. */
cvy_status cvy_pending_set(const cvy_plan *plan, void *feed, const void *value)
{
    if (!feed)
        return CVY_OK;
    if (!cvy_space_is_host(plan->opts.space))
        return cvy_space_write(plan->opts.space, cvy_plan_feed_tensor(plan, feed), value, sizeof(double));
    memcpy(feed, value, sizeof(double));
    return CVY_OK;
}

cvy_status cvy_pending_feed(const cvy_pending *pending)
{
    const cvy_program_task *s = pending->task;
    CVY_TRY(cvy_pending_set(pending->plan, s->feed.lr, &pending->lr));
    return cvy_pending_set(pending->plan, s->feed.number, &pending->number);
}

static cvy_status update(const cvy_pending *pending, cvy_step_time *time)
{
    CVY_TRY(cvy_pending_feed(pending));
    return cvy_plan_run_part(pending->plan, pending->plan->update.first, pending->plan->ninstr, time);
}

/* A loss is reported with its own step. Its reduction began in the forward pass, so it is usually complete here, unless
 * another rank is slower by a whole backward pass. */
static cvy_status wait_losses(const cvy_program_task *s, cvy_plan *plan, cvy_step_time *time)
{
    double waited = 0;
    for (int i = 0; i < s->nloss; i++) {
        const cvy_bucket *bucket = s->loss[i].bucket >= 0 ? &plan->buckets->bucket[s->loss[i].bucket] : NULL;
        if (!bucket || !bucket->active)
            continue;
        const double begin = cvy_clock_s();
        CVY_TRY(cvy_bucket_set_wait(plan->buckets, s->loss[i].bucket));
        waited += cvy_clock_s() - begin;
    }
    time->total += waited;
    time->exposed_comm += waited;
    return CVY_OK;
}

cvy_status cvy_delayed_step(cvy_program *p, cvy_program_task *s, double lr)
{
    cvy_pending *state = pending_of(p);
    const int64_t number = s->feed.number ? *s->feed.number : 0;
    const int deferred = p->update.shape.deferred;
    if (deferred && state->plan && state->task != s)
        CVY_TRY(cvy_delayed_flush(p)); /* the plan of another batch size reads weights in another order */
    const cvy_pending pending = *state;
    cvy_plan *plan = pending.plan && pending.plan->head.set == 0 ? s->alternate : s->plan;
    const int between = deferred && pending.plan;
    s->time = (cvy_step_time){0};
    plan->buckets->concurrent = pending.plan ? pending.plan->buckets : NULL;
    if (pending.plan)
        pending.plan->buckets->concurrent = plan->buckets;
    CVY_TRY(between ? cvy_deferred_run(plan, &pending, &s->time)
                    : cvy_plan_run_part(plan, 0, plan->update.first, &s->time));
    CVY_TRY(wait_losses(s, plan, &s->time));
    if (pending.plan && !between)
        CVY_TRY(update(&pending, &s->time));
    plan->buckets->concurrent = NULL;
    s->latest = plan;
    *state = (cvy_pending){s, plan, lr, number};
    p->context->pending = p;
    return CVY_OK;
}

/* The pending reductions make progress while validation runs. */
cvy_status cvy_delayed_forward(cvy_program *p, cvy_program_task *s)
{
    const cvy_plan *pending = pending_of(p)->plan;
    s->plan->buckets->concurrent = pending ? pending->buckets : NULL;
    return cvy_plan_execute(s->plan, &s->time);
}

static void forget(cvy_program *p)
{
    cvy_pending *pending = pending_of(p);
    pending->plan->buckets->concurrent = NULL;
    *pending = (cvy_pending){0};
    p->context->pending = NULL;
}

cvy_status cvy_delayed_flush(cvy_program *p)
{
    const cvy_pending pending = *pending_of(p);
    if (!pending.plan)
        return CVY_OK;
    forget(p);
    return update(&pending, &pending.task->time);
}

cvy_status cvy_delayed_abandon(cvy_program *p)
{
    cvy_plan *plan = pending_of(p)->plan;
    if (!plan)
        return CVY_OK;
    forget(p);
    return cvy_bucket_set_wait_all(plan->buckets);
}

/* ---- checkpoints ---- */

/* The layout of the value in the lowered graph, as its producer leaves it. */
static cvy_layout layout_of(const cvy_plan *plan, const cvy_buffer *b)
{
    const cvy_lowered *u = plan->lowered[plan->nmicro - 1];
    for (int i = 0; i < u->ninstance; i++)
        if (u->instance[i].canonical && strcmp(u->instance[i].value->name, b->name) == 0)
            return u->instance[i].layout;
    return (cvy_layout){""};
}

/* Lists all that the update reads as variables, in the memory where it is. */
static cvy_status list_pending(const cvy_plan *plan, cvy_vars *vars)
{
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_buffer *b = &plan->buffer[i];
        cvy_variable *v = NULL;
        if (b->region != CVY_REGION_STEP || b->root != i || b->last < plan->update.first)
            continue;
        CVY_TRY(cvy_vars_declare(vars, b->name, CVY_ROLE_STATE, b->value->dtype, &b->value->shape, NULL, &v));
        v->tile = b->value->variable ? b->value->variable->tile : b->value->tile;
        v->is_borrowed = 1; /* it does not own its memory */
        v->layout = layout_of(plan, b);
        v->space = plan->opts.space;
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

/* If each rank of a node has a part of the sums, rank 0 receives the parts of the other ranks of its node. They follow
 * after its own part in memory, in the order of the ranks. */
static cvy_status gather_parts(const cvy_plan *plan)
{
    cvy_comm *comm = plan->opts.comm;
    size_t *bytes_of = NULL;
    CVY_TRY(cvy_comm_alloc(comm, sizeof *bytes_of * (size_t)comm->nranks, &bytes_of));
    cvy_status status = CVY_OK;
    for (int b = 0; b < plan->buckets->n && status == CVY_OK; b++) {
        const cvy_bucket *bucket = &plan->buckets->bucket[b];
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

static cvy_status save(cvy_program *p, cvy_vars **out)
{
    cvy_plan *plan = pending_of(p)->plan;
    if (!plan)
        return CVY_OK;
    plan->buckets->concurrent = NULL;
    CVY_TRY(cvy_bucket_set_wait_all(plan->buckets));
    if (plan->head.is_partitioned)
        CVY_TRY(gather_parts(plan));
    return make_list(plan, out);
}

static cvy_status resume(cvy_program *p, int step, double lr, int64_t number, cvy_vars **out)
{
    cvy_program_task *s = p->task[step];
    CVY_CHECK(s->alternate, CVY_E_ARGUMENT, "an update is pending, but step %d does not train", step);
    CVY_TRY(make_list(s->plan, out));
    *pending_of(p) = (cvy_pending){s, s->plan, lr, number};
    return CVY_OK;
}

/* ---- options in a job file ---- */

typedef struct cvy_delayed_options {
    const char *warm_up_text, *cool_down_text;
    cvy_stretch warm_up, cool_down;
} cvy_delayed_options;

#define DELAYED(field) CVY_FIELD(cvy_delayed_options, field)

static const cvy_option rows[] = {
    {"warm_up", CVY_TYPE_STRING, DELAYED(warm_up_text), "5 %", "", "",
     "part of the run that is trained in sync first: a share of it, or steps or epochs"},
    {"cool_down", CVY_TYPE_STRING, DELAYED(cool_down_text), "20 %", "", "",
     "part of the run that is trained in sync at the end: a share of it, or steps or epochs"},
    {0},
};

static cvy_status read_options(void *options, const char **key_out)
{
    cvy_delayed_options *o = options;
    *key_out = "warm_up";
    CVY_TRY(cvy_stretch_parse(o->warm_up_text, &o->warm_up));
    *key_out = "cool_down";
    return cvy_stretch_parse(o->cool_down_text, &o->cool_down);
}

/* A run begins in sync, because weights change most at first. It ends in sync, because stale gradients keep the loss
 * from converging fully. */
static int in_sync(const void *options, const cvy_update_run *run, int64_t step)
{
    const cvy_delayed_options *o = options;
    return step < cvy_stretch_steps(&o->warm_up, run->steps, run->steps_per_epoch) ||
           step >= run->steps - cvy_stretch_steps(&o->cool_down, run->steps, run->steps_per_epoch);
}

/* An update is left pending for the next step only if both steps are delayed. */
static int flush_due(const void *options, const cvy_update_run *run, int64_t step)
{
    return step + 1 == run->steps || in_sync(options, run, step) || in_sync(options, run, step + 1);
}

/* An option of the optimiser that is a number; 0 if it has no such option. */
static double number_of(const cvy_tree *optimizer, const char *key)
{
    const cvy_tree *node = cvy_tree_get(optimizer, key);
    double value = 0;
    return node && cvy_tree_real(node, &value) == CVY_OK ? value : 0;
}

static void describe_run(const void *options, const cvy_update_run *run, cvy_text *out)
{
    const cvy_delayed_options *o = options;
    const int64_t warm = cvy_stretch_steps(&o->warm_up, run->steps, run->steps_per_epoch),
                  cool = cvy_stretch_steps(&o->cool_down, run->steps, run->steps_per_epoch),
                  delayed = CVY_MAX(run->steps - warm - cool, 0);
    cvy_text_add(out, "update: delayed in %lld of %lld steps: the first %lld and the last %lld are in sync%s\n",
                 (long long)delayed, (long long)run->steps, (long long)warm, (long long)cool,
                 delayed > 0 ? "" : ", which leaves none");
    if (number_of(run->optimizer, "momentum") > 0 && number_of(run->optimizer, "lookahead") == 0)
        cvy_text_add(out, "update: delayed: stale gradients with momentum need a lower learning rate; sgd with "
                          "nesterov, a momentum of 0.98, a fifth of the rate of 0.9 and lookahead: 1 trains at the "
                          "rates that sync does\n");
}

CVY_UPDATE_DEFINE(delayed) = {
    .name = "delayed",
    .summary = "the gradients of a step are summed during the next one and applied after it; in sync at the start and "
               "at the end",
    .mode = CVY_UPDATE_DELAYED,
    .any_space = 1,
    .meets_in = 2,
    .job.options = rows,
    .job.options_size = sizeof(cvy_delayed_options),
    .job.read_options = read_options,
    .job.flush_due = flush_due,
    .job.in_sync = in_sync,
    .job.describe_run = describe_run,
    .plan.create = cvy_delayed_create,
    .plan.shape = shape,
    .plan.planned = cvy_delayed_planned,
    .step = cvy_delayed_step,
    .forward = cvy_delayed_forward,
    .flush = cvy_delayed_flush,
    .abandon = cvy_delayed_abandon,
    .save.begin = save,
    .save.pending = cvy_delayed_pending,
    .save.resume = resume,
    .destroy = cvy_delayed_destroy,
};
