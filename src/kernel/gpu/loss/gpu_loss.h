/*
 * gpu_loss.h: what the losses on GPUs share: sums in two stages, numbers of any dtype, and small tables on the device.
 *
 * Each block of a loss writes the sum of its terms, in f64; one more block adds these in order. So the bits of a loss
 * depend only on its shape. A kernel cannot fail: a label that no class has, or a target that is out of its range,
 * makes the loss NaN.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_LOSS_H
#define CVY_GPU_LOSS_H

#include "kernel/gpu/gpu_common.h"
#include "op/loss/op_loss.h"

enum { CVY_GPU_LOSS_BLOCKS = 1024, CVY_GPU_LOSS_THREADS = 256 };

/* The number of blocks of a loss that has so many terms, one or more for each thread. */
static inline int64_t cvy_gpu_loss_blocks(int64_t terms)
{
    return CVY_MIN(cvy_gpu_blocks(terms), CVY_GPU_LOSS_BLOCKS);
}

/* The kernel that adds n parts, and a run of it: dst = factor * their sum. All are f64 on the device. */
cvy_status cvy_gpu_loss_sum_get(const cvy_space *space, cvy_gpu_kernel *out);
cvy_status cvy_gpu_loss_sum_run(const cvy_gpu_kernel *kernel, const void *parts, int64_t n, double factor, void *dst);

/* The source that is the output of the network: 0, or 1 in a gradient, whose first source is dloss. */
static inline int cvy_gpu_loss_first(const cvy_node *node)
{
    return node->op->flags & CVY_OP_LOSS ? 0 : 1;
}

/* Norm and weight of a loss, the sources of its node from `first` on. The kernel gets the norm in the place of a weight
 * that is not there. */
typedef struct cvy_gpu_loss_weight {
    int norm_at, weight_at; /* the numbers of the sources */
    int kind;               /* of the weight; -1: there is none */
    int64_t each;           /* numbers for each sample */
} cvy_gpu_loss_weight;
cvy_gpu_loss_weight cvy_gpu_loss_weight_of(const cvy_node *node, int first);

/* The layout of an output or target that a loss reads in its order in memory: plain or channels last, as it is. */
cvy_layout cvy_gpu_loss_layout(const cvy_layout *is, const cvy_shape *shape);

/* Numbers in the memory of a space, for as long as a kernel's state lives. count 0: none, and `there` stays NULL. */
typedef struct cvy_gpu_table {
    cvy_space space;
    int count;
    void *there;
} cvy_gpu_table;
cvy_status cvy_gpu_table_make(const cvy_space *space, const double *number, int count, cvy_gpu_table *out);
/* The class weights, then the ignored labels. */
cvy_status cvy_gpu_table_of_labels(const cvy_space *space, const struct cvy_weight_sum *labels, cvy_gpu_table *out);
void cvy_gpu_table_free(cvy_gpu_table *table);

#endif
