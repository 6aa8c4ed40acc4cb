/*
 * kernels_util.h: which kernels a test takes on this CPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef KERNELS_UTIL_H
#define KERNELS_UTIL_H

#include "kernel/kernel.h"

/* opts.kernels for a dtype: a CPU without bf16 has its reference kernels. */
static inline const char *kernels_for(cvy_dtype dtype)
{
    return dtype == CVY_DTYPE_BF16 && cvy_kernel_check_bf16() != CVY_OK ? "reference" : NULL;
}

#endif
