/*
 * native_label_loss.c: see native_label_loss.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/norm/native_label_loss.h"

cvy_status cvy_native_label_loss_offer(cvy_kernel_ask *ask, int first, const char *what)
{
    const cvy_node *node = ask->node;
    const cvy_dtype dtype = node->src[first]->dtype;
    CVY_CHECK(dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE,
              "this kernel computes in f32 and bf16; the %s %s", what, cvy_dtype_text(dtype));
    CVY_CHECK(node->src[first + 1]->dtype == CVY_DTYPE_I32, CVY_NOT_APPLICABLE,
              "this kernel needs labels in i32; they are %s", cvy_dtype_text(node->src[first + 1]->dtype));
    CVY_CHECK(node->nsrc == first + 3 || node->src[first + 3]->dtype == CVY_DTYPE_F32, CVY_NOT_APPLICABLE,
              "this kernel needs weights in f32; they are %s", cvy_dtype_text(node->src[first + 3]->dtype));
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->dst[0] = cvy_layout_plain();
    return CVY_OK;
}

cvy_native_labels cvy_native_labels_of(const cvy_node *node, int first)
{
    const cvy_shape *shape = &node->src[first]->shape;
    cvy_native_labels l = {.node = node,
                           .options = &((const struct cvy_label_loss *)node->options)->labels,
                           .n = shape->dim[0],
                           .K = shape->dim[1],
                           .P = 1};
    for (int d = 2; d < shape->ndim; d++)
        l.P *= shape->dim[d];
    for (int64_t k = 0; k < l.K; k++)
        l.all += cvy_class_weight(l.options, k);
    return l;
}

cvy_status cvy_native_labels_take(cvy_native_labels *l, int first, void *const *src)
{
    const int has_weight = l->node->nsrc > first + 3,
              is_mask = has_weight && cvy_loss_weight_elems(&l->node->src[first + 3]->shape) > 1;
    l->label = src[first + 1];
    l->norm = *(const double *)src[first + 2];
    l->weight = has_weight && !is_mask ? src[first + 3] : NULL;
    l->mask = is_mask ? src[first + 3] : NULL;
    for (int64_t i = 0; i < l->n * l->P; i++)
        if ((l->label[i] < 0 || l->label[i] >= l->K) && cvy_native_label_weight(l, i / l->P, i % l->P) != 0)
            return cvy_label_error(l->node, i / l->P, l->label[i], l->K);
    return CVY_OK;
}
