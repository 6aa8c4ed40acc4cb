/* op_concat.h: options of concat and of the pieces that it is put together from, for the kernels that offer to run
 * them. */
#ifndef CVY_OP_CONCAT_H
#define CVY_OP_CONCAT_H

#include <stdint.h>

typedef struct cvy_concat_opts {
    int64_t axis;
} cvy_concat_opts;

/* slice takes `count` entries from `first` on; pad_slice puts its source there, among zeros, in a tensor of `whole`
 * entries. */
typedef struct cvy_slice_opts {
    int64_t axis, first, count;
} cvy_slice_opts;

typedef struct cvy_pad_slice_opts {
    int64_t axis, first, whole;
} cvy_pad_slice_opts;

#endif
