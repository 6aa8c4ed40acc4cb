/*
 * all-reduce halving: recursive halving, then doubling. Ranks that are far apart exchange halves and add them, then
 * halves of these halves, and so on; then they send the sums back in the opposite order. It has the fewest bytes in few
 * rounds, so it suits all buffers except the shortest ones and, on few ranks, the longest ones.
 *
 *     time = 2 log2(n) alpha + 2 (p - 1)/p bytes beta + (p - 1)/p bytes gamma
 *
 * If n is not a power of two, p is the largest power of two below n, and the first 2 (n - p) ranks form pairs. The two
 * ranks of a pair exchange halves and add them, and the even rank then represents both. At the end it gives the sums to
 * its partner. This costs 2 alpha + 1.5 bytes beta + 0.5 bytes gamma at the beginning, and alpha + bytes beta at the
 * end. Source: Rabenseifner 2004, Optimization of collective reduction operations.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_allreduce.h"

struct layout {
    int n, extra, p;
}; /* number of ranks, of pairs, and of ranks that exchange */

static int real_rank(const struct layout *w, int virtual_rank)
{
    return virtual_rank < w->extra ? 2 * virtual_rank : virtual_rank + w->extra;
}

/* The two ranks of a pair exchange halves; then the even one gets the odd one's sums. */
static cvy_status pair_up(const struct layout *w, int rank, int64_t count, cvy_transfer_list *list)
{
    const int64_t half = cvy_allreduce_part(count, 1, 2);
    if (rank >= 2 * w->extra)
        return CVY_OK;
    if (rank % 2) {
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_SEND, 0, rank - 1, 0, half));
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_ADD, 0, rank - 1, half, count - half));
        return cvy_transfer_list_add(list, CVY_TRANSFER_SEND, 1, rank - 1, half, count - half);
    }
    CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_SEND, 0, rank + 1, half, count - half));
    CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_ADD, 0, rank + 1, 0, half));
    return cvy_transfer_list_add(list, CVY_TRANSFER_RECV, 1, rank + 1, half, count - half);
}

static struct layout layout_of(int n)
{
    struct layout w = {.n = n, .p = 1};
    while (2 * w.p <= n)
        w.p *= 2;
    w.extra = n - w.p;
    return w;
}

/* The odd rank of a pair does nothing more until the end. */
static int is_idle(const struct layout *w, int rank)
{
    return rank < 2 * w->extra && rank % 2;
}

static int virtual_rank(const struct layout *w, int rank)
{
    return rank < 2 * w->extra ? rank / 2 : rank - w->extra;
}

/* In each round this rank still has to add up the parts low to low + width - 1; at the end one part is left. */
static cvy_status halving_scatter(int rank, int n, int64_t count, cvy_transfer_list *list, cvy_part *part_out)
{
    const struct layout w = layout_of(n);
    const int me = virtual_rank(&w, rank);
    int round = 2, low = 0;
    CVY_TRY(pair_up(&w, rank, count, list));
    *part_out = (cvy_part){0, 0};
    if (is_idle(&w, rank))
        return CVY_OK;
    for (int width = w.p; width > 1; width /= 2, round++) {
        const int upper = me & width / 2, keep = upper ? low + width / 2 : low, give = upper ? low : low + width / 2;
        const int64_t keep_at = cvy_allreduce_part(count, keep, w.p), give_at = cvy_allreduce_part(count, give, w.p);
        const int peer = real_rank(&w, me ^ width / 2);
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_SEND, round, peer, give_at,
                                      cvy_allreduce_part(count, give + width / 2, w.p) - give_at));
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_ADD, round, peer, keep_at,
                                      cvy_allreduce_part(count, keep + width / 2, w.p) - keep_at));
        low = keep;
    }
    *part_out = (cvy_part){cvy_allreduce_part(count, low, w.p), cvy_allreduce_part(count, low + 1, w.p)};
    return CVY_OK;
}

/* The same partners in the opposite order. A rank has the part with its own number, because each bit of the number has
 * chosen one half. */
static cvy_status halving_gather(int rank, int n, int64_t count, cvy_transfer_list *list)
{
    const struct layout w = layout_of(n);
    const int me = virtual_rank(&w, rank);
    int round = 2, low = me;
    for (int width = w.p; width > 1; width /= 2)
        round++;
    if (is_idle(&w, rank))
        return cvy_transfer_list_add(list, CVY_TRANSFER_RECV, 2, rank - 1, 0, count);
    for (int width = 1; width < w.p; width *= 2, round++) {
        const int upper = me & width, other = upper ? low - width : low + width;
        const int64_t at = cvy_allreduce_part(count, low, w.p), other_at = cvy_allreduce_part(count, other, w.p);
        const int peer = real_rank(&w, me ^ width);
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_SEND, round, peer, at,
                                      cvy_allreduce_part(count, low + width, w.p) - at));
        CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_RECV, round, peer, other_at,
                                      cvy_allreduce_part(count, other + width, w.p) - other_at));
        low = CVY_MIN(low, other);
    }
    return rank < 2 * w.extra ? cvy_transfer_list_add(list, CVY_TRANSFER_SEND, round, rank + 1, 0, count) : CVY_OK;
}

static cvy_status halving_build(int rank, int n, int64_t count, cvy_transfer_list *list)
{
    cvy_part mine;
    CVY_TRY(halving_scatter(rank, n, count, list, &mine));
    return halving_gather(rank, n, count, list);
}

CVY_ALLREDUCE_DEFINE(halving) = {
    .name = "halving",
    .summary = "exchanges and adds halves of halves, then gathers them: fewest bytes in few rounds",
    .build = halving_build,
    .scatter = halving_scatter,
    .gather = halving_gather,
};
