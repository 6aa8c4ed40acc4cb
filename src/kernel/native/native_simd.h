/*
 * native_simd.h: which loops our own kernels run on this CPU: tables of loops, compiled once for each kind of vectors.
 *
 * native_simd_<isa>.c includes the bodies native_<kernel>_simd.h; a kernel picks its table when it is created. This is
 * for loops that compilers do not turn into good vector code from plain C; the others are marked CVY_SIMD
 * (native_common.h).
 */
#ifndef CVY_NATIVE_SIMD_H
#define CVY_NATIVE_SIMD_H

#include "kernel/native/norm/native_bn_train.h"

typedef struct cvy_simd {
    int lanes;                                              /* floats of a vector */
    cvy_range_fn max_pool_range[2], max_pool_grad_range[2]; /* of rows, of f32, of bf16; arg: cvy_max_pool with a block
                                                               of at least `lanes`, index u8 */
    cvy_bn_loops bn[2];                                     /* of bn_train and bn_train_grad on f32, on bf16 */
} cvy_simd;

/* NULL where the build or the CPU has no such vectors. */
const cvy_simd *cvy_simd_avx512_bf16(void);
const cvy_simd *cvy_simd_avx512(void);
const cvy_simd *cvy_simd_avx2(void);
const cvy_simd *cvy_simd_plain(void);

/* The widest whose vectors are not longer than `block`; NULL if all are. */
const cvy_simd *cvy_simd_find(int64_t block);

#endif
