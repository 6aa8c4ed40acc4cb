/*
 * score_metrics.h: which metrics a pass over labelled data computes: those of the job, or else those that suit the data
 * and the output.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_METRICS_H
#define CVY_SCORE_METRICS_H

#include "data/data.h"
#include "job/job.h"
#include "metric/metric.h"
#include "session/session_output.h"

enum { CVY_SCORES_MAX = 32 };

typedef struct cvy_score {
    const char *name;
    double value;
    int higher_is_better;
    int has_own_detail; /* 1: an earlier score has the same kind: the detail is an object with the name of this one */
    char why[CVY_METRIC_WHY]; /* why the value is not finite, on rank 0; empty: it is */
} cvy_score;

typedef struct cvy_score_opts {
    const cvy_job *job;
    const cvy_dataset_info *data;
    const cvy_shape *output; /* of a sample */
    cvy_output_kind kind;    /* of its numbers */
    int all;                 /* 1: also metrics that the job does not name but a report shows */
    double temperature;      /* above 0: also probabilities with this temperature, as NAME_calibrated */
} cvy_score_opts;

/* Makes at most CVY_SCORES_MAX metrics. On a fault *count_out of them exist, too; the caller destroys them. Errors:
 * CVY_E_CONFIG, CVY_E_SHAPE (a metric of the job does not suit the data), CVY_E_MEMORY. */
cvy_status cvy_score_metrics(const cvy_score_opts *o, cvy_metric **metric, cvy_score *score, int *count_out);
/* Merges the ranks and finishes a metric, and sets the value of its score. detail: as in cvy_metric_finish(). */
cvy_status cvy_score_finish(cvy_metric *metric, cvy_score *score, cvy_comm *comm, cvy_json *detail);
/* Whether each of the numbers of the output is a yes or no, and the target has a number for each: score_yes.h. */
int cvy_score_is_yes(cvy_output_kind kind, int64_t elems, const cvy_dataset_info *data);
/* The labels that count in no score: those that the job's first loss ignores, and those of positions of no class in
 * a map of labels. CVY_E_CONFIG. */
cvy_status cvy_score_ignored(const cvy_job *job, const cvy_dataset_info *data, cvy_ints *out);

/* Whether the samples of a network are compared with the data as a set: those of a generator, trained in turns, which
 * belong to no true sample. */
int cvy_score_imitates(const cvy_job *job, const cvy_dataset_info *data);

#endif
