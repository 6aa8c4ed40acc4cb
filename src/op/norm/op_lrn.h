/*
 * op_lrn.h: options of local response normalisation, for lrn (src -> dst) and lrn_grad (src, ddst -> dsrc).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_LRN_H
#define CVY_OP_LRN_H

#include "graph/graph_op.h"

typedef struct cvy_lrn_opts {
    int64_t size; /* odd */
    double alpha, beta, k;
} cvy_lrn_opts;

#endif
