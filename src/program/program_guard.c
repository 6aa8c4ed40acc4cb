/*
 * program_guard.c: if the loss or gradients of a step are not finite, the weights stay as they are, and the step is run
 * again to find where the first such number was made.
 *
 * It checks between backward and update. The loss and the gradients are sums over all ranks, so all ranks stop at the
 * same point; ranks must agree only if they have the sums of different gradients. Waiting for all reductions before the
 * first update costs next to nothing (simulated, ResNet-50 on 128 nodes: 0.03 %), because the last one ends no later.
 * The second run executes the same instructions with the same inputs and random numbers, sends no gradients, and checks
 * everything that each instruction writes. A step without such numbers pays nothing for it.
 *
 * A device decides by itself where it can (decides_on_device()). Then the host puts the check and the update into its
 * lane without waiting, and the kernels of the update change nothing if the check has found something (gpu_finite.c).
 * The host waits for the check, not for the update, and only when it has prepared the next step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "program/program_guard.h"

#include "backend/gpu/gpu.h"
#include "plan/plan_call.h"
#include "program/program_impl.h"

enum { ROWS = 4 }; /* samples named in the message */

/* The first bad number that a rank finds. */
struct finding {
    int64_t at; /* order: -1: an input, 0: a weight, i + 1: instruction i of the plan; INT64_MAX: nothing was found */
    int64_t row[ROWS]; /* sample numbers, or rows of this rank if the caller has not given the numbers */
    int32_t nrow, nbad, backward;
    char what[80];
};

/* ---- checking numbers ---- */

static int is_bad(const void *data, cvy_dtype dtype, int64_t i)
{
    switch (dtype) {
    case CVY_DTYPE_F32: return !isfinite(((const float *)data)[i]);
    case CVY_DTYPE_F64: return !isfinite(((const double *)data)[i]);
    case CVY_DTYPE_BF16: return !isfinite(cvy_bf16_get(((const cvy_bf16 *)data)[i]));
    default: return 0;
    }
}

static void add_row(struct finding *f, int64_t sample)
{
    for (int k = 0; k < f->nrow; k++)
        if (f->row[k] == sample)
            return;
    if (f->nrow < ROWS)
        f->row[f->nrow++] = sample;
}

/* Notes which of `elems` numbers are not finite. Each of `rows` samples has the same share of them; rows 0: the numbers
 * do not belong to samples. */
static int find_bad(struct finding *f, const void *data, cvy_dtype dtype, int64_t elems, int64_t rows,
                    int64_t first_row, const int64_t *sample)
{
    const int64_t each = rows > 0 ? elems / rows : 0;
    for (int64_t i = 0; i < elems; i++) {
        if (!is_bad(data, dtype, i))
            continue;
        f->nbad++;
        if (each > 0 && i / each < rows)
            add_row(f, sample ? sample[first_row + i / each] : first_row + i / each);
        if (each > 0)
            i = (i / each + 1) * each - 1; /* one of a sample is enough */
        else
            break;
    }
    return f->nbad > 0;
}

/* The same for memory in a space. Memory that cannot be mapped is not checked. */
static int check_memory(const cvy_space *space, struct finding *f, void *data, cvy_dtype dtype, int64_t elems,
                        int64_t rows, int64_t first_row, const int64_t *sample)
{
    const size_t bytes = (size_t)elems * cvy_dtype_bytes(dtype);
    void *mapped = NULL;
    if (cvy_space_map(space, data, bytes, &mapped) != CVY_OK)
        return 0;
    const int found = find_bad(f, mapped, dtype, elems, rows, first_row, sample);
    return cvy_space_unmap(space, data, bytes, 0, mapped) == CVY_OK && found;
}

static int check_feeds(const cvy_program *p, cvy_plan *plan, struct finding *f)
{
    for (int i = 0; i < plan->feeds.count; i++) {
        const cvy_plan_feed *feed = &plan->feeds.feed[i];
        const int64_t elems =
            feed->row_bytes ? plan->rows * (int64_t)(feed->row_bytes / cvy_dtype_bytes(feed->dtype)) : 0;
        if (feed->per_step || !elems ||
            !check_memory(plan->opts.space, f, cvy_plan_feed_tensor(plan, feed->data), feed->dtype, elems, plan->rows,
                          0, p->sample))
            continue;
        f->at = -1;
        snprintf(f->what, sizeof f->what, "the input %s", feed->name);
        return 1;
    }
    return 0;
}

static int check_weights(const cvy_program *p, struct finding *f)
{
    for (int i = 0; i < p->vars->count; i++) {
        const cvy_variable *v = p->vars->at[i];
        if (v->role == CVY_ROLE_STATE || v->elsewhere ||
            !check_memory(v->space, f, v->data, v->dtype, (int64_t)(v->bytes / cvy_dtype_bytes(v->dtype)), 0, 0, NULL))
            continue;
        f->at = 0;
        snprintf(f->what, sizeof f->what, "%s itself, by the update of an earlier step", v->name);
        return 1;
    }
    return 0;
}

/* Checks all that an instruction writes. A slice lies among other numbers, and is checked where it is read. */
static int check_instr(const cvy_program *p, const cvy_plan *plan, int at, struct finding *f)
{
    const cvy_instr *instr = &plan->instr[at];
    const cvy_lowered *u = plan->lowered[instr->micro];
    for (int i = 0; instr->call && i < instr->call->ndst; i++) {
        const int l = instr->call->dst[i];
        const cvy_instance *instance = l >= 0 ? &u->instance[l] : NULL;
        if (!instance || !instr->dst || !instr->dst[i] || instr->dst_buffer[i] < 0 ||
            plan->buffer[instr->dst_buffer[i]].slice)
            continue;
        const int64_t rows = u->graph->batch.local_n;
        const int of_samples = rows > 0 && !instance->value->variable && instance->value->shape.ndim > 0 &&
                               instance->value->shape.dim[0] == rows && instance->elems % rows == 0;
        if (!check_memory(plan->opts.space, f, instr->dst[i], instance->dtype, instance->elems, of_samples ? rows : 0,
                          plan->first_row[instr->micro], p->sample))
            continue;
        f->at = at + 1;
        f->backward = instr->call->node && instr->call->node->backward;
        snprintf(f->what, sizeof f->what, "%s (%s)", cvy_instr_text(instr), f->backward ? "backward" : "forward");
        return 1;
    }
    return 0;
}

/* ---- the second run ---- */

/* Runs the step again, to its end on all ranks, since it may contain reductions over ranks. */
static cvy_status run_again(const cvy_program *p, cvy_plan *plan, struct finding *f)
{
    int found = check_feeds(p, plan, f) || check_weights(p, f);
    for (int i = 0; i < plan->update.first; i++) {
        if (cvy_instr_exchanges(&plan->instr[i]))
            continue;
        CVY_TRY(cvy_plan_run(plan, i));
        found = found || check_instr(p, plan, i, f);
    }
    atomic_store_explicit(&plan->at, -1, memory_order_relaxed);
    if (!found)
        f->at = INT64_MAX;
    return CVY_OK;
}

static cvy_status say(const struct finding *all, int nranks)
{
    cvy_text t = {0};
    int first = 0, others = 0;
    for (int r = 1; r < nranks; r++)
        first = all[r].at < all[first].at ? r : first;
    const struct finding *f = &all[first];
    if (f->at == INT64_MAX)
        return cvy_error_set(CVY_E_NUMERIC, "when the step was run again, all numbers of each rank were finite: their "
                                            "sum over ranks is too large, or memory or a processor is faulty");
    for (int r = 0; r < nranks; r++)
        others += r != first && all[r].at == f->at;
    cvy_text_add(&t, "the first value that is not finite is in %s, on rank %d", f->what, first);
    for (int i = 0; i < f->nrow; i++)
        cvy_text_add(&t, "%s%lld", i ? ", " : f->nbad > 1 ? ", of samples " : ", of sample ", (long long)f->row[i]);
    if (f->nbad > f->nrow && f->nrow > 0)
        cvy_text_add(&t, " and %d more", f->nbad - f->nrow);
    if (others)
        cvy_text_add(&t, " (and on %d other rank%s)", others, others == 1 ? "" : "s");
    cvy_error_set(CVY_E_NUMERIC, "%s", t.data ? t.data : "a number is not finite");
    cvy_text_free(&t);
    return CVY_E_NUMERIC;
}

static cvy_status explain(cvy_program *p, cvy_plan *plan)
{
    cvy_comm *comm = p->context->comm;
    struct finding mine, *all = NULL;
    memset(&mine, 0, sizeof mine);
    CVY_TRY(cvy_comm_alloc(comm, sizeof *all * (size_t)comm->nranks, &all));
    cvy_status status = cvy_comm_agree(comm, run_again(p, plan, &mine));
    if (status == CVY_OK)
        status = comm->ops->allgather(comm, &mine, sizeof mine, all);
    if (status == CVY_OK)
        status = say(all, comm->nranks);
    cvy_mem_free(&all);
    return status;
}

/* ---- the step ---- */

static int losses_are_finite(const cvy_program *p, const cvy_program_task *s)
{
    int finite = 1;
    for (int i = 0; i < s->nloss && !p->kernel.by_clock; i++) {
        const double *loss = cvy_plan_find(s->plan, s->loss[i].value, 0);
        finite &= !loss || isfinite(*loss);
    }
    return finite;
}

/* Waits for the last reduction. Only the update is left to do then. */
static cvy_status wait_for_sums(const cvy_program *p, cvy_program_task *s)
{
    cvy_bucket_set *buckets = s->plan->buckets;
    if (buckets->nactive == 0 && !p->update.shape.own_losses)
        return CVY_OK;
    for (int b = 0; b < buckets->n; b++) {
        const double begin = cvy_clock_s();
        if (!buckets->bucket[b].active)
            continue;
        CVY_TRY(cvy_bucket_set_wait(buckets, b));
        cvy_step_time_add(&s->time, cvy_plan_bucket_axis(s->plan, b), cvy_clock_s() - begin);
    }
    const double begin = cvy_clock_s();
    CVY_TRY(cvy_program_share_losses(p, s));
    if (p->update.shape.own_losses)
        cvy_step_time_add(&s->time, CVY_COMM_PIPELINE, cvy_clock_s() - begin);
    return CVY_OK;
}

static cvy_status gradients_are_finite(const cvy_program *p, cvy_program_task *s, int *finite_out)
{
    cvy_comm *comm = p->context->comm;
    const double begin = cvy_clock_s();
    int found = 1;
    if (!p->kernel.by_clock)
        CVY_TRY(cvy_gradients_finite(s->plan, &found));
    const double checked = cvy_clock_s();
    int64_t finite = found;
    s->time.total += checked - begin;
    if ((s->plan->head.is_partitioned || cvy_grid_is_used(&p->grid)) && comm->nranks > 1) {
        CVY_TRY(comm->ops->allreduce(comm, &finite, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
        /* The last stage is the first to end its backward passes, and waits here for the first stage. */
        cvy_step_time_add(&s->time, cvy_grid_is_used(&p->grid) ? CVY_COMM_PIPELINE : CVY_COMM_DATA,
                          cvy_clock_s() - checked);
    }
    *finite_out = finite != 0;
    return CVY_OK;
}

/* Forward, backward and all reductions. */
static cvy_status make_gradients(cvy_program *p, cvy_program_task *s)
{
    s->time = (cvy_step_time){0};
    s->run.begin_s = cvy_clock_s();
    CVY_TRY(cvy_plan_run_part(s->plan, 0, s->plan->update.first, &s->time));
    CVY_TRY(wait_for_sums(p, s));
    return cvy_space_is_host(s->plan->opts.space) || s->plan->finite || p->kernel.by_clock ? CVY_OK : cvy_make_check(s);
}

static cvy_status check(cvy_program *p, cvy_program_task *s)
{
    int finite = 0;
    s->lost = losses_are_finite(p, s) ? "a gradient" : "the loss";
    if (losses_are_finite(p, s))
        CVY_TRY(gradients_are_finite(p, s, &finite));
    return finite ? CVY_OK : explain(p, s->plan);
}

cvy_status cvy_guard_update(cvy_program *p, cvy_program_task *s)
{
    CVY_TRY(make_gradients(p, s));
    return check(p, s);
}

/* ---- a step whose update the device decides on ---- */

/* The host decides if ranks have the sums of different gradients, and if not all of the update can be held. */
static int decides_on_device(const cvy_program *p, const cvy_program_task *s)
{
    return s->plan->update.can_hold && !s->plan->head.is_partitioned && !cvy_grid_is_used(&p->grid) &&
           !p->kernel.by_clock;
}

/* The mark of the check is put after the copies of the losses, and before the update. */
static cvy_status queue_update(cvy_program_task *s)
{
    for (int i = 0; i < s->nloss; i++)
        CVY_TRY(cvy_plan_fetch(s->plan, s->loss[i].value));
    CVY_TRY(cvy_gpu_finite_start(s->plan->finite));
    CVY_TRY(cvy_plan_run_part(s->plan, s->plan->update.first, s->plan->ninstr, &s->time));
    s->run.is_checking = 1;
    return CVY_OK;
}

int cvy_guarded_is_done(const cvy_program_task *s)
{
    return !s->run.is_checking || cvy_gpu_finite_is_done(s->plan->finite);
}

cvy_status cvy_guarded_end(cvy_program *p, cvy_program_task *s)
{
    int finite = 1;
    if (!s->run.is_checking)
        return CVY_OK;
    s->run.is_checking = 0;
    CVY_TRY(cvy_gpu_finite_end(s->plan->finite, &finite));
    s->time.total = cvy_clock_s() - s->run.begin_s;
    s->lost = losses_are_finite(p, s) ? "a gradient" : "the loss";
    return finite ? CVY_OK : explain(p, s->plan);
}

cvy_status cvy_guarded_step(cvy_program *p, cvy_program_task *s, double lr)
{
    (void)lr;
    CVY_TRY(make_gradients(p, s));
    if (decides_on_device(p, s))
        return queue_update(s);
    CVY_TRY(check(p, s));
    return cvy_plan_run_part(s->plan, s->plan->update.first, s->plan->ninstr, &s->time);
}
