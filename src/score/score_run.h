/*
 * score_run.h: opens a trained network for test: a run folder, a checkpoint or a file of weights, the data, and the
 * forward program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_RUN_H
#define CVY_SCORE_RUN_H

#include <convoy/score.h>

#include "checkpoint/checkpoint.h"
#include "network/network_spec.h"
#include "score/scorer.h"

typedef struct cvy_scoring {
    cvy_session session;
    cvy_scorer scorer;
    cvy_checkpoint checkpoint; /* of a run folder, or the one that the target is */
    const char *run;           /* NULL: target is a checkpoint or a file of weights */
    int is_set;                /* the target is a checkpoint */
    cvy_network_spec spec;     /* of a checkpoint or a file of weights that has one, unless a job is given */
    int64_t nclasses;
    const char *const *class_name; /* NULL: no names are known */
    double temperature;            /* of the calibration of these weights; 0: there is none */
} cvy_scoring;

/* Opens everything for scoring. Collective. */
cvy_status cvy_scoring_open(cvy_context *context, const char *target, const cvy_job_source *job, const char *data,
                            cvy_scoring *out);
void cvy_scoring_close(cvy_scoring *s);
/* score_role.c: what the samples to score had to do with the training, as test.json has it; NULL: nothing is known. */
#define CVY_ROLE_TRAINED "trained"
#define CVY_ROLE_CHOSE "chose"
const char *cvy_scoring_role(const cvy_scoring *s);

/* Output rows of all ranks, gathered on rank 0 batch by batch in the order of the data. A row has the output and then
 * the target. Both are NaN where a mask is 0. */
typedef cvy_status (*cvy_gathered_fn)(void *user, const float *rows, int64_t n, int64_t row_elems);
typedef struct cvy_gathered {
    cvy_comm *comm;
    const cvy_scorer *scorer;
    int is_yes; /* rows have the probabilities of yes */
    int64_t output_elems, target_elems;
    float *block; /* room for two batches of rows: those of this rank, then on rank 0 those of all ranks */
    size_t *bytes_of;
    int64_t step;
    cvy_gathered_fn sink; /* called on rank 0 for each batch */
    void *user;
} cvy_gathered;
cvy_status cvy_gathered_begin(cvy_scoring *s, cvy_gathered_fn sink, void *user, cvy_gathered *out);
/* A cvy_output_fn. Collective. */
cvy_status cvy_gathered_add(void *gathered, int64_t n, const cvy_span *output, const cvy_score_rows *with);
void cvy_gathered_end(cvy_gathered *g);

#endif
