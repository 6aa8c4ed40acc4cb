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

enum { GRAIN = 1 << 16, PIECE = 4 << 20 }; /* bytes: for a thread; that are kept aside at a time on a device */

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

/* The same in memory that the host cannot read. Copies in one lane follow each other, so the host waits for none. */
static cvy_status exchange_on_device(const cvy_space *space, char *a, char *b, size_t bytes, char *aside)
{
    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t n = CVY_MIN(bytes - at, PIECE);
        CVY_TRY(cvy_space_copy(space, CVY_LANE_COMPUTE, aside, a + at, n));
        CVY_TRY(cvy_space_copy(space, CVY_LANE_COMPUTE, a + at, b + at, n));
        CVY_TRY(cvy_space_copy(space, CVY_LANE_COMPUTE, b + at, aside, n));
    }
    return CVY_OK;
}

static cvy_status exchange_variable(const cvy_program *p, cvy_variable *v, char *aside)
{
    char *data[] = {v->data, v->average->data};
    if (aside)
        CVY_TRY(exchange_on_device(v->space, data[0], data[1], v->bytes, aside));
    else if (!p->memory.node_shared || !v->is_borrowed || p->grid.data->node_rank == 0)
        cvy_parallel_for(p->context->threads, (int64_t)v->bytes, GRAIN, exchange, data);
    v->written++;
    v->average->written++;
    return CVY_OK;
}

static cvy_status exchange_all(const cvy_program *p, char *aside)
{
    for (int i = 0; i < p->vars->count; i++)
        if (p->vars->at[i]->average && !p->vars->at[i]->elsewhere)
            CVY_TRY(exchange_variable(p, p->vars->at[i], aside));
    return aside ? cvy_space_sync(&p->context->space) : CVY_OK;
}

cvy_status cvy_program_exchange_averages(cvy_program *p)
{
    cvy_comm *comm = p->grid.data;
    const cvy_space *space = &p->context->space;
    char *aside = NULL;
    if (!cvy_vars_have_averages(p->vars))
        return CVY_OK;
    CVY_TRY(comm->ops->barrier(comm)); /* of weights that ranks share, no other rank is reading or writing now */
    cvy_status status = cvy_space_is_host(space) ? CVY_OK : cvy_space_alloc_host(space, PIECE, &aside);
    if (status == CVY_OK)
        status = exchange_all(p, aside);
    if (aside)
        cvy_space_free_host(space, &aside, PIECE);
    CVY_TRY(status);
    return comm->ops->barrier(comm);
}
