/*
 * monitor_trace.c: each rank writes its events as JSON, and rank 0 joins them. The format is that of Chrome's trace
 * events (program_trace.c): each rank is a process, in the order of the stages of a pipeline.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_trace.h"

#include <math.h>
#include <string.h>

#include "base/base_file.h"
#include "program/program_trace.h"

/* The time on this rank's clock at which rank 0's step began. No rank leaves a barrier before all have entered it,
 * which bounds the difference of two clocks from both sides; a few barriers make the bounds narrow. Ranks of one host
 * have one clock, so if 0 is within the bounds, it is taken. */
static cvy_status common_base(cvy_comm *comm, const cvy_plan *plan, double *base_out)
{
    enum { BARRIERS = 8 };
    double low = -INFINITY, high = INFINITY, begin = plan->times.end_s[-1];
    CVY_TRY(comm->ops->broadcast(comm, &begin, sizeof begin, 0));
    for (int i = 0; i < BARRIERS; i++) {
        const double entered = cvy_clock_s();
        CVY_TRY(comm->ops->barrier(comm));
        double first[] = {entered, cvy_clock_s()};
        const double left = first[1];
        CVY_TRY(comm->ops->broadcast(comm, first, sizeof first, 0));
        low = CVY_MAX(low, entered - first[1]);
        high = CVY_MIN(high, left - first[0]);
    }
    *base_out = begin + (low <= 0 && high >= 0 ? 0 : 0.5 * (low + high));
    return CVY_OK;
}

static cvy_status events_of_rank(const cvy_plan *plan, double base, cvy_json *json)
{
    cvy_json_open(json, NULL, '[');
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
    cvy_comm *comm = cvy_program_context(program)->comm;
    const cvy_plan *plan = cvy_program_latest_plan(program, step);
    cvy_json json = {0};
    double base = 0;
    CVY_TRY(common_base(comm, plan, &base));
    cvy_status status = cvy_comm_agree(comm, events_of_rank(plan, base, &json));
    if (status == CVY_OK)
        status = join(comm, &json, path);
    cvy_text_free(&json.text);
    return cvy_comm_agree(comm, status);
}
