/*
 * onednn_weight.h: a variable's layout and oneDNN's layout of the same weights, one from the other.
 *
 * The variable of a grouped convolution is [K, C/G, positions...], oneDNN counts it [G, K/G, C/G, positions...]; the
 * variable of a deconvolution is [C, K/G, positions...], oneDNN counts [K, C, ...] or [G, K/G, C/G, ...]. The memory is
 * the same wherever the tags translate.
 */
#ifndef CVY_ONEDNN_WEIGHT_H
#define CVY_ONEDNN_WEIGHT_H

#include "graph/graph_op.h"

typedef struct cvy_onednn_weight {
    int ndim;                     /* of the variable */
    int64_t groups, outer, inner; /* variable: [groups * outer, inner, positions...] */
    int transposed;               /* deconvolution */
} cvy_onednn_weight;

/* oneDNN's layout of a variable that lies in `variable`; CVY_NOT_APPLICABLE if it has none. */
cvy_status cvy_onednn_weight_to(const cvy_onednn_weight *w, const cvy_layout *variable, cvy_layout *out);
/* The inverse. */
cvy_status cvy_onednn_weight_from(const cvy_onednn_weight *w, const cvy_layout *onednn, cvy_layout *out);

#endif
