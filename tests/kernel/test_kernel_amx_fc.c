/* rows: clang asan onednn3 */
/*
 * test_kernel_amx_fc.c: the fully connected layers on tiles (AMX), all three passes, against plain sums.
 *
 * Batches and numbers of channels leave tiles and blocks incomplete, need several chunks of inputs, and make gradients
 * that are written with streaming stores. The method and the bound are in amx_check.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_status.h"
#include "kernel/amx_check.h"

static const amx_layer layers[] = {
    {"1x1", "channels: 1"},
    {"1x64", "channels: 10, relu: true"},
    {"3x70", "channels: 33, bias: false"},
    {"16x5x3x3", "channels: 16"},
    {"17x40", "channels: 48, relu: true"},
    {"32x32", "channels: 32"},
    {"33x100", "channels: 1000"},
    {"48x2x40", "channels: 31, bias: false"},
    {"65x96", "channels: 300, relu: true"},
    {"256x130", "channels: 70"},
    {"1x9000", "channels: 130"}, /* the inputs in two chunks */
    {"70x3000", "channels: 40"},
    {"2x9216", "channels: 480, bias: false"}, /* a gradient of 18 MB */
};

int main(void)
{
    return amx_check("fc", layers, CVY_COUNT(layers));
}
