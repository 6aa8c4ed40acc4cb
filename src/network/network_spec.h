/*
 * network_spec.h: what must be known besides the weights to use a trained network: its job, the form of its input, the
 * fields and classes of its data.
 *
 * Training writes it into the metadata of each file of weights (CVY_META_NETWORK), so one file is enough to open a
 * network. A file of weights from another program has no spec: then the job's data give it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NETWORK_SPEC_H
#define CVY_NETWORK_SPEC_H

#include "base/text/base_text.h"
#include "comm/comm.h"
#include "data/data_reader.h"
#include "job/job.h"

typedef struct cvy_network_spec { /* zero-initialise it, end it with cvy_network_spec_end() */
    cvy_pool *pool;
    cvy_job *job;           /* data.normalize holds numbers, not `auto` */
    cvy_reader_info stored; /* dtype, shape and varying: x before augmentation; has_y and y_shape: the target */
    double temperature;     /* of the calibration of its probabilities; 0: it has none */
    cvy_dataset_info data;  /* fields and classes; field[0] is x after augmentation; it has no scaling */
    int knows_training;     /* 0: a network of another program: only the shape of its input is known */
} cvy_network_spec;

/* Writes the spec of a job whose training data are open, as one line of JSON. The caller frees the text. */
cvy_status cvy_network_spec_write(const cvy_job *job, cvy_dataset *data, cvy_text *out);
/* The same of a spec that was read. */
cvy_status cvy_network_spec_print(const cvy_network_spec *s, cvy_text *out);
/* Reads a spec. where: the file that has it, for messages. Its content is not trusted: CVY_E_FORMAT, CVY_E_CONFIG. */
cvy_status cvy_network_spec_read(const char *where, const char *text, cvy_network_spec *out);
/* Reads the spec in the metadata of a file of weights. CVY_NOT_APPLICABLE: it has none. step_out (may be NULL) gets the
 * training steps of the weights, -1: not known. */
cvy_status cvy_network_spec_of_file(const char *path, cvy_network_spec *out, int64_t *step_out);
/* The same for all ranks: rank 0 reads the file. *text_out: the description, in the pool; NULL: it has none.
 * Collective. */
cvy_status cvy_network_spec_text_on_ranks(cvy_comm *comm, const char *path, cvy_pool *pool, const char **text_out);
/* Makes the spec of a job file from its training data, which are opened for it. Takes the job on success. */
cvy_status cvy_network_spec_of_job(cvy_job **job_take, cvy_network_spec *out);
/* Makes the spec of an ONNX file: the description that convoy wrote into it, or its input as it is, and no classes; or
 * of a network of Caffe with the weights of a caffemodel. The job has the weights (job->import). */
cvy_status cvy_network_spec_of_import(const char *path, const char *weights, cvy_network_spec *out);
/* The form that further data must have. */
cvy_data_form cvy_network_spec_form(const cvy_network_spec *s);
/* Puts another job in the place of the spec's own. Takes the job on success. */
cvy_status cvy_network_spec_set_job(cvy_network_spec *s, cvy_job **job_take);
void cvy_network_spec_end(cvy_network_spec *s);

#endif
