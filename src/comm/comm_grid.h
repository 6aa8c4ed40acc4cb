/*
 * comm_grid.h: the ranks of a communicator as a grid with one axis for each kind of parallelism.
 *
 *   data      ranks with the same part of the model and different samples; they reduce gradients
 *   pipeline  ranks with the same samples and different stages of the model; they send activations to each other
 *
 * The ranks of a data axis are neighbours, so that they are on one node if they fit there: they exchange all gradients
 * in every step, through the node's shared memory if they can. With one stage the data axis is the whole communicator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_GRID_H
#define CVY_COMM_GRID_H

#include "comm/comm.h"

typedef struct cvy_grid {
    cvy_comm *all;        /* borrowed */
    int nstages, stage;   /* the length of the pipeline axis; this rank's place on it */
    int ndata, data_rank; /* the length of the data axis; this rank's place on it */
    cvy_comm *data;       /* the ranks of this rank's data axis: `all` with one stage; valid after connect */
    cvy_comm *pipeline;   /* the ranks of its pipeline axis, in the order of stages; NULL with one stage */
} cvy_grid;

/* CVY_E_CONFIG: the number of ranks is not a multiple of nstages; the message names numbers of stages that fit. */
cvy_status cvy_grid_check(int64_t nstages, int nranks);
/* Checks that, and gives each rank of `all` its place. */
cvy_status cvy_grid_arrange(cvy_comm *all, int64_t nstages, cvy_grid *out);
/* Makes the communicators of the axes. Collective over `all`, which must outlive them. */
cvy_status cvy_grid_connect(cvy_grid *grid);
/* Accepts a grid that is zero or not connected. */
void cvy_grid_disconnect(cvy_grid *grid);

#endif
