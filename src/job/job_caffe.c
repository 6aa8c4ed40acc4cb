/*
 * job_caffe.c: the job of a solver of Caffe. It is parsed from the text that `convoy import` writes, so both are the
 * same job. The weights and the state that the user gives are kept: a new run begins with them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/job.h>

#include "exchange/exchange_caffe.h"
#include "job/job.h"

/* The name of the text in messages. */
static cvy_status parse(const cvy_job_source *source, const cvy_caffe_job *caffe, cvy_job **out)
{
    cvy_text name = {0};
    cvy_text_add(&name, "%s as a job", source->caffe);
    const cvy_status status = name.status == CVY_OK
                                  ? cvy_job_parse_text(name.data, caffe->text.data, source->sets, source->nsets, out)
                                  : name.status;
    cvy_text_free(&name);
    return status;
}

cvy_status cvy_job_parse_caffe(const cvy_job_source *source, cvy_job **out)
{
    const cvy_caffe_job_opts opts = {.weights = source->caffe_weights, .snapshot = source->caffe_state};
    cvy_caffe_job caffe = {0};
    cvy_job *job = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_caffe_read_job(source->caffe, &opts, &caffe));
    CVY_TRY_OUT(parse(source, &caffe, &job));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *job->import, &job->import));
    *job->import = caffe.import;
    caffe.import = (cvy_import){0};
    cvy_text_free(&job->import->notes);
    job->import->notes = caffe.notes;
    caffe.notes = (cvy_text){0};
    job->first_step = caffe.first_step;
    *out = job;
    job = NULL;
out:
    cvy_job_destroy(&job);
    cvy_caffe_job_free(&caffe);
    return status;
}
