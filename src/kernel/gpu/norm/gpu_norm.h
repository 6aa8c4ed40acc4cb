/*
 * gpu_norm.h: what the kernels of norms share.
 *
 * An activation with channels last is a matrix: a row for each position of each sample, a column for each channel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GPU_NORM_H
#define CVY_GPU_NORM_H

#include "kernel/gpu/gpu_common.h"
#include "op/norm/op_batch_norm.h"

/* Elements from one row to the next; more than there are columns if the layout is that of a slice of channels. */
static inline int64_t cvy_gpu_row_step(const cvy_shape *shape, const cvy_layout *layout)
{
    const int64_t whole = cvy_layout_whole(layout);
    return whole > 0 ? whole : shape->dim[1];
}

/* Kernels count samples in 32 bits, also where the number of a group is multiplied by them. */
static inline cvy_status cvy_gpu_groups_fit(const cvy_bn_groups *b)
{
    CVY_CHECK(b->count < 65536 && b->total > 0 && b->begin + b->samples < INT32_MAX && b->local_end < INT32_MAX &&
                  b->samples <= INT32_MAX / (b->first + b->count + 1),
              CVY_NOT_APPLICABLE, "this kernel cannot count %lld samples in %lld groups", (long long)b->samples,
              (long long)b->total);
    return CVY_OK;
}

/* Kernels count rows in 32 bits. */
static inline cvy_status cvy_gpu_rows_fit(const cvy_shape *shape)
{
    CVY_CHECK(shape->dim[1] <= INT32_MAX / 2 && cvy_shape_elems(shape) / CVY_MAX(shape->dim[1], 1) <= INT32_MAX / 2,
              CVY_NOT_APPLICABLE,
              "this kernel has at most %d channels and positions, in all samples, and the source is "
              "%s",
              INT32_MAX / 2, cvy_shape_text(shape));
    return CVY_OK;
}

#endif
