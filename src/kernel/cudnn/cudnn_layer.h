/*
 * cudnn_layer.h: a node as a problem of cuDNN: convolutions, deconvolutions, fully connected layers and their
 * gradients.
 *
 * Activations are channels last, and so are the weights. In bf16, cuDNN reads a bf16 copy of the weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CUDNN_LAYER_H
#define CVY_CUDNN_LAYER_H

#include "kernel/cudnn/cudnn_graph.h"
#include "kernel/kernel.h"

typedef struct cvy_cudnn_layer {
    cvy_layer_pass pass; /* of the node */
    cvy_cudnn_problem problem;
    int src, weight, dst; /* of the problem: 0, 1, 2: that source of the node; RESULT: its destination */
    int bias, relu;       /* what a kernel of ours does after cuDNN; bias: it is added, or it is a second result */
    int64_t channels;     /* of the bias */
    int is_fc, narrow;    /* narrow: its gradient of weights is bf16 */
} cvy_cudnn_layer;

enum { CVY_CUDNN_RESULT = -1 };

typedef enum {
    CVY_CUDNN_PLAIN,
    CVY_CUDNN_ROUNDED, /* a gradient of weights is bf16 if its sources are; otherwise it is f32 */
    CVY_CUDNN_FUSED    /* cuDNN adds the bias and does the relu */
} cvy_cudnn_way;

/* Of an ask, node, deterministic and tf32 count. CVY_NOT_APPLICABLE: cuDNN has no problem for this node. */
cvy_status cvy_cudnn_layer_of(const cvy_kernel_ask *ask, cvy_cudnn_way way, cvy_cudnn_layer *out);

#endif
