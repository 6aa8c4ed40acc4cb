/*
 * score_yes.h: rows of a network each of whose numbers is a yes or no, for metrics on labels and for metrics on
 * numbers.
 *
 * The output has logits of yes, and the target numbers from 0 to 1, as of the loss bce. A metric on labels gets two
 * rows for each number: one with label 0 and weight 1 - target, and one with label 1 and weight target. So a target of
 * 0 or 1 counts as its label, and one between them counts as both in its shares: nll is the loss bce, and accuracy is
 * the expected one. A metric on numbers gets the probabilities of yes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_YES_H
#define CVY_SCORE_YES_H

#include <math.h>

#include "data/data_reader.h"
#include "metric/metric.h"

typedef struct cvy_score_yes { /* zero-initialise it, end it with cvy_score_yes_free() */
    cvy_bytes logits, label, weight, probability;
    cvy_span output, target, numbers;
    cvy_metric_rows of_labels, of_numbers; /* in the memory of this struct */
    int64_t rows_each;                     /* rows of a metric on labels for each sample */
} cvy_score_yes;

/* Fills the struct from rows of logits. A target outside 0 .. 1 that counts: CVY_E_FORMAT. */
cvy_status cvy_score_yes_fill(cvy_score_yes *yes, const cvy_metric_rows *rows);
/* Adds samples first .. first + n - 1 to a metric. */
cvy_status cvy_score_yes_add(const cvy_score_yes *yes, cvy_metric *metric, int64_t first, int64_t n);
void cvy_score_yes_free(cvy_score_yes *yes);

static inline double cvy_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

#endif
