/* SPDX-License-Identifier: BSD-3-Clause */
/* op_expand.h: options of expand, for the operator and the writer of ONNX files. */
#ifndef CVY_OP_EXPAND_H
#define CVY_OP_EXPAND_H

#include "base/text/base_option.h"

typedef struct cvy_expand_opts {
    cvy_ints shape; /* of a sample of the result */
} cvy_expand_opts;

#endif
