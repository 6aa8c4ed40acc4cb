/*
 * job_read.c: cvy_run_read_job(): a job file checked before there are ranks or data, for who prepares a run.
 */
#include <string.h>

#include <convoy/program.h>

#include "comm/comm_shards.h"
#include "job/job_session.h"
#include "job/job_table.h"

static cvy_status tell(const cvy_job *job, int nranks, cvy_job_about *out)
{
    const int64_t servers = job->update.mode == CVY_UPDATE_PARAMETER_SERVER ? job->update.servers : 0;
    cvy_job_about about = {.workers = nranks - servers};
    CVY_CHECK(nranks > 0, CVY_E_ARGUMENT, "a training on %d ranks, expected at least 1", nranks);
    CVY_CHECK(about.workers > 0, CVY_E_CONFIG, "%s: update.servers is %lld, and there are %d ranks: none is left to train; take more ranks or fewer servers", job->file,
              (long long)servers, nranks);
    if (cvy_job_shards(job) > 0 && cvy_shards_check(cvy_job_shards(job), nranks) != CVY_OK)
        return cvy_error_prefix(CVY_E_CONFIG, "%s", cvy_job_where(job, NULL, "deterministic_shards"));
    CVY_TRY(cvy_job_batch(job, (int)about.workers, &about.batch));
    snprintf(about.name, sizeof about.name, "%s", job->name);
    *out = about;
    return CVY_OK;
}

cvy_status cvy_run_read_job(const cvy_job_source *source, int nranks, cvy_job_about *out)
{
    cvy_job *job = NULL;
    CVY_TRY(cvy_job_read(source, &job));
    const cvy_status status = tell(job, nranks, out);
    cvy_job_destroy(&job);
    return status;
}
