/*
 * native_label_loss.h: what the kernels of the losses on labels share: their offer, and the labels and weights of a
 * call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_LABEL_LOSS_H
#define CVY_NATIVE_LABEL_LOSS_H

#include "kernel/native/native_math.h"
#include "op/loss/op_label_loss.h"

/* Offers a kernel on plain layouts if the dtypes of source number `first` (f32 or bf16; `what` begins messages about
 * it, "output is"), and of the labels and weights after it, suit. CVY_NOT_APPLICABLE otherwise. */
cvy_status cvy_native_label_loss_offer(cvy_kernel_ask *ask, int first, const char *what);

typedef struct cvy_native_labels {
    const cvy_node *node;
    const struct cvy_weight_sum *options;
    int64_t n, K, P; /* samples, classes, positions of a sample */
    double all;      /* sum of class weights */
    /* of the running call: */
    const int32_t *label;       /* [n, P] */
    const float *weight, *mask; /* [n] or [n, P]; NULL: all are 1 */
    double norm;
} cvy_native_labels;

/* The node's options begin with cvy_label_loss, and its source `first` is [n, K, positions...]. */
cvy_native_labels cvy_native_labels_of(const cvy_node *node, int first);
/* Takes the sources of a call, and checks that each label that counts is a class. */
cvy_status cvy_native_labels_take(cvy_native_labels *l, int first, void *const *src);

/* The weight of position p of sample n by its mask; 0 if it does not count: then its label may be any. */
static inline float cvy_native_label_weight(const cvy_native_labels *l, int64_t n, int64_t p)
{
    const int64_t at = n * l->P + p;
    if (cvy_label_ignored(l->options, l->label[at]) || (l->weight && l->weight[n] == 0))
        return 0;
    return l->mask ? l->mask[at] : 1;
}

/* weight[n] / norm: see cvy_loss_factor(). A mask is not in it. */
static inline double cvy_native_label_factor(const cvy_native_labels *l, int64_t n)
{
    return l->norm == 0 ? 0 : (l->weight ? l->weight[n] : 1) / l->norm;
}

#endif
