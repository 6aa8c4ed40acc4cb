/* ranks: 1 2 3 4 */
/* rows: mpich mpi asan */
/*
 * test_reduce_bucket.c: bucket sets: all buckets at once and repeatedly, in f32 and f64; a reduce-scatter and an
 * all-gather, which together are an all-reduce; two sets at the same time; an exchange in place of reductions; times.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include "comm/mpi/comm_mpi.h"
#include "reduce/reduce_bucket.h"

#include "test_util.h"

enum { BUCKETS = 3, ROUNDS = 3 };

static cvy_comm *comm;
static const int64_t elems[BUCKETS] = {5, 40000, 1029};

static cvy_bucket_set *new_set(cvy_bucket_kind kind, cvy_dtype dtype, size_t *bytes_out)
{
    cvy_bucket_set *set = NULL;
    size_t end = 0;
    EXPECT_OK(cvy_bucket_set_create(BUCKETS, &set));
    for (int b = 0; b < BUCKETS; b++) {
        const size_t bytes = (size_t)elems[b] * cvy_dtype_bytes(dtype);
        set->bucket[b] = (cvy_bucket){.offset = end, .bytes = bytes, .dtype = dtype, .kind = kind};
        end += (bytes + 63) / 64 * 64;
    }
    *bytes_out = end;
    return set;
}

static double value_of(int rank, int64_t i, int round)
{
    return rank + 1 + (double)((i + round) % 5);
}

static double get(const cvy_bucket *b, int64_t i)
{
    return b->dtype == CVY_DTYPE_F64 ? ((const double *)b->data)[i] : (double)((const float *)b->data)[i];
}

static void fill(const cvy_bucket *b, int round)
{
    for (int64_t i = 0; i < cvy_bucket_elems(b); i++)
        if (b->dtype == CVY_DTYPE_F64)
            ((double *)b->data)[i] = value_of(comm->rank, i, round);
        else
            ((float *)b->data)[i] = (float)value_of(comm->rank, i, round);
}

static void check(const cvy_bucket *b, int64_t first, int64_t end, int round)
{
    int64_t wrong = 0;
    for (int64_t i = first; i < end; i++) {
        double sum = 0;
        for (int r = 0; r < comm->nranks; r++)
            sum += value_of(r, i, round);
        wrong += get(b, i) != sum;
    }
    EXPECT_INT(wrong, 0);
}

static void all_of(cvy_dtype dtype, const cvy_allreduce_opts *opts)
{
    size_t bytes = 0;
    char *memory = NULL;
    int shared = 0;
    cvy_bucket_set *set = new_set(CVY_BUCKET_ALLREDUCE, dtype, &bytes);
    EXPECT_OK(cvy_mem_alloc_pages(bytes, &memory));
    EXPECT_OK(comm->node_memory->share(comm, opts, memory, bytes, &shared));
    EXPECT_OK(cvy_bucket_set_connect(set, comm, opts, memory));
    for (int round = 0; round < ROUNDS; round++) {
        for (int b = 0; b < BUCKETS; b++) {
            fill(&set->bucket[b], round);
            EXPECT_OK(cvy_bucket_set_start(set, b));
            EXPECT_OK(cvy_bucket_set_progress(set));
        }
        EXPECT_OK(cvy_bucket_set_wait(set, 1));
        EXPECT(!set->bucket[1].active);
        EXPECT_OK(cvy_bucket_set_wait_all(set));
        EXPECT(!cvy_bucket_set_is_active(set));
        for (int b = 0; b < BUCKETS; b++) {
            check(&set->bucket[b], 0, elems[b], round);
            EXPECT(comm->nranks == 1 || set->bucket[b].end_s >= set->bucket[b].start_s);
            EXPECT((set->bucket[b].start_s > 0) == (comm->nranks > 1));
        }
    }
    cvy_bucket_set_destroy(&set);
    comm->node_memory->unshare(comm, memory);
    cvy_mem_free_pages(&memory, bytes);
}

static void test_all_of_them(void)
{
    static const cvy_allreduce_opts opts[] = {
        {0}, {.no_node = 1, .algorithm = "ring"}, {.no_node = 1, .progress = CVY_PROGRESS_THREAD}};
    for (int i = 0; i < CVY_COUNT(opts); i++) {
        all_of(CVY_DTYPE_F32, &opts[i]);
        all_of(CVY_DTYPE_F64, &opts[i]);
    }
}

/* A reduce-scatter and an all-gather of the same memory. The gather runs at the same time as the next reduction. */
static void test_parts(void)
{
    const cvy_allreduce_opts opts = {.no_node = 1, .halves = 1};
    size_t bytes = 0;
    char *memory = NULL;
    cvy_bucket_set *sums = new_set(CVY_BUCKET_PART, CVY_DTYPE_F32, &bytes),
                   *gather = new_set(CVY_BUCKET_GATHER, CVY_DTYPE_F32, &bytes);
    EXPECT_OK(cvy_mem_alloc_pages(bytes, &memory));
    EXPECT_OK(cvy_bucket_set_connect(sums, comm, &opts, memory));
    EXPECT_OK(cvy_bucket_set_connect(gather, comm, &opts, memory));
    sums->concurrent = gather;
    for (int round = 0; round < ROUNDS; round++) {
        for (int b = 0; b < BUCKETS; b++) {
            int64_t mine = 0;
            fill(&sums->bucket[b], round);
            EXPECT_OK(cvy_bucket_set_start(sums, b));
            EXPECT_OK(cvy_bucket_set_wait(sums, b));
            check(&sums->bucket[b], sums->bucket[b].part.first, sums->bucket[b].part.end, round);
            mine = sums->bucket[b].part.end - sums->bucket[b].part.first;
            EXPECT_OK(comm->ops->allreduce(comm, &mine, 1, CVY_DTYPE_I64, CVY_REDUCE_SUM));
            EXPECT_INT(mine, elems[b]);
            EXPECT_OK(cvy_bucket_set_start(gather, b));
            EXPECT(cvy_bucket_set_is_active(sums) || comm->nranks == 1);
        }
        while (cvy_bucket_set_is_active(sums)) /* only the other set is active */
            EXPECT_OK(cvy_bucket_set_progress(sums));
        for (int b = 0; b < BUCKETS; b++)
            check(&gather->bucket[b], 0, elems[b], round);
    }
    cvy_bucket_set_destroy(&sums);
    cvy_bucket_set_destroy(&gather);
    cvy_mem_free_pages(&memory, bytes);
}

struct log {
    int started[BUCKETS], tested[BUCKETS];
};

static cvy_status log_start(void *user, int bucket)
{
    struct log *log = user;
    log->started[bucket]++;
    return CVY_OK;
}

static cvy_status log_test(void *user, int bucket, int *done_out)
{
    struct log *log = user;
    *done_out = ++log->tested[bucket] == 2;
    return CVY_OK;
}

static void test_an_exchange(void)
{
    struct log log = {{0}, {0}};
    const cvy_exchange exchange = {log_start, log_test, &log};
    size_t bytes = 0;
    char *memory = NULL;
    cvy_bucket_set *set = new_set(CVY_BUCKET_ALLREDUCE, CVY_DTYPE_F32, &bytes);
    EXPECT_OK(cvy_mem_alloc(bytes, &memory));
    set->exchange = &exchange;
    EXPECT_OK(cvy_bucket_set_connect(set, comm, &(cvy_allreduce_opts){0}, memory));
    EXPECT(!set->bucket[0].request);
    EXPECT_OK(cvy_bucket_set_start(set, 2));
    EXPECT_OK(cvy_bucket_set_progress(set));
    EXPECT_INT(set->nactive, 1);
    EXPECT_OK(cvy_bucket_set_wait_all(set));
    EXPECT_INT(set->nactive, 0);
    EXPECT_INT(log.started[2] + log.tested[2], 3);
    EXPECT_INT(log.started[0] + log.tested[0] + log.started[1] + log.tested[1], 0);
    cvy_bucket_set_destroy(&set);
    cvy_mem_free(&memory);
}

int main(int argc, char **argv)
{
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &comm));
    TEST(test_all_of_them);
    TEST(test_parts);
    TEST(test_an_exchange);
    comm->ops->destroy(comm);
    MPI_Finalize();
    return test_end();
}
