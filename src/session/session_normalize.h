/*
 * session_normalize.h: moves data.normalize between the job file, the training data and the checkpoint.
 */
#ifndef CVY_SESSION_NORMALIZE_H
#define CVY_SESSION_NORMALIZE_H

#include "base/text/base_json.h"
#include "context/context.h"
#include "data/data.h"
#include "job/job.h"

/* If data.normalize is `auto`, computes its numbers from the training data and puts them into the job. Otherwise it
 * does nothing. Collective. */
cvy_status cvy_job_normalize(cvy_job *job, cvy_dataset *train, const cvy_context *context);
/* Adds "normalize": {"mean": [..], "std": [..]} to a checkpoint's state, if the job has it. */
void cvy_job_add_normalize(const cvy_job *job, cvy_json *json);
/* For scoring: if data.normalize is `auto`, takes its numbers from a checkpoint's state. state may be NULL, which is an
 * error only for `auto`. */
cvy_status cvy_job_take_normalize(cvy_job *job, const cvy_tree *state);

#endif
