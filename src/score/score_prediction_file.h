/*
 * score_prediction_file.h: the file of predictions: a row for each sample, as .npy or .csv.
 */
#ifndef CVY_SCORE_PREDICTION_FILE_H
#define CVY_SCORE_PREDICTION_FILE_H

#include <convoy/score.h>

#include "base/base_file.h"
#include "data/data_reader.h"

typedef struct cvy_prediction_file { /* zero-initialise it; on rank 0 */
    cvy_predict_request ask;
    cvy_dataset *data; /* of the samples, for their names */
    int64_t rows, elems, nclasses;
    const char *const *class_name; /* NULL: classes have numbers */
    cvy_shape sample;              /* of an output */
    int is_csv;
    int64_t written; /* rows so far */
    double *probability;
    int32_t *best; /* classes, the most probable first */
    cvy_file_temporary file;
} cvy_prediction_file;

/* Checks what is asked for against the network's output, before anything is computed. */
cvy_status cvy_prediction_file_check(const cvy_predict_request *ask, const cvy_shape *sample, int64_t nclasses);
/* Opens the file. The caller has set the fields of `table` up to `sample`, and ends it in any case. */
cvy_status cvy_prediction_file_begin(cvy_prediction_file *table);
/* Adds n rows of outputs; is_bad: [n] 1: the sample was skipped. */
cvy_status cvy_prediction_file_add(cvy_prediction_file *table, const float *output, const uint8_t *is_bad, int64_t n);
/* status: of the whole pass. If it is a fault, the file is dropped. Returns it, or the fault of the last write. */
cvy_status cvy_prediction_file_end(cvy_prediction_file *table, cvy_status status);

#endif
