/*
 * checkpoint_average.h: weights and their running averages in a checkpoint set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CHECKPOINT_AVERAGE_H
#define CVY_CHECKPOINT_AVERAGE_H

#include "graph/graph.h"

/* Makes a view of the variables with the names and roles that they have in a checkpoint set; their memory is that of
 * `vars`. *view_out is NULL if these are the variables' own, because no weight has a running average. Destroy it after
 * use. */
cvy_status cvy_vars_as_saved(const cvy_vars *vars, cvy_vars **view_out);

#endif
