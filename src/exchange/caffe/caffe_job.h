/*
 * caffe_job.h: a solver of Caffe as a job: what the parts of the translation share.
 *
 * caffe_solver.c reads the solver and finds its networks; caffe_source.c turns layers of data into sources and
 * augmentation; caffe_train.c has the keys of `train`; caffe_job.c prints the job with comments.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CAFFE_JOB_H
#define CVY_CAFFE_JOB_H

#include "base/text/base_text.h"
#include "exchange/caffe/caffe.h"
#include "exchange/caffe/caffe_file.h"
#include "exchange/exchange.h"

typedef Cvy__Caffe__SolverParameter cvy_caffe_solver;

/* A network for one phase. */
typedef struct cvy_caffe_phase {
    cvy_caffe_file file;           /* empty: the network of training is inside the solver */
    const cvy_caffe_file *at;      /* the file with the network, for lines */
    Cvy__Caffe__NetParameter *net; /* in the newest form, with the layers of this phase; NULL: there is none */
    Cvy__Caffe__NetState state;
    int is_inside; /* the network is a field of the solver */
} cvy_caffe_phase;

/* A solver or a network that was read, and the files it names. */
typedef struct cvy_caffe_work {
    cvy_pool *pool;
    const char *path, *folder;   /* the file, and its folder */
    cvy_caffe_file solver;       /* empty: the file is a network */
    cvy_caffe_phase train, test; /* that of tests is another reading, because each phase has other layers */
    cvy_text notes;              /* what was decided, a sentence a line */
} cvy_caffe_work;

/* The solver, or NULL. */
static inline const cvy_caffe_solver *cvy_caffe_solver_of(const cvy_caffe_work *w)
{
    return (const cvy_caffe_solver *)w->solver.message;
}

/* A text that may be missing. */
static inline const char *cvy_caffe_word(const char *text)
{
    return text ? text : "";
}

/* The beginning of a message about a field: "solver.prototxt:12: base_lr", in a small ring of buffers per thread. */
const char *cvy_caffe_at(const cvy_caffe_file *file, const void *message, const char *field);
/* The same about a layer: "net.prototxt:12: layer data (Data)". */
const char *cvy_caffe_layer_at(const cvy_caffe_file *file, const Cvy__Caffe__LayerParameter *layer);

/* Opens a solver, or a network, with the networks that it names. Errors: CVY_E_IO, CVY_E_FORMAT, CVY_E_CONFIG,
 * CVY_E_MEMORY; *out must be freed in any case. */
cvy_status cvy_caffe_work_open(const char *path, cvy_caffe_work *out);
void cvy_caffe_work_free(cvy_caffe_work *w);
/* The path of a file that a solver or a network names: as it is, which is relative to the current folder, or in the
 * folder of the solver; the latter is noted. CVY_E_IO: it is in neither. */
cvy_status cvy_caffe_find_file(cvy_caffe_work *w, const cvy_caffe_file *file, const void *message, const char *field,
                               const char *name, const char **out);

/* ---- caffe_source.c ---- */

/* A layer of data as a source of ours. Texts are YAML on one line, in the pool. */
typedef struct cvy_caffe_data {
    const Cvy__Caffe__LayerParameter *layer;
    const char *source;  /* of data.train */
    const char *augment; /* of data.augment */
    const char *top[2];  /* the blobs: input, and labels or targets; NULL: there is none */
    int64_t batch;
    int shuffle, is_input; /* is_input: the layer has shapes, and no data */
    int is_absent;         /* set with an error: its data are not here, or convoy does not read them */
    int reals;             /* its second top has numbers, not classes */
    cvy_shape shape;       /* of a sample, if is_input; else caffe_job.c sets it */
    cvy_shape target;      /* of the numbers of the second top; caffe_job.c sets it */
} cvy_caffe_data;

/* Translates the layer of data of a network in the newest form that has only the layers of one phase. *out is zero if
 * it has none. Errors, with out->layer and out->is_absent set: CVY_E_CONFIG, CVY_E_UNSUPPORTED, CVY_E_IO, CVY_E_FORMAT,
 * CVY_E_MEMORY. */
cvy_status cvy_caffe_data_of(cvy_caffe_work *w, const Cvy__Caffe__NetParameter *net, const cvy_caffe_file *at,
                             cvy_caffe_data *out);
/* Whether a layer of the network is one of data. */
int cvy_caffe_has_data(const Cvy__Caffe__NetParameter *net);
/* The source on fewer samples, as a text in the pool. */
cvy_status cvy_caffe_data_limit(cvy_caffe_work *w, const char *source, int64_t samples, const char **out);

/* ---- caffe_train.c ---- */

/* Adds the keys of `train` that the solver decides, all but batch and metrics. */
cvy_status cvy_caffe_add_training(cvy_caffe_work *w, cvy_text *t);
/* The type of the solver, "SGD"; from the old solver_type, too. */
cvy_status cvy_caffe_solver_type(const cvy_caffe_work *w, const char **out);

/* ---- caffe_state.c ---- */

/* Reads a solverstate. *weights: the caffemodel that it names, unless one is given. */
cvy_status cvy_caffe_open_state(cvy_caffe_work *w, const char *path, cvy_caffe_file *file, const char **weights);
/* Adds its history to the tensors of out->import, which has the weights, and sets out->first_step. type: of the
 * solver. */
cvy_status cvy_caffe_add_state(cvy_caffe_work *w, const cvy_caffe_file *file, const char *type, cvy_import_job *out);

#endif
