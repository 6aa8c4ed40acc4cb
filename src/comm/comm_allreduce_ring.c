/*
 * all-reduce ring: each rank sends one part to its neighbour, n - 1 times to add the parts and n - 1 times to
 * distribute the sums. It has the fewest bytes and the most messages, so it suits long buffers on few ranks, where all
 * links of the ring are busy at the same time.
 *
 *     time = 2 (n - 1) alpha + 2 (n - 1)/n bytes beta + (n - 1)/n bytes gamma
 *
 * Part p is added up in the order p, p + 1, ..., p + n - 1 (modulo n). Source: Patarasuk and Yuan 2009.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_allreduce.h"

static cvy_status pass_on(cvy_transfer_list *list, int rank, int n, int64_t count, int round, int send,
                          cvy_transfer_kind kind)
{
    const int out = (send % n + n) % n, in = (out + n - 1) % n;
    const int64_t out_at = cvy_allreduce_part(count, out, n), in_at = cvy_allreduce_part(count, in, n);
    CVY_TRY(cvy_transfer_list_add(list, CVY_TRANSFER_SEND, round, (rank + 1) % n, out_at,
                                  cvy_allreduce_part(count, out + 1, n) - out_at));
    return cvy_transfer_list_add(list, kind, round, (rank + n - 1) % n, in_at,
                                 cvy_allreduce_part(count, in + 1, n) - in_at);
}

static cvy_status ring_scatter(int rank, int n, int64_t count, cvy_transfer_list *list, cvy_part *part_out)
{
    const int mine = (rank + 1) % n;
    for (int i = 0; i < n - 1; i++)
        CVY_TRY(pass_on(list, rank, n, count, i, rank - i, CVY_TRANSFER_ADD));
    *part_out = (cvy_part){cvy_allreduce_part(count, mine, n), cvy_allreduce_part(count, mine + 1, n)};
    return CVY_OK;
}

static cvy_status ring_gather(int rank, int n, int64_t count, cvy_transfer_list *list)
{
    for (int i = 0; i < n - 1; i++)
        CVY_TRY(pass_on(list, rank, n, count, n - 1 + i, rank + 1 - i, CVY_TRANSFER_RECV));
    return CVY_OK;
}

static cvy_status ring_build(int rank, int n, int64_t count, cvy_transfer_list *list)
{
    cvy_part mine;
    CVY_TRY(ring_scatter(rank, n, count, list, &mine));
    return ring_gather(rank, n, count, list);
}

CVY_ALLREDUCE_DEFINE(ring) = {
    .name = "ring",
    .summary = "sends parts around a ring twice: fewest bytes, most rounds",
    .build = ring_build,
    .scatter = ring_scatter,
    .gather = ring_gather,
};
