/*
 * pass_split.h: splits a forward graph over the ranks of one axis of the grid, for tensor and spatial parallelism.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PASS_SPLIT_H
#define CVY_PASS_SPLIT_H

#include "comm/comm_grid.h"
#include "graph/graph_op.h"

typedef struct cvy_pass_split {
    cvy_axis axis; /* TENSOR or SPACE0 to SPACE2 */
    int parts, me; /* the length of the axis; this rank's place on it */
    int nwhole;    /* of the values that the caller needs, so many are whole; others may stay parts */
    const cvy_index
        *of_layer; /* TENSOR: CVY_SPLIT_OUTPUTS or CVY_SPLIT_INPUTS for layers that are split; others follow */
} cvy_pass_split;

/* Makes the graph of this rank's part of `whole`, which has forward nodes only and variables of a set of its own. The
 * part has the same names; its variables belong to `vars`, and their tiles say which part of the variable they are.
 * value[0 .. n-1] are values of `whole` that the caller needs; they become the values of the part. All ranks have the
 * first split->nwhole of them whole. Takes `whole` over, also on failure. */
cvy_status cvy_pass_split_graph(cvy_graph *whole, const cvy_pass_split *split, cvy_vars *vars, cvy_value **value, int n,
                                cvy_graph **out);

#endif
