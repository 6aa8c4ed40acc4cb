/* SPDX-License-Identifier: BSD-3-Clause */
/* base_parallel.h: a loop that is run by the team of compute threads. */
#ifndef CVY_BASE_PARALLEL_H
#define CVY_BASE_PARALLEL_H

#include <stdint.h>

/* Splits n items over the team and calls body(first, last, arg) in parallel. grain: the smallest number of items that
 * is worth a thread. */
typedef void (*cvy_range_fn)(int64_t first, int64_t last, void *arg);
void cvy_parallel_for(int threads, int64_t n, int64_t grain, cvy_range_fn body, void *arg);

#endif
