/*
 * session_normalize.h: moves data.normalize and data.normalize_targets between the job file, the training data and the
 * checkpoint.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SESSION_NORMALIZE_H
#define CVY_SESSION_NORMALIZE_H

#include "base/text/base_json.h"
#include "context/context.h"
#include "data/data.h"
#include "job/job.h"
#include "session/session_like.h"

/* Whether one of the keys is `auto`, so that its numbers are not known yet. */
int cvy_job_wants_statistics(const cvy_job *job);
/* Computes the numbers of the keys that are `auto` from the training data and puts them into the job. notes gets lines
 * about channels that do not vary, and about those that share their numbers. Collective. */
cvy_status cvy_job_normalize(cvy_job *job, cvy_dataset *train, const cvy_context *context, cvy_text *notes);
/* Adds "normalize": {"mean": [..], "std": [..]} and "normalize_targets" to a checkpoint's state, if the job has them.
 */
void cvy_job_add_normalize(const cvy_job *job, cvy_json *json);
/* For scoring: takes the numbers of keys that are `auto`, or that the job does not have, from a checkpoint's state.
 * state may be NULL, which is an error only for `auto`. */
cvy_status cvy_job_take_normalize(cvy_job *job, const cvy_tree *state);

/* For a resumed run, before its data are opened: takes the numbers of keys that are `auto`, or that the job does not
 * have, from the checkpoint's state. CVY_E_CONFIG if data.normalize_targets has other numbers than the checkpoint: its
 * weights would mean something else.
 */
cvy_status cvy_job_keep_normalize(cvy_job *job, const cvy_tree *state);

/* For a run that begins with the weights of another: takes over the numbers of keys that this job does not have. train:
 * its training data. Numbers are not taken if they do not fit: the data have another number of channels, data.augment
 * does something else to values before, or the targets have other names. notes gets a line for each key. */
cvy_status cvy_job_inherit_normalize(cvy_job *job, const cvy_session_like *like, cvy_dataset *train, cvy_text *notes);
/* Whether two jobs have the same numbers for data.normalize_targets, or none. */
int cvy_job_same_target_scaling(const cvy_job *a, const cvy_job *b);

#endif
