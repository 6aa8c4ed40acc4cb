/*
 * comm_shards.c: which rank has which shards of a step in deterministic training; see comm_shards.h. The blocks of
 * shards match the pairs of ranks in comm_allreduce_doubling.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_shards.h"

static int is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static int64_t next_power(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

cvy_status cvy_shards_check(int64_t nshards, int nranks)
{
    CVY_CHECK(is_power_of_two(nshards) && nshards <= CVY_SHARDS_MAX, CVY_E_CONFIG,
              "opts.shards is %lld, expected a power of two up to %d, such as %lld", (long long)nshards, CVY_SHARDS_MAX,
              (long long)next_power(CVY_MIN(nshards, (int64_t)CVY_SHARDS_MAX)));
    CVY_CHECK(nranks <= nshards, CVY_E_CONFIG,
              "deterministic training splits a step into %lld shards, but there are %d ranks: start at most %lld, or "
              "set opts.shards: %lld, which gives other results",
              (long long)nshards, nranks, (long long)nshards, (long long)next_power(nranks));
    return CVY_OK;
}

cvy_part cvy_shards_of(int64_t nshards, int rank, int nranks)
{
    int p = 1;
    while (2 * p <= nranks)
        p *= 2;
    const int paired = 2 * (nranks - p), place = rank < paired ? rank / 2 : rank - paired / 2;
    const int64_t each = nshards / p, half = rank < paired ? each / 2 : each,
                  first = place * each + (rank < paired && rank % 2 ? half : 0);
    return (cvy_part){first, first + half};
}

cvy_part cvy_shards_samples(int64_t n, int64_t nshards, cvy_part shards)
{
    return (cvy_part){n * shards.first / nshards, n * shards.end / nshards};
}

int cvy_shards_merges(int64_t i)
{
    int n = 0;
    for (; i & 1; i >>= 1)
        n++;
    return n;
}
