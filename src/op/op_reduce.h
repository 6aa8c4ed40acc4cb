/* op_reduce.h: options of reduce_start and reduce_wait, which the planner reads. */
#ifndef CVY_OP_REDUCE_H
#define CVY_OP_REDUCE_H

#include <stdint.h>

struct cvy_reduce_options { int64_t bucket; };

#endif
