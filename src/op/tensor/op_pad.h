/* SPDX-License-Identifier: BSD-3-Clause */
/* op_pad.h: options of pad and crop, for the operators and their kernels. A list of one entry is for all spatial
 * dimensions. */
#ifndef CVY_OP_PAD_H
#define CVY_OP_PAD_H

#include "base/text/base_option.h"

typedef struct cvy_pad_opts {
    cvy_ints before, after;
} cvy_pad_opts;

#endif
