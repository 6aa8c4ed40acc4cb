/* rows: clang asan onednn3 */
/*
 * test_kernel_amx_conv.c: the convolutions on tiles (AMX), all three passes, against plain sums, over shapes that leave
 * tiles, blocks of channels, bands of rows and planes of strides incomplete. The method and the bound are in
 * amx_check.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_status.h"
#include "kernel/amx_check.h"

static const amx_layer layers[] = {
    {"1x3x9x9", "kernel: 3, channels: 16, pad: 1"},
    {"3x3x23x25", "kernel: 11, channels: 64, stride: 4, pad: 2, relu: true"},
    {"2x3x14x15", "kernel: 7, channels: 33, stride: 2, pad: 3, bias: false"},
    {"1x1x5x40", "kernel: 5, channels: 20, pad: 2"},
    {"3x15x6x7", "kernel: 1, channels: 17"},
    {"2x4x9x9", "kernel: 3, channels: 8, pad: 2, dilation: 2"},
    {"1x16x12x12", "kernel: 3, channels: 48, pad: 1, relu: true"},
    {"3x33x7x7", "kernel: 3, channels: 64, pad: 1"},
    {"2x48x10x9", "kernel: 5, channels: 33, pad: 2"},
    {"1x64x14x14", "kernel: 3, channels: 80, pad: 1"},
    {"3x64x17x17", "kernel: [1, 7], channels: 48, pad: [0, 3], bias: false"},
    {"2x48x17x17", "kernel: [7, 1], channels: 64, pad: [3, 0]"},
    {"3x64x8x8", "kernel: 1, channels: 96, relu: true"},
    {"2x33x15x15", "kernel: 1, channels: 48, bias: false"},
    {"1x32x2x2", "kernel: 1, channels: 32"},
    {"3x64x13x13", "kernel: 1, stride: 2, channels: 32"},
    {"2x48x14x14", "kernel: 3, stride: 2, channels: 64, pad: 1"},
    {"1x33x11x12", "kernel: [5, 3], stride: [2, 3], channels: 40, pad: [2, 0]"},
    {"2x32x18x17", "kernel: 11, stride: 4, channels: 48, pad: 2"},
    {"2x16x9x10", "kernel: 2, stride: 4, channels: 16"},
    {"1x40x12x11", "kernel: 3, dilation: 2, stride: 2, channels: 24, pad: 2"},
    {"2x32x5x5", "kernel: 1, channels: 32, pad: 2"},
    {"3x64x1x1", "kernel: 3, channels: 64, pad: 1"},
    {"1x288x4x3", "kernel: 3, channels: 288, pad: 1"},
    {"2x32x40x41", "kernel: 3, channels: 32, pad: 1"},
    {"1x64x20x17", "kernel: 5, channels: 80, pad: 4, dilation: 2, relu: true"}, /* several runs of positions by several
                                                                                   pairs of columns */
    {"5x64x11x13", "kernel: 1, channels: 144, relu: true"},
    {"1x1x256x256", "kernel: 1, channels: 32"},       /* so large that streaming stores are used for the result */
    {"2x1x12x19", "kernel: 7, channels: 32, pad: 3"}, /* many rows of a filter in a line of a patch */
    {"2x15x9x11", "kernel: [3, 2], channels: 40, stride: [1, 2], pad: 1, dilation: [2, 3]"},
};

int main(void)
{
    return amx_check("conv", layers, CVY_COUNT(layers));
}
