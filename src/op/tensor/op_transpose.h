/* SPDX-License-Identifier: BSD-3-Clause */
/* op_transpose.h: options of transpose, for the operator and its fast kernel. */
#ifndef CVY_OP_TRANSPOSE_H
#define CVY_OP_TRANSPOSE_H

#include "base/text/base_option.h"

typedef struct cvy_transpose_opts {
    cvy_ints order; /* axis d + 1 of the result is axis order[d] of the source; a permutation of 1 .. ndim - 1 */
} cvy_transpose_opts;

#endif
