/*
 * sample_kernels.h: compares the kernels that offer to run the nodes of a sample with the reference kernels.
 *
 * kernels    every kernel that makes an offer for a node of the graph (backward nodes included), in every layout that
 *            it takes, in the same dtype; with guard zones, in place if the kernel says that it can, and on slices of
 *            wider tensors if it says so
 * threads    a kernel in deterministic mode gives the same bits on one, two and three threads, unless it says that its
 *            result depends on the number of threads
 *
 * A tolerance is eps x number of summands x size of the values. Winograd and TF32 have a wider one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SAMPLE_KERNELS_H
#define CVY_SAMPLE_KERNELS_H

#include "kernel/kernel.h"
#include "sample/sample_graph.h"

typedef struct cvy_sample_report {
    int64_t runs, checks;   /* runs of kernels; destinations and bits that were compared */
    int64_t wrong;          /* how often complain was called */
    uint64_t bits;          /* a hash of all results so far: equal runs give equal bits */
    int tf32;               /* products may be rounded to TF32, as the ask of kernel.h says */
    int compiles;           /* kernels that a library compiles are asked for, too */
    const cvy_space *space; /* where the kernels work; NULL: on the host's memory. Others are left out */
    /* Called for everything that is wrong, with a sentence that names kernel, node, layouts and values. */
    void (*complain)(void *user, const cvy_sample_graph *b, const char *what);
    void *user;
} cvy_sample_report;

/* Runs the kernels of `table` on the sample, which has been opened. If the sample is wide, only numbers of threads are
 * compared. A kernel that is wrong is no fault of the call. */
cvy_status cvy_sample_check_kernels(const cvy_sample_graph *b, const cvy_kernel_def *const *table, int count,
                                    cvy_sample_report *report);

#endif
