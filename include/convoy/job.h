/*
 * convoy/job.h: job files: where a job comes from, and what it asks for.
 *
 * A job file describes a whole training: data, network, optimiser, output. cvy_run_train() and the other calls named
 * cvy_run_* take one. docs/reference/job-file.md lists the keys.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_JOB_H
#define CONVOY_JOB_H

#include <convoy/base.h>

CVY_BEGIN_DECLS

/** Where a job comes from and what overrides it. Zero-initialise, set size. All strings are borrowed for the call. */
typedef struct cvy_job_source {
    size_t size;
    /** A YAML file; or a .prototxt file, as `caffe`. NULL: the job is in `text`. */
    const char *path;
    /** The job itself as YAML; messages call it "job". Used if path is NULL. */
    const char *text;
    /** Keys that override the job, applied in order: "train.batch=64". */
    const char *const *sets;
    int nsets;
    /** A solver of Caffe, or the text of a network of Caffe: the job is made of it. NULL: the job is in path or text.
     * `convoy import` writes the same job into a file. */
    const char *caffe;
    /** With `caffe`: a caffemodel with the first weights, and a solverstate to continue from; NULL: none. */
    const char *caffe_weights, *caffe_state;
    /** With `caffe`: the shape of a sample without the batch, if neither the text nor its data say it; ndim 0: they do.
     * A network whose data are not here can be planned and timed on generated samples, and not trained. */
    cvy_shape caffe_input;
} cvy_job_source;
CVY_SIZED_STRUCT(cvy_job_source)

/** What a job file asks for, as far as it is known without its data. Set size; the library fills the rest. */
typedef struct cvy_job_about {
    size_t size;
    /** The job's own name; a longer one is cut off. */
    char name[256];
    /** Samples of the global batch. */
    int64_t batch;
    /** Ranks that share the batch: all except parameter servers. */
    int64_t workers;
} cvy_job_about;
CVY_SIZED_STRUCT(cvy_job_about)

/**
 * cvy_run_read_job - check a job file for a training on @nranks ranks, before these ranks exist
 * @job: the job; borrowed
 * @nranks: ranks that the training will have, at least 1
 * @out: what the job asks for; its size is the caller's, the rest is written only on success
 *
 * Data and model are not opened. Collective: no. Threads: any. Errors: CVY_E_ARGUMENT, CVY_E_IO (the file cannot be
 * read), CVY_E_CONFIG with file, line and column (also if a rank would get no sample of a batch), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_read_job(const cvy_job_source *job, int nranks, cvy_job_about *out);

/**
 * cvy_run_job_value - the value of one key of a job, with all defaults
 * @job: the job; borrowed. That of a run folder is the file job.resolved.yaml
 * @key: its path, "data.test" or "train.batch"
 * @text_out: YAML: on one line: a scalar ("null" if the key has no value), a list or a map. The caller releases it with
 *            cvy_text_release()
 *
 * A data source is given as cvy_data_open() takes it. Data and model are not opened. Collective: no. Threads: any.
 * Errors: as cvy_run_read_job(), and CVY_E_ARGUMENT (no such key; the nearest is named).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_job_value(const cvy_job_source *job, const char *key, char **text_out);

CVY_END_DECLS
#endif
