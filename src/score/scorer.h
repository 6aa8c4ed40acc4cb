/*
 * scorer.h: a pass over a data set with a program's forward tasks, for losses and metrics. Training uses it at the end
 * of an epoch; test and predict use it, too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORER_H
#define CVY_SCORER_H

#include "base/text/base_json.h"
#include "score/score_metrics.h"
#include "score/score_rows.h"
#include "session/session.h"

typedef struct cvy_scorer { /* a pass over one data set with the program's forward tasks */
    cvy_session *session;
    cvy_dataset *data;
    cvy_order order;
    int step_full, step_tail; /* indices of tasks in the program; -1: not needed */
    int all_metrics;          /* also compute metrics that the job does not name but a report shows */
    double temperature;       /* of the run's calibration, for further metrics; 0: it has none */
} cvy_scorer;
/* Adds the forward tasks of a model with its losses. Call it before the program is planned. */
cvy_status cvy_scorer_add(cvy_session *s, cvy_dataset *data, const cvy_model *model, cvy_scorer *out);

typedef struct cvy_scores {
    double loss; /* NaN if the model has none */
    int has_loss;
    cvy_score at[CVY_SCORES_MAX];
    int count;
    int64_t nsamples, nskipped; /* nskipped: bad samples, with data.on_bad_sample: skip */
    double seconds;
} cvy_scores;
/* Gives the names of the scores of a pass, without their values, and in `why` why a value is the same for all outputs,
 * so that an unsuitable metric is found before the
 * training. Call it after planning. */
cvy_status cvy_scorer_names(const cvy_scorer *scorer, cvy_scores *out);
/* Called for each batch with the n output rows of this rank and what they are compared with, both in the units of the
 * targets, in the order of its samples. */
typedef cvy_status (*cvy_output_fn)(void *user, int64_t n, const cvy_span *output, const cvy_score_rows *with);
/* Runs one pass; each sample is used once. detail: on rank 0 it gets the members that each metric writes; may be NULL.
 * output: may be NULL. Collective. */
cvy_status cvy_scorer_run(cvy_scorer *scorer, cvy_scores *out, cvy_json *detail, cvy_output_fn output, void *user);
/* The loss as a score. */
cvy_score cvy_scores_loss(const cvy_scores *scores);
/* Warns of a score that is not finite, with the reason. where, then: texts before its name and after the reason. */
void cvy_score_say_not_finite(const cvy_context *context, const char *where, const cvy_score *score, const char *then);

#endif
