/*
 * convoy/partition.h: partitioning passes of your own: which layers each stage of a pipeline holds.
 *
 * A pass belongs to an extension (convoy/operator.h), which has a table of them. If a program is cut into stages
 * (parallel.pipeline), convoy runs the passes of all libraries that its context has loaded, in the order in which they
 * were loaded, and each may place layers. Without such a pass convoy cuts by time.
 *
 *     static int halves(cvy_partition_graph *graph)
 *     {
 *         for (int i = 0; i < graph->nlayer; i++)
 *             if (graph->set_stage(graph, i, 1 + i * graph->nstages / graph->nlayer) != 0)
 *                 return 1;
 *         return 0;
 *     }
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_PARTITION_H
#define CONVOY_PARTITION_H

#include <convoy/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A layer, as a pass sees it. All numbers are those of one micro-batch on one rank. */
typedef struct cvy_partition_layer {
    /** Its name in the model, and its operator's. */
    const char *name, *op;
    /** [nsrc]: the numbers of the layers that it reads, which are smaller than its own. Inputs are not among them. */
    int nsrc;
    const int *src;
    /** Shape of its result, with the micro-batch in dim[0]; and the bytes of the result, which are sent if a layer of a
     * later stage reads it. */
    cvy_shape result;
    int64_t result_bytes;
    /** Floating-point operations, forward and backward. */
    int64_t flop;
    /** Bytes of its weights, without gradients and optimiser state. */
    int64_t weight_bytes;
} cvy_partition_layer;

/** The network, as a pass sees it. */
typedef struct cvy_partition_graph {
    /** Of this struct, as the calling convoy knows it. */
    size_t size;
    /** Stages of the pipeline, at least 2, and micro-batches of a step. */
    int nstages, nmicro;
    /** The layers in a topological order: a layer comes after all that it reads. */
    int nlayer;
    const cvy_partition_layer *layer;
    /**
     * set_stage - place a layer on a stage
     * @layer: its number
     * @stage: from 1 to nstages
     *
     * A layer must be on the stage of the layers that it reads, or on a later one, and every stage needs a layer.
     * Returns 0, or another number after it has written what is wrong to `message`.
     */
    int (*set_stage)(struct cvy_partition_graph *graph, int layer, int stage);
    /** What is wrong, if the pass does not return 0. */
    char message[256];
    /** Private to convoy. */
    void *owned;
} cvy_partition_graph;

/** A partitioning pass. Zero-initialise, set size. Texts are used as long as the process lives, so they are static. */
typedef struct cvy_partition {
    size_t size;
    /** For the log and messages. */
    const char *name, *summary;
    /** Places layers. It must do the same on every rank, so it depends on the graph alone. Returns 0, or another number
     * after it has written what is wrong to graph->message. */
    int (*run)(cvy_partition_graph *graph);
} cvy_partition;
CVY_SIZED_STRUCT(cvy_partition)

#ifdef __cplusplus
}
#endif
#endif
