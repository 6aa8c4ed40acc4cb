/*
 * session_read.c: cvy_run_read_job(): checks a job file before there are ranks or data, for programs that prepare a
 * run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include <convoy/program.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "comm/comm_grid.h"
#include "comm/comm_shards.h"
#include "job/job_table.h"
#include "session/session.h"

static cvy_status tell(const cvy_job *job, int nranks, cvy_job_about *out)
{
    const int64_t servers = job->program.update_servers;
    cvy_job_about about = {.size = sizeof about, .workers = nranks - servers};
    CVY_CHECK(nranks > 0, CVY_E_ARGUMENT, "a training on %d ranks, expected at least 1", nranks);
    CVY_CHECK(
        about.workers > 0, CVY_E_CONFIG,
        "%s: update.servers is %lld, and there are %d ranks: none is left to train; take more ranks or fewer servers",
        job->file, (long long)servers, nranks);
    int64_t length[CVY_AXES];
    cvy_job_grid(job, length);
    if (cvy_grid_check(length, nranks) != CVY_OK)
        return cvy_error_prefix(CVY_E_CONFIG, "%s", cvy_job_where(job, NULL, "parallel"));
    for (int a = 0; a < CVY_AXES; a++)
        about.workers /= a == CVY_AXIS_DATA ? 1 : length[a];
    if (cvy_job_shards(job) > 0 &&
        cvy_job_translate(cvy_shards_check(cvy_job_shards(job), (int)about.workers)) != CVY_OK)
        return cvy_error_prefix(CVY_E_CONFIG, "%s", cvy_job_where(job, NULL, "deterministic_shards"));
    CVY_TRY(cvy_job_batch(job, (int)about.workers, &about.batch));
    snprintf(about.name, sizeof about.name, "%s", job->name);
    cvy_result_write(out, &about, sizeof about);
    return CVY_OK;
}

cvy_status cvy_run_job_value(const cvy_job_source *source, const char *key, char **text_out)
{
    CVY_ENTRY();
    cvy_job *job = NULL;
    CVY_CHECK(key && text_out, CVY_E_ARGUMENT, "cvy_run_job_value() needs a key and a place for its value");
    *text_out = NULL;
    CVY_TRY(cvy_job_read(source, &job));
    const cvy_status status = cvy_job_value(job, key, text_out);
    cvy_job_destroy(&job);
    return status;
}

cvy_status cvy_run_read_job(const cvy_job_source *source, int nranks, cvy_job_about *out)
{
    CVY_ENTRY();
    cvy_job *job = NULL;
    CVY_CHECK(out, CVY_E_ARGUMENT, "cvy_run_read_job() needs an output pointer for what it finds");
    CVY_TRY(CVY_RESULT_CHECK(cvy_job_about, out));
    CVY_TRY(cvy_job_read(source, &job));
    const cvy_status status = tell(job, nranks, out);
    cvy_job_destroy(&job);
    return status;
}
