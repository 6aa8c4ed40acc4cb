/*
 * program_execute.c: the executor: it runs a plan's list of instructions. Between kernels it makes progress on the
 * reductions under way. It notes when each instruction ended, which is the event log.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_execute.h"

#include <stdio.h>

#include "op/comm/op_message.h"

/* An instruction that writes a weight makes its shadow copy stale, unless it writes the copy too. A copy that is fresh
 * is not made again. The weight is marked as written before it is written, so that after a fault in the middle nobody
 * reads a copy of other values. */
static cvy_status run_instr(const cvy_space *space, const cvy_instr *instr)
{
    cvy_variable *weight = instr->weight;
    if (!cvy_instr_runs(instr))
        return CVY_OK;
    if (weight && !cvy_call_reorders(instr->call))
        weight->written++;
    cvy_status status = CVY_OK;
    if (cvy_space_is_host(space) || cvy_instr_is_comm(instr))
        status = instr->run(instr->state, instr->src, instr->dst, instr->scratch);
    else if ((status = cvy_space_begin(space)) == CVY_OK) {
        status = instr->run(instr->state, instr->src, instr->dst, instr->scratch);
        const cvy_status end = cvy_space_end(space);
        status = status == CVY_OK ? end : status;
    }
    if (status == CVY_OK && instr->writes_shadow)
        weight->shadow_of = weight->written;
    return status;
}

cvy_status cvy_plan_run(cvy_plan *plan, int i)
{
    const cvy_instr *instr = &plan->instr[i];
    atomic_store_explicit(&plan->at, i, memory_order_relaxed);
    const cvy_status status = run_instr(plan->opts.space, instr);
    return status == CVY_OK
               ? CVY_OK
               : cvy_error_prefix(status, "%s", instr->call && instr->call->node ? instr->call->node->name : "step");
}

cvy_status cvy_plan_run_part(cvy_plan *plan, int first, int end, cvy_step_time *time)
{
    double *end_s = plan->times.end_s, on_axis[CVY_COMM_AXES] = {0}, bubble = 0, overlapped = 0;
    CVY_TRY(cvy_plan_push_feeds(plan));
    end_s[first - 1] = cvy_clock_s();
    for (int i = first; i < end; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const int is_comm = cvy_instr_is_comm(instr);
        const int overlaps = cvy_bucket_set_is_active(plan->buckets);
        CVY_TRY(cvy_plan_run(plan, i));
        if (cvy_bucket_set_is_active(plan->buckets) && !is_comm)
            CVY_TRY(cvy_bucket_set_progress(plan->buckets));
        if (plan->messages.nactive > 0 && !is_comm)
            CVY_TRY(cvy_messages_progress(&plan->messages));
        if (plan->exchanges.first && !is_comm)
            CVY_TRY(cvy_underway_progress(&plan->exchanges));
        end_s[i] = cvy_clock_s();
        if (is_comm)
            on_axis[instr->axis] += end_s[i] - end_s[i - 1];
        if (instr->awaits_stage)
            bubble += end_s[i] - end_s[i - 1];
        if (!is_comm && overlaps)
            overlapped += end_s[i] - end_s[i - 1];
    }
    CVY_TRY(cvy_space_sync(plan->opts.space));
    atomic_store_explicit(&plan->at, -1, memory_order_relaxed);
    time->total += end_s[CVY_MAX(end, first) - 1] - end_s[first - 1];
    for (int a = 0; a < CVY_COMM_AXES; a++) {
        time->exposed_comm += on_axis[a];
        time->beside[a] += a == CVY_COMM_DATA ? 0 : on_axis[a];
    }
    time->bubble += bubble;
    time->hidden_comm += overlapped;
    return CVY_OK;
}

cvy_status cvy_plan_execute(cvy_plan *plan, cvy_step_time *time_out)
{
    *time_out = (cvy_step_time){0};
    return cvy_plan_run_part(plan, 0, plan->ninstr, time_out);
}

const char *cvy_comm_axis_text(cvy_comm_axis axis)
{
    static const char *const words[CVY_COMM_AXES] = {"data", "pipeline", "tensor", "spatial"};
    return words[axis];
}

int cvy_instr_message(const cvy_instr *instr, char *text, size_t room)
{
    const cvy_op_comm *comm = cvy_instr_comm(instr);
    if (!comm || comm->exchange != CVY_EXCHANGE_MESSAGE)
        return 0;
    const cvy_node *node = instr->call->node;
    const struct cvy_message_options *o = node->options;
    snprintf(text, room, "%s to %s stage %lld: %s, micro-batch %d", comm->starts ? "start" : "wait",
             comm->receives ? "receive from" : "send to", (long long)o->stage + 1,
             comm->starts && comm->receives ? node->dst[0]->name : node->src[0]->name, instr->micro);
    return 1;
}
