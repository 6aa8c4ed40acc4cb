/*
 * gpu_common.h: what the kernels for GPUs share: the layouts that they take, and how they are created.
 *
 * Activations with positions are in channels-last layout ([N, positions..., C] in memory, "acdb" for images), because
 * neighbouring threads then read neighbouring channels; all others are plain. A kernel file is compiled twice:
 * backend/gpu/device.h says how.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_COMMON_H
#define CVY_GPU_COMMON_H

#include "backend/gpu/gpu.h"
#include "base/base_round.h"
#include "kernel/kernel.h"

/* The kernel of a source in the dtype of the node's activations, for an offer: CVY_NOT_APPLICABLE with the reason if it
 * does not compile. An offer calls it, so that a kernel that a device refuses is not chosen. */
cvy_status cvy_gpu_offer(const cvy_kernel_ask *ask, const cvy_gpu_source *source, const char *name, cvy_dtype act,
                         cvy_gpu_kernel *out);
/* The dtype of a value, or of source 0, if it is f32 or bf16; else CVY_NOT_APPLICABLE with the reason. */
cvy_status cvy_gpu_act_of(const cvy_value *value, cvy_dtype *act_out);
cvy_status cvy_gpu_act(const cvy_node *node, cvy_dtype *act_out);
/* The NUMBER_* of device.h for a dtype. */
int cvy_gpu_number_kind(cvy_dtype dtype);

/* The layout of an activation: channels last from three dimensions on, else plain. */
cvy_layout cvy_gpu_layout(const cvy_shape *shape);
/* The layout that source i has, or plain if that is blocked. */
cvy_layout cvy_gpu_unblocked(const cvy_kernel_ask *ask, int i);
/* Elementwise kernels: the first nsrc sources and dst[0] get one layout, one that a source has if it is not blocked.
 * dst[0] may take over the memory of source `inplace` (-1: of none). */
void cvy_gpu_common_layout(cvy_kernel_ask *ask, int nsrc, int inplace);

/* An activation [N, C, positions...] in one of these layouts: element (n, c, p) is at n * of_n + c * of_c + p * of_p.
 */
typedef struct cvy_gpu_planes {
    int64_t n, channels, positions;
    int64_t of_n, of_c, of_p;
    int64_t elems;
} cvy_gpu_planes;
cvy_gpu_planes cvy_gpu_planes_make(const cvy_shape *shape, const cvy_layout *layout);

/* ---- how a matrix of rows and columns is cut for blocks ---- */

/* The number of blocks of `size` that n is cut into. */
static inline int64_t cvy_gpu_tiles(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* Columns of a block of 256 threads: a power of two. A narrow matrix has more rows in a block. */
static inline int cvy_gpu_columns(int64_t columns)
{
    int width = 1;
    while (width < 32 && width < columns)
        width *= 2;
    return width;
}

/* In how many parts the rows of each of `groups` matrices are cut, so that there are enough blocks and each thread adds
 * several rows. It depends on nothing but the shape, and so does the order of sums. */
static inline int cvy_gpu_row_parts(int64_t rows, int64_t columns, int width, int64_t groups)
{
    enum { BLOCKS = 1024, ROWS = 8 };
    const int64_t blocks = CVY_MAX(cvy_gpu_tiles(columns, width) * CVY_MAX(groups, 1), 1);
    const int64_t most = rows / (CVY_GPU_THREADS / width * ROWS), wanted = BLOCKS / blocks;
    return (int)CVY_MAX(CVY_MIN(wanted, most), 1);
}

/* Whether all these addresses are multiples of `bytes`. */
int cvy_gpu_are_aligned(size_t bytes, const void *const *pointer, int npointer);

/* Zeroes memory of the device of a kernel, in the lane COMPUTE. */
cvy_status cvy_gpu_zero(const cvy_gpu_kernel *kernel, void *data, size_t bytes);

/* The members that all kernels for GPUs have. If `create` fails, the planner destroys what it has put into *state_out,
 * so a `create` sets it before anything that can fail. */
#define CVY_GPU_FIELDS(operator, offers, creates, runs, destroys)                                                      \
    .name = "gpu." operator, .op = operator, .preference = 10, .offer = offers, .create = creates, .run = runs,        \
    .destroy = destroys
/* The `destroys` of kernels whose state is one block. */
void cvy_gpu_free_state(void *state);

#endif
