/*
 * predict.h: what is computed of machines that are not here: the process grid on which a job would train fastest, and
 * platforms for `convoy simulate`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PREDICT_H
#define CVY_PREDICT_H

#include "measure/measure.h"

/** Which process grids cvy_run_plan_grids() predicts. Zero-initialise, set size. */
typedef struct cvy_grids_opts {
    size_t size;
    /** Ranks that the job will have, at least 1. They need not exist. */
    int64_t ranks;
    /** Ranks of each node; 0: one with a link, else all. */
    int64_t node_ranks;
    /** Compute threads of each rank; 0: the cores of this machine, divided by the ranks of a node. */
    int64_t threads;
    /** Memory of a rank in bytes; 0: plan.memory_limit. */
    int64_t memory_bytes;
    /** The link between nodes: time of an empty message in s, and bandwidth. 0: like the memory of this node. */
    double latency_s, bytes_per_s;
    /** Number of grids in the table; 0: 8. */
    int64_t shown;
    /** 1: all grids, as a JSON object. */
    int json;
} cvy_grids_opts;
CVY_SIZED_STRUCT(cvy_grids_opts)

/**
 * cvy_run_plan_grids - on which process grid a job would train fastest
 * @what: the job or the network, as for cvy_run_bench(); its steps are not run
 * @opts: the ranks
 * @text_out: a table of the best grids with step time and memory, one sentence of why, and why others cannot be used.
 *            On rank 0; NULL on others
 *
 * If the job has a grid of its own (parallel), only this one is predicted, unless it is `auto`. Kernels have their
 * measured times; without them the prediction is rough, and the table says so.
 * Collective: yes. Errors: as cvy_run_bench(), and CVY_E_ARGUMENT (ranks), CVY_E_MEMORY (no grid fits: the least memory
 * that is needed, and by which), CVY_E_CONFIG (none can be used).
 */
CVY_MUST_CHECK cvy_status cvy_run_plan_grids(cvy_context *context, const cvy_bench_opts *what,
                                             const cvy_grids_opts *opts, char **text_out);

/** A machine to simulate. Zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_platform_opts {
    size_t size;
    /** A YAML file with topology, links and speed of a node (docs/guide/speed.md); NULL: the text is in `text`. */
    const char *file;
    /** Name of the text in messages, and the text. Used if file is NULL. */
    const char *name, *text;
    /** A network whose rate is looked up, or NULL. */
    const char *model;
    /** Factors on latency and bandwidth of all links; 0: 1. */
    double latency_factor, bandwidth_factor;
} cvy_platform_opts;
CVY_SIZED_STRUCT(cvy_platform_opts)

/** What a node trains with so many samples in its batch. */
typedef struct cvy_platform_rate {
    int64_t samples;
    double images_per_s;
} cvy_platform_rate;

enum { CVY_PLATFORM_RATES = 32 };

/** A machine as a platform file describes it. Set size; the library fills the rest. */
typedef struct cvy_platform {
    size_t size;
    /** Hosts node0, node1 ..., one rank each. */
    int64_t nodes;
    /** What a node trains of the network, by ascending number of samples; nrate is 0: not in the file. One row: it does
     * not depend on the samples. */
    cvy_platform_rate rate[CVY_PLATFORM_RATES];
    int nrate;
    /** Speed of a node with any other network. */
    double gflop_per_s;
    /** Speed at which a node adds up gradients. */
    double add_bytes_per_s;
    /** Cores of a node. */
    int64_t cores;
    /** Time for which a message occupies a node, s. */
    double message_s;
    /** A summary in one line. */
    char summary[160];
    /** The platform in SimGrid's format; the caller releases it with cvy_text_release(). */
    char *xml;
    /** Bytes that a node reads and writes in its memory per second. */
    double memory_bytes_per_s;
    /** What the nodes that have least have of their bandwidth if all send to other switches at once, over fixed routes:
     * 20 uplinks for 28 nodes are 0.5, because some carry two messages. 1: all of it. cvy_platform_share() says it of
     * some of the nodes. */
    double shared_bandwidth;
    /** Nodes of a leaf switch of a fat tree, which do not share its uplinks when they send to each other; 0: it is
     * none.
     */
    int64_t switch_nodes;
    /** NUMA domains of a node, which share its cores and its memory equally. */
    int64_t sockets;
    /** Bytes per second that go from one of them to another, each way; 0: not in the file. */
    double socket_bytes_per_s;
    /** How much the time of a step varies by node and step: standard deviation, as a share of the step. */
    double noise;
    /** Links of a leaf switch to those above it; 0: it is no fat tree. */
    int64_t switch_uplinks;
} cvy_platform;
CVY_SIZED_STRUCT(cvy_platform)

/**
 * cvy_platform_images_per_s - what a node trains with so many samples
 *
 * Between two rows of the table the time of a step is linear in the samples. Above the last row the speed is that of
 * the last row, below the first row that of the first. 0: the file does not have the network.
 */
double cvy_platform_images_per_s(const cvy_platform *platform, double samples);

/**
 * cvy_platform_share - what nodes have of their bandwidth if the first @nodes send to each other's switches at once
 *
 * The nodes of a switch send to at most as many nodes as there are below others: 4 of 32, if 28 are below a switch.
 */
double cvy_platform_share(const cvy_platform *platform, int64_t nodes);

/**
 * cvy_run_platform - read a platform file and convert it to SimGrid's format
 * @out: its size is the caller's, the rest is written only on success; the caller releases `xml`
 *
 * Collective: no. Errors: CVY_E_ARGUMENT (size), CVY_E_IO, CVY_E_CONFIG with file, line and column, CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_platform(const cvy_platform_opts *opts, cvy_platform *out);

#endif
