/*
 * convoy/partition.h: partitioning passes of your own: which layers each stage of a pipeline holds, and which layers
 * are split over the ranks of a tensor axis.
 *
 * A pass belongs to an extension (convoy/operator.h), which has a table of them. If a program is cut into stages
 * (parallel.pipeline), convoy calls `run` of the passes of all libraries that its context has loaded, in the order in
 * which they were loaded, and each may place layers. Without such a pass convoy cuts by time. If ranks share layers
 * (parallel.tensor) and the job does not say which (parallel.tensor_layers), convoy calls `split` of the passes in the
 * same way. Without such a pass all layers with weights are split by channels.
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

CVY_BEGIN_DECLS

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
    /** Floating-point operations, forward and backward; for `split`, forward only. */
    int64_t flop;
    /** Bytes of its weights, without gradients and optimiser state. */
    int64_t weight_bytes;
    /** For `split`: 1 if the layer has weights that can be split by channels. */
    int can_split;
} cvy_partition_layer;

/** The network, as a pass sees it. */
typedef struct cvy_partition_graph {
    /** Of this struct, as the calling convoy knows it. */
    size_t size;
    /** Stages of the pipeline, and micro-batches of a step. */
    int nstages, nmicro;
    /** Ranks of the tensor axis, and of the data axis. */
    int nparts, ndata;
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
    /**
     * split_channels - split the weights of a layer by channels
     * @layer: its number; its can_split is 1
     *
     * Only `split` may call it. Each rank of the tensor axis then has a part of the layer's channels and the samples of
     * all ranks of this axis. Ranks share the samples of the layers that no pass splits.
     * Returns 0, or another number after it has written what is wrong to `message`.
     */
    int (*split_channels)(struct cvy_partition_graph *graph, int layer);
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
    /** Places layers on stages, or NULL. It must do the same on every rank, so it depends on the graph alone. Returns
     * 0, or another number after it has written what is wrong to graph->message. */
    int (*run)(cvy_partition_graph *graph);
    /** Chooses the layers that are split over the tensor axis, or NULL; as `run`. A rank may have fewer samples than
     * others, so it must not depend on dim[0] of results, and on what follows from it: result_bytes and flop. */
    int (*split)(cvy_partition_graph *graph);
} cvy_partition;
CVY_SIZED_STRUCT(cvy_partition)

CVY_END_DECLS
#endif
