/*
 * op_pool.h: options of max and average pooling and their gradients, for the operators and their kernels.
 *
 *     max_pool              src [N, C, ...] -> dst, index (saved)
 *     max_pool_grad         ddst, index -> dsrc
 *     avg_pool              src -> dst
 *     avg_pool_grad         ddst -> dsrc
 *     global_avg_pool       src [N, C, ...] -> dst [N, C]
 *     global_avg_pool_grad  ddst -> dsrc
 *     global_max_pool       src [N, C, ...] -> dst [N, C], index [N, C] (saved)
 *     global_max_pool_grad  ddst, index -> dsrc
 *
 * index is the row-major position of the maximum in the window, u8 or i32; of global_max_pool in the channel, i32.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_POOL_H
#define CVY_OP_POOL_H

#include "op/conv/op_window.h"

typedef struct cvy_pool_opts {    /* options of max_pool and avg_pool */
    cvy_ints kernel, stride, pad; /* stride empty: same as kernel */
    cvy_ints pad_end;             /* at the far end; empty: same as pad */
    cvy_ints dilation;            /* max_pool */
    int ceil;
    int count_include_pad; /* avg_pool: the divisor counts padding */
    int relu;              /* max_pool: fused ReLU; if the result is zero, the index is cvy_max_pool_no_winner() */
} cvy_pool_opts;

typedef struct cvy_pool_grad_opts { /* options of max_pool_grad and avg_pool_grad */
    cvy_pool_opts pool;
    cvy_shape src; /* of the forward source */
} cvy_pool_grad_opts;

typedef struct cvy_global_pool_grad_opts { /* of global_avg_pool_grad and global_max_pool_grad */
    cvy_shape src;
} cvy_global_pool_grad_opts;

/* The window of a pooling operator; op is its name in messages. A pad must be smaller than the kernel, so that no
 * window has only padding. */
cvy_status cvy_pool_window(const char *op, const cvy_pool_opts *o, const cvy_shape *src, cvy_window *out);
/* cvy_op_def.part of both pooling operators. */
cvy_status cvy_pool_part(const cvy_node *node, cvy_node_part *part, void *options);
/* The divisor of avg_pool at destination position `at`, by PyTorch's rule: in ceil mode a window may extend beyond the
 * right padding, and these positions do not count. */
int64_t cvy_avg_pool_divisor(const cvy_window *w, const int64_t at[CVY_SPACE_MAX], int count_include_pad);
/* The dtype of max_pool's index: u8 if every position of the window fits, else i32. */
cvy_dtype cvy_max_pool_index_dtype(const cvy_window *w);
/* The index of a window without a maximum position, which gets no gradient. No position of the window has this
 * index. */
static inline int32_t cvy_max_pool_no_winner(cvy_dtype index)
{
    return index == CVY_DTYPE_U8 ? UINT8_MAX : -1;
}

#endif
