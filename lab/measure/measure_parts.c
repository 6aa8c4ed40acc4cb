/*
 * measure_parts.c: to which part of a step an instruction belongs, and what the parts take in a bench.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "measure/measure_bench.h"

const cvy_value *cvy_instr_moved(const cvy_plan *plan, const cvy_instr *instr)
{
    return instr->call && instr->call->src[0] >= 0 ? plan->lowered[instr->micro]->instance[instr->call->src[0]].value
                                                   : NULL;
}

/* A backward node makes gradients of weights if all its results are accumulated over the step. */
cvy_step_part cvy_instr_part(const cvy_plan *plan, const cvy_instr *instr)
{
    const cvy_node *node = instr->call ? instr->call->node : NULL;
    int temporary = 0;
    if (!instr->call || cvy_instr_exchanges(instr))
        return CVY_STEP_UPDATE;
    if (!node) {
        const cvy_value *value = cvy_instr_moved(plan, instr);
        return instr->call->phase == CVY_PHASE_UPDATE                  ? CVY_STEP_UPDATE
               : value && value->producer && value->producer->backward ? CVY_STEP_BACKWARD_DATA
                                                                       : CVY_STEP_FORWARD;
    }
    if (node->phase == CVY_PHASE_UPDATE || !node->backward)
        return node->phase == CVY_PHASE_UPDATE ? CVY_STEP_UPDATE : CVY_STEP_FORWARD;
    for (int i = 0; i < node->ndst; i++)
        temporary |= node->dst[i] && node->dst[i]->kind != CVY_VALUE_ACCUMULATOR;
    return temporary ? CVY_STEP_BACKWARD_DATA : CVY_STEP_BACKWARD_WEIGHTS;
}

int cvy_bench_trainers(const cvy_bench *b)
{
    const cvy_grid *grid = cvy_program_grid(b->session.program);
    const int servers = b->opts.mode == CVY_BENCH_FORWARD ? 0 : grid->ndata - cvy_program_nworkers(b->session.program);
    return grid->all->nranks - servers;
}

int cvy_bench_serves(const cvy_bench *b)
{
    return b->session.context->comm->rank >= cvy_bench_trainers(b);
}

/* Communication that stands in the plan is in time->exposed_comm; this leaves it out. */
static int computes(const cvy_instr *instr)
{
    return instr->call && cvy_instr_runs(instr) && !cvy_instr_is_comm(instr);
}

void cvy_bench_add_parts(cvy_bench *b)
{
    for (int turn = 0; turn < b->nturn; turn++) {
        const cvy_plan *plan = cvy_bench_turn_plan(b, turn);
        if ((b->nstep - 1) % b->turn[turn].every != 0) /* the latest step left this turn out */
            continue;
        for (int k = 0; k < plan->ninstr; k++)
            if (computes(&plan->instr[k]))
                b->part.s[cvy_instr_part(plan, &plan->instr[k])] += plan->times.end_s[k] - plan->times.end_s[k - 1];
    }
}

/* Sums over the steps of this rank become means over steps and ranks that train, in ms, which add up to ms_mean. On a
 * device a step whose instructions are timed may take longer than one that is recorded: then the parts are shares. */
cvy_status cvy_bench_fill_parts(const cvy_bench *b, cvy_bench_result *r)
{
    cvy_comm *comm = b->session.context->comm;
    const int ntrainer = cvy_bench_trainers(b), trains = !cvy_bench_serves(b);
    double sum[CVY_STEP_PARTS + 1], slowest = 0, all = 0;
    for (int i = 0; i < CVY_STEP_PARTS; i++)
        sum[i] = trains * 1e3 * b->part.s[i] / (double)(b->part.steps * ntrainer);
    sum[CVY_STEP_PARTS] = trains * 1e3 * b->own.exposed_comm / (double)(b->steps * ntrainer);
    CVY_TRY(comm->ops->allreduce(comm, sum, CVY_STEP_PARTS + 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    for (int i = 0; i < CVY_STEP_PARTS; i++)
        all += sum[i];
    const double room = CVY_MAX(r->ms_mean - sum[CVY_STEP_PARTS], 0);
    for (int i = 0; i < CVY_STEP_PARTS && all > room && !cvy_space_is_host(&b->session.context->space); i++)
        sum[i] *= room / all;
    for (int64_t i = 0; i < b->steps; i++)
        slowest += 1e3 * b->slowest_s[i] / (double)b->steps;
    r->forward_ms = sum[CVY_STEP_FORWARD];
    r->backward_ms = sum[CVY_STEP_BACKWARD_DATA] + sum[CVY_STEP_BACKWARD_WEIGHTS];
    r->update_ms = sum[CVY_STEP_UPDATE];
    r->imbalance_ms = CVY_MIN(slowest, sum[CVY_STEP_PARTS]);
    r->communication_ms = sum[CVY_STEP_PARTS] - r->imbalance_ms;
    r->other_ms = r->ms_mean - r->forward_ms - r->backward_ms - r->update_ms - sum[CVY_STEP_PARTS];
    return CVY_OK;
}
