/*
 * session_normalize.h: data.normalize between the job file, the training data and the checkpoint.
 */
#ifndef CVY_SESSION_NORMALIZE_H
#define CVY_SESSION_NORMALIZE_H

#include "base/base_json.h"
#include "context/context.h"
#include "data/data.h"
#include "job/job.h"

/* Finds the numbers that `auto` stands for on the training data, and puts them into the job; nothing where it says
 * something else. Collective. */
cvy_status cvy_job_normalize(cvy_job *job, cvy_dataset *train, const cvy_context *context);
/* For a checkpoint's state: "normalize": {"mean": [..], "std": [..]}, if there is one. */
void cvy_job_add_normalize(const cvy_job *job, cvy_json *json);
/* For scoring: what `auto` stood for, from a checkpoint's state (NULL: none). */
cvy_status cvy_job_take_normalize(cvy_job *job, const cvy_tree *state);

#endif
