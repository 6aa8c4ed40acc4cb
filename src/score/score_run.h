/*
 * score_run.h: opening a trained network for test and predict: a run folder or a file of weights, the data, the forward
 * program.
 */
#ifndef CVY_SCORE_RUN_H
#define CVY_SCORE_RUN_H

#include <convoy/score.h>

#include "checkpoint/checkpoint.h"
#include "score/scorer.h"

typedef struct cvy_scoring {
    cvy_session session;
    cvy_scorer scorer;
    cvy_checkpoint checkpoint; /* of a run folder */
    const char *run;           /* NULL: target is a file of weights */
    int labelled;
    int64_t nclasses;
    const char *const *class_name; /* NULL: none known */
} cvy_scoring;

/* Collective. want_labels: test; else the data may lack them and losses are left out. */
cvy_status cvy_scoring_open(cvy_context *context, const char *target, const cvy_job_source *job, const char *data,
                            int want_labels, cvy_scoring *out);
void cvy_scoring_close(cvy_scoring *s);

/* Rows of all ranks, gathered on rank 0 batch by batch in the order of the data: the output, then (where asked for) the
 * target. */
typedef cvy_status (*cvy_gathered_fn)(void *user, const float *rows, int64_t n, int64_t row_elems);
typedef struct cvy_gathered {
    cvy_comm *comm;
    const cvy_scorer *scorer;
    int64_t output_elems, target_elems;
    float *block; /* one batch of rows: this rank's, then on rank 0 all */
    size_t *bytes_of;
    int64_t step;
    cvy_gathered_fn sink; /* called on rank 0 */
    void *user;
} cvy_gathered;
cvy_status cvy_gathered_begin(cvy_scoring *s, int with_target, cvy_gathered_fn sink, void *user, cvy_gathered *out);
/* A cvy_output_fn. Collective. */
cvy_status cvy_gathered_add(void *gathered, const cvy_rows *rows, const cvy_span *output);
void cvy_gathered_end(cvy_gathered *g);

#endif
