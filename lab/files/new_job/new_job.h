/*
 * new_job.h: the parts of cvy_run_new_job(): what the data are, a network for them, and the text of a job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NEW_JOB_H
#define CVY_NEW_JOB_H

#include "base/text/base_text.h"
#include "data/data.h"

typedef enum { CVY_NEW_CLASSIFY, CVY_NEW_REGRESS, CVY_NEW_SEGMENT } cvy_new_task;

typedef struct cvy_new_job {
    cvy_new_task task;
    const char *train, *val, *test; /* sources as they are written in a job, on one line; NULL: there is none */
    const char *format;
    int64_t nsamples, nclasses; /* nclasses 0: samples have no label */
    cvy_shape x;                /* of a sample; of the first picture if sizes vary; channels first */
    int is_turned;              /* the data have [T, F], and x is [F, T]: features at each time are channels */
    int is_picture, varies;     /* x is a picture of bytes; pictures are not all of one size */
    int has_y, y_is_map;        /* there is a target; it has a value for each position of x */
    cvy_shape y;
    int64_t map_classes; /* of a map whose values are all labels; 0: they are not */
    int map_ignores;     /* some of them are 255, which counts nowhere */
    int64_t size;        /* height and width to which pictures of varying sizes are brought */
    int64_t outputs;     /* that the network needs, for each sample or position */
} cvy_new_job;

/* Opens the data and fills everything. task: "classify", "regress", "segment", or NULL: what the data are made for.
 * Texts are in the pool. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG, CVY_E_FORMAT, CVY_E_IO, CVY_E_MEMORY. */
cvy_status cvy_new_job_look(cvy_pool *pool, const char *source, const char *task, cvy_new_job *out);
/* Adds the key `model`. Returns 1 if the network is one that is trained by SGD, or 0 for Adam. */
int cvy_new_job_add_network(const cvy_new_job *job, cvy_text *t);

#endif
