/* SPDX-License-Identifier: BSD-3-Clause */
/* op_mix.h: options of the gradient of mix, for the operator and its kernels. */
#ifndef CVY_OP_MIX_H
#define CVY_OP_MIX_H

#include <stdint.h>

typedef struct cvy_mix_grad_opts {
    int64_t side; /* 0: the gradient of the first tensor, 1: of the second */
} cvy_mix_grad_opts;

#endif
