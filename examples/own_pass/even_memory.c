/*
 * even_memory.c: partitioning passes of your own, as a library that convoy loads.
 *
 * convoy cuts a network into the stages of a pipeline so that each takes the same time. If memory is scarce, another
 * rule may be better: even_memory cuts so that the stage that needs most memory needs as little as possible. It counts
 * the weights three times (the weight, its gradient, the state of the optimiser), and the results of a stage once for
 * each micro-batch that waits there in the order 1F1B: nstages on the first stage, one on the last.
 *
 * The other pass, large_weights, is for a tensor axis: it splits the layers whose weights are larger than their results
 * of 64 samples. They are the fully connected layers of most networks; the ranks share the samples of all other layers.
 *
 *     make PKG_CONFIG_PATH=PREFIX/lib/pkgconfig        builds even_memory.so
 *     mpiexec -n 2 convoy train memory.yaml            trains with it
 *     mpiexec -n 2 convoy train memory.yaml --set 'parallel={tensor: 2}'
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/operator.h>

#include <stdio.h>

static double bytes_of(const cvy_partition_graph *graph, int layer, int stage)
{
    const int left = graph->nstages - stage + 1, waiting = graph->nmicro < left ? graph->nmicro : left;
    return 3.0 * (double)graph->layer[layer].weight_bytes + (double)waiting * (double)graph->layer[layer].result_bytes;
}

/* Fills the stages from the first one, each up to `most` bytes. Each later stage keeps at least one layer. Returns 1 if
 * all layers find room; with `place`, it also places them. */
static int fill(cvy_partition_graph *graph, double most, int place)
{
    int stage = 1, used = 0; /* layers of this stage */
    double sum = 0;
    for (int i = 0; i < graph->nlayer; i++) {
        const int must = graph->nlayer - i <= graph->nstages - stage; /* as many layers as later stages are left */
        if (used > 0 && stage < graph->nstages && (must || sum + bytes_of(graph, i, stage) > most)) {
            stage++;
            used = 0;
            sum = 0;
        }
        sum += bytes_of(graph, i, stage);
        used++;
        if (sum > most)
            return 0;
        if (place && graph->set_stage(graph, i, stage) != 0)
            return 0;
    }
    return 1;
}

static int even_memory(cvy_partition_graph *graph)
{
    double low = 0, high = 1;
    if (graph->nlayer < graph->nstages) {
        snprintf(graph->message, sizeof graph->message, "%d layers are too few for %d stages", graph->nlayer,
                 graph->nstages);
        return 1;
    }
    for (int i = 0; i < graph->nlayer; i++)
        high += bytes_of(graph, i, 1);
    for (int i = 0; i < 60; i++) { /* bisection: the smallest memory with which all layers find room */
        const double middle = 0.5 * (low + high);
        if (fill(graph, middle, 0))
            high = middle;
        else
            low = middle;
    }
    return !fill(graph, high, 1);
}

static const cvy_partition pass = {
    .size = sizeof pass,
    .name = "even_memory",
    .summary = "stages that need about the same memory",
    .run = even_memory,
};

/* Of one sample: ranks may have different numbers of samples, and all have to choose the same layers. */
static double sample_bytes(const cvy_partition_layer *layer)
{
    double elems = 1;
    for (int d = 1; d < layer->result.ndim; d++)
        elems *= (double)layer->result.dim[d];
    return 4 * elems;
}

static int large_weights(cvy_partition_graph *graph)
{
    for (int i = 0; i < graph->nlayer; i++) {
        const cvy_partition_layer *layer = &graph->layer[i];
        if (layer->can_split && (double)layer->weight_bytes > 64 * sample_bytes(layer) &&
            graph->split_channels(graph, i) != 0)
            return 1;
    }
    return 0;
}

static const cvy_partition large = {
    .size = sizeof large,
    .name = "large_weights",
    .summary = "layers whose weights are larger than their results of 64 samples are split by channels",
    .split = large_weights,
};

static const cvy_partition *const passes[] = {&pass, &large, NULL};

static const cvy_extension extension = {
    .abi = CVY_EXTENSION_ABI,
    .version = CVY_VERSION_NUMBER,
    .size = sizeof extension,
    .name = "even_memory",
    .partitions = passes,
};

const cvy_extension *convoy_extension(void)
{
    return &extension;
}
