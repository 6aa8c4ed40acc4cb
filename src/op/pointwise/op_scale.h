/* SPDX-License-Identifier: BSD-3-Clause */
/* op_scale.h: options of scale, for the operator and its kernels. */
#ifndef CVY_OP_SCALE_H
#define CVY_OP_SCALE_H

typedef struct cvy_scale_opts {
    double by;
} cvy_scale_opts;

#endif
