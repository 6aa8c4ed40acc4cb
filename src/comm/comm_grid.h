/*
 * comm_grid.h: the ranks of a communicator as a grid with one axis for each kind of parallelism.
 *
 *   data      ranks with the same part of the model and different samples; they reduce gradients
 *   pipeline  ranks with the same samples and different stages of the model; they send activations to each other
 *   tensor    ranks with the same samples and different parts of the channels of layers
 *   space0..2 ranks with the same samples and different parts of a spatial dimension (2, 3 or 4) of activations
 *
 * Numbers run along the spatial axes first, then along tensor, data and pipeline. So the ranks that exchange most,
 * which are those of the spatial and tensor axes, are neighbours and on one node if they fit there; next come the ranks
 * of a data axis, which exchange all gradients in every step. With data alone this axis is the whole communicator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_GRID_H
#define CVY_COMM_GRID_H

#include "comm/comm.h"

typedef enum {
    CVY_AXIS_DATA,
    CVY_AXIS_PIPELINE,
    CVY_AXIS_TENSOR,
    CVY_AXIS_SPACE0,
    CVY_AXIS_SPACE1,
    CVY_AXIS_SPACE2,
    CVY_AXES,
} cvy_axis;

/* The bit of an axis in a set of axes. */
#define CVY_AXIS_BIT(axis) (1u << (axis))
enum {
    CVY_AXES_SPACE = CVY_AXIS_BIT(CVY_AXIS_SPACE0) | CVY_AXIS_BIT(CVY_AXIS_SPACE1) | CVY_AXIS_BIT(CVY_AXIS_SPACE2),
    CVY_AXIS_SETS = 1 << CVY_AXES,
};

typedef struct cvy_grid {
    cvy_comm *all;                       /* borrowed */
    int length[CVY_AXES];                /* of each axis; 1: it is not used */
    int at[CVY_AXES];                    /* this rank's place on it */
    int nstages, stage;                  /* the length of the pipeline axis; this rank's place on it */
    int ndata, data_rank;                /* the length of the data axis; this rank's place on it */
    cvy_comm *data;                      /* the ranks of this rank's data axis; valid after connect */
    cvy_comm *pipeline;                  /* of its pipeline axis, in the order of stages; NULL with one stage */
    cvy_comm *over[CVY_AXIS_SETS];       /* the ranks that differ from this one along these axes only; NULL: not made */
    unsigned char is_own[CVY_AXIS_SETS]; /* whether the grid destroys over[i] */
} cvy_grid;

/* CVY_E_CONFIG: the number of ranks is not a multiple of the product of the lengths without data; the message names
 * what fits. The entry of data is ignored: it becomes what is left. */
cvy_status cvy_grid_check(const int64_t *length, int nranks);
/* Checks that, and gives each rank of `all` its place. */
cvy_status cvy_grid_arrange(cvy_comm *all, const int64_t *length, cvy_grid *out);
/* Makes the communicators of the axes. Collective over `all`, which must outlive them. */
cvy_status cvy_grid_connect(cvy_grid *grid);
/* Makes the communicators of all sets of axes that are set in `wanted` on some rank: bit s stands for the set s.
 * Collective over `all`; call it after connect. */
cvy_status cvy_grid_join(cvy_grid *grid, uint64_t wanted);
/* The number of the rank at this place, one entry for each axis. */
int cvy_grid_rank(const cvy_grid *grid, const int *at);
/* The numbers of the ranks that differ from this one along the axes of the set only, ascending; this one is among them.
 * ranks has room for all ranks. Returns how many there are. */
int cvy_grid_members(const cvy_grid *grid, unsigned set, int *ranks);
/* Accepts a grid that is zero or not connected. */
void cvy_grid_disconnect(cvy_grid *grid);
/* "data", "pipeline", "tensor", "height", ... */
const char *cvy_axis_name(cvy_axis axis);
/* Whether an axis other than data and pipeline is used: then layers or samples are split over ranks. */
static inline int cvy_grid_splits(const cvy_grid *grid)
{
    int splits = 0;
    for (int a = CVY_AXIS_TENSOR; a < CVY_AXES; a++)
        splits |= grid->length[a] > 1;
    return splits;
}
/* Whether this rank is the first on all these axes: of ranks that have the same samples, it speaks for all. */
static inline int cvy_grid_is_first_part(const cvy_grid *grid)
{
    int first = 1;
    for (int a = CVY_AXIS_TENSOR; a < CVY_AXES; a++)
        first = first && grid->at[a] == 0;
    return first;
}
/* Whether it has more than a data axis. */
static inline int cvy_grid_is_used(const cvy_grid *grid)
{
    return grid->nstages > 1 || cvy_grid_splits(grid);
}

#endif
