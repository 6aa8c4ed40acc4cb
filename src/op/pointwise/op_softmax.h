/* SPDX-License-Identifier: BSD-3-Clause */
/* op_softmax.h: options of softmax, log_softmax and their gradients, for the operators and their kernels. */
#ifndef CVY_OP_SOFTMAX_H
#define CVY_OP_SOFTMAX_H

#include <stdint.h>

typedef struct cvy_softmax_opts {
    int64_t axis; /* of a node in a graph: 1 or more */
} cvy_softmax_opts;

#endif
