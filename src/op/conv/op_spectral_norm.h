/*
 * op_spectral_norm.h: the weight of a layer such as conv or fc, which is a variable of the layer or, with the option
 * `spectral_norm`, the result of nodes that divide this variable by its largest singular value.
 *
 *     spectral_norm        weight, weight_u, weight_v -> the weight to use, vectors {u, v, largest singular value}
 *     spectral_norm_grad   gradient of the weight to use, this weight, vectors -> gradient of the variable
 *     spectral_norm_sum    vectors -> accumulator, the sum of {u, v} over micro-batches and ranks
 *     spectral_norm_keep   accumulator, weight_u, weight_v -> weight_u, weight_v
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_SPECTRAL_NORM_H
#define CVY_OP_SPECTRAL_NORM_H

#include "graph/graph_op.h"

/* The weight that a layer needs for its source. */
typedef struct cvy_layer_weight {
    cvy_shape shape;
    cvy_init init;
    int axis; /* of the output features: the rows of the matrix whose singular values count */
} cvy_layer_weight;

/* The row of the option table. */
#define CVY_SPECTRAL_NORM_ROW(type)                                                                                    \
    {                                                                                                                  \
        "spectral_norm", CVY_TYPE_BOOL, CVY_FIELD(type, spectral_norm), "false", "", "",                               \
            "divide the weight by its largest singular value, which one power iteration a step follows"                \
    }

/* For infer: source 1 is the weight. If the caller gives none, it is the variable "<layer>.weight". */
cvy_status cvy_layer_take_weight(cvy_node *node, const cvy_layer_weight *weight);
/* Whether other nodes make the weight, source 1. */
int cvy_layer_weight_is_made(const cvy_node *node);
/* The weight for a source of this shape, from the options of the layer. */
typedef cvy_status (*cvy_layer_weight_fn)(const void *options, const cvy_shape *src, cvy_layer_weight *out);
/* For build: adds the layer, one node whose options are parsed already. normed: gives the weight with spectral norm;
 * NULL: it has none. A layer that is applied several times in a graph has one weight to use for all applications. */
cvy_status cvy_layer_build(cvy_graph *g, const cvy_op_def *op, const char *name, const void *options,
                           cvy_layer_weight_fn normed, cvy_value *const *src, int nsrc, cvy_value **dst_out);
/* For the `grad` of the operator that computes the gradient of a layer for its source, as a gradient penalty needs it:
 * adds the gradients for ddst, by the layer's operator, and for the weight. */
cvy_status cvy_layer_grad_again(cvy_grad *g, const cvy_node *fwd, const char *op, const void *options,
                                const char *weight_op, const void *weight_options);
/* For `part`: how a weight that is made is split. axis: of the output features. */
void cvy_layer_part_weight(const cvy_node *node, cvy_node_part *part, int axis);

typedef struct cvy_spectral_norm_opts { /* of all its operators */
    cvy_ints shape;                     /* of the weight */
    int64_t axis;
    int iterate; /* 1: a power iteration, as in training; 0: the vectors stay as they are */
    const char *init, *init_options;
    int64_t fan_in, fan_out;
} cvy_spectral_norm_opts;

/* The weight as a matrix of `rows` x `cols`: entry (r, c) is element (c / inner * rows + r) * inner + c % inner. */
typedef struct cvy_spectral_matrix {
    int64_t rows, cols, inner;
} cvy_spectral_matrix;
cvy_spectral_matrix cvy_spectral_matrix_of(const cvy_spectral_norm_opts *o);

/* A vector is divided by at least this norm, as in PyTorch. */
#define CVY_SPECTRAL_EPS 1e-12
/* Iterations of the first use of a weight, whose vectors are random until then, besides that of the step. */
enum { CVY_SPECTRAL_FIRST = 15 };

#endif
