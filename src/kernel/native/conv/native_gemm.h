/*
 * native_gemm.h: the product of two f32 matrices in one thread, for convoy's own convolution and fully connected
 * kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_GEMM_H
#define CVY_NATIVE_GEMM_H

#include "kernel/native/native_common.h"

/* The innermost function, for the CPU's vectors. */
typedef struct cvy_gemm_tile cvy_gemm_tile;

/* c[m, n] = a[m, k] b[k, n], or c += if `add` is set. Strides are in elements; a transposed matrix has its strides
 * swapped. The columns of c are 1 apart. */
typedef struct cvy_gemm {
    const cvy_gemm_tile *tile;
    int64_t m, n, k;
    const float *a, *b;
    int64_t a_row, a_col, b_row, b_col;
    float *c;
    int64_t c_row;
    int add;
} cvy_gemm;

/* The fastest version that this CPU may use. Called at planning time. */
const cvy_gemm_tile *cvy_gemm_choose(void);
/* Floats of scratch memory for one call; it must be aligned to 64 bytes. */
int64_t cvy_gemm_scratch(void);
void cvy_gemm_run(const cvy_gemm *g, float *scratch);

#endif
