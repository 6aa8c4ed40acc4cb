/*
 * comm_shards.h: the fixed tree by which deterministic training sums: the batch of a step is cut into shards, a power
 * of two of them and the same on any number of ranks, and sums over them are those of a binary tree: (0 + 1) + (2 + 3),
 * and so on.
 *
 * A rank has a subtree: shards in a row, a power of two of them, which it sums itself; the sum "doubling" over the
 * ranks is the rest of the tree.
 */
#ifndef CVY_COMM_SHARDS_H
#define CVY_COMM_SHARDS_H

#include "comm/comm.h"

enum { CVY_SHARDS_MAX = 4096 };

/* CVY_E_CONFIG where so many shards cannot be made, or so many ranks cannot share them; it says what to do. */
cvy_status cvy_shards_check(int64_t nshards, int nranks);
/* Those of a rank. Ranks have them in their order. Of more ranks than a power of two, the first ones share a subtree by
 * pairs: of three ranks and eight shards 0 has 0 and 1, 1 has 2 and 3, and 2 has 4 to 7. */
cvy_part cvy_shards_of(int64_t nshards, int rank, int nranks);
/* The samples of shards first to end - 1, of n. */
cvy_part cvy_shards_samples(int64_t n, int64_t nshards, cvy_part shards);
/* How many sums of earlier shards are added to that of the i-th, counted from 0 in a subtree, when it is there: those
 * of the subtrees of 1, 2, 4 ... shards that end before it. */
int cvy_shards_merges(int64_t i);

#endif
