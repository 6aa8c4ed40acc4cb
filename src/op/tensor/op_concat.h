/* SPDX-License-Identifier: BSD-3-Clause */
/* op_concat.h: options of concat, slice and pad_slice, for the operators and their kernels. */
#ifndef CVY_OP_CONCAT_H
#define CVY_OP_CONCAT_H

#include <stdint.h>

typedef struct cvy_concat_opts {
    int64_t axis;
} cvy_concat_opts;

/* slice takes `count` entries from `first` on. pad_slice is the inverse: it puts its source at `first` into a tensor of
 * `whole` entries, and the other entries are zero. */
typedef struct cvy_slice_opts {
    int64_t axis, first, count;
} cvy_slice_opts;

typedef struct cvy_pad_slice_opts {
    int64_t axis, first, whole;
} cvy_pad_slice_opts;

#endif
