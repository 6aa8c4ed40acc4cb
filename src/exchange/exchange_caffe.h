/*
 * exchange_caffe.h: a solver of Caffe, or one of its networks, as a job of ours.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EXCHANGE_CAFFE_H
#define CVY_EXCHANGE_CAFFE_H

#include "exchange/exchange.h"

typedef struct cvy_caffe_job_opts {
    const char *weights;  /* a caffemodel with the first weights; NULL: those of the fillers */
    const char *snapshot; /* a solverstate to continue from; NULL: the run begins with step 0 */
    const char *init;     /* what the text names as train.init; NULL: nothing */
    cvy_shape input;      /* of a sample of x, if the text or its data do not say it; ndim 0: not given */
} cvy_caffe_job_opts;

typedef struct cvy_caffe_job {
    cvy_text text;      /* the job as YAML, with comments on what was decided */
    cvy_text notes;     /* the same decisions, a sentence a line; data NULL: there is none */
    cvy_import import;  /* the network; its tensors are the weights, and the history of the snapshot */
    int64_t first_step; /* of the snapshot; 0: a new run */
    cvy_text absent;    /* why the data of a network could not be read, whose place generated samples take; data NULL:
                           they were read, or there are none */
} cvy_caffe_job;

/**
 * cvy_caffe_read_job - make a job of a solver
 * @path: the text of a solver, or of a network; the files that it names are read, too
 * @out: the job; the caller frees it with cvy_caffe_job_free()
 *
 * Paths are relative to the current folder, as Caffe takes them; what is not there is looked for in the folder of the
 * solver. The data are opened for the shape of their samples. A network alone whose data are not here, or are made by a
 * layer that convoy does not run, and one whose input layer has shapes, get generated samples instead; without labels
 * if the network has no loss. Errors: CVY_E_IO, CVY_E_FORMAT, CVY_E_CONFIG (a value of the solver), CVY_E_UNSUPPORTED
 * (layers that are not known, data that cannot be read, a build without protobuf-c), CVY_E_SHAPE, CVY_E_MEMORY. *out is
 * empty then.
 */
cvy_status cvy_caffe_read_job(const char *path, const cvy_caffe_job_opts *opts, cvy_caffe_job *out);
void cvy_caffe_job_free(cvy_caffe_job *job);

#endif
