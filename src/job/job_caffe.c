/*
 * job_caffe.c: the job of a solver of Caffe. It is parsed from the text that `convoy import` writes, so both are the
 * same job. The weights and the state that the user gives are kept: a new run begins with them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/job.h>

#include <string.h>

#include "job/job.h"
#include "model/model_import.h"

/* The name of the text in messages. */
static cvy_status parse(const cvy_job_source *source, const cvy_import_job *caffe, cvy_job **out)
{
    cvy_text name = {0};
    cvy_text_add(&name, "%s as a job", source->caffe);
    const cvy_status status = name.status == CVY_OK
                                  ? cvy_job_parse_text(name.data, caffe->text.data, source->sets, source->nsets, out)
                                  : name.status;
    cvy_text_free(&name);
    return status;
}

/* Whether the caller has data in place of those of the network. */
static int gives_data(const cvy_job_source *source)
{
    static const char *const keys[] = {"data=", "data.train"};
    for (int i = 0; i < source->nsets; i++)
        for (int k = 0; k < CVY_COUNT(keys); k++)
            if (strncmp(source->sets[i], keys[k], strlen(keys[k])) == 0)
                return 1;
    return 0;
}

cvy_status cvy_job_parse_caffe(const cvy_job_source *source, cvy_job **out)
{
    const cvy_import_job_opts opts = {
        .weights = source->caffe_weights, .snapshot = source->caffe_state, .input = source->caffe_input};
    cvy_import_job caffe = {0};
    cvy_job *job = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_importer_find("caffe")->read_job(source->caffe, &opts, &caffe));
    CVY_TRY_OUT(parse(source, &caffe, &job));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *job->import, &job->import));
    *job->import = caffe.import;
    caffe.import = (cvy_import){0};
    cvy_text_free(&job->import->notes);
    job->import->notes = caffe.notes;
    caffe.notes = (cvy_text){0};
    job->first_step = caffe.first_step;
    if (caffe.absent.bytes && !gives_data(source))
        CVY_TRY_OUT(cvy_pool_strdup(job->pool, caffe.absent.data, &job->data_absent));
    *out = job;
    job = NULL;
out:
    cvy_job_destroy(&job);
    cvy_import_job_free(&caffe);
    return status;
}
