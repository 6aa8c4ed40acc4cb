/*
 * test_comm_shards.c: shards of deterministic training: any number of ranks has all of them, in the order of ranks and
 * a power of two each; the sum of the ranks' subtrees by the transfers of "doubling" equals the sum of one binary tree
 * over all shards, to the bit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_allreduce.h"
#include "comm/comm_shards.h"

#include "test_util.h"

enum { MOST = 64 };

/* The sizes differ widely, so that another order gives other bits. */
static float shard_value(int64_t i)
{
    return (float)((i * 7919 % 1009 - 500) * (i % 3 ? 1e-3 : 1e4)) / 7.0f;
}

static float tree_sum(int64_t first, int64_t end)
{
    const int64_t middle = first + (end - first) / 2;
    return end - first == 1 ? shard_value(first) : tree_sum(first, middle) + tree_sum(middle, end);
}

/* Sums as the schedule does it: each shard's value is kept until its subtree is complete. */
static float sum_of_rank(cvy_part shards)
{
    float part[MOST] = {0};
    const int64_t n = shards.end - shards.first;
    for (int64_t i = 0; i < n; i++) {
        part[i] = shard_value(shards.first + i);
        for (int level = 0; level < cvy_shards_merges(i); level++)
            part[i] += part[i - (1 << level)];
    }
    return part[n - 1];
}

/* ---- ranks ---- */

static cvy_transfer_list sum[MOST];
static float value[MOST], wire[MOST][MOST];
static int next[MOST], is_sent[MOST], full[MOST][MOST];

/* Plays one round of a rank, if all that it waits for has arrived. */
static int play_round(int rank)
{
    const cvy_transfer_list *s = &sum[rank];
    const int begin = next[rank];
    int end = begin, ready = 1;
    while (end < s->ntransfer && s->transfer[end].round == s->transfer[begin].round)
        end++;
    for (int m = begin; m < end; m++)
        if (s->transfer[m].kind == CVY_TRANSFER_SEND && !is_sent[rank]) {
            wire[rank][s->transfer[m].peer] = value[rank];
            full[rank][s->transfer[m].peer] = 1;
        }
    is_sent[rank] = 1;
    for (int m = begin; m < end; m++)
        ready = ready && (s->transfer[m].kind == CVY_TRANSFER_SEND || full[s->transfer[m].peer][rank]);
    for (int m = begin; m < end && ready; m++)
        if (s->transfer[m].kind != CVY_TRANSFER_SEND) {
            const float came = wire[s->transfer[m].peer][rank];
            value[rank] = s->transfer[m].kind == CVY_TRANSFER_ADD ? value[rank] + came : came;
            full[s->transfer[m].peer][rank] = 0;
        }
    if (ready) {
        next[rank] = end;
        is_sent[rank] = 0;
    }
    return ready && end > begin;
}

static void sum_over_ranks(int nranks)
{
    memset(next, 0, sizeof next);
    memset(is_sent, 0, sizeof is_sent);
    memset(full, 0, sizeof full);
    for (int r = 0; r < nranks; r++)
        EXPECT_OK(cvy_allreduce_build(cvy_allreduce_find("doubling"), r, nranks, 1, &sum[r]));
    for (int moved = 1; moved;) {
        moved = 0;
        for (int r = 0; r < nranks; r++)
            moved |= play_round(r);
    }
    for (int r = 0; r < nranks; r++) {
        EXPECT_INT(next[r], sum[r].ntransfer);
        cvy_transfer_list_free(&sum[r]);
    }
}

static void same_bits_on_any_number_of_ranks(void)
{
    for (int64_t nshards = 1; nshards <= MOST; nshards *= 2)
        for (int nranks = 1; nranks <= nshards; nranks++) {
            const float expected = tree_sum(0, nshards);
            int64_t end = 0;
            int wrong = 0;
            for (int r = 0; r < nranks; r++) {
                const cvy_part mine = cvy_shards_of(nshards, r, nranks);
                const int64_t n = mine.end - mine.first;
                EXPECT_INT(mine.first, end);
                EXPECT(n > 0 && (n & (n - 1)) == 0);
                end = mine.end;
                value[r] = sum_of_rank(mine);
            }
            EXPECT_INT(end, nshards);
            sum_over_ranks(nranks);
            for (int r = 0; r < nranks; r++)
                wrong += memcmp(&value[r], &expected, sizeof expected) != 0;
            EXPECT_INT(wrong, 0);
        }
}

static void another_order_gives_other_bits(void)
{
    float in_order = 0;
    for (int64_t i = 0; i < MOST; i++)
        in_order += shard_value(i);
    EXPECT(in_order != tree_sum(0, MOST));
}

static void samples_of_shards(void)
{
    for (int64_t n = 1; n < 40; n++) {
        int64_t end = 0, most = 0, least = n;
        for (int64_t s = 0; s < 8; s++) {
            const cvy_part samples = cvy_shards_samples(n, 8, (cvy_part){s, s + 1});
            EXPECT_INT(samples.first, end);
            end = samples.end;
            most = CVY_MAX(most, end - samples.first);
            least = CVY_MIN(least, end - samples.first);
        }
        EXPECT_INT(end, n);
        EXPECT(most - least <= 1 && (n >= 8 || least == 0));
    }
}

static void faults(void)
{
    EXPECT_OK(cvy_shards_check(8, 8));
    EXPECT_OK(cvy_shards_check(1, 1));
    EXPECT_FAULT(cvy_shards_check(12, 1), CVY_E_CONFIG,
                 "opts.shards is 12, expected a power of two up to 4096, such as 16");
    EXPECT_FAULT(cvy_shards_check(0, 1), CVY_E_CONFIG,
                 "opts.shards is 0, expected a power of two up to 4096, such as 1");
    EXPECT_FAULT(cvy_shards_check(8192, 1), CVY_E_CONFIG, "such as 4096");
    EXPECT_FAULT(cvy_shards_check(8, 9), CVY_E_CONFIG,
                 "8 shards, but there are 9 ranks: start at most 8, or set opts.shards: 16");
}

int main(void)
{
    TEST(same_bits_on_any_number_of_ranks);
    TEST(another_order_gives_other_bits);
    TEST(samples_of_shards);
    TEST(faults);
    return test_end();
}
