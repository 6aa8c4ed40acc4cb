/*
 * checkpoint_tiles.h: whole variables from the parts that ranks of a tensor axis have, for a save.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CHECKPOINT_TILES_H
#define CVY_CHECKPOINT_TILES_H

#include "comm/comm_grid.h"
#include "graph/graph.h"

/* Whether this rank saves the variables of its stage, for all ranks that have the same ones or parts of them. */
static inline int cvy_grid_saves(const cvy_grid *grid)
{
    return grid->data_rank == 0 && cvy_grid_is_first_part(grid);
}

/* Makes a set of whole variables on the ranks that save; NULL on the others. Variables that are whole already are
 * borrowed from `vars`; the parts of the others are gathered, in plain layout. Collective over the grid. */
cvy_status cvy_tiles_gather(const cvy_vars *vars, const cvy_grid *grid, cvy_vars **whole_out);
/* Writes this rank's part of a variable, from the whole variable in plain layout. */
cvy_status cvy_tile_write(cvy_variable *v, const void *whole);
/* The shape of the whole variable. */
static inline const cvy_shape *cvy_whole_shape(const cvy_variable *v)
{
    return v->tile ? &v->tile->whole : &v->shape;
}
/* The variables in the order of their names, which is the same on all ranks. The caller frees the list. */
cvy_status cvy_vars_by_name(const cvy_vars *vars, cvy_variable ***out);

#endif
