/*
 * gpu_product.h: products of matrices on a GPU, for convolutions, fully connected layers and matmul.
 *
 * A block of 256 threads makes a tile of 64 x 64 results. In each step it brings 16 columns of the one matrix and 16
 * rows of the other one into SHARED memory, and each thread adds their products to its 4 x 4 results. The matrices of a
 * convolution are not in memory: their elements are found by a window that slides over positions. The text that a
 * device compiles contains this file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_PRODUCT_H
#define CVY_GPU_PRODUCT_H

#include "backend/gpu/device.h"

enum { CVY_TILE = 64, CVY_STEP = 16 };

/* A division by a multiplication: n / by is n * mul >> shift, for each n from 0 to 2^31 - 1. */
typedef struct cvy_gpu_divider {
    u32 mul;
    int shift, by;
} cvy_gpu_divider;

/* One spatial dimension of a window. At row y, tap t reads the position y * stride + first + t * step; what is not in
 * 0 .. from - 1 is zero. from_by, to_by, weight_by: elements from one position, row and tap to the next. */
typedef struct cvy_gpu_axis {
    cvy_gpu_divider rows, taps;
    int from, stride, first, step;
    int from_by, to_by, weight_by;
} cvy_gpu_axis;

/* What follows a sum: max(sum + bias of the channel + what is added, 0). */
typedef struct cvy_gpu_ending {
    int bias, add, relu;
} cvy_gpu_ending;

/* A window that slides over `from`, for all passes of a convolution. For each group:
 *
 *     to[row, column]      = sum over the places f of the filter of from[row, f] * weight[column, f]
 *     weight[column, f]    = sum over the rows of from[row, f] * to[row, column]
 *
 * A row is a sample and a place along each axis. A place of the filter is a tap along each axis and a channel, which
 * changes fastest. The channels of `from` are neighbours in memory, and so are the columns of `to`. */
typedef struct cvy_gpu_window {
    int rows, columns, filter, groups;
    int tiles_m, tiles_n;    /* of the results of a group */
    int parts, sums_of_part; /* the summands are cut into parts, whose sums are added in their order */
    i64 elems;               /* of all results: from one part to the next */
    i64 from_sample, to_sample, to_first;
    int from_group, to_group; /* elements from one group to the next */
    int weight_first, weight_group, weight_column, weight_channel;
    cvy_gpu_ending ending; /* of `to` */
    cvy_gpu_divider channels;
    cvy_gpu_axis axis[3];
} cvy_gpu_window;

#ifdef CVY_DEVICE

/* A thread's results are these rows and columns of the tile of its block, for i and j from 0 to 3. */
#define ROW_OF(i) (THREAD / 16 * 4 + (i))
#define COLUMN_OF(j) (THREAD % 16 * 4 + (j))

/* One step of both matrices is SHARED float [CVY_STEP][ROOM]. ROOM is not a multiple of the number of memory banks, so
 * that threads that write a column use different banks. */
#define ROOM (CVY_TILE + 4)

/* sum[i][j] += the products of one step, which the threads have written to a and b. A barrier stands before and after.
 */
#define ADD_PRODUCTS(sum, a, b)                                                                                        \
    do {                                                                                                               \
        const int row_ = ROW_OF(0), column_ = COLUMN_OF(0);                                                            \
        for (int k_ = 0; k_ < CVY_STEP; k_++)                                                                          \
            for (int i_ = 0; i_ < 4; i_++)                                                                             \
                for (int j_ = 0; j_ < 4; j_++)                                                                         \
                    (sum)[i_][j_] = FMA((a)[k_][row_ + i_], (b)[k_][column_ + j_], (sum)[i_][j_]);                     \
    } while (0)

#else
#include "kernel/gpu/tensor/gpu_sum.h"

cvy_gpu_divider cvy_gpu_divider_make(int64_t by);
/* Sets what follows from the dividers and from the numbers of samples and columns. CVY_NOT_APPLICABLE: the kernels
 * count in 32 bits, and a number is larger. */
cvy_status cvy_gpu_window_count(cvy_gpu_window *w, int64_t samples, int64_t columns);
/* The strides of a weight. `layout` stays as it is if it is given and has no blocks; else it becomes channels last.
 * CVY_NOT_APPLICABLE: the weight is too large. */
cvy_status cvy_gpu_weight_strides(const cvy_shape *shape, int given, cvy_layout *layout, cvy_blocking *out);

/* The sum over the filter. Each of n windows makes some of the rows. offer: asks whether the kernels compile, and sets
 * the scratch memory. Both set how the sums are cut. run: the sources are from, weight, and a bias or what is added;
 * the destination is `to`. */
cvy_status cvy_gpu_window_offer(cvy_kernel_ask *ask, cvy_gpu_window *w, int n);
cvy_status cvy_gpu_window_create(const cvy_kernel_ask *ask, cvy_gpu_window *w, int n, void **state_out);
cvy_status cvy_gpu_window_run(void *state, void *const *src, void *const *dst, void *scratch);

/* The sum over the rows: the gradient of a weight, and that of a bias, which is the sum of source 1 over all axes but
 * `channels`. from: the index of the source that is `from`; the other one is `to`. */
cvy_status cvy_gpu_filter_offer(cvy_kernel_ask *ask, const cvy_gpu_window *w, int channels);
cvy_status cvy_gpu_filter_create(const cvy_kernel_ask *ask, const cvy_gpu_window *w, int from, int channels,
                                 void **state_out);
cvy_status cvy_gpu_filter_run(void *state, void *const *src, void *const *dst, void *scratch);
void cvy_gpu_filter_destroy(void *state);

/* The gradient of a bias: the sum of source `ddst` of a node over all axes but `channels`. */
cvy_gpu_sum_def cvy_gpu_bias_sum(const cvy_kernel_ask *ask, int ddst, int channels);

#endif
#endif
