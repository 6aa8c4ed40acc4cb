/*
 * native_conv_few.h: what the kernels for convolutions with few channels share: their limits and their vectors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_CONV_FEW_H
#define CVY_NATIVE_CONV_FEW_H

#include "kernel/native/native_common.h"
#include "op/conv/op_conv.h"

/* Channels of the convolution's source; columns of the filter, whose sums are all in registers; floats in a vector. */
enum { CVY_FEW_CHANNELS = 4, CVY_FEW_COLUMNS = 7, CVY_FEW_LANES = 16 };

typedef float cvy_few_vec __attribute__((vector_size(4 * CVY_FEW_LANES)));
/* The same in memory, at any address. */
typedef float cvy_few_memory_vec __attribute__((vector_size(4 * CVY_FEW_LANES), aligned(4), may_alias));

/* CVY_OK if the node is f32 and its convolution is within the limits. */
static inline cvy_status cvy_few_check(const cvy_node *node, const cvy_window *w, const cvy_window_channels *c)
{
    int fits = c->groups == 1 && c->nsrc <= CVY_FEW_CHANNELS && w->kernel[w->nspace - 1] <= CVY_FEW_COLUMNS;
    for (int d = 0; d < w->nspace; d++)
        fits = fits && w->dilation[d] == 1;
    CVY_TRY(cvy_native_f32(node));
    CVY_CHECK(fits, CVY_NOT_APPLICABLE,
              "this kernel needs up to %d channels, up to %d columns of the filter, no groups and no dilation",
              CVY_FEW_CHANNELS, CVY_FEW_COLUMNS);
    return CVY_OK;
}

#endif
