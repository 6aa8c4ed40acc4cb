/*
 * native_library.c: the kernel library that holds convoy's own kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/kernel_library.h"

CVY_LIBRARY_DEFINE(native) = {
    .name = "native",
    .help = "convoy's own kernels",
};
