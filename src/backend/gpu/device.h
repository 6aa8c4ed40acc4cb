/*
 * device.h: the language of kernels: a subset of C that is OpenCL C 1.2 (with fp64), CUDA C++ and HIP (compiled at run
 * time), and C11 (for the emulated device of the tests).
 *
 * It has no recursion, no pointer to a function, no pointer to SHARED memory in a helper's parameters, and no atomic
 * addition of floats: the order of every sum is fixed, so the bits are the same from run to run. Nothing assumes a
 * number of threads that run in step. Arguments of a kernel are pointers to GLOBAL memory, numbers, and structs of i64,
 * int and float without pointers; a table in GLOBAL memory may hold addresses, for AT_ADDRESS. Activations are f32 or
 * bf16: act, GET, SET. Parameters and sums are float or double.
 *
 * After BARRIER() the threads of a block see what others wrote to SHARED memory, after GLOBAL_BARRIER() also what they
 * wrote to GLOBAL memory. Other blocks see that in the next kernel only.
 *
 * A kernel file includes this header, declares its structs, and has the device half within #ifdef CVY_DEVICE and the
 * host half after #else. The host half sees the structs and the names of numbers only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DEVICE_H
#define CVY_DEVICE_H

#ifndef CVY_DEVICE /* the host half */
#include <stdint.h>
typedef int64_t i64;
typedef uint64_t u64;
typedef uint32_t u32;
#endif

enum { FOUR = 4 }; /* neighbouring activations that a thread reads or writes at once: get_four, set_four */
enum { NUMBER_F32, NUMBER_F64, NUMBER_BF16, NUMBER_I32, NUMBER_I64, NUMBER_U8 }; /* for number_at */

#ifdef CVY_DEVICE

#if defined(__OPENCL_C_VERSION__) || defined(__OPENCL_VERSION__)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define KERNEL(name) __kernel void CVY_NAMED(name)
#define GLOBAL __global
#define SHARED __local
#define INLINE static inline
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define GLOBAL_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define THREAD ((int)get_local_id(0))
#define THREADS ((int)get_local_size(0))
#define BLOCK ((int)get_group_id(0))
#define BLOCK_Y ((int)get_group_id(1))
#define BLOCK_Z ((int)get_group_id(2))
#define BLOCKS ((int)get_num_groups(0))
#define BITS_OF(x) as_uint(x)
#define FLOAT_OF(u) as_float(u)
#define FMA(a, b, c) fma(a, b, c)
#define EXP(x) exp((float)(x))
#define LOG(x) log((float)(x))
#define LOG1P(x) log1p((float)(x))
#define SQRT(x) sqrt((float)(x))
#define TANH(x) tanh((float)(x))
#define ERF(x) erf((float)(x))
#define POW(x, y) pow((float)(x), (float)(y))
#define ABS(x) fabs((float)(x))
#define COS(x) cos((float)(x))
#define SIN(x) sin((float)(x))
#define MUL_HIGH(a, b) mul_hi((u32)(a), (u32)(b))
#define AT_ADDRESS(type, address) ((__global type *)(address))
typedef long i64;
typedef ulong u64;
typedef uint u32;
typedef ushort u16;
typedef uchar u8;

#elif defined(__CUDACC__) || defined(__HIPCC__)
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(256) CVY_NAMED(name)
#define GLOBAL
#define SHARED __shared__
#define INLINE static __device__ __forceinline__
#define BARRIER() __syncthreads()
#define GLOBAL_BARRIER() __syncthreads()
#define THREAD ((int)threadIdx.x)
#define THREADS ((int)blockDim.x)
#define BLOCK ((int)blockIdx.x)
#define BLOCK_Y ((int)blockIdx.y)
#define BLOCK_Z ((int)blockIdx.z)
#define BLOCKS ((int)gridDim.x)
#define BITS_OF(x) __float_as_uint(x)
#define FLOAT_OF(u) __uint_as_float(u)
#define FMA(a, b, c) fmaf(a, b, c)
#define MUL_HIGH(a, b) __umulhi(a, b)
#define AT_ADDRESS(type, address) ((type *)(address))
#define restrict __restrict__
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

#else /* C11 on the host: tests/backend/emulated runs a block as fibers that change at each barrier */
#include <math.h>
#include <stdint.h>
#include <string.h>
typedef int64_t i64;
typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;
struct cvy_emulated {
    int thread, threads, block, block_y, block_z, blocks;
};
extern struct cvy_emulated cvy_emulated;
void cvy_emulated_barrier(void);
void *cvy_emulated_at(u64 address);
#define KERNEL(name) static void CVY_NAMED(name)
#define GLOBAL
/* The memory of a block has a section of its own, so that the emulation can spoil it before each block. */
#define SHARED static __attribute__((section(CVY_SHARED_SECTION)))
#define INLINE static inline __attribute__((unused))
#define BARRIER() cvy_emulated_barrier()
#define GLOBAL_BARRIER() cvy_emulated_barrier()
#define THREAD cvy_emulated.thread
#define THREADS cvy_emulated.threads
#define BLOCK cvy_emulated.block
#define BLOCK_Y cvy_emulated.block_y
#define BLOCK_Z cvy_emulated.block_z
#define BLOCKS cvy_emulated.blocks
/* OpenCL C and CUDA have these types. */
typedef struct {
    float x, y, z, w;
} __attribute__((aligned(16), may_alias)) float4;
typedef struct {
    u32 x, y;
} __attribute__((aligned(8), may_alias)) uint2;
INLINE u32 BITS_OF(float x)
{
    u32 u;
    memcpy(&u, &x, 4);
    return u;
}
INLINE float FLOAT_OF(u32 u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
#define FMA(a, b, c) ((a) * (b) + (c))
#define MUL_HIGH(a, b) ((u32)((u64)(u32)(a) * (u32)(b) >> 32))
#define AT_ADDRESS(type, address) ((type *)cvy_emulated_at(address))
#endif

/* The names for float, which CUDA and C11 share. OpenCL C has the same name for float and double, so its part above
 * casts. */
#ifndef EXP
#define EXP(x) expf(x)
#define LOG(x) logf(x)
#define LOG1P(x) log1pf(x)
#define SQRT(x) sqrtf(x)
#define TANH(x) tanhf(x)
#define ERF(x) erff(x)
#define POW(x, y) powf(x, y)
#define ABS(x) fabsf(x)
#define COS(x) cosf(x)
#define SIN(x) sinf(x)
#endif
#define FMA_D(a, b, c) fma((double)(a), (double)(b), (double)(c))
#define SQRT_D(x) sqrt((double)(x))
#define EXP_D(x) exp((double)(x))
#define LOG_D(x) log((double)(x))

/* The name of a kernel says the dtype of its activations. */
#define CVY_JOIN_AGAIN(a, b) a##b
#define CVY_JOIN(a, b) CVY_JOIN_AGAIN(a, b)
#if BF16
#define CVY_NAMED(name) CVY_JOIN(name, _bf16)
#else
#define CVY_NAMED(name) CVY_JOIN(name, _f32)
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Rounding is that of base/number/base_bf16.h. NVIDIA's GPUs from sm_80 on have an instruction for it, which makes any
 * NaN the same NaN. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define CVY_CONVERTS 1
#else
#define CVY_CONVERTS 0
#endif
INLINE float bf16_get(u16 x)
{
    return FLOAT_OF((u32)x << 16);
}
#if CVY_CONVERTS
INLINE u16 bf16_of(float x)
{
    u16 rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
    return rounded;
}
#else
INLINE u16 bf16_of(float x)
{
    const u32 u = BITS_OF(x);
    return (u16)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
#endif
#if BF16
typedef u16 act;
#define GET(p, i) bf16_get((p)[i])
#define SET(p, i, x) ((p)[i] = bf16_of(x))
#define ROUNDED(x) bf16_get(bf16_of(x)) /* x as SET stores it */
#else
typedef float act;
#define GET(p, i) ((p)[i])
#define SET(p, i, x) ((p)[i] = (x))
#define ROUNDED(x) (x)
#endif

/* Four neighbouring activations x, from element `at` of p on. If whole is 1, they are read or written at once, so the
 * address must be a multiple of their size; else only the first n of them, one by one, and what is not read is 0. */
#if BF16
#if CVY_CONVERTS
INLINE u32 bf16_pair(float low, float high)
{
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
#else
INLINE u32 bf16_pair(float low, float high)
{
    return (u32)bf16_of(low) | (u32)bf16_of(high) << 16;
}
#endif
INLINE void get_whole(GLOBAL const act *p, i64 at, float *x)
{
    const uint2 v = *(GLOBAL const uint2 *)(p + at);
    x[0] = FLOAT_OF(v.x << 16);
    x[1] = FLOAT_OF(v.x & 0xffff0000u);
    x[2] = FLOAT_OF(v.y << 16);
    x[3] = FLOAT_OF(v.y & 0xffff0000u);
}
INLINE void set_whole(GLOBAL act *p, i64 at, const float *x)
{
    uint2 v;
    v.x = bf16_pair(x[0], x[1]);
    v.y = bf16_pair(x[2], x[3]);
    *(GLOBAL uint2 *)(p + at) = v;
}
#else
INLINE void get_whole(GLOBAL const act *p, i64 at, float *x)
{
    const float4 v = *(GLOBAL const float4 *)(p + at);
    x[0] = v.x;
    x[1] = v.y;
    x[2] = v.z;
    x[3] = v.w;
}
INLINE void set_whole(GLOBAL act *p, i64 at, const float *x)
{
    float4 v;
    v.x = x[0];
    v.y = x[1];
    v.z = x[2];
    v.w = x[3];
    *(GLOBAL float4 *)(p + at) = v;
}
#endif
INLINE void get_four(GLOBAL const act *p, i64 at, int n, int whole, float *x)
{
    if (whole)
        get_whole(p, at, x);
    else
        for (int k = 0; k < FOUR; k++)
            x[k] = k < n ? GET(p, at + k) : 0.0f;
}
INLINE void set_four(GLOBAL act *p, i64 at, int n, int whole, const float *x)
{
    if (whole)
        set_whole(p, at, x);
    else
        for (int k = 0; k < FOUR; k++)
            if (k < n)
                SET(p, at + k, x[k]);
}

/* Activation k of several that are read or written at once, as a word of 64 bits: four of bf16, or two of f32. */
#if BF16
#define FROM_WORD(word, k) FLOAT_OF((u32)((word) >> 16 * (k)) << 16)
#define IN_WORD(x, k) ((u64)bf16_of(x) << 16 * (k))
#else
#define FROM_WORD(word, k) FLOAT_OF((u32)((word) >> 32 * (k)))
#define IN_WORD(x, k) ((u64)BITS_OF(x) << 32 * (k))
#endif

/* Number i of a tensor whose dtype is known only at run time, such as labels and weights of samples. */
INLINE double number_at(GLOBAL const void *p, int kind, i64 i)
{
    switch (kind) {
    case NUMBER_F32: return ((GLOBAL const float *)p)[i];
    case NUMBER_F64: return ((GLOBAL const double *)p)[i];
    case NUMBER_BF16: return bf16_get(((GLOBAL const u16 *)p)[i]);
    case NUMBER_I32: return ((GLOBAL const int *)p)[i];
    case NUMBER_I64: return (double)((GLOBAL const i64 *)p)[i];
    default: return ((GLOBAL const u8 *)p)[i];
    }
}

/* For each i from 0 to n - 1, over all threads of a grid of one row. */
#define FOR_EACH(i, n) for (i64 i = (i64)BLOCK * THREADS + THREAD; i < (n); i += (i64)BLOCKS * THREADS)

/* x becomes its sum over the threads of the block, in the same order each time. THREADS is a power of two; s: SHARED
 * numbers of x's type [THREADS]. All threads of the block call it. */
#define BLOCK_SUM(x, s)                                                                                                \
    do {                                                                                                               \
        BARRIER();                                                                                                     \
        (s)[THREAD] = (x);                                                                                             \
        BARRIER();                                                                                                     \
        for (int half_ = THREADS / 2; half_; half_ /= 2) {                                                             \
            if (THREAD < half_)                                                                                        \
                (s)[THREAD] += (s)[THREAD + half_];                                                                    \
            BARRIER();                                                                                                 \
        }                                                                                                              \
        (x) = (s)[0];                                                                                                  \
    } while (0)

/* The same for each column, if thread t has row t / width and column t % width. width: a power of two up to THREADS. */
#define COLUMN_SUM(x, s, width)                                                                                        \
    do {                                                                                                               \
        BARRIER();                                                                                                     \
        (s)[THREAD] = (x);                                                                                             \
        BARRIER();                                                                                                     \
        for (int half_ = THREADS / 2; half_ >= (width); half_ /= 2) {                                                  \
            if (THREAD < half_)                                                                                        \
                (s)[THREAD] += (s)[THREAD + half_];                                                                    \
            BARRIER();                                                                                                 \
        }                                                                                                              \
        (x) = (s)[THREAD % (width)];                                                                                   \
    } while (0)

/* The same for FOUR numbers of a thread: x[FOUR], and s[FOUR][THREADS]. */
#define COLUMN_SUMS(x, s, width)                                                                                       \
    do {                                                                                                               \
        BARRIER();                                                                                                     \
        for (int k_ = 0; k_ < FOUR; k_++)                                                                              \
            (s)[k_][THREAD] = (x)[k_];                                                                                 \
        BARRIER();                                                                                                     \
        for (int half_ = THREADS / 2; half_ >= (width); half_ /= 2) {                                                  \
            for (int k_ = 0; k_ < FOUR && THREAD < half_; k_++)                                                        \
                (s)[k_][THREAD] += (s)[k_][THREAD + half_];                                                            \
            BARRIER();                                                                                                 \
        }                                                                                                              \
        for (int k_ = 0; k_ < FOUR; k_++)                                                                              \
            (x)[k_] = (s)[k_][THREAD % (width)];                                                                       \
    } while (0)

/* The same as BLOCK_SUM for the maximum; NaN stays NaN. */
#define BLOCK_MAX(x, s)                                                                                                \
    do {                                                                                                               \
        BARRIER();                                                                                                     \
        (s)[THREAD] = (x);                                                                                             \
        BARRIER();                                                                                                     \
        for (int half_ = THREADS / 2; half_; half_ /= 2) {                                                             \
            if (THREAD < half_ && !((s)[THREAD] >= (s)[THREAD + half_]) && (s)[THREAD] == (s)[THREAD])                 \
                (s)[THREAD] = (s)[THREAD + half_];                                                                     \
            BARRIER();                                                                                                 \
        }                                                                                                              \
        (x) = (s)[0];                                                                                                  \
    } while (0)

/* a / b for a >= 0 and b > 0. Devices divide numbers of 32 bits fast. Larger ones are rare, and a loop for them needs
 * fewer registers than the division that compilers insert. */
INLINE i64 QUOTIENT(i64 a, i64 b)
{
    i64 quotient = 0, rest = 0;
    if (!((a | b) >> 32))
        return (i64)((u32)a / (u32)b);
    for (int bit = 62; bit >= 0; bit--) {
        rest = rest * 2 + (a >> bit & 1);
        quotient *= 2;
        if (rest >= b) {
            rest -= b;
            quotient++;
        }
    }
    return quotient;
}

/* at_a and at_b become the places of number i of a walk. */
#define WALK(i, w, at_a, at_b)                                                                                         \
    i64 at_a = 0, at_b = 0;                                                                                            \
    {                                                                                                                  \
        i64 left_ = (i);                                                                                               \
        for (int d_ = (int)(w).ndim - 1; d_ > 0; d_--) {                                                               \
            const i64 rest_ = QUOTIENT(left_, (w).dim[d_]), k_ = left_ - rest_ * (w).dim[d_];                          \
            at_a += k_ * (w).a[d_];                                                                                    \
            at_b += k_ * (w).b[d_];                                                                                    \
            left_ = rest_;                                                                                             \
        }                                                                                                              \
        at_a += left_ * (w).a[0];                                                                                      \
        at_b += left_ * (w).b[0];                                                                                      \
    }

#endif /* CVY_DEVICE */

/* Elements that are counted over some axes, the last of which changes fastest. Each number has a place in two tensors,
 * a and b: the sum of index * step over the axes. The host makes it (kernel/gpu/gpu_walk.h). */
enum { WALK_DIMS = 8 };
struct walk {
    i64 count, ndim; /* ndim is at least 1 */
    i64 dim[WALK_DIMS], a[WALK_DIMS], b[WALK_DIMS];
};
#endif
