/*
 * comm_shards.h: the fixed tree of sums in deterministic training.
 *
 * The global batch of a step is split into shards. Their number is a power of two and does not depend on the number of
 * ranks. The sums over the shards are those of a binary tree: (0 + 1) + (2 + 3), and so on. Each rank has a subtree:
 * consecutive shards, a power of two of them. It adds them up itself, and the all-reduce "doubling" over the ranks does
 * the rest of the tree.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_SHARDS_H
#define CVY_COMM_SHARDS_H

#include "comm/comm.h"

enum { CVY_SHARDS_MAX = 4096 };

/* CVY_E_CONFIG if the number of shards is not possible, or if so many ranks cannot share them; the message says what to
 * do. */
cvy_status cvy_shards_check(int64_t nshards, int nranks);
/* The shards of a rank. Ranks have them in their order. If the number of ranks is not a power of two, the first ranks
 * form pairs, and each pair shares a subtree: of three ranks and eight shards, rank 0 has 0 and 1, rank 1 has 2 and 3,
 * and rank 2 has 4 to 7. */
cvy_part cvy_shards_of(int64_t nshards, int rank, int nranks);
/* The samples, out of n, of the shards first to end - 1. */
cvy_part cvy_shards_samples(int64_t n, int64_t nshards, cvy_part shards);
/* The number of earlier sums that are added to the sum of shard i, counted from 0 in a subtree, when that sum is ready.
 * These are the sums of the subtrees of 1, 2, 4 ... shards that end just before it. */
int cvy_shards_merges(int64_t i);

#endif
