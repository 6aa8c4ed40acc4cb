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

static struct place place_of(int n)
{
    struct place w = {.n = n, .p = 1};
    while (2 * w.p <= n)
        w.p *= 2;
    w.extra = n - w.p;
    return w;
}

/* Of the odd one of a pair nothing more is wanted until the end. */
static int stands_aside(const struct place *w, int rank)
{
    return rank < 2 * w->extra && rank % 2;
}

static int virtual_rank(const struct place *w, int rank)
{
    return rank < 2 * w->extra ? rank / 2 : rank - w->extra;
}

/* Parts low to low + width are this rank's to add up; one is left. */
static cvy_status halving_scatter(int rank, int n, int64_t count, cvy_sum *sum, cvy_part *part_out)
{
    const struct place w = place_of(n);
    const int me = virtual_rank(&w, rank);
    int round = 2, low = 0;
    CVY_TRY(pair_up(&w, rank, count, sum));
    *part_out = (cvy_part){0, 0};
    if (stands_aside(&w, rank))
        return CVY_OK;
    for (int width = w.p; width > 1; width /= 2, round++) {
        const int upper = me & width / 2, keep = upper ? low + width / 2 : low, give = upper ? low : low + width / 2;
        const int64_t keep_at = cvy_sum_part(count, keep, w.p), give_at = cvy_sum_part(count, give, w.p);
        const int peer = real_rank(&w, me ^ width / 2);
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_SEND, round, peer, give_at, cvy_sum_part(count, give + width / 2, w.p) - give_at));
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_ADD, round, peer, keep_at, cvy_sum_part(count, keep + width / 2, w.p) - keep_at));
        low = keep;
    }
    *part_out = (cvy_part){cvy_sum_part(count, low, w.p), cvy_sum_part(count, low + 1, w.p)};
    return CVY_OK;
}

/* The same partners in the other order. The part that a rank has is the one of its own number: each of its bits has chosen a half. */
static cvy_status halving_gather(int rank, int n, int64_t count, cvy_sum *sum)
{
    const struct place w = place_of(n);
    const int me = virtual_rank(&w, rank);
    int round = 2, low = me;
    for (int width = w.p; width > 1; width /= 2)
        round++;
    if (stands_aside(&w, rank))
        return cvy_sum_move(sum, CVY_MOVE_RECV, 2, rank - 1, 0, count);
    for (int width = 1; width < w.p; width *= 2, round++) {
        const int upper = me & width, other = upper ? low - width : low + width;
        const int64_t at = cvy_sum_part(count, low, w.p), other_at = cvy_sum_part(count, other, w.p);
        const int peer = real_rank(&w, me ^ width);
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_SEND, round, peer, at, cvy_sum_part(count, low + width, w.p) - at));
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_RECV, round, peer, other_at, cvy_sum_part(count, other + width, w.p) - other_at));
        low = CVY_MIN(low, other);
    }
    return rank < 2 * w.extra ? cvy_sum_move(sum, CVY_MOVE_SEND, round, rank + 1, 0, count) : CVY_OK;
}

static cvy_status halving_build(int rank, int n, int64_t count, cvy_sum *sum)
{
    cvy_part mine;
    CVY_TRY(halving_scatter(rank, n, count, sum, &mine));
    return halving_gather(rank, n, count, sum);
}

CVY_SUM_DEFINE(halving) = {
    .name = "halving",
    .summary = "halves exchanged and added, then doubled back: least bytes in few rounds",
    .build = halving_build,
    .scatter = halving_scatter,
    .gather = halving_gather,
};
