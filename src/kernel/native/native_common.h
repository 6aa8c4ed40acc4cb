/*
 * native_common.h: what our own f32 kernels share: the loops' instruction sets, the layouts that they accept, and
 * elementwise offers.
 */
#ifndef CVY_NATIVE_COMMON_H
#define CVY_NATIVE_COMMON_H

#include <string.h>

#include "base/base_bf16.h"
#include "kernel/kernel.h"

/* Put before a function whose loops deserve wide vectors: it is compiled for several instruction sets, and the loader
 * picks one. What such a function calls must be inlined into it (CVY_INLINE) or be such a function itself. Its name is
 * unique in the tree, although it is static: clang makes the function that picks a global symbol. */
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

/* n elements of f32, or of bf16 where half is set, from index `at` on: to floats, and back. */
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

/* Elements below which a second thread costs more than it brings. */
#define CVY_GRAIN 16384

/* Results from so many bytes on are stored past the cache, in whole lines: they would not stay there. */
enum { CVY_PAST_BYTES = 4 << 20, CVY_LINE_BYTES = 64 };

/* An activation [N, C, positions...] as memory: planes of `positions` x `block` elements, a plane per sample and
 * channel (block of channels). */
typedef struct cvy_planes {
    int64_t n, channels; /* logical */
    int64_t groups;      /* blocks of channels; the channels themselves in plain layout */
    int64_t positions, block;
    int64_t pitch; /* planes from one sample to the next: groups, or more where it is a slice of another tensor */
    int64_t step;  /* elements from one position to the next: block, or more where it is a slice with channels last */
} cvy_planes;

/* layout: plain, blocked by channels, maybe a slice, or channels last, which is one block. */
cvy_planes cvy_planes_make(const cvy_shape *shape, const cvy_layout *layout);
/* Number of the plane, counted in the tensor that a slice of this pitch lies in; the plane itself where it is none. */
CVY_INLINE int64_t cvy_plane_in(const cvy_planes *p, int64_t pitch, int64_t plane)
{
    return pitch == p->groups ? plane : plane / p->groups * pitch + plane % p->groups;
}
/* CVY_OK if value i of a node is f32. */
cvy_status cvy_native_f32(const cvy_node *node);
/* CVY_OK if value 0 of a node is f32 or bf16. */
cvy_status cvy_native_f32_or_bf16(const cvy_node *node);
/* A layout of planes for source i: as it lies if that is plain or blocked by channels, else plain. */
cvy_layout cvy_native_channels(const cvy_kernel_ask *ask, int i);
/* The same, and channels last stay as they lie. */
cvy_layout cvy_native_activation(const cvy_kernel_ask *ask, int i);
/* The layout that convolutions are likely to want of an activation of this shape: for kernels whose source does not
 * tell. */
cvy_layout cvy_native_preferred(const cvy_shape *shape);
/* An offer for elementwise kernels: f32, all of the first nsrc sources and dst[0] in one layout (a blocked one if a
 * source has one), dst[0] may take over the memory of source `inplace` (-1: of none). */
cvy_status cvy_native_offer_elementwise(cvy_kernel_ask *ask, int nsrc, int inplace);
/* The layout part of that offer, for any dtype. */
void cvy_native_common_layout(cvy_kernel_ask *ask, int nsrc, int inplace);
/* Elements in memory of dst[0], padding included. */
cvy_status cvy_native_dst_elems(const cvy_kernel_ask *ask, int64_t *elems_out);

#endif
