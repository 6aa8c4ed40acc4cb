/* SPDX-License-Identifier: BSD-3-Clause */
/* op_fill.h: options of fill, for the operator and its kernels. */
#ifndef CVY_OP_FILL_H
#define CVY_OP_FILL_H

#include "graph/graph_op.h"

typedef struct cvy_fill_opts {
    double value;
    cvy_ints shape;
    int dtype; /* a cvy_dtype: the words of the option are in the order of this enum */
} cvy_fill_opts;

#endif
