/*
 * op_embedding.h: options of embedding and its gradient, and the check of an index, for the operators and their
 * kernels.
 *
 *     embedding       src [N, ...], weight [rows, channels] -> dst [N, ..., channels]
 *     embedding_grad  src, ddst -> dweight
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_EMBEDDING_H
#define CVY_OP_EMBEDDING_H

#include "graph/graph_op.h"

typedef struct cvy_embedding_opts {
    int64_t rows, channels;
    const char *init, *init_options;
} cvy_embedding_opts;

/* Checks all elements of src: whole numbers of at least 0, below the number of rows. */
cvy_status cvy_embedding_check(const cvy_node *node, const cvy_span *src);

#endif
