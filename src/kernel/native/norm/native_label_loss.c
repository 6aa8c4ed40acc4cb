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
              "this kernel needs sample weights in f32; they are %s", cvy_dtype_text(node->src[first + 3]->dtype));
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->dst[0] = cvy_layout_plain();
    return CVY_OK;
}
