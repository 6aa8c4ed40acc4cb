/*
 * score_prediction_file.h: the file of predictions: a row for each sample, as .csv, .npy, .h5 or .nc.
 *
 * score_prediction_file.c computes what a row has: outputs, probabilities or classes. A format writes it: text in
 * score_prediction_csv.c, arrays in score_prediction_array.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_PREDICTION_FILE_H
#define CVY_SCORE_PREDICTION_FILE_H

#include <convoy/score.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "data/data_reader.h"
#include "data/hdf5/data_hdf5_table.h"
#include "score/score_ensemble.h"

typedef struct cvy_prediction_set { /* numbers that each row has: an answer of the ensemble, or the probabilities */
    const char *name;
    cvy_shape shape;
    int64_t elems;
    int by_class;       /* one number for each class */
    const char *column; /* what the names of its columns begin with; NULL: they are the names of the classes */
    int is_spread;      /* not an output itself, but the spread of several */
} cvy_prediction_set;

typedef struct cvy_prediction_row {
    int64_t number;
    const char *name;                       /* which sample it is; NULL: not asked for */
    const float *value[CVY_NETWORK_ARRAYS]; /* of each set */
    const int32_t *label;                   /* [nlabel]: numbers of classes, the most probable first; -1: none */
    const double *share;                    /* [nlabel]: their probabilities */
} cvy_prediction_row;

struct cvy_prediction_format;

typedef struct cvy_prediction_file { /* zero-initialise it; on rank 0 */
    cvy_predict_request ask;
    const cvy_ensemble *ensemble; /* whose answers are written */
    cvy_pool *pool;
    int64_t rows, nclasses;
    int64_t nlabel;                             /* classes that each row names; 0: none are asked for */
    const char *const *class_name;              /* NULL: classes have numbers */
    cvy_prediction_set set[CVY_NETWORK_ARRAYS]; /* they follow the classes */
    int nset;
    int64_t written; /* rows so far */
    double *probability, *share;
    float *number; /* a row of probabilities, or of NaN */
    int32_t *best; /* classes, the most probable first */
    const struct cvy_prediction_format *format;
    cvy_file_temporary file;    /* of .csv and .npy */
    cvy_h5_table *table;        /* of .h5 and .nc */
    int is_netcdf, sample_axis; /* sample_axis: its number in table */
    cvy_text mixed;             /* ", lat, lon": axes whose coordinates are not those of all rows, and are left out */
} cvy_prediction_file;

typedef struct cvy_prediction_format {
    cvy_status (*begin)(cvy_prediction_file *t);
    cvy_status (*row)(cvy_prediction_file *t, const cvy_prediction_row *row);
} cvy_prediction_format;
extern const cvy_prediction_format cvy_prediction_csv, cvy_prediction_npy, cvy_prediction_hdf5, cvy_prediction_netcdf;

/* Checks what is asked for against the answers of the ensemble, before anything is computed. */
cvy_status cvy_prediction_file_check(const cvy_predict_request *ask, const cvy_ensemble *ensemble);
/* Opens the file. The caller has set ask and ensemble, whose data are open, of `table`, and ends it in any case. */
cvy_status cvy_prediction_file_begin(cvy_prediction_file *table);
/* Adds n rows. answer: [n, elems] of each answer of the ensemble; is_bad: [n] 1: the sample was skipped. */
cvy_status cvy_prediction_file_add(cvy_prediction_file *table, const float *const *answer, const uint8_t *is_bad,
                                   int64_t n);
/* status: of the whole pass. If it is a fault, the file is dropped. Returns it, or the fault of the last write. */
cvy_status cvy_prediction_file_end(cvy_prediction_file *table, cvy_status status);

#endif
