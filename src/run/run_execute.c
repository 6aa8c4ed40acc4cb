/*
 * run_execute.c: the executor: walks a plan's list of instructions. It makes progress on sums under way between kernels, and notes when each
 * instruction ended, which is the event log.
 */
#include "run/run_execute.h"

static int is_comm(cvy_call_kind kind)
{
    return kind == CVY_CALL_ALLREDUCE || kind == CVY_CALL_REDUCE_START || kind == CVY_CALL_REDUCE_WAIT || kind == CVY_CALL_MEET;
}

/* What writes a weight makes the copy that is kept of it stale, unless it writes that too; and one that is fresh is not made again. The weight
 * counts as written before it is, so that after a fault in the middle nobody reads a copy of something else. */
static cvy_status run_instr(const cvy_instr *instr)
{
    cvy_variable *weight = instr->weight;
    if (!cvy_instr_runs(instr))
        return CVY_OK;
    if (weight && instr->kind != CVY_CALL_REORDER)
        weight->written++;
    const cvy_status status = instr->run(instr->state, instr->src, instr->dst, instr->scratch);
    if (status == CVY_OK && instr->rounds)
        weight->rounded_of = weight->written;
    return status;
}

cvy_status cvy_plan_run(cvy_plan *plan, int i)
{
    const cvy_instr *instr = &plan->instr[i];
    atomic_store_explicit(&plan->at, i, memory_order_relaxed);
    const cvy_status status = run_instr(instr);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", instr->call && instr->call->node ? instr->call->node->name : "step");
}

static int is_summing(const cvy_plan *plan)
{
    return plan->nactive > 0 || (plan->beside && plan->beside->nactive > 0);
}

cvy_status cvy_plan_run_part(cvy_plan *plan, int first, int end, cvy_step_time *time)
{
    double *end_s = plan->end_s, exposed = 0, hidden = 0;
    end_s[first - 1] = cvy_clock_s();
    for (int i = first; i < end; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const int summing = is_summing(plan);
        CVY_TRY(cvy_plan_run(plan, i));
        if (is_summing(plan) && !plan->opts.no_push && !is_comm(instr->kind))
            CVY_TRY(cvy_plan_progress(plan));
        end_s[i] = cvy_clock_s();
        if (is_comm(instr->kind))
            exposed += end_s[i] - end_s[i - 1];
        else if (summing)
            hidden += end_s[i] - end_s[i - 1];
    }
    atomic_store_explicit(&plan->at, -1, memory_order_relaxed);
    time->total += end_s[CVY_MAX(end, first) - 1] - end_s[first - 1];
    time->exposed_comm += exposed;
    time->hidden_comm += hidden;
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
    case CVY_CALL_REORDER: return "reorder";
    case CVY_CALL_ACCUMULATE: return "accumulate";
    case CVY_CALL_ZERO: return "zero";
    case CVY_CALL_MEET: return "meeting of the node's ranks";
    default: return instr->call->node->name;
    }
}

/* Sums have a place of their own: they begin in one instruction and end in another. */
static void trace_sums(const cvy_plan *plan, double base_s, cvy_json *json)
{
    for (int b = 0; b < plan->nbucket; b++) {
        const cvy_bucket *bucket = &plan->bucket[b];
        char name[64];
        snprintf(name, sizeof name, "sum %d, %.1f MB", b, 1e-6 * (double)bucket->bytes);
        for (int end = 0; end < 2 && bucket->start_s > 0; end++) {
            cvy_json_open(json, NULL, '{');
            cvy_json_string(json, "name", name);
            cvy_json_string(json, "cat", "sums");
            cvy_json_string(json, "ph", end ? "e" : "b");
            cvy_json_real(json, "ts", ((end ? bucket->end_s : bucket->start_s) - base_s) * 1e6);
            cvy_json_int(json, "pid", plan->opts.comm->rank);
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
        cvy_json_string(json, "cat", is_comm(instr->kind) ? "comm" : node && node->phase == CVY_PHASE_UPDATE ? "update" : node && node->backward ? "backward" : "forward");
        cvy_json_string(json, "ph", "X");
        cvy_json_real(json, "ts", (plan->end_s[i - 1] - base_s) * 1e6);
        cvy_json_real(json, "dur", (plan->end_s[i] - plan->end_s[i - 1]) * 1e6);
        cvy_json_int(json, "pid", plan->opts.comm->rank);
        cvy_json_int(json, "tid", is_comm(instr->kind));
        cvy_json_open(json, "args", '{');
        cvy_json_string(json, "kernel", instr->call && instr->call->kernel ? instr->call->kernel->name : "");
        cvy_json_int(json, "micro_batch", instr->micro);
        cvy_json_close(json, '}');
        cvy_json_close(json, '}');
    }
    trace_sums(plan, base_s, json);
}
