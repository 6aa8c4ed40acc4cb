/*
 * ensemble_result.h: the scores of an ensemble as a struct, and as ensemble.json (schema: lab/report/report_page.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ENSEMBLE_RESULT_H
#define CVY_ENSEMBLE_RESULT_H

#include "ensemble/ensemble.h"
#include "score/score_ensemble.h"
#include "score/score_metrics.h"

typedef struct cvy_scored { /* the metrics of a member, or of the ensemble */
    cvy_metric *metric[CVY_SCORES_MAX];
    cvy_score score[CVY_SCORES_MAX];
    int count;
} cvy_scored;

/* Merges the metrics of all ranks and fills the struct; the caller releases it, also after a fault. scored: [members +
 * 1], the last one is the ensemble. folder: gets ensemble.json; or NULL. Collective. */
cvy_status cvy_ensemble_result_make(const cvy_ensemble *e, const cvy_scored *scored, const char *folder,
                                    cvy_ensemble_scores *out);

#endif
