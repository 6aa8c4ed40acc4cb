/*
 * data_vector.h: a macro for loops over pixels that gain from wide vectors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_VECTOR_H
#define CVY_DATA_VECTOR_H

/* Put it before such a function: the function is compiled for AVX2 too, and the dynamic linker picks a version. FMA is
 * not used, so both give the same bits and a cluster of mixed nodes sees the same pixels. Functions that it calls must
 * be inlined into it. Its name must be unique in the source tree although it is static: clang makes the function that
 * picks a version a global symbol. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) &&            \
    !defined(__SANITIZE_THREAD__)
#define CVY_VECTOR __attribute__((target_clones("avx2", "default")))
#else
#define CVY_VECTOR
#endif
#if defined(__GNUC__)
#define CVY_VECTOR_PART static inline __attribute__((always_inline))
#else
#define CVY_VECTOR_PART static inline
#endif

#endif
