/*
 * plan_clock.c: a plan whose kernels only wait (src/kernel/clock). The kernels are never created: each instruction
 * waits for the time that its kernel took according to the wisdom.
 *
 * All-reduces and barriers run as usual.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "plan/plan_call.h"
#include "plan/plan_offers.h"
#include "plan/plan_wisdom.h"

static cvy_status fail_unknown(const cvy_lowered *u, const cvy_call *call, int threads)
{
    const cvy_graph *g = u->graph;
    const char *what = call->node ? call->node->name : u->instance[call->src[0]].value->name;
    const char *kernel = call->node ? call->offer->kernel->name : "reorder";
    return cvy_error_set(CVY_E_CONFIG,
                         "%s (%s, %lld samples, threads %d): its time was never measured here, so the clock cannot "
                         "wait for it. Measure it with --planning measure: in this run, or before it on a quiet "
                         "machine by `convoy bench` "
                         "of the same job or --model with the same options, dtype and input, and "
                         "--batch %lld --threads %d --planning measure",
                         what, kernel, (long long)g->batch.local_n, threads, (long long)g->batch.local_n, threads);
}

/* Adding the gradients of a micro-batch to the sum, and zeroing it, are not measured. A simulated node takes as long as
 * its memory moves the bytes. On a real node they count as 0 seconds. The
 * clock's scale is for kernels. */
static double sum_seconds(const cvy_plan *plan, const cvy_instr *instr)
{
    const cvy_comm *comm = plan->opts.comm;
    return comm->simulated_cores > 0 && instr->ndst > 0 && instr->dst_buffer[0] >= 0
               ? cvy_instr_passes(instr) * (double)plan->buffer[instr->dst_buffer[0]].bytes * comm->simulated_move_s /
                     plan->opts.clock->clock.scale
               : 0;
}

/* Shadow copies are kept across steps, so they take no time. */
static cvy_status find_seconds(const cvy_plan *plan, const cvy_instr *instr, double *seconds_out)
{
    const cvy_lowered *u = plan->lowered[instr->micro];
    double ms = 0;
    *seconds_out = sum_seconds(plan, instr);
    if (!instr->call || cvy_call_makes_shadow(u, instr->call))
        return CVY_OK;
    if (u->graph->batch.local_n == 0 && instr->call->phase != CVY_PHASE_UPDATE)
        return CVY_OK; /* a parameter server has no samples */
    CVY_TRY(cvy_wisdom_find_call(plan->opts.clock->times, u, instr->call, plan->opts.threads, &ms));
    if (ms < 0 || isinf(ms))
        return fail_unknown(u, instr->call, plan->opts.threads);
    *seconds_out = 1e-3 * ms;
    if (plan->head.simulated_parts > 1 && instr->call->node && instr->call->node->phase == CVY_PHASE_UPDATE)
        *seconds_out /= plan->head.simulated_parts;
    return CVY_OK;
}

/* For comm.progress: thread on simulated nodes. There one core of each node does not compute; it makes progress on
 * reductions and does their additions. */
static cvy_status make_progress(void *user, int *busy_out)
{
    cvy_plan *plan = user;
    CVY_TRY(cvy_bucket_set_progress(plan->buckets));
    *busy_out = cvy_bucket_set_is_active(plan->buckets);
    return CVY_OK;
}

cvy_status cvy_instr_bind_clock(cvy_plan *plan, cvy_instr *instr, double share)
{
    cvy_clock_wait *wait = &plan->times.wait[instr - plan->instr];
    const cvy_instr *first = plan->instr;
    while (!cvy_instr_computes(first))
        first++;
    wait->clock = &plan->opts.clock->clock;
    wait->begins_step = instr == first;
    CVY_TRY(find_seconds(plan, instr, &wait->seconds));
    wait->seconds *= share;
    const cvy_comm *comm = plan->opts.comm;
    if (comm->simulated_cores && comm->nranks > 1 && plan->opts.reduce.progress == CVY_PROGRESS_THREAD) {
        wait->seconds *= (double)comm->simulated_cores / (comm->simulated_cores - 1);
        wait->meanwhile = make_progress;
        wait->user = plan;
    }
    instr->run = cvy_clock_run;
    instr->state = wait;
    return CVY_OK;
}
