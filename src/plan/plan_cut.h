/*
 * plan_cut.h: where a graph is cut into the stages of a pipeline.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_CUT_H
#define CVY_PLAN_CUT_H

#include "plan/plan_wisdom.h"

/* The layers of a graph in the order of their first nodes, which is a topological order. */
typedef struct cvy_cut_layer {
    const char *name; /* of the graph's pool */
    double ms;        /* of its nodes in one micro-batch, forward and backward */
    size_t crossing;  /* bytes that would be sent per micro-batch, forward and backward, if the cut were after it */
    int placed;       /* the stage on which the user wants it, from 1; 0: any stage */
} cvy_cut_layer;

typedef struct cvy_cut {
    cvy_cut_layer *layer;
    int nlayer;
} cvy_cut;

/* Where the user wants layers, by their names; stages count from 1. */
typedef struct cvy_cut_places {
    cvy_index placed; /* the stage of each layer that the user has placed */
    cvy_index least;  /* of each layer: the first stage on which it can be, because it reads layers that are placed */
} cvy_cut_places;

/* Lists the layers of a whole training graph, with their times. Layers that can only be on later stages come later.
 * times: NULL, or measured ones, which are used if they cover nearly all of the work. places may be NULL. The caller
 * frees it with cvy_cut_free(). */
cvy_status cvy_cut_list(const cvy_lowered *lowered, const cvy_wisdom *times, int threads, const cvy_cut_places *places,
                        cvy_cut *out);
void cvy_cut_free(cvy_cut *cut);
/* Chooses the first layer of each stage, first[0 .. nstages - 1], so that the slowest stage takes as little time as
 * possible; of cuts that are nearly as good, the one that sends the fewest bytes. Layers that are placed are on their
 * stages. CVY_E_CONFIG: there are more stages than layers, or the placed layers leave too few for a stage. */
cvy_status cvy_cut_choose(const cvy_cut *cut, int nstages, int *first);
/* A rough time of a node without a measured one, from its operations and elements. */
double cvy_node_estimate_ms(const cvy_node *node);
/* The time of the slowest stage. */
double cvy_cut_slowest_ms(const cvy_cut *cut, int nstages, const int *first);

#endif
