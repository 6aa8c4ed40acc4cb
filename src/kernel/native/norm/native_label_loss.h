/*
 * native_label_loss.h: what the kernels of the losses on labels share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_LABEL_LOSS_H
#define CVY_NATIVE_LABEL_LOSS_H

#include "kernel/native/native_math.h"

/* Offers a kernel on plain layouts if the dtypes of source number `first` (f32 or bf16; `what` begins messages about
 * it, "output is"), and of the labels and sample weights after it, suit. CVY_NOT_APPLICABLE otherwise. */
cvy_status cvy_native_label_loss_offer(cvy_kernel_ask *ask, int first, const char *what);

#endif
