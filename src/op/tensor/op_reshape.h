/* SPDX-License-Identifier: BSD-3-Clause */
/* op_reshape.h: options of reshape, for passes that add such nodes. */
#ifndef CVY_OP_RESHAPE_H
#define CVY_OP_RESHAPE_H

#include "base/text/base_option.h"

typedef struct cvy_reshape_opts {
    cvy_ints shape;
} cvy_reshape_opts;

#endif
