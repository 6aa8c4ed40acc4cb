/*
 * program_execute.c: the executor: it runs a plan's list of instructions, or on a device recordings of many of them.
 * In between it makes progress on the reductions under way. It notes when each instruction ended, which is the event
 * log.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_execute.h"

#include <stdio.h>

#include "backend/gpu/gpu.h"
#include "op/comm/op_message.h"
#include "plan/plan_record.h"
#include "plan/plan_timer.h"

/* What the host notes of an instruction before it runs. One that writes a weight makes its shadow copy stale, unless it
 * writes the copy too. The weight is marked as written before it is written, so that after a fault in the middle nobody
 * reads a copy of other values. */
static void note_begin(cvy_plan *plan, int i)
{
    const cvy_instr *instr = &plan->instr[i];
    cvy_plan_outdate_copies(plan, i);
    if (instr->weight && cvy_instr_runs(instr) && !cvy_call_reorders(instr->call))
        instr->weight->written++;
}

static void note_end(const cvy_instr *instr)
{
    if (instr->writes_shadow)
        instr->weight->shadow_of = instr->weight->written;
}

/* With CONVOY_SYNC the host waits for the work of each instruction, so that a fault names it. */
static cvy_status run_instr(const cvy_plan *plan, const cvy_instr *instr)
{
    CVY_TRY(instr->run(instr->state, instr->src, instr->dst, instr->scratch));
    return cvy_gpu_is_sync(plan->opts.space) ? cvy_space_sync(plan->opts.space) : CVY_OK;
}

cvy_status cvy_plan_run(cvy_plan *plan, int i)
{
    const cvy_instr *instr = &plan->instr[i];
    atomic_store_explicit(&plan->at, i, memory_order_relaxed);
    note_begin(plan, i);
    if (!cvy_instr_runs(instr)) /* the shadow copy is up to date */
        return CVY_OK;
    const cvy_status status = run_instr(plan, instr);
    if (status == CVY_OK)
        note_end(instr);
    return status == CVY_OK
               ? CVY_OK
               : cvy_error_prefix(status, "%s", instr->call && instr->call->node ? instr->call->node->name : "step");
}

/* Runs the instructions from i on that one recording has, or instruction i alone. *plain: those before it run one by
 * one. */
static cvy_status run_next(cvy_plan *plan, int i, int end, int *plain, int *next_out)
{
    int is_done = 0;
    if (i >= *plain) {
        *plain = cvy_plan_record_end(plan, i, end);
        atomic_store_explicit(&plan->at, i, memory_order_relaxed);
        CVY_TRY(cvy_plan_replay(plan, i, *plain, &is_done));
    }
    *next_out = is_done ? *plain : i + 1;
    if (!is_done)
        return cvy_plan_run(plan, i);
    for (; i < *plain; i++) {
        note_begin(plan, i);
        note_end(&plan->instr[i]);
    }
    return CVY_OK;
}

cvy_status cvy_plan_run_part(cvy_plan *plan, int first, int end, cvy_step_time *time)
{
    double *end_s = plan->times.end_s, on_axis[CVY_COMM_AXES] = {0}, bubble = 0, overlapped = 0;
    if (first == 0)
        CVY_TRY(cvy_plan_push_feeds(plan));
    CVY_TRY(cvy_plan_mark(plan, first - 1));
    end_s[first - 1] = cvy_clock_s();
    for (int i = first, plain = first, next; i < end; i = next) {
        const cvy_instr *instr = &plan->instr[i];
        const int is_comm = cvy_instr_is_comm(instr);
        const int overlaps = cvy_bucket_set_is_active(plan->buckets);
        CVY_TRY(run_next(plan, i, end, &plain, &next));
        if (cvy_bucket_set_is_active(plan->buckets) && !is_comm)
            CVY_TRY(cvy_bucket_set_progress(plan->buckets));
        if (plan->messages.nactive > 0 && !is_comm)
            CVY_TRY(cvy_messages_progress(&plan->messages));
        if (plan->exchanges.first && !is_comm)
            CVY_TRY(cvy_underway_progress(&plan->exchanges));
        CVY_TRY(cvy_plan_mark(plan, i));
        const double now = cvy_clock_s(), seconds = now - end_s[i - 1];
        for (int k = i; k < next; k++)
            end_s[k] = now;
        if (is_comm)
            on_axis[instr->axis] += seconds;
        if (instr->awaits_stage)
            bubble += seconds;
        if (!is_comm && overlaps)
            overlapped += seconds;
    }
    CVY_TRY(cvy_bucket_set_settle(plan->buckets));
    CVY_TRY(cvy_plan_await_feeds(plan));
    CVY_TRY(cvy_plan_read_marks(plan, first, end));
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
