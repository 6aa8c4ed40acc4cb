/*
 * program_trace.c: writes the latest step of a plan as Chrome trace events. A rank is a process, with a thread for
 * kernels and one for communication; with a pipeline also one for whole micro-batches, and arrows for messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_trace.h"

#include <stdio.h>

#include "op/comm/op_message.h"
#include "plan/plan_call.h"

enum { THREAD_KERNELS, THREAD_COMM, THREAD_PASSES, NTHREADS };

static int has_stages(const cvy_plan *plan)
{
    return plan->opts.grid && plan->opts.grid->nstages > 1;
}

/* ---- the names of processes and threads ---- */

static void add_meta(const cvy_plan *plan, const char *what, int thread, const char *name, int sort_index,
                     cvy_json *json)
{
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "name", what);
    cvy_json_string(json, "ph", "M");
    cvy_json_int(json, "pid", cvy_plan_rank(plan));
    if (thread >= 0)
        cvy_json_int(json, "tid", thread);
    cvy_json_open(json, "args", '{');
    if (name)
        cvy_json_string(json, "name", name);
    else
        cvy_json_int(json, "sort_index", sort_index);
    cvy_json_close(json, '}');
    cvy_json_close(json, '}');
}

static void name_lanes(const cvy_plan *plan, cvy_json *json)
{
    static const char *const names[NTHREADS] = {"kernels", "communication", "micro-batches"};
    static const int order[NTHREADS] = {1, 2, 0};
    const cvy_grid *grid = plan->opts.grid;
    const int on_device = !cvy_space_is_host(plan->opts.space);
    cvy_device device;
    char name[224];
    cvy_space_about(plan->opts.space, &device);
    if (has_stages(plan))
        snprintf(name, sizeof name, "stage %d, rank %d%s%s", grid->stage + 1, cvy_plan_rank(plan),
                 on_device ? " on " : "", device.name);
    else
        snprintf(name, sizeof name, "rank %d%s%s", cvy_plan_rank(plan), on_device ? " on " : "", device.name);
    add_meta(plan, "process_name", -1, name, 0, json);
    add_meta(plan, "process_sort_index", -1, NULL,
             has_stages(plan) ? grid->stage * grid->ndata + grid->data_rank : cvy_plan_rank(plan), json);
    for (int i = 0; i < NTHREADS - !has_stages(plan); i++) {
        add_meta(plan, "thread_name", i, names[i], 0, json);
        add_meta(plan, "thread_sort_index", i, NULL, order[i], json);
    }
}

/* ---- events ---- */

static void open_event(const cvy_plan *plan, const char *name, const char *cat, const char *kind, double at_s,
                       int thread, cvy_json *json)
{
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "name", name);
    cvy_json_string(json, "cat", cat);
    cvy_json_string(json, "ph", kind);
    cvy_json_real(json, "ts", at_s * 1e6);
    cvy_json_int(json, "pid", cvy_plan_rank(plan));
    if (thread >= 0)
        cvy_json_int(json, "tid", thread);
}

/* A reduction is an event of its own, because it begins in one instruction and ends in another. */
static void add_sums(const cvy_plan *plan, double base_s, cvy_json *json)
{
    for (int b = 0; b < plan->buckets->n; b++) {
        const cvy_bucket *bucket = &plan->buckets->bucket[b];
        char name[64];
        snprintf(name, sizeof name, "sum %d, %.1f MB", b, 1e-6 * (double)bucket->bytes);
        for (int end = 0; end < 2 && bucket->start_s > 0; end++) {
            open_event(plan, name, "sums", end ? "e" : "b", (end ? bucket->end_s : bucket->start_s) - base_s, -1, json);
            cvy_json_int(json, "id", b);
            cvy_json_close(json, '}');
        }
    }
}

static const char *category(const cvy_instr *instr)
{
    const cvy_node *node = instr->call ? instr->call->node : NULL;
    return cvy_instr_is_comm(instr)                  ? "comm"
           : node && node->phase == CVY_PHASE_UPDATE ? "update"
           : node && node->backward                  ? "backward"
                                                     : "forward";
}

static void add_instr(const cvy_plan *plan, int i, double base_s, cvy_json *json)
{
    const cvy_instr *instr = &plan->instr[i];
    const double *end_s = plan->times.end_s;
    const int is_comm = cvy_instr_is_comm(instr);
    char message[160];
    const int is_message = cvy_instr_message(instr, message, sizeof message);
    open_event(plan, is_message ? message : cvy_instr_text(instr), category(instr), "X", end_s[i - 1] - base_s,
               is_comm ? THREAD_COMM : THREAD_KERNELS, json);
    cvy_json_real(json, "dur", (end_s[i] - end_s[i - 1]) * 1e6);
    cvy_json_open(json, "args", '{');
    const cvy_kernel_def *kernel = instr->call ? instr->call->kernel : NULL;
    cvy_json_string(json, "kernel", cvy_call_is_staged(instr->call) ? "staged: the host" : kernel ? kernel->name : "");
    cvy_json_int(json, "micro_batch", instr->micro);
    if (is_comm)
        cvy_json_string(json, "axis", cvy_comm_axis_text(instr->axis));
    cvy_json_close(json, '}');
    cvy_json_close(json, '}');
}

/* ---- with a pipeline: whole passes, and arrows ---- */

/* An arrow goes from the start of a send to the end of the wait for its receive on the other rank. A tag is used by one
 * value in one direction only. */
static void add_arrow(const cvy_plan *plan, int i, double base_s, cvy_json *json)
{
    const cvy_instr *instr = &plan->instr[i];
    const cvy_op_comm *comm = cvy_instr_comm(instr);
    if (!comm || comm->exchange != CVY_EXCHANGE_MESSAGE || comm->receives == comm->starts)
        return;
    const struct cvy_message_options *o = instr->call->node->options;
    const int ends = comm->receives;
    open_event(plan, "message", "message", ends ? "f" : "s",
               (ends ? plan->times.end_s[i] : plan->times.end_s[i - 1]) - base_s, THREAD_COMM, json);
    if (ends)
        cvy_json_string(json, "bp", "e");
    cvy_json_int(json, "id", (plan->opts.grid->data_rank * (int64_t)CVY_TAGS + o->tag) * plan->nmicro + instr->micro);
    cvy_json_close(json, '}');
}

/* Which pass of which micro-batch an instruction computes for; backward -1: none. */
typedef struct pass {
    int micro, backward;
} pass;

static pass pass_of(const cvy_instr *instr)
{
    const cvy_call *call = instr->call;
    return call && call->phase == CVY_PHASE_MICRO && cvy_instr_computes(instr) ? (pass){instr->micro, call->backward}
                                                                               : (pass){0, -1};
}

/* Adds an event from the first kernel of a pass to its last one. */
static void add_passes(const cvy_plan *plan, double base_s, cvy_json *json)
{
    const double *end_s = plan->times.end_s;
    for (int first = 0, last; first < plan->ninstr; first = last + 1) {
        const pass p = pass_of(&plan->instr[first]);
        char name[48];
        last = first;
        if (p.backward < 0)
            continue;
        for (int i = first; i < plan->ninstr; i++) {
            const pass q = pass_of(&plan->instr[i]);
            if (q.backward >= 0 && (q.micro != p.micro || q.backward != p.backward))
                break;
            last = q.backward >= 0 ? i : last;
        }
        snprintf(name, sizeof name, "%s %d", p.backward ? "backward" : "forward", p.micro);
        open_event(plan, name, p.backward ? "backward" : "forward", "X", end_s[first - 1] - base_s, THREAD_PASSES,
                   json);
        cvy_json_real(json, "dur", (end_s[last] - end_s[first - 1]) * 1e6);
        cvy_json_close(json, '}');
    }
}

void cvy_plan_trace(const cvy_plan *plan, double base_s, cvy_json *json)
{
    name_lanes(plan, json);
    for (int i = 0; i < plan->ninstr; i++)
        add_instr(plan, i, base_s, json);
    add_sums(plan, base_s, json);
    for (int i = 0; i < plan->ninstr && has_stages(plan); i++)
        add_arrow(plan, i, base_s, json);
    if (has_stages(plan))
        add_passes(plan, base_s, json);
}
