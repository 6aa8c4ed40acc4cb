/*
 * run_memory.c: before tensor memory is taken: whether a planned program fits into the machine, so that a batch that is too large is refused with
 * numbers, and not ended by the system in the middle of a run.
 */
#include "run/run_program.h"

struct need { double fixed, by_batch; };   /* bytes of this rank: variables and gradients; activations and inputs, which grow with the batch */

static struct need needed(const cvy_program *p, const cvy_program_step_info *largest)
{
    struct need n = {(double)largest->plan->step_bytes, (double)(p->arena_bytes - CVY_MIN(p->arena_bytes, largest->plan->step_bytes))};
    for (int i = 0; i < p->vars->count; i++) {
        const cvy_variable *v = p->vars->at[i];
        cvy_blocking b;
        if (!v->data && cvy_blocking_make(&v->layout, &v->shape, &b) == CVY_OK)
            n.fixed += (double)b.elems * (double)cvy_dtype_bytes(v->dtype);
    }
    for (int i = 0; i < p->nstep; i++)
        n.by_batch += (double)p->step[i]->plan->feed_bytes;
    return n;
}

cvy_status cvy_program_check_memory(const cvy_program *p)
{
    const double left = (double)cvy_mem_left(), ranks = (double)p->context->comm->node_nranks, gib = 1073741824.0;
    const cvy_program_step_info *largest = p->step[0];
    for (int i = 1; i < p->nstep; i++)
        largest = p->step[i]->plan->arena_bytes > largest->plan->arena_bytes ? p->step[i] : largest;
    const struct need n = needed(p, largest);
    const double all = ranks * (n.fixed + n.by_batch);
    if (left < 0 || all <= left)
        return CVY_OK;
    const int64_t fits = (int64_t)((double)largest->batch * (left / ranks - n.fixed) / n.by_batch);
    char advice[96] = "not even a batch of one sample fits";
    if (left / ranks > n.fixed && fits >= 1)
        snprintf(advice, sizeof advice, "a batch of about %lld would fit, or train.accumulate", (long long)fits);
    return cvy_error_set(CVY_E_MEMORY, "%s with a batch of %lld needs %.2f GiB on this node (%.2f GiB for weights and gradients, %.2f GiB for activations"
                         "%s), but %.2f GiB are free: %s", largest->model->name, (long long)largest->batch, all / gib, ranks * n.fixed / gib,
                         ranks * n.by_batch / gib, ranks > 1 ? ", over its ranks" : "", left / gib, advice);
}
