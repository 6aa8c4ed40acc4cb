/*
 * session_strategy.h: how the process grid of a run is chosen if its job leaves that open (`parallel: auto`).
 *
 * Choosing a grid predicts the times of many programs, which is a subject of its own (src/search). It registers itself
 * here, so that training, scoring and measuring know nothing of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SESSION_STRATEGY_H
#define CVY_SESSION_STRATEGY_H

#include "session/session.h"

/* What a run has besides its job. */
typedef struct cvy_strategy_run {
    const cvy_dataset_info *data;
    int64_t nscored;       /* samples of validation */
    int64_t micro_batches; /* with which the run was begun; 0: it is new */
} cvy_strategy_run;

typedef struct cvy_strategy_def {
    const char *name; /* the word of parallel.strategy */
    /* Changes the job to the grid for the ranks of the context, and adds what it found to the notes. *step_s_out: the
     * time of a step that is expected; 0: not known. Collective. */
    cvy_status (*choose)(cvy_context *context, cvy_job *job, const cvy_strategy_run *run, cvy_text *notes,
                         double *step_s_out);
} cvy_strategy_def;

#define CVY_STRATEGY_DEFINE(id) const cvy_strategy_def cvy_strategy_##id##_def
const cvy_strategy_def *cvy_strategy_find(const char *name);

/* Leaves a job that gives its grid as it is. Collective. */
static inline cvy_status cvy_session_choose_grid(cvy_session *s, const cvy_strategy_run *run, double *step_s_out)
{
    *step_s_out = 0;
    return s->job->parallel.strategy == CVY_PARALLEL_AUTO
               ? cvy_strategy_find("auto")->choose(s->context, s->job, run, &s->notes, step_s_out)
               : CVY_OK;
}

#endif
