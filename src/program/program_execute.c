/*
 * program_execute.c: the executor: it runs a plan's list of instructions. Between kernels it makes progress on the
 * reductions under way. It notes when each instruction ended, which is the event log.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_execute.h"

#include <stdio.h>

/* An instruction that writes a weight makes its shadow copy stale, unless it writes the copy too. A copy that is fresh
 * is not made again. The weight is marked as written before it is written, so that after a fault in the middle nobody
 * reads a copy of other values. */
static cvy_status run_instr(const cvy_space *space, const cvy_instr *instr)
{
    cvy_variable *weight = instr->weight;
    if (!cvy_instr_runs(instr))
        return CVY_OK;
    if (weight && instr->kind != CVY_CALL_REORDER)
        weight->written++;
    cvy_status status = CVY_OK;
    if (cvy_space_is_host(space) || cvy_call_kind_of(instr->kind)->is_comm)
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
        const int is_comm = cvy_call_kind_of(instr->kind)->is_comm;
        const int overlaps = cvy_bucket_set_is_active(plan->buckets);
        CVY_TRY(cvy_plan_run(plan, i));
        if (cvy_bucket_set_is_active(plan->buckets) && !plan->opts.no_progress && !is_comm)
            CVY_TRY(cvy_bucket_set_progress(plan->buckets));
        if (plan->messages.nactive > 0 && !is_comm)
            CVY_TRY(cvy_messages_progress(&plan->messages));
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

const char *cvy_instr_text(const cvy_instr *instr)
{
    switch (instr->kind) {
    case CVY_CALL_REORDER:
    case CVY_CALL_ACCUMULATE:
    case CVY_CALL_ZERO: return cvy_call_kind_of(instr->kind)->name;
    case CVY_CALL_BARRIER: return "barrier of the node's ranks";
    default: return instr->call->node->name;
    }
}

/* A reduction is an event of its own, because it begins in one instruction and ends in another. */
static void trace_sums(const cvy_plan *plan, double base_s, cvy_json *json)
{
    for (int b = 0; b < plan->buckets->n; b++) {
        const cvy_bucket *bucket = &plan->buckets->bucket[b];
        char name[64];
        snprintf(name, sizeof name, "sum %d, %.1f MB", b, 1e-6 * (double)bucket->bytes);
        for (int end = 0; end < 2 && bucket->start_s > 0; end++) {
            cvy_json_open(json, NULL, '{');
            cvy_json_string(json, "name", name);
            cvy_json_string(json, "cat", "sums");
            cvy_json_string(json, "ph", end ? "e" : "b");
            cvy_json_real(json, "ts", ((end ? bucket->end_s : bucket->start_s) - base_s) * 1e6);
            cvy_json_int(json, "pid", cvy_plan_rank(plan));
            cvy_json_int(json, "id", b);
            cvy_json_close(json, '}');
        }
    }
}

void cvy_plan_trace(const cvy_plan *plan, double base_s, cvy_json *json)
{
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const cvy_node *node = instr->call ? instr->call->node : NULL;
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "name", cvy_instr_text(instr));
        cvy_json_string(json, "cat",
                        cvy_call_kind_of(instr->kind)->is_comm    ? "comm"
                        : node && node->phase == CVY_PHASE_UPDATE ? "update"
                        : node && node->backward                  ? "backward"
                                                                  : "forward");
        cvy_json_string(json, "ph", "X");
        cvy_json_real(json, "ts", (plan->times.end_s[i - 1] - base_s) * 1e6);
        cvy_json_real(json, "dur", (plan->times.end_s[i] - plan->times.end_s[i - 1]) * 1e6);
        cvy_json_int(json, "pid", cvy_plan_rank(plan));
        cvy_json_int(json, "tid", cvy_call_kind_of(instr->kind)->is_comm);
        cvy_json_open(json, "args", '{');
        cvy_json_string(json, "kernel", instr->call && instr->call->kernel ? instr->call->kernel->name : "");
        cvy_json_int(json, "micro_batch", instr->micro);
        cvy_json_close(json, '}');
        cvy_json_close(json, '}');
    }
    trace_sums(plan, base_s, json);
}
