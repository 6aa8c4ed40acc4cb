/*
 * gpu_loss.c: the second stage of all losses on GPUs, see gpu_loss.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { SUM_THREADS = 256 };

#ifdef CVY_DEVICE

/* One block. */
KERNEL(sum_parts)(GLOBAL const double *part, i64 n, double factor, GLOBAL double *dst)
{
    SHARED double s[SUM_THREADS];
    double sum = 0;
    for (i64 i = THREAD; i < n; i += THREADS)
        sum += part[i];
    BLOCK_SUM(sum, s);
    if (THREAD == 0)
        dst[0] = factor * sum;
}

#else
#include <string.h>

#include "kernel/gpu/loss/gpu_loss.h"

CVY_GPU_SOURCE_DECLARE(gpu_loss);

cvy_status cvy_gpu_loss_sum_get(const cvy_space *space, cvy_gpu_kernel *out)
{
    return cvy_gpu_kernel_get(space, CVY_GPU_SOURCE(gpu_loss), "sum_parts", CVY_DTYPE_F32, out);
}

cvy_status cvy_gpu_loss_sum_run(const cvy_gpu_kernel *kernel, const void *parts, int64_t n, double factor, void *dst)
{
    return CVY_GPU_LAUNCH(kernel, 1, 1, 1, SUM_THREADS, CVY_GPU_POINTER(parts), CVY_GPU_VALUE(n), CVY_GPU_VALUE(factor),
                          CVY_GPU_POINTER(dst));
}

cvy_gpu_loss_weight cvy_gpu_loss_weight_of(const cvy_node *node, int first)
{
    cvy_gpu_loss_weight w = {.norm_at = first, .weight_at = first, .kind = -1, .each = 1};
    if (node->nsrc > first + 1) {
        w.weight_at = first + 1;
        w.kind = cvy_gpu_number_kind(node->src[first + 1]->dtype);
        w.each = cvy_loss_weight_elems(&node->src[first + 1]->shape);
    }
    return w;
}

cvy_layout cvy_gpu_loss_layout(const cvy_layout *is, const cvy_shape *shape)
{
    const cvy_layout last = cvy_layout_channels_last(shape->ndim);
    return shape->ndim > 2 && cvy_layout_equal(is, &last) ? last : cvy_layout_plain();
}

cvy_status cvy_gpu_table_make(const cvy_space *space, const double *number, int count, cvy_gpu_table *out)
{
    *out = (cvy_gpu_table){.space = *space, .count = count};
    if (count == 0)
        return CVY_OK;
    CVY_TRY(cvy_space_alloc(space, (size_t)count * sizeof *number, 0, &out->there));
    return cvy_space_write(space, out->there, number, (size_t)count * sizeof *number);
}

cvy_status cvy_gpu_table_of_labels(const cvy_space *space, const struct cvy_weight_sum *labels, cvy_gpu_table *out)
{
    double number[2 * CVY_LIST_MAX];
    const int weights = labels->class_weights.count, ignored = labels->ignore_label.count;
    memcpy(number, labels->class_weights.at, (size_t)weights * sizeof *number);
    for (int i = 0; i < ignored; i++)
        number[weights + i] = (double)labels->ignore_label.at[i];
    return cvy_gpu_table_make(space, number, weights + ignored, out);
}

void cvy_gpu_table_free(cvy_gpu_table *table)
{
    if (table->there)
        cvy_space_free(&table->space, &table->there, (size_t)table->count * sizeof(double));
}
#endif
