/*
 * scorer.h: a pass over a data set with a program's forward steps, for losses and metrics: used in training at the end
 * of an epoch, by test and by predict.
 */
#ifndef CVY_SCORER_H
#define CVY_SCORER_H

#include "base/base_json.h"
#include "session/session.h"

typedef struct cvy_scorer { /* a pass over one data set with the program's forward steps */
    cvy_session *session;
    cvy_dataset *data;
    cvy_order order;
    int step_full, step_tail; /* of the program; -1: not needed */
    int labelled;             /* targets and losses are there */
    int all_metrics;          /* also those that the job does not name but a report shows */
} cvy_scorer;
/* Adds the forward steps; before the program is planned. model: with losses where the data is labelled, without
 * otherwise. */
cvy_status cvy_scorer_add(cvy_session *s, cvy_dataset *data, const cvy_model *model, int labelled, cvy_scorer *out);

typedef struct cvy_score {
    const char *name;
    double value;
    int higher_is_better;
} cvy_score;
typedef struct cvy_scores {
    double loss; /* NaN where the data is not labelled */
    cvy_score at[16];
    int count;
    int64_t nsamples, nskipped; /* skipped: bad samples, with data.on_bad_sample: skip */
    double seconds;
} cvy_scores;
/* Which scores a pass gives, without their values: so that a metric that does not fit is known before the training.
 * After planning. */
cvy_status cvy_scorer_names(const cvy_scorer *scorer, cvy_scores *out);
/* Gives each sample's output row, on its own rank, in order of places. */
typedef cvy_status (*cvy_output_fn)(void *user, const cvy_rows *rows, const cvy_span *output);
/* One pass, every sample once. detail (rank 0; may be NULL) gets each metric's members; output may be NULL. Collective.
 */
cvy_status cvy_scorer_run(cvy_scorer *scorer, cvy_scores *out, cvy_json *detail, cvy_output_fn output, void *user);

#endif
