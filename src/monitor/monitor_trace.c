/*
 * monitor_trace.c: each rank writes its events as JSON, and rank 0 joins them. The format is that of Chrome's trace
 * events: each rank is a process, and its thread 1 is communication.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_trace.h"

#include <stdio.h>
#include <string.h>

#include "base/base_file.h"

/* The time on this rank's clock at which rank 0's step began. The clocks are compared right after a barrier, when all
 * ranks read them at nearly the same time. */
static cvy_status common_base(cvy_comm *comm, const cvy_plan *plan, double *base_out)
{
    CVY_TRY(comm->ops->barrier(comm));
    const double now = cvy_clock_s();
    double since = now - plan->times.end_s[-1];
    CVY_TRY(comm->ops->broadcast(comm, &since, sizeof since, 0));
    *base_out = now - since;
    return CVY_OK;
}

static cvy_status events_of_rank(const cvy_plan *plan, double base, cvy_json *json)
{
    cvy_json_open(json, NULL, '[');
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "name", "process_name");
    cvy_json_string(json, "ph", "M");
    cvy_json_int(json, "pid", cvy_plan_rank(plan));
    cvy_json_open(json, "args", '{');
    char name[32];
    snprintf(name, sizeof name, "rank %d", cvy_plan_rank(plan));
    cvy_json_string(json, "name", name);
    cvy_json_close(json, '}');
    cvy_json_close(json, '}');
    cvy_plan_trace(plan, base, json);
    cvy_json_close(json, ']');
    return json->text.status;
}

/* Joins the lists of all ranks, without their brackets, into one. */
static cvy_status join(cvy_comm *comm, const cvy_json *mine, const char *path)
{
    const size_t bytes = mine->text.bytes;
    size_t *bytes_of = NULL, total = 0;
    char *all = NULL;
    cvy_text file = {0};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_comm_alloc(comm, sizeof *bytes_of * (size_t)comm->nranks, &bytes_of));
    CVY_TRY_OUT(comm->ops->allgather(comm, &bytes, sizeof bytes, bytes_of));
    for (int r = 0; r < comm->nranks; r++)
        total += bytes_of[r];
    CVY_TRY_OUT(cvy_comm_agree(comm, comm->rank == 0 ? cvy_mem_alloc(total, &all) : CVY_OK));
    CVY_TRY_OUT(comm->ops->gatherv(comm, mine->text.data, bytes, all, bytes_of, 0));
    if (comm->rank != 0)
        goto out;
    cvy_text_add(&file, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    size_t at = 0;
    for (int r = 0; r < comm->nranks; r++) {
        const char *from = memchr(all + at, '[', bytes_of[r]);
        const char *end = all + at + bytes_of[r];
        while (end > all + at && end[-1] != ']')
            end--;
        cvy_text_add(&file, "%s", r ? ",\n" : "");
        cvy_text_add_bytes(&file, from + 1, (size_t)(end - 1 - (from + 1)));
        at += bytes_of[r];
    }
    cvy_text_add(&file, "\n]}\n");
    CVY_TRY_OUT(file.status);
    status = cvy_file_replace(path, file.data, file.bytes);
out:
    cvy_text_free(&file);
    cvy_mem_free(&bytes_of);
    cvy_mem_free(&all);
    return status;
}

cvy_status cvy_trace_write(cvy_program *program, int step, const char *path)
{
    cvy_comm *comm = program->context->comm;
    const cvy_plan *plan = program->task[step]->latest ? program->task[step]->latest : program->task[step]->plan;
    cvy_json json = {0};
    double base = 0;
    CVY_TRY(common_base(comm, plan, &base));
    cvy_status status = cvy_comm_agree(comm, events_of_rank(plan, base, &json));
    if (status == CVY_OK)
        status = join(comm, &json, path);
    cvy_text_free(&json.text);
    return cvy_comm_agree(comm, status);
}
