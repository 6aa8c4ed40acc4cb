/*
 * test_comm_allreduce.c: all-reduces as lists of transfers, played in one process: every rank gets the sum of all, with
 * the same bits, for any number of ranks and elements; no rank waits for what is never sent; and the bytes are those of
 * the algorithm's formula.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_allreduce.h"
#include <stdio.h>

#include "test_util.h"

enum { RANKS_MAX = 40, COUNT_MAX = 3000, MESSAGES_MAX = 256 };

struct message {
    int64_t count;
    float data[COUNT_MAX];
};

/* Messages from one rank to another, in order. */
struct queue {
    struct message *at[MESSAGES_MAX];
    int first, last;
};

struct player {
    cvy_transfer_list sum;
    float data[COUNT_MAX];
    int next, sent; /* next transfer; whether the sends of this round are done */
    int64_t sent_elems;
};

static struct player player[RANKS_MAX];
static struct queue queue[RANKS_MAX][RANKS_MAX];

static void send_round(int rank)
{
    struct player *p = &player[rank];
    for (int m = p->next; m < p->sum.ntransfer && p->sum.transfer[m].round == p->sum.transfer[p->next].round; m++) {
        const cvy_transfer *move = &p->sum.transfer[m];
        struct queue *q = &queue[rank][move->peer];
        if (move->kind != CVY_TRANSFER_SEND)
            continue;
        struct message *message = NULL;
        EXPECT_OK(cvy_mem_alloc(sizeof *message, &message));
        EXPECT(move->at >= 0 && move->count > 0 && move->at + move->count <= COUNT_MAX && q->last < MESSAGES_MAX);
        message->count = move->count;
        memcpy(message->data, p->data + move->at, sizeof(float) * (size_t)move->count);
        q->at[q->last++] = message;
        p->sent_elems += move->count;
    }
    p->sent = 1;
}

static int can_receive(int rank)
{
    const struct player *p = &player[rank];
    for (int m = p->next; m < p->sum.ntransfer && p->sum.transfer[m].round == p->sum.transfer[p->next].round; m++) {
        const cvy_transfer *move = &p->sum.transfer[m];
        if (move->kind != CVY_TRANSFER_SEND && queue[move->peer][rank].first == queue[move->peer][rank].last)
            return 0;
    }
    return 1;
}

static void receive_round(int rank)
{
    struct player *p = &player[rank];
    const int round = p->sum.transfer[p->next].round;
    for (; p->next < p->sum.ntransfer && p->sum.transfer[p->next].round == round; p->next++) {
        const cvy_transfer *move = &p->sum.transfer[p->next];
        if (move->kind == CVY_TRANSFER_SEND)
            continue;
        struct queue *q = &queue[move->peer][rank];
        struct message *message = q->at[q->first++];
        EXPECT_INT(message->count, move->count);
        for (int64_t i = 0; i < move->count; i++)
            p->data[move->at + i] = message->data[i] + (move->kind == CVY_TRANSFER_ADD ? p->data[move->at + i] : 0);
        cvy_mem_free(&message);
    }
    EXPECT(p->next == p->sum.ntransfer || p->sum.transfer[p->next].round > round);
    p->sent = 0;
}

/* Does one transfer of any rank. Returns 0 if all are done, or if all wait. */
static int play_on(int nranks)
{
    int moved = 0;
    for (int r = 0; r < nranks; r++) {
        if (player[r].next == player[r].sum.ntransfer)
            continue;
        if (!player[r].sent)
            send_round(r);
        if (can_receive(r)) {
            receive_round(r);
            moved = 1;
        }
    }
    return moved;
}

static float value_of(int rank, int64_t i)
{
    return (float)((rank * 37 + i * 11) % 101) / 7.0F + 0.125F * (float)rank;
}

static void play(const cvy_allreduce_def *def, int nranks, int64_t count)
{
    memset(queue, 0, sizeof queue);
    for (int r = 0; r < nranks; r++) {
        player[r].next = player[r].sent = 0;
        player[r].sent_elems = 0;
        EXPECT_OK(cvy_allreduce_build(def, r, nranks, count, &player[r].sum));
        for (int64_t i = 0; i < count; i++)
            player[r].data[i] = value_of(r, i);
    }
    while (play_on(nranks)) {
    }
    int wrong = 0, differ = 0, waits = 0, left = 0;
    for (int r = 0; r < nranks; r++) {
        waits += player[r].next != player[r].sum.ntransfer;
        differ += memcmp(player[r].data, player[0].data, sizeof(float) * (size_t)count) != 0;
        for (int other = 0; other < nranks; other++)
            left += queue[r][other].first != queue[r][other].last;
    }
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int r = 0; r < nranks; r++)
            sum += (double)value_of(r, i);
        wrong += fabs((double)player[0].data[i] - sum) > 1e-5 * sum;
    }
    if (wrong || differ || waits || left)
        printf("%s, %d ranks, %lld elements: %d wrong, %d ranks differ, %d wait, %d messages left\n", def->name, nranks,
               (long long)count, wrong, differ, waits, left);
    EXPECT(!wrong && !differ && !waits && !left);
}

static void release(int nranks)
{
    for (int r = 0; r < nranks; r++)
        cvy_transfer_list_free(&player[r].sum);
}

static void test_all_ranks_get_the_sum(void)
{
    static const int64_t counts[] = {1, 15, 16, 17, 100, 1024, 2999};
    int ndef = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&ndef);
    EXPECT(ndef >= 3);
    for (int d = 0; d < ndef; d++)
        for (int nranks = 2; nranks <= RANKS_MAX; nranks += nranks < 18 ? 1 : 7)
            for (int c = 0; c < CVY_COUNT(counts); c++) {
                play(def[d], nranks, counts[c]);
                release(nranks);
            }
}

static void play_out(int nranks)
{
    while (play_on(nranks)) {
    }
    for (int r = 0; r < nranks; r++) {
        EXPECT_INT(player[r].next, player[r].sum.ntransfer);
        player[r].next = player[r].sent = 0;
        cvy_transfer_list_free(&player[r].sum);
    }
}

/* After the first half the parts of the ranks cover all elements, each once and summed. After the second half all ranks
 * have the result of a complete all-reduce, to the bit. */
static void play_halves(const cvy_allreduce_def *def, int nranks, int64_t count)
{
    static float whole[3000];
    static char owned[3000];
    int wrong = 0;
    play(def, nranks, count);
    release(nranks);
    memcpy(whole, player[0].data, sizeof *whole * (size_t)count);
    memset(owned, 0, sizeof owned);
    memset(queue, 0, sizeof queue);
    cvy_part part[RANKS_MAX];
    for (int r = 0; r < nranks; r++) {
        player[r].next = player[r].sent = 0;
        EXPECT_OK(cvy_allreduce_build_half(def, r, nranks, count, &part[r], &player[r].sum));
        for (int64_t i = 0; i < count; i++)
            player[r].data[i] = value_of(r, i);
    }
    play_out(nranks);
    for (int r = 0; r < nranks; r++)
        for (int64_t i = part[r].first; i < part[r].end; i++) {
            owned[i]++;
            wrong += memcmp(&player[r].data[i], &whole[i], sizeof *whole) != 0;
        }
    for (int64_t i = 0; i < count; i++)
        wrong += owned[i] != 1;
    EXPECT_INT(wrong, 0);
    memset(queue, 0, sizeof queue);
    for (int r = 0; r < nranks; r++)
        EXPECT_OK(cvy_allreduce_build_half(def, r, nranks, count, NULL, &player[r].sum));
    play_out(nranks);
    for (int r = 0; r < nranks; r++)
        wrong += memcmp(player[r].data, whole, sizeof *whole * (size_t)count) != 0;
    EXPECT_INT(wrong, 0);
}

static void test_halves(void)
{
    static const int64_t counts[] = {1, 17, 100, 2999};
    int ndef = 0, halves = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&ndef);
    for (int d = 0; d < ndef; d++)
        for (int nranks = 2; def[d]->scatter && nranks <= 9; nranks++, halves++)
            for (int c = 0; c < CVY_COUNT(counts); c++)
                play_halves(def[d], nranks, counts[c]);
    EXPECT_INT(halves, 2 * 8); /* ring and halving */
}

/* Returns the number of elements that the busiest rank sends. */
static int64_t most_sent(const char *name, int nranks, int64_t count)
{
    int64_t most = 0;
    play(cvy_allreduce_find(name), nranks, count);
    for (int r = 0; r < nranks; r++)
        most = CVY_MAX(most, player[r].sent_elems);
    release(nranks);
    return most;
}

static void test_bytes_are_as_stated(void)
{
    const int64_t count = 16 * 120;
    EXPECT_INT(most_sent("ring", 5, count), 2 * 4 * count / 5);
    EXPECT_INT(most_sent("ring", 8, count), 2 * 7 * count / 8);
    EXPECT_INT(most_sent("halving", 8, count), 2 * 7 * count / 8);
    EXPECT_INT(most_sent("halving", 5, count), 2 * 3 * count / 4 + count / 2 + count);
    EXPECT_INT(most_sent("doubling", 8, count), 3 * count);
    EXPECT_INT(most_sent("doubling", 5, count), 3 * count);
}

static void test_cost(void)
{
    const cvy_link link = {1, 0.01, 0.001};
    cvy_transfer_list sum = {0};
    EXPECT_OK(cvy_allreduce_build(cvy_allreduce_find("halving"), 0, 8, 128, &sum));
    EXPECT(fabs(cvy_transfer_list_cost(&sum, 4, &link) - (6 + 2 * 7 * 64 * 0.01 + 7 * 64 * 0.001)) < 1e-9);
    cvy_transfer_list_free(&sum);
    EXPECT_OK(cvy_allreduce_build(cvy_allreduce_find("ring"), 3, 4, 128, &sum));
    EXPECT(fabs(cvy_transfer_list_cost(&sum, 4, &link) - (6 + 6 * 128 * 0.01 + 3 * 128 * 0.001)) < 1e-9);
    cvy_transfer_list_free(&sum);
    EXPECT_OK(cvy_allreduce_build(cvy_allreduce_find("ring"), 0, 1, 128, &sum));
    EXPECT_INT(sum.ntransfer, 0);
    EXPECT(cvy_allreduce_find("no such") == NULL);
}

/* The size is sqrt(alpha S / beta), rounded to a power of two and at most a quarter; or as the caller asks. */
static void test_buckets(void)
{
    const cvy_comm_cost slow = {60e-6, 8.4e-9}, fast = {28e-6, 1.6e-10}, unknown = {0, 0};
    EXPECT_INT(cvy_allreduce_bucket_bytes(250000000, 0, &slow), 1 << 20); /* 1.3 MB */
    EXPECT_INT(cvy_allreduce_bucket_bytes(100000000, 0, &fast), 4 << 20); /* 4.2 MB */
    EXPECT_INT(cvy_allreduce_bucket_bytes(100000000, 0, &unknown), 4 << 20);
    EXPECT_INT(cvy_allreduce_bucket_bytes(1000000, 0, &fast), 250000);
    EXPECT_INT(cvy_allreduce_bucket_bytes(1000, 0, &fast), 64 << 10);
    EXPECT_INT(cvy_allreduce_bucket_bytes(100000000, 12345, &slow), 12345);
}

int main(void)
{
    TEST(test_all_ranks_get_the_sum);
    TEST(test_halves);
    TEST(test_bytes_are_as_stated);
    TEST(test_cost);
    TEST(test_buckets);
    return test_end();
}
