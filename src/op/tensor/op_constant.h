/*
 * op_constant.h: options of constant.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_CONSTANT_H
#define CVY_OP_CONSTANT_H

#include "op/tensor/op_per_sample.h"

typedef struct cvy_constant_opts {
    struct cvy_per_sample of; /* first */
    double value;
} cvy_constant_opts;

#endif
