/*
 * score_ensemble.h: one or several trained networks of the same kind, applied to the same samples, with several passes
 * with dropout or with one pass without. Each pass of each member is an answer; the spread of the answers says how sure
 * they are.
 *
 * Sources: deep ensembles, Lakshminarayanan et al. 2017; dropout at prediction, Gal and Ghahramani 2016; entropy and
 * mutual information, Depeweg et al. 2018.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_ENSEMBLE_H
#define CVY_SCORE_ENSEMBLE_H

#include "score/score_applied.h"

enum { CVY_MEMBERS_MAX = 256 };

/* What is computed for each sample: an array of the result. */
typedef struct cvy_answer {
    const char *name; /* of an output of the network, or of what follows from the answers */
    const char *of;   /* "std", or NULL: this is the mean, or the only answer */
    cvy_shape shape;  /* of a sample */
    int64_t elems;
    int by_class; /* one number for each class */
} cvy_answer;

typedef struct cvy_ensemble { /* zero-initialise it, end it with cvy_ensemble_close(); it must not be moved while open
                               */
    cvy_pool *pool;
    const char *const *name; /* of the members: as given, or the runs of a folder */
    cvy_applied *member;
    int nmember;
    int64_t passes;       /* with dropout; 0: one pass without */
    int64_t nanswer_each; /* answers for each sample: members times passes */
    int by_class;         /* several answers are combined as probabilities of classes */
    int in_place;         /* answers are probabilities in the shape of the output: of yes, or of the classes of each
                             position */
    int is_calibrated;    /* probabilities use the temperatures of the members */
    int64_t nclasses;
    cvy_answer answer[CVY_NETWORK_ARRAYS];
    int nanswer;
    float *output[CVY_NETWORK_ARRAYS]; /* of each output of a network: [block, elems] */
    double *mean[CVY_NETWORK_ARRAYS],
        *square[CVY_NETWORK_ARRAYS]; /* of each output: mean, and sum of squared distances */
    double *probability;             /* [block, classes]: their mean */
    double *entropy;                 /* [block]: mean entropy of the answers */
} cvy_ensemble;

typedef struct cvy_ensemble_opts {
    const char *const *target; /* runs, checkpoints, files; or folders of runs, of which each run is a member */
    int ntarget;
    const char *outputs;       /* as in cvy_network_opts */
    const cvy_job_source *job; /* of all of them */
    const char *weights;
    int64_t passes; /* 0, or 2 and more */
    int calibrated;
    int in_place;            /* 1: logits of yes, and of the classes of positions, become probabilities */
    cvy_network_gives gives; /* of one answer */
    int all_classes; /* 1: a classifier's answers are combined as probabilities, if its main output is asked for */
} cvy_ensemble_opts;

/* Whether a single output is one logit for two classes. */
int cvy_is_single_logit(int64_t elems, int64_t nclasses);
/* Writes the probabilities of the classes: the softmax of the logits, divided by the temperature (0: 1), in f64. A
 * single logit is that of the second of two classes. Logits beyond the classes belong to none. */
void cvy_class_probabilities(const float *logit, int64_t elems, int64_t nclasses, double temperature, double *out);

/* Whether a path is a folder that is no run but holds runs with checkpoints: then it stands for an ensemble. */
int cvy_ensemble_is_folder(const char *path);
/* Opens the networks, which must have the same outputs and classes. Collective. */
cvy_status cvy_ensemble_open(cvy_ensemble *e, cvy_context *context, const cvy_ensemble_opts *opts);
/* Opens the data for each member, see cvy_applied_open_data(), and allocates. */
cvy_status cvy_ensemble_open_data(cvy_ensemble *e, const char *source, int needs_targets);
/* Computes the answers for this rank's block of a round. result: of each answer [block, elems]; is_bad: [block] 1: the
 * sample was skipped. */
cvy_status cvy_ensemble_compute(cvy_ensemble *e, int64_t round, float *const *result, uint8_t *is_bad);
void cvy_ensemble_close(cvy_ensemble *e);

#endif
