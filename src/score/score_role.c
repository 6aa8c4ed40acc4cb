/*
 * score_role.c: whether the samples of a test took part in the training: they were trained on, or chose the checkpoint
 * or the end. Their scores are then better than those of new samples, so `convoy test` and the report say it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_run.h"
#include "session/session_overlap.h"

const char *cvy_scoring_role(const cvy_scoring *s)
{
    const struct cvy_job_data *data = &s->session.job->data;
    const cvy_tree *test = s->session.from[CVY_SOURCE_TEST];
    if (cvy_source_is_same(test, data->train))
        return CVY_ROLE_TRAINED;
    const int chose = s->session.job->checkpoint.best || s->session.job->train.stop.metric;
    return chose && data->val_share == 0 && cvy_source_is_same(test, data->val) ? CVY_ROLE_CHOSE : NULL;
}
