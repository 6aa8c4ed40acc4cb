/*
 * onednn_weight.h: converts between a variable's layout and oneDNN's layout of the same weights.
 *
 * The variable of a grouped convolution is [K, C/G, positions...], but for oneDNN it is [G, K/G, C/G, positions...].
 * The variable of a deconvolution is [C, K/G, positions...], but for oneDNN it is [K, C, ...] or [G, K/G, C/G, ...]. If
 * a tag can be converted, the memory is the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONEDNN_WEIGHT_H
#define CVY_ONEDNN_WEIGHT_H

#include "graph/graph_op.h"

typedef struct cvy_onednn_weight {
    int ndim;                     /* of the variable */
    int64_t groups, outer, inner; /* variable: [groups * outer, inner, positions...] */
    int transposed;               /* deconvolution */
} cvy_onednn_weight;

/* Gives oneDNN's layout of a variable that has the layout `variable`. CVY_NOT_APPLICABLE if there is none. */
cvy_status cvy_onednn_weight_to(const cvy_onednn_weight *w, const cvy_layout *variable, cvy_layout *out);
/* The inverse conversion. */
cvy_status cvy_onednn_weight_from(const cvy_onednn_weight *w, const cvy_layout *onednn, cvy_layout *out);

#endif
