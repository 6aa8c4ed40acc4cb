/*
 * native_winograd_plain.c: Winograd's transforms and products for any CPU, with vectors of eight floats. The
 * compiler maps them to the vectors of the machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/winograd/native_winograd.h"

#define LANES 8
#define ROWS 4
#define EACH_ROWS(X) X(3) X(4)
#define SUM_ROWS 4
#define TARGET
#include "kernel/native/winograd/native_winograd_simd.h"

const cvy_winograd_isa *cvy_winograd_plain(void)
{
    return &isa;
}
