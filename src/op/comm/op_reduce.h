/* op_reduce.h: options of the operators that start a bucket's exchange or wait for it, which the planner reads. */
#ifndef CVY_OP_REDUCE_H
#define CVY_OP_REDUCE_H

#include <stdint.h>

struct cvy_reduce_options {
    int64_t bucket;
};

#endif
