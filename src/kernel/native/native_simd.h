/*
 * native_simd.h: tables of loops, compiled once for each instruction set, for convoy's own kernels.
 *
 * Each native_simd_<isa>.c compiles the loops of native_<kernel>_simd.h. A kernel picks its table when it is created.
 * The tables hold loops that compilers do not vectorise well from plain C; other loops are marked CVY_SIMD
 * (native_common.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_SIMD_H
#define CVY_NATIVE_SIMD_H

#include "kernel/native/norm/native_bn_train.h"

typedef struct cvy_simd {
    int lanes;                                              /* floats in a vector */
    cvy_range_fn max_pool_range[2], max_pool_grad_range[2]; /* over rows; [0] f32, [1] bf16. arg: a cvy_max_pool with a
                                                               block of at least `lanes` and u8 indices */
    cvy_range_fn avg_pool_range[2], avg_pool_grad_range[2]; /* over threads. arg: a cvy_avg_pool with a block that is a
                                                               multiple of `lanes` */
    cvy_bn_loops bn[2];                                     /* for bn_train and bn_train_grad; [0] f32, [1] bf16 */
} cvy_simd;

/* Each returns NULL if the build or the CPU does not have these vectors. */
const cvy_simd *cvy_simd_avx512_bf16(void);
const cvy_simd *cvy_simd_avx512(void);
const cvy_simd *cvy_simd_avx2(void);
const cvy_simd *cvy_simd_sve512(void);
const cvy_simd *cvy_simd_sve256(void);
const cvy_simd *cvy_simd_plain(void);

/* Returns the table with the widest vectors of at most `block` lanes, or NULL if there is none. */
const cvy_simd *cvy_simd_find(int64_t block);

#endif
