/*
 * session_values.h: looks at the numbers that a network gets, and says which are far from what it can be trained on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SESSION_VALUES_H
#define CVY_SESSION_VALUES_H

#include "context/context.h"
#include "data/data.h"
#include "job/job.h"
#include "model/model.h"

typedef struct cvy_values_ask {
    const cvy_job *job;     /* its steps are those of the data set */
    const cvy_model *model; /* that gets the values */
    const char *key;        /* what the data are, as "data.train", for messages */
    int targets;            /* 1: y counts, too */
} cvy_values_ask;

/* Reads some samples of d, spread over all of it, on rank 0, and warns in one line about x, and in one about y, if
 * numbers are far from mean 0 and standard deviation 1, with the likely cause and the cure. Samples that cannot be read
 * are left out: who needs them says so. Returns whether it has warned about x; the other ranks return 0 at once. */
int cvy_values_look(const cvy_context *context, const cvy_values_ask *ask, cvy_dataset *d);

#endif
