/* ranks: 1 2 3 4 */
/* rows: mpich mpi asan */
/*
 * test_comm_split.c: sub-communicators: their ranks and order; their collectives; reductions by messages, through the
 * shared memory of a node and by the progress thread of the parent communicator; both halves at once; faults, and
 * the ranks that their messages name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include "comm/comm_allreduce.h"
#include "comm/mpi/comm_mpi.h"

#include "test_util.h"

enum { COUNT = 70001, ROUNDS = 3 };

static cvy_comm *all;

static double sum_of(const cvy_comm *part, const int *member, double (*value)(int))
{
    double sum = 0;
    for (int r = 0; r < part->nranks; r++)
        sum += value(member[r]);
    return sum;
}

static double one_more(int rank)
{
    return rank + 1;
}

/* Reduces a range over the ranks of `part`, with the options of a caller. */
static void reduce(cvy_comm *part, const int *member, const cvy_allreduce_opts *opts, int share)
{
    cvy_request *request = NULL;
    float *data = NULL;
    int shared = 0;
    EXPECT_OK(cvy_mem_alloc_pages(COUNT * sizeof *data, &data));
    if (share)
        EXPECT_OK(part->node_memory->share(part, opts, data, COUNT * sizeof *data, &shared));
    EXPECT_OK(part->reduce->create(part, opts, data, COUNT, CVY_DTYPE_F32, NULL, &request));
    for (int round = 0; round < ROUNDS; round++) {
        const double sum = sum_of(part, member, one_more);
        int64_t wrong = 0;
        for (int64_t i = 0; i < COUNT; i++)
            data[i] = (float)((all->rank + 1) * (i % 7 + round));
        EXPECT_OK(cvy_comm_finish(part, request));
        for (int64_t i = 0; i < COUNT; i++)
            wrong += data[i] != (float)(sum * (double)(i % 7 + round));
        EXPECT_INT(wrong, 0);
    }
    part->reduce->destroy(&request);
    part->node_memory->unshare(part, data);
    cvy_mem_free_pages(&data, COUNT * sizeof *data);
}

static void collectives(cvy_comm *part, const int *member)
{
    int64_t numbers[2] = {all->rank + 1, -all->rank};
    int got[4] = {0}, root = part->rank == 0 ? 100 + all->rank : 0;
    EXPECT_OK(part->ops->barrier(part));
    EXPECT_OK(part->ops->allreduce(part, numbers, 2, CVY_DTYPE_I64, CVY_REDUCE_SUM));
    EXPECT_NEAR((double)numbers[0], sum_of(part, member, one_more), 0);
    EXPECT_OK(part->ops->allgather(part, &all->rank, sizeof all->rank, got));
    for (int r = 0; r < part->nranks; r++)
        EXPECT_INT(got[r], member[r]);
    EXPECT_OK(part->ops->broadcast(part, &root, sizeof root, 0));
    EXPECT_INT(root, 100 + member[0]);
}

/* Splits `all` into even and odd ranks, each in falling order. `member` gets the ranks in `all` that belong to this
 * part, by their new rank. */
static void split_by_parity(cvy_comm **part_out, int *member, int *n_out)
{
    *n_out = 0;
    for (int r = all->nranks - 1; r >= 0; r--)
        if (r % 2 == all->rank % 2)
            member[(*n_out)++] = r;
    EXPECT_OK(cvy_comm_split(all, all->rank % 2, -all->rank, part_out));
}

static void test_halves(void)
{
    static const cvy_allreduce_opts opts[] = {{0},
                                              {.algorithm = "library", .no_node = 1},
                                              {.algorithm = "ring", .no_node = 1},
                                              {.algorithm = "halving", .no_node = 1, .newest_first = 1},
                                              {.progress = CVY_PROGRESS_THREAD},
                                              {.progress = CVY_PROGRESS_THREAD, .no_node = 1}};
    cvy_comm *part = NULL;
    int member[4], n = 0;
    split_by_parity(&part, member, &n);
    EXPECT_INT(part->nranks, n);
    EXPECT_INT(member[part->rank], all->rank);
    EXPECT(part->node_nranks <= n && part->nnodes >= 1);
    collectives(part, member);
    for (int i = 0; i < CVY_COUNT(opts); i++) {
        reduce(part, member, &opts[i], 0);
        reduce(part, member, &opts[i], 1);
    }
    part->ops->destroy(part);
}

/* A reduction of all ranks is in progress while the halves reduce too. */
static void test_both_at_once(void)
{
    static const cvy_allreduce_opts opts[] = {{.no_node = 1}, {.no_node = 1, .progress = CVY_PROGRESS_THREAD}};
    cvy_comm *part = NULL;
    int member[4], n = 0;
    split_by_parity(&part, member, &n);
    for (int i = 0; i < CVY_COUNT(opts) * 2; i++) {
        const cvy_allreduce_opts *outer = &opts[i % 2], *inner = &opts[i / 2];
        cvy_request *request = NULL;
        double number = all->rank + 1;
        int done = 0;
        EXPECT_OK(all->reduce->create(all, outer, &number, 1, CVY_DTYPE_F64, NULL, &request));
        EXPECT_OK(all->reduce->start(request));
        reduce(part, member, inner, 0);
        while (!done)
            EXPECT_OK(all->reduce->test(request, &done));
        EXPECT_NEAR(number, all->nranks * (all->nranks + 1) / 2.0, 0);
        all->reduce->destroy(&request);
    }
    part->ops->destroy(part);
}

static void test_messages_in_a_part(void)
{
    cvy_comm *part = NULL;
    cvy_message *message = NULL;
    int member[4], n = 0, word = 0, done = 0;
    split_by_parity(&part, member, &n);
    if (n > 1 && part->rank < 2) {
        word = part->rank ? 0 : 7;
        EXPECT_OK(part->message->create(part, &(cvy_range){&word, sizeof word}, 1, &message));
        EXPECT_OK(part->rank ? part->message->receive(message, 0, 3) : part->message->send(message, 1, 3));
        while (!done)
            EXPECT_OK(part->message->test(message, &done, NULL));
        EXPECT_INT(word, 7);
        part->message->destroy(&message);
    }
    part->ops->destroy(part);
}

static void test_ranks_in_no_part(void)
{
    cvy_comm *part = NULL;
    EXPECT_OK(cvy_comm_split(all, all->rank == 0 ? CVY_NO_COLOR : 5, 0, &part));
    EXPECT((part == NULL) == (all->rank == 0));
    if (part) {
        EXPECT_INT(part->nranks, all->nranks - 1);
        EXPECT_INT(part->rank, all->rank - 1);
        part->ops->destroy(part);
    }
}

/* Splits a part again, down to single ranks. */
static void test_parts_of_parts(void)
{
    cvy_comm *half = NULL, *single = NULL;
    int member[4], n = 0;
    split_by_parity(&half, member, &n);
    EXPECT_OK(cvy_comm_split(half, half->rank, 0, &single));
    EXPECT_INT(single->nranks, 1);
    collectives(single, &all->rank);
    reduce(single, &all->rank, &(cvy_allreduce_opts){.progress = CVY_PROGRESS_THREAD}, 1);
    single->ops->destroy(single);
    half->ops->destroy(half);
}

static void test_faults(void)
{
    cvy_comm *part = NULL;
    EXPECT_FAULT(cvy_comm_split(all, all->rank == all->nranks - 1 ? -2 : 0, 0, &part), CVY_E_ARGUMENT, "color -2");
    EXPECT(part == NULL);
}

/* The message of a rank names it by its number in the whole communicator, once, also if the part passes it on. */
static void test_messages_name_ranks_of_the_whole(void)
{
    cvy_comm *part = NULL;
    int member[4], n = 0;
    char text[64];
    split_by_parity(&part, member, &n);
    const int failed = member[n - 1], fails = all->rank == failed;
    cvy_status status = cvy_comm_agree(part, fails ? cvy_error_set(CVY_E_IO, "no such file") : CVY_OK);
    EXPECT_INT(status, CVY_E_IO);
    snprintf(text, sizeof text, fails ? "no such file" : "rank %d: no such file", failed);
    EXPECT(strcmp(cvy_error_text(), text) == 0);
    status = cvy_comm_agree(all, all->rank % 2 == 0 ? status : CVY_OK);
    EXPECT_INT(status, CVY_E_IO);
    EXPECT(all->rank == 0 || strcmp(cvy_error_text(), "rank 0: no such file") == 0);
    part->ops->destroy(part);
}

static void test_one_rank_without_mpi(void)
{
    cvy_comm *self = NULL, *part = NULL;
    EXPECT_OK(cvy_comm_create_self(&self));
    EXPECT(!self->reduce && !self->message && !self->node_memory && !self->probe);
    EXPECT_OK(cvy_comm_split(self, 3, 1, &part));
    EXPECT(part && part->nranks == 1 && part->rank == 0);
    part->ops->destroy(part);
    EXPECT_OK(cvy_comm_split(self, CVY_NO_COLOR, 0, &part));
    EXPECT(part == NULL);
    EXPECT_FAULT(cvy_comm_split(self, -2, 0, &part), CVY_E_ARGUMENT, "color -2");
    self->ops->destroy(self);
}

int main(int argc, char **argv)
{
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    EXPECT(level >= MPI_THREAD_SERIALIZED);
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &all));
    TEST(test_halves);
    TEST(test_both_at_once);
    TEST(test_messages_in_a_part);
    TEST(test_ranks_in_no_part);
    TEST(test_parts_of_parts);
    TEST(test_faults);
    TEST(test_messages_name_ranks_of_the_whole);
    TEST(test_one_rank_without_mpi);
    all->ops->destroy(all);
    MPI_Finalize();
    return test_end();
}
