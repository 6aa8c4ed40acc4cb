/*
 * native_common.h: what convoy's own f32 kernels share: instruction sets for loops, accepted layouts, elementwise
 * offers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_COMMON_H
#define CVY_NATIVE_COMMON_H

#include <string.h>

#include "base/base_round.h"
#include "base/number/base_bf16.h"
#include "kernel/kernel.h"

/* Marks a function whose loops gain from wide vectors: it is compiled for several instruction sets, and the loader
 * picks one. Each function that it calls must be inlined into it (CVY_INLINE) or be marked as well. The name of a
 * marked function must be unique in the source tree, although the function is static, because clang makes the resolver
 * a global symbol. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) &&            \
    !defined(__SANITIZE_THREAD__)
#define CVY_SIMD __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define CVY_SIMD
#endif
#if defined(__GNUC__)
#define CVY_INLINE static inline __attribute__((always_inline))
#else
#define CVY_INLINE static inline
#endif

/* Converts the n elements of a vector of the compiler to those of another type of vector. gcc 8 knows no such
 * conversion. */
#if defined(__clang__) || __GNUC__ >= 9
#define CVY_CONVERT(type, n, vector) __builtin_convertvector(vector, type)
#else
#define CVY_CONVERT(type, n, vector)                                                                                   \
    ({                                                                                                                 \
        type converted_;                                                                                               \
        for (int lane_ = 0; lane_ < (n); lane_++)                                                                      \
            converted_[lane_] = (vector)[lane_];                                                                       \
        converted_;                                                                                                    \
    })
#endif

/* Element i, as a float. half: 1 = bf16, 0 = f32. */
CVY_INLINE float cvy_float_get(const int half, const void *src, int64_t i)
{
    return half ? cvy_bf16_get(((const cvy_bf16 *)src)[i]) : ((const float *)src)[i];
}

CVY_INLINE void cvy_float_put(const int half, void *dst, int64_t i, float x)
{
    if (half)
        ((cvy_bf16 *)dst)[i] = cvy_bf16_of(x);
    else
        ((float *)dst)[i] = x;
}

/* These two functions convert n elements, from index `at` on, to floats and back. half: 1 = bf16, 0 = f32. */
CVY_INLINE void cvy_floats_load(int half, const void *src, int64_t at, int64_t n, float *restrict out)
{
    const cvy_bf16 *narrow = (const cvy_bf16 *)src + at;
    if (!half)
        memcpy(out, (const float *)src + at, (size_t)n * sizeof *out);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = cvy_bf16_get(narrow[i]);
}

CVY_INLINE void cvy_floats_store(int half, const float *restrict x, int64_t n, void *dst, int64_t at)
{
    cvy_bf16 *narrow = (cvy_bf16 *)dst + at;
    if (!half)
        memcpy((float *)dst + at, x, (size_t)n * sizeof *x);
    else
        for (int64_t i = 0; i < n; i++)
            narrow[i] = cvy_bf16_of(x[i]);
}

/* With fewer elements than this a second thread costs more time than it saves. */
#define CVY_GRAIN 16384

/* A result of at least CVY_STREAM_BYTES is written with non-temporal stores of whole lines, because it would not stay
 * in the cache. */
enum { CVY_STREAM_BYTES = 4 << 20 };

/* The memory of an activation [N, C, positions...]: planes of `positions` x `block` elements, one plane for each sample
 * and each channel (or block of channels). */
typedef struct cvy_planes {
    int64_t n, channels; /* samples; channels without padding */
    int64_t groups;      /* blocks of channels of a sample; equal to channels in plain layout */
    int64_t positions, block;
    int64_t pitch; /* planes from one sample to the next: groups, or more for a slice of another tensor */
    int64_t step;  /* elements from one position to the next: block, or more for a slice with channels last */
} cvy_planes;

/* layout: plain, blocked by channels or channels last (one block); it may be a slice. */
cvy_planes cvy_planes_make(const cvy_shape *shape, const cvy_layout *layout);
/* Converts the number of a plane in a slice to its number in the whole tensor; `plane` itself if p is not a slice. */
CVY_INLINE int64_t cvy_plane_in(const cvy_planes *p, int64_t pitch, int64_t plane)
{
    return pitch == p->groups ? plane : plane / p->groups * pitch + plane % p->groups;
}
/* CVY_OK if source 0 of a node is f32. */
cvy_status cvy_native_f32(const cvy_node *node);
/* CVY_OK if source 0 of a node is f32 or bf16. */
cvy_status cvy_native_f32_or_bf16(const cvy_node *node);
/* A layout of planes for source i: its present one if that is plain or blocked by channels, else plain. */
cvy_layout cvy_native_channels(const cvy_kernel_ask *ask, int i);
/* The same, but channels last is kept as well. */
cvy_layout cvy_native_activation(const cvy_kernel_ask *ask, int i);
/* The layout that convolutions probably ask for an activation of this shape. For kernels that cannot take the layout of
 * their source. */
cvy_layout cvy_native_preferred(const cvy_shape *shape);
/* Makes the offer of an elementwise f32 kernel: the first nsrc sources and dst[0] get one layout, a blocked one if a
 * source has one. dst[0] may take over the memory of source `inplace` (-1: of none). */
cvy_status cvy_native_offer_elementwise(cvy_kernel_ask *ask, int nsrc, int inplace);
/* The layout part of that offer, for any dtype. */
void cvy_native_common_layout(cvy_kernel_ask *ask, int nsrc, int inplace);
/* Number of elements of dst[0] in memory, with padding. */
cvy_status cvy_native_dst_elems(const cvy_kernel_ask *ask, int64_t *elems_out);

#endif
