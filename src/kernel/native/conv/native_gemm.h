/*
 * native_gemm.h: the product of two f32 matrices, on one thread, for our own convolution and fully connected kernels.
 */
#ifndef CVY_NATIVE_GEMM_H
#define CVY_NATIVE_GEMM_H

#include "kernel/native/native_common.h"

/* The innermost function, for the CPU's vectors. */
typedef struct cvy_gemm_tile cvy_gemm_tile;

/* c[m, n] = a[m, k] b[k, n], or c += where `add` is set. Strides in elements, so that a transposed matrix is one with
 * its strides swapped; c's columns are 1 apart. */
typedef struct cvy_gemm {
    const cvy_gemm_tile *tile;
    int64_t m, n, k;
    const float *a, *b;
    int64_t a_row, a_col, b_row, b_col;
    float *c;
    int64_t c_row;
    int add;
} cvy_gemm;

/* The fastest that this CPU may use; asked at planning time. */
const cvy_gemm_tile *cvy_gemm_choose(void);
/* Floats of scratch for one call, 64-byte aligned. */
int64_t cvy_gemm_scratch(void);
void cvy_gemm_run(const cvy_gemm *g, float *scratch);

#endif
