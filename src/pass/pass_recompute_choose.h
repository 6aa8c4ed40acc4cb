/*
 * pass_recompute_choose.h: which values stay in memory from the forward to the backward pass, for pass_recompute.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PASS_RECOMPUTE_CHOOSE_H
#define CVY_PASS_RECOMPUTE_CHOOSE_H

#include "graph/graph_op.h"

/* What a byte of memory is worth, in flop. A value is kept if its recomputation costs more than `high` for each of its
 * bytes, and recomputed if it costs less than `low`. Between the two, the first values are recomputed, which have
 * `share` of all bytes between the two. All 0: all values are kept. */
typedef struct cvy_memory_price {
    double low, high, share;
} cvy_memory_price;

/* Writes 1 to kept[index] of each value that is kept, and of each that cannot be recomputed; 0: backward recomputes the
 * value from those that are kept. Of the values that the price does not keep, those are kept with which the step needs
 * least memory. follows: 1: backward follows forward at once; 0: other micro-batches come between them (a pipeline). */
cvy_status cvy_recompute_choose(const cvy_graph *g, const cvy_memory_price *price, int follows, unsigned char *kept);

#endif
