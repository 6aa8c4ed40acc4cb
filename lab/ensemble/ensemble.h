/*
 * ensemble.h: the scores of an ensemble of trained networks beside those of its members.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ENSEMBLE_H
#define CVY_ENSEMBLE_H

#include <convoy/score.h>

/** The scores of an ensemble and of its members. Set size; the library fills the rest. Release it with
 * cvy_ensemble_scores_release(); all pointers in it are valid until then. */
typedef struct cvy_ensemble_scores {
    size_t size;
    int64_t samples;
    int nmember, nmetric;
    /** [nmember] Targets as given, or runs of a folder; [nmetric]. */
    const char *const *member;
    const char *const *metric;
    /** [nmember + 1, nmetric] The last row is the ensemble's. */
    const double *value;
    /** Private to the library. */
    void *owned;
    /** [nmetric] Mean and standard deviation (with the divisor nmember - 1) over the members; the deviation of one
     * member is NaN. */
    const double *mean;
    const double *spread;
    /** All scores with their details as one JSON object, as in ensemble.json. On rank 0. */
    const char *json;
} cvy_ensemble_scores;
CVY_SIZED_STRUCT(cvy_ensemble_scores)

/**
 * cvy_run_test_ensemble - score an ensemble of trained networks on labelled data, and each of its members
 * @target: [ntarget] what cvy_network_open() takes, or folders of runs, of which each run is a member
 * @data: as for cvy_run_test(), with the job of the first member
 * @calibrated: 1: probabilities use the temperatures of the members
 * @scores_out: written on all ranks
 *
 * The ensemble of a classifier answers with the mean of the probabilities of its members; another one with the mean of
 * their outputs, but the output of the loss gaussian_nll with mean and variance of the mixture. If @target is one
 * folder of runs, the scores are also written to its ensemble.json, if it can be; cvy_report_ensemble() makes a page of
 * it. The scores are the same to the bit on any number of ranks. Collective: yes. Errors: as cvy_run_predict().
 */
CVY_MUST_CHECK cvy_status cvy_run_test_ensemble(cvy_context *context, const char *const *target, int ntarget,
                                                const char *data, int calibrated, cvy_ensemble_scores *scores_out);
/** All scores, with curves, as one JSON object; the caller releases the text with cvy_text_release(). Collective: no;
 * call it on rank 0. Errors: CVY_E_ARGUMENT (empty scores), CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_ensemble_scores_json(const cvy_ensemble_scores *scores, char **text_out);
/** Whether a path is a folder that is no run but holds runs with checkpoints: then it stands for an ensemble.
 * Collective: no. */
int cvy_is_ensemble(const char *path);
/** Releases the contents and empties the struct, which may be empty already. Its size stays. Collective: no. */
void cvy_ensemble_scores_release(cvy_ensemble_scores *scores);

#endif
