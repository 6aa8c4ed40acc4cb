/*
 * program_average.c: the running averages of the weights (option `average` of an optimiser), in the place of the
 * weights.
 *
 * Training goes on with the weights themselves; scores are of the averages. Plans know the addresses of the weights, so
 * the contents change places. It runs before and after a validation, not in a step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/machine/base_parallel.h"
#include "program/program_impl.h"
#include "program/program_update.h"

enum { GRAIN = 1 << 16 }; /* bytes for a thread */

/* Some modes have a state of the optimiser on one rank only, or other weights on each rank until they meet. */
cvy_status cvy_program_check_average(const cvy_program *p, const cvy_optimise_opts *optimise)
{
    const cvy_tree *average = optimise->options ? cvy_tree_get(optimise->options, "average") : NULL;
    const cvy_update_def *def = p->update.def;
    double decay = 0;
    if (!average)
        return CVY_OK;
    CVY_TRY(cvy_tree_real(average, &decay));
    CVY_CHECK(
        decay == 0 || (!p->update.shape.state_elsewhere && p->update.shape.state_parts <= 1 && !def->watch.async &&
                       !def->job.flush_due && !def->flush_before_forward),
        CVY_E_CONFIG,
        "opts.optimizer_options: average is %g, but with %s%s not every rank has all averages of the weights: leave "
        "it out, or take opts.update_mode: sync without opts.overlap: forward",
        decay, p->opts.overlap == CVY_OVERLAP_FORWARD ? "opts.overlap: forward" : "opts.update_mode: ",
        p->opts.overlap == CVY_OVERLAP_FORWARD ? "" : def->name);
    return CVY_OK;
}

static void exchange(int64_t first, int64_t end, void *arg)
{
    char *const *data = arg, part[1024];
    for (int64_t at = first; at < end; at += (int64_t)sizeof part) {
        const size_t n = (size_t)CVY_MIN((int64_t)sizeof part, end - at);
        memcpy(part, data[0] + at, n);
        memcpy(data[0] + at, data[1] + at, n);
        memcpy(data[1] + at, part, n);
    }
}

cvy_status cvy_program_exchange_averages(cvy_program *p)
{
    cvy_comm *comm = p->grid.data;
    if (!cvy_vars_have_averages(p->vars))
        return CVY_OK;
    CVY_TRY(comm->ops->barrier(comm)); /* of weights that ranks share, no other rank is reading or writing now */
    for (int i = 0; i < p->vars->count; i++) {
        cvy_variable *v = p->vars->at[i];
        if (!v->average || v->elsewhere)
            continue;
        char *data[] = {v->data, v->average->data};
        if (!p->memory.node_shared || !v->is_borrowed || comm->node_rank == 0)
            cvy_parallel_for(p->context->threads, (int64_t)v->bytes, GRAIN, exchange, data);
        v->written++;
        v->average->written++;
    }
    return comm->ops->barrier(comm);
}
