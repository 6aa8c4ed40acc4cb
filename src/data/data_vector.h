/*
 * data_vector.h: loops over pixels that deserve wide vectors.
 */
#ifndef CVY_DATA_VECTOR_H
#define CVY_DATA_VECTOR_H

/* Put before such a function: it is compiled for AVX2 too, and the loader picks one. Without FMA, so that both give the
 * same bits and a cluster of mixed nodes sees the same pixels. What such a function calls must be inlined into it. Its
 * name is unique in the tree, although it is static: clang makes the function that picks a global symbol. */
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
