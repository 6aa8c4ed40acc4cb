/*
 * gpu_copy.c: copies and additions along a walk (device.h), for reorders, for operators that move data, and for what
 * ranks exchange.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

#ifdef CVY_DEVICE

/* For the places a and b of all numbers of a walk. */
#define ALONG(w, statement)                                                                                            \
    do {                                                                                                               \
        FOR_EACH (i, (w).count) {                                                                                      \
            WALK(i, w, a, b)                                                                                           \
            statement;                                                                                                 \
        }                                                                                                              \
    } while (0)

KERNEL(copy_1)(GLOBAL const u8 *from, GLOBAL u8 *to, struct walk w)
{
    ALONG(w, to[b] = from[a]);
}

KERNEL(copy_2)(GLOBAL const u16 *from, GLOBAL u16 *to, struct walk w)
{
    ALONG(w, to[b] = from[a]);
}

KERNEL(copy_4)(GLOBAL const u32 *from, GLOBAL u32 *to, struct walk w)
{
    ALONG(w, to[b] = from[a]);
}

KERNEL(copy_8)(GLOBAL const u64 *from, GLOBAL u64 *to, struct walk w)
{
    ALONG(w, to[b] = from[a]);
}

KERNEL(narrow)(GLOBAL const float *from, GLOBAL u16 *to, struct walk w)
{
    ALONG(w, to[b] = bf16_of(from[a]));
}

KERNEL(widen)(GLOBAL const u16 *from, GLOBAL float *to, struct walk w)
{
    ALONG(w, to[b] = bf16_get(from[a]));
}

KERNEL(add)(GLOBAL const act *from, GLOBAL act *to, struct walk w)
{
    ALONG(w, SET(to, b, GET(to, b) + GET(from, a)));
}

#else
#include "backend/gpu/gpu.h"

CVY_GPU_SOURCE_DECLARE(gpu_copy);

cvy_status cvy_gpu_copy_get(const cvy_space *space, cvy_dtype from, cvy_dtype to, cvy_gpu_kernel *out)
{
    const size_t bytes = cvy_dtype_bytes(to);
    const char *name = from != to   ? (to == CVY_DTYPE_BF16 ? "narrow" : "widen")
                       : bytes == 1 ? "copy_1"
                       : bytes == 2 ? "copy_2"
                       : bytes == 4 ? "copy_4"
                                    : "copy_8";
    return cvy_gpu_kernel_get(space, CVY_GPU_SOURCE(gpu_copy), name, CVY_DTYPE_F32, out);
}

cvy_status cvy_gpu_sum_get(const cvy_space *space, cvy_dtype dtype, cvy_gpu_kernel *out)
{
    CVY_CHECK(dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE, "no kernel adds %s",
              cvy_dtype_text(dtype));
    return cvy_gpu_kernel_get(space, CVY_GPU_SOURCE(gpu_copy), "add", dtype, out);
}

cvy_status cvy_gpu_copy_walk(const cvy_gpu_kernel *kernel, cvy_lane lane, const struct walk *w, const void *from,
                             void *to)
{
    const cvy_gpu_arg args[] = {CVY_GPU_POINTER(from), CVY_GPU_POINTER(to), {w, sizeof *w}};
    return cvy_gpu_launch_in(kernel, lane, w->count > 0 ? cvy_gpu_blocks(w->count) : 0, 1, 1, CVY_GPU_THREADS, args,
                             CVY_COUNT(args));
}
#endif
