/*
 * all-reduce doubling: recursive doubling. In each round a rank exchanges the whole buffer with a rank that is twice as
 * far away as in the round before. It has the fewest rounds and the most bytes, so it suits short buffers.
 *
 *     time = log2(n) (alpha + bytes beta + bytes gamma), and two more messages if n is not a power of two
 *
 * If n is not a power of two, let p be the largest power of two below n. The first 2 (n - p) ranks form pairs of
 * neighbours. The odd rank of a pair first gives its values to the even one, and gets the sums at the end. What a rank
 * adds always comes from consecutive ranks, that is from a subtree; deterministic training relies on this
 * (comm_shards.h). Source: Thakur, Rabenseifner and Gropp 2005, section 4.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_allreduce.h"

/* The rank at a place among the p ranks that exchange. */
static int rank_at(int place, int npairs)
{
    return place < npairs ? 2 * place : place + npairs;
}

static cvy_status doubling_build(int rank, int n, int64_t count, cvy_transfer_list *list)
{
    int p = 1, round = 1;
    while (2 * p <= n)
        p *= 2;
    const int npairs = n - p, is_paired = rank < 2 * npairs, place = is_paired ? rank / 2 : rank - npairs;
    if (is_paired && rank % 2) {
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_SEND, 0, rank - 1, 0, count));
        return cvy_transfer_list_add(list, CVY_TRANSFER_RECV, 1, rank - 1, 0, count);
    }
    if (is_paired)
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_ADD, 0, rank + 1, 0, count));
    for (int far = 1; far < p; far *= 2, round++) {
        const int peer = rank_at(place ^ far, npairs);
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_SEND, round, peer, 0, count));
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_ADD, round, peer, 0, count));
    }
    list->rounds_at_end = npairs > 0 && !is_paired;
    return is_paired ? cvy_transfer_list_add(list, CVY_TRANSFER_SEND, round, rank + 1, 0, count) : CVY_OK;
}

CVY_ALLREDUCE_DEFINE(doubling) = {
    .name = "doubling",
    .summary = "exchanges all data with ranks at doubling distances: fewest rounds, most bytes",
    .build = doubling_build,
};
