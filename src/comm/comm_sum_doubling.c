/*
 * sum doubling: recursive doubling: in each round all of the buffer is exchanged with a rank twice as far away. Fewest rounds, most bytes: for
 * short buffers.
 *
 *     time = log2(n) (alpha + bytes beta + bytes gamma), and two messages more where n is no power of two
 *
 * Then the ranks above the largest power of two p give their numbers to rank - p first, and get the sums at the end.
 * Source: Thakur, Rabenseifner and Gropp 2005, section 4.
 */
#include "comm/comm_sum.h"

static cvy_status doubling_build(int rank, int n, int64_t count, cvy_sum *sum)
{
    int p = 1, round = 1;
    while (2 * p <= n)
        p *= 2;
    if (rank >= p) {
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_SEND, 0, rank - p, 0, count));
        return cvy_sum_move(sum, CVY_MOVE_RECV, 1, rank - p, 0, count);
    }
    if (rank + p < n)
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_ADD, 0, rank + p, 0, count));
    for (int far = 1; far < p; far *= 2, round++) {
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_SEND, round, rank ^ far, 0, count));
        CVY_TRY(cvy_sum_move(sum, CVY_MOVE_ADD, round, rank ^ far, 0, count));
    }
    sum->rounds_at_end = p < n && rank + p >= n;
    return rank + p < n ? cvy_sum_move(sum, CVY_MOVE_SEND, round, rank + p, 0, count) : CVY_OK;
}

CVY_SUM_DEFINE(doubling) = {
    .name = "doubling",
    .summary = "all of it exchanged with ever farther ranks: fewest rounds, most bytes",
    .build = doubling_build,
};
