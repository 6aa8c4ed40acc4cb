/* SPDX-License-Identifier: BSD-3-Clause */
/* op_reduction.h: options of reduction, for the operator and the writer of ONNX files. */
#ifndef CVY_OP_REDUCTION_H
#define CVY_OP_REDUCTION_H

#include "base/text/base_option.h"

enum { CVY_REDUCTION_MEAN, CVY_REDUCTION_SUM, CVY_REDUCTION_MAX };

typedef struct cvy_reduction_opts {
    int method;
    cvy_ints axes; /* negative ones count from the end */
    int keep;
} cvy_reduction_opts;

#endif
