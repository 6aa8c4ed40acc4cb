/*
 * sum halving: recursive halving, then doubling: ranks far apart exchange halves and add, then half of a half, and back. Least bytes in few
 * rounds: for everything but the shortest and, on few ranks, the longest buffers.
 *
 *     time = 2 log2(n) alpha + 2 (p - 1)/p bytes beta + (p - 1)/p bytes gamma
 *
 * Where n is no power of two, p is the largest below it, and the first 2 (n - p) ranks make pairs: the two exchange halves and add, so that the
 * even one stands for both; at the end it hands the sums to its partner. Cost of that: 2 alpha + 1.5 bytes beta + 0.5 bytes gamma and one alpha.
 * Source: Rabenseifner 2004, Optimization of collective reduction operations.
 */
#include "comm/comm_sum.h"

struct place { int n, extra, p; };     /* ranks, pairs, and those that are left */

static int real_rank(const struct place *w, int virtual_rank)
{
    return virtual_rank < w->extra ? 2 * virtual_rank : virtual_rank + w->extra;
}

/* Halves are exchanged; the even one then gets the odd one's. */
static cvy_status pair_up(const struct place *w, int rank, int64_t count, cvy_sum *sum)
{
    const int64_t half = cvy_sum_part(count, 1, 2);
    if (rank >= 2 * w->extra)
        return CVY_OK;
    if (rank % 2) {
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_SEND, 0, rank - 1, 0, half));
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_ADD, 0, rank - 1, half, count - half));
        return cvy_sum_move(sum, CVY_MOVE_SEND, 1, rank - 1, half, count - half);
    }
    CVY_TRY(cvy_sum_move(sum, CVY_MOVE_SEND, 0, rank + 1, half, count - half));
    CVY_TRY(cvy_sum_move(sum, CVY_MOVE_ADD, 0, rank + 1, 0, half));
    return cvy_sum_move(sum, CVY_MOVE_RECV, 1, rank + 1, half, count - half);
}

static cvy_status halving_build(int rank, int n, int64_t count, cvy_sum *sum)
{
    struct place w = {.n = n, .p = 1};
    while (2 * w.p <= n)
        w.p *= 2;
    w.extra = n - w.p;
    CVY_TRY(pair_up(&w, rank, count, sum));
    const int stands_aside = rank < 2 * w.extra && rank % 2;
    const int me = rank < 2 * w.extra ? rank / 2 : rank - w.extra;
    int round = 2, low = 0, width = w.p; /* parts low to low + width are this rank's to add up */
    for (; width > 1 && !stands_aside; width /= 2, round++) {
        const int upper = me & width / 2, keep = upper ? low + width / 2 : low, give = upper ? low : low + width / 2;
        const int64_t keep_at = cvy_sum_part(count, keep, w.p), give_at = cvy_sum_part(count, give, w.p);
        const int peer = real_rank(&w, me ^ width / 2);
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_SEND, round, peer, give_at, cvy_sum_part(count, give + width / 2, w.p) - give_at));
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_ADD, round, peer, keep_at, cvy_sum_part(count, keep + width / 2, w.p) - keep_at));
        low = keep;
    }
    for (; width < w.p && !stands_aside; width *= 2, round++) {
        const int upper = me & width, other = upper ? low - width : low + width;
        const int64_t at = cvy_sum_part(count, low, w.p), other_at = cvy_sum_part(count, other, w.p);
        const int peer = real_rank(&w, me ^ width);
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_SEND, round, peer, at, cvy_sum_part(count, low + width, w.p) - at));
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_RECV, round, peer, other_at, cvy_sum_part(count, other + width, w.p) - other_at));
        low = CVY_MIN(low, other);
    }
    if (rank >= 2 * w.extra)
        return CVY_OK;
    return stands_aside ? cvy_sum_move(sum, CVY_MOVE_RECV, 2, rank - 1, 0, count) : cvy_sum_move(sum, CVY_MOVE_SEND, round, rank + 1, 0, count);
}

CVY_SUM_DEFINE(halving) = {
    .name = "halving",
    .summary = "halves exchanged and added, then doubled back: least bytes in few rounds",
    .build = halving_build,
};
