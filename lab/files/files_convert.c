/*
 * files_convert.c: cvy_run_convert(): converts a data set to another format, on all ranks. It needs no program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "base/machine/base_clock.h"
#include "context/context.h"
#include "data/data_convert.h"
#include "files/files.h"
#include "job/job.h"
#include "session/session_source.h"

static cvy_status options_of(cvy_pool *pool, const char *text, cvy_tree **out)
{
    if (!text)
        return CVY_OK;
    char *braced = NULL;
    const int is_map = text[strspn(text, " ")] == '{';
    CVY_TRY(cvy_pool_printf(pool, &braced, is_map ? "%s" : "{%s}", text));
    return cvy_tree_parse_text(pool, "options", braced, strlen(braced), out);
}

static cvy_status say(const cvy_convert_request *r, const char *format, int64_t nclasses,
                      const cvy_convert_report *done, double seconds, char **report_out)
{
    char classes[48] = "", bad[64] = "", kept[80] = "";
    if (nclasses > 0)
        snprintf(classes, sizeof classes, " of %lld class%s", (long long)nclasses, nclasses == 1 ? "" : "es");
    if (done->nbad > 0)
        snprintf(bad, sizeof bad, ", %lld damaged left out", (long long)done->nbad);
    if (done->nkept > 0)
        snprintf(kept, sizeof kept, ", %lld of them from an earlier attempt", (long long)done->nkept);
    return cvy_mem_printf(report_out, "%s: %s, %lld samples%s%s, %.1f MB in %lld part%s%s, %.1f s (%.0f MB/s)\n",
                          r->destination, format, (long long)done->nsamples, classes, bad, 1e-6 * (double)done->bytes,
                          (long long)done->npieces, done->npieces == 1 ? "" : "s", kept, seconds,
                          1e-6 * (double)done->bytes / CVY_MAX(seconds, 1e-3));
}

static cvy_status convert(cvy_context *context, cvy_pool *pool, const cvy_convert_request *r, char **report_out)
{
    cvy_comm *comm = context->comm;
    cvy_dataset *d = NULL;
    cvy_convert_report done = {0};
    cvy_tree *options = NULL;
    const double start = cvy_clock_s();
    cvy_status status = options_of(pool, r->options, &options);
    if (status == CVY_OK)
        status = cvy_job_open_source(pool, r->source, &d);
    status = cvy_comm_agree(comm, status);
    if (status == CVY_OK) {
        const cvy_convert_opts opts = {.format = r->format ? r->format : "pack",
                                       .options = options,
                                       .pieces = r->parts,
                                       .resize_h = r->height,
                                       .resize_w = r->width,
                                       .check = !r->unchecked,
                                       .skip_bad = r->skip_bad,
                                       .progress = r->progress,
                                       .user = r->user};
        status = cvy_convert(d, comm, r->destination, &opts, &done);
        if (status == CVY_OK && comm->rank == 0)
            status = say(r, opts.format, cvy_dataset_describe(d)->nclasses, &done, cvy_clock_s() - start, report_out);
        status = cvy_comm_agree(comm, status);
    }
    cvy_dataset_destroy(&d);
    return status;
}

cvy_status cvy_run_convert(cvy_context *context, const cvy_convert_request *request, char **report_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_pool *pool = NULL;
    cvy_convert_request r;
    CVY_TRY(CVY_OPTS_READ(cvy_convert_request, request, &r));
    CVY_CHECK(report_out && r.source && r.destination, CVY_E_ARGUMENT,
              "cvy_run_convert() needs a source, a destination and an output pointer for the report");
    *report_out = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = convert(context, pool, &r, report_out);
    cvy_pool_destroy(&pool);
    return status;
}
