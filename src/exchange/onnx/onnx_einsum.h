/*
 * onnx_einsum.h: the equation of an Einsum, and the labels of the axes of its sources and its result.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONNX_EINSUM_H
#define CVY_ONNX_EINSUM_H

#include "exchange/onnx/onnx.h"

/* Labels: the letters in the order of ASCII, the axes of an ellipsis from its last one on, and what shares an axis with
 * the samples (onnx_batch.c). All are bits of a uint64_t. */
enum {
    CVY_EINSUM_LETTERS = 52,
    CVY_EINSUM_BEFORE = CVY_EINSUM_LETTERS + CVY_NDIM_MAX,
    CVY_EINSUM_AFTER,
    CVY_EINSUM_LABELS,
    CVY_EINSUM_SOURCES = 8,
    CVY_EINSUM_NONE = -1, /* of an axis of length 1 that has no meaning */
};

/* A source or the result: a constant with a label for each axis, or a layer with one for each axis of a sample. */
typedef struct cvy_einsum_term {
    int label[2 * CVY_NDIM_MAX], n;
    cvy_shape shape; /* its lengths, of a source */
    const char *layer;
    const cvy_onnx_tensor *constant;
} cvy_einsum_term;

typedef struct cvy_einsum {
    const cvy_onnx_node *node;
    const char *equation; /* without spaces */
    cvy_einsum_term source[CVY_EINSUM_SOURCES], result;
    int nsource, ellipsis; /* the most axes that an ellipsis has */
    int64_t dim[CVY_EINSUM_LABELS];
} cvy_einsum;

/* Reads the equation. The labels are those of the axes in the file. */
cvy_status cvy_einsum_read(const cvy_onnx_node *node, cvy_einsum *out);
/* Finds the lengths of the labels, by NumPy's rules. An axis of length 1 that meets a longer one loses its label. */
cvy_status cvy_einsum_measure(cvy_einsum *e);
uint64_t cvy_einsum_labels(const cvy_einsum_term *t);
/* The sum of the products of constants, with the axes of these labels. */
cvy_status cvy_einsum_compute(const cvy_einsum *e, const cvy_einsum_term *src, int nsrc, const int *label, int n,
                              cvy_onnx_tensor **out);

#define CVY_EINSUM_CHECK(ok, e, fmt, ...)                                                                              \
    CVY_ONNX_CHECK(ok, (e)->node, "its equation %s: " fmt, (e)->equation, __VA_ARGS__)

#endif
