/* SPDX-License-Identifier: BSD-3-Clause */
/* op_reduce.h: options of the operators that start the reduction of a bucket or wait for it. The planner reads them. */
#ifndef CVY_OP_REDUCE_H
#define CVY_OP_REDUCE_H

#include <stdint.h>

struct cvy_reduce_options {
    int64_t bucket;
};

#endif
