/*
 * test_comm_mpi_request.c: non-blocking all-reduces over MPI give the sum of all ranks, with the same bits on every
 * rank.
 *
 * They are done by each algorithm and by the MPI library, by messages and through the shared memory of a node, in f32,
 * f64 and with bf16 messages, several at once and repeatedly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 3 4 */
/* rows: mpich mpi asan */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base_hash.h"
#include "comm/comm_allreduce.h"
#include "comm/mpi/comm_mpi.h"

#include "test_util.h"

enum { ROUNDS = 2, SUMS = 7 };

static cvy_comm *comm;
static cvy_allreduce_opts opts; /* options of the reductions that are made next */

/* The lengths of the sums that run at once: there are more sums than slots, and one has several segments. */
static const int64_t counts[SUMS] = {1, 37, 5000, 700001, 16, 131072, 80000};

/* The values repeat after this many elements. */
enum { PERIOD = 101 };

static double value_of(int rank, int round, int64_t i)
{
    return (double)((rank * 37 + round * 5 + i * 11) % PERIOD) / 7;
}

/* The values of this rank and the sums of all ranks. */
struct period {
    double own[PERIOD], sum[PERIOD];
};

static struct period period_of(int round)
{
    struct period p;
    for (int i = 0; i < PERIOD; i++) {
        p.own[i] = value_of(comm->rank, round, i);
        p.sum[i] = 0;
        for (int r = 0; r < comm->nranks; r++)
            p.sum[i] += value_of(r, round, i);
    }
    return p;
}

static void put(void *data, int64_t i, cvy_dtype dtype, double x)
{
    if (dtype == CVY_DTYPE_F64)
        ((double *)data)[i] = x;
    else
        ((float *)data)[i] = (float)x;
}

static double get(const void *data, int64_t i, cvy_dtype dtype)
{
    return dtype == CVY_DTYPE_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* The hash of rank 0 must be the hash of every rank. */
static int same_bits(const void *data, size_t bytes)
{
    const uint64_t hash = cvy_hash(data, bytes);
    uint64_t first = hash;
    EXPECT_OK(comm->ops->broadcast(comm, &first, sizeof first, 0));
    return first == hash;
}

static void run_round(cvy_request **request, char *const *data, cvy_dtype dtype, double tolerance, int round)
{
    const struct period p = period_of(round);
    int open = SUMS;
    for (int s = 0; s < SUMS; s++) {
        for (int64_t i = 0; i < counts[s]; i++)
            put(data[s], i, dtype, p.own[i % PERIOD]);
        EXPECT_OK(comm->reduce->start(request[s]));
    }
    double one = 1; /* other calls may come between */
    EXPECT_OK(comm->ops->allreduce(comm, &one, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    EXPECT_NEAR(one, (double)comm->nranks, 0);
    for (int done[SUMS] = {0}; open; sched_yield())
        for (int i = 0; i < SUMS; i++) {
            const int s = (i + 3 * comm->rank) % SUMS; /* each rank waits in its own order */
            if (done[s])
                continue;
            EXPECT_OK(comm->reduce->test(request[s], &done[s]));
            open -= done[s];
        }
    for (int s = 0; s < SUMS; s++) {
        int64_t wrong = 0;
        for (int64_t i = 0; i < counts[s]; i++)
            wrong += fabs(get(data[s], i, dtype) - p.sum[i % PERIOD]) > tolerance * p.sum[i % PERIOD];
        EXPECT_INT(wrong, 0);
        EXPECT(same_bits(data[s], (size_t)counts[s] * cvy_dtype_bytes(dtype)));
    }
}

static void run(cvy_dtype dtype, int shared, double tolerance)
{
    char *memory = NULL, *data[SUMS];
    cvy_request *request[SUMS] = {0};
    size_t bytes = 0;
    for (int s = 0; s < SUMS; s++)
        bytes += ((size_t)counts[s] * cvy_dtype_bytes(dtype) + 63) / 64 * 64;
    int is_shared = 0;
    EXPECT_OK(cvy_mem_alloc_pages(bytes, &memory));
    if (shared)
        EXPECT_OK(comm->node_memory->share(comm, &opts, memory, bytes, &is_shared));
    EXPECT(!is_shared || !opts.no_node);
    bytes = 0;
    for (int s = 0; s < SUMS; s++) {
        data[s] = memory + bytes;
        bytes += ((size_t)counts[s] * cvy_dtype_bytes(dtype) + 63) / 64 * 64;
        EXPECT_OK(comm->reduce->create(comm, &opts, data[s], counts[s], dtype, NULL, &request[s]));
    }
    for (int round = 0; round < ROUNDS; round++)
        run_round(request, data, dtype, tolerance, round);
    for (int s = 0; s < SUMS; s++)
        comm->reduce->destroy(&request[s]);
    comm->node_memory->unshare(comm, memory);
    cvy_mem_free_pages(&memory, bytes);
}

static void test_algorithms(void)
{
    int count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    for (int i = -1; i < count; i++) {
        opts = (cvy_allreduce_opts){.algorithm = i < 0 ? "library" : def[i]->name};
        run(CVY_DTYPE_F32, 0, 1e-6);
        run(CVY_DTYPE_F64, 0, 1e-14);
    }
}

static void test_the_measured_choice(void)
{
    opts = (cvy_allreduce_opts){.no_node = 1};
    run(CVY_DTYPE_F32, 1, 1e-6);
    run(CVY_DTYPE_F64, 0, 1e-14);
}

static void test_half_the_bytes(void)
{
    int count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    for (int i = 0; i < count; i++) {
        opts = (cvy_allreduce_opts){.algorithm = def[i]->name, .wire = CVY_DTYPE_BF16};
        run(CVY_DTYPE_F32, 0, 0.02);
        run(CVY_DTYPE_F64, 0, 1e-14);
    }
}

static void test_memory_of_the_node(void)
{
    opts = (cvy_allreduce_opts){0};
    run(CVY_DTYPE_F32, 1, 1e-6);
    run(CVY_DTYPE_F64, 1, 1e-14);
}

static void meet(const void *memory)
{
    comm->node_memory->barrier_enter(comm, memory);
    while (!comm->node_memory->barrier_test(comm, memory)) {
    }
}

/* Each rank of the node gets the sums of a part, and the parts make the whole. The memory is written again after a
 * barrier. */
static void check_parts(float *data, int64_t count)
{
    cvy_request *request = NULL;
    cvy_part part = {-1, -1};
    EXPECT_OK(comm->reduce->create(comm, &opts, data, count, CVY_DTYPE_F32, &part, &request));
    for (int round = 0; round < ROUNDS; round++) {
        const struct period p = period_of(round);
        int done = 0;
        int64_t wrong = 0, elems = part.end - part.first;
        for (int64_t i = 0; i < count; i++)
            data[i] = (float)p.own[i % PERIOD];
        EXPECT_OK(comm->reduce->start(request));
        while (!done)
            EXPECT_OK(comm->reduce->test(request, &done));
        for (int64_t i = part.first; i < part.end; i++)
            wrong += fabs((double)data[i] - p.sum[i % PERIOD]) > 1e-6 * p.sum[i % PERIOD];
        EXPECT_INT(wrong, 0);
        EXPECT_OK(comm->ops->allreduce(comm, &elems, 1, CVY_DTYPE_I64, CVY_REDUCE_SUM));
        EXPECT_INT(elems, count);
        meet(data);
    }
    comm->reduce->destroy(&request);
}

static void test_parts_and_what_is_common(void)
{
    enum { COUNT = 100000 };
    float *data = NULL;
    int shared = 0, *one = NULL;
    opts = (cvy_allreduce_opts){0};
    EXPECT_OK(cvy_mem_alloc_pages(COUNT * sizeof *data, &data));
    EXPECT_OK(comm->node_memory->share(comm, &opts, data, COUNT * sizeof *data, &shared));
    EXPECT_OK(comm->node_memory->alloc(comm, 4096, (void **)&one));
    if (shared)
        check_parts(data, COUNT);
    if (shared && one) {
        one[comm->rank] = comm->rank + 1;
        meet(data);
        for (int r = 0; r < comm->nranks; r++)
            EXPECT_INT(one[r], r + 1);
        meet(data);
    }
    if (!shared || !one)
        printf("the ranks of this node cannot share memory\n");
    comm->node_memory->free(comm, (void **)&one, 4096);
    comm->node_memory->unshare(comm, data);
    cvy_mem_free_pages(&data, COUNT * sizeof *data);
}

static void test_newest_first(void)
{
    int count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    for (int i = 0; i < count; i++) {
        opts = (cvy_allreduce_opts){.algorithm = def[i]->name, .newest_first = 1};
        run(CVY_DTYPE_F32, 0, 1e-6);
    }
}

static void test_a_thread_of_its_own(void)
{
    int count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    for (int i = -1; i < count; i++) {
        opts = (cvy_allreduce_opts){.algorithm = i < 0 ? "library" : def[i]->name, .progress = CVY_PROGRESS_THREAD};
        run(CVY_DTYPE_F32, 0, 1e-6);
    }
    opts = (cvy_allreduce_opts){.progress = CVY_PROGRESS_THREAD};
    run(CVY_DTYPE_F32, 1, 1e-6);
}

/* Nodes of one, two and three ranks. The last node may have fewer; then only as many ranks of each node lead. */
static void test_two_levels(void)
{
    static const char *const sizes[] = {"1", "2", "3"};
    int count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    comm->ops->destroy(comm);
    for (int n = 0; n < CVY_COUNT(sizes); n++) {
        setenv("CONVOY_NODE_RANKS", sizes[n], 1);
        EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &comm));
        for (int i = 0; i < count; i++) {
            opts = (cvy_allreduce_opts){.algorithm = def[i]->name};
            run(CVY_DTYPE_F32, 1, 1e-6);
            opts.wire = CVY_DTYPE_BF16;
            run(CVY_DTYPE_F32, 1, 0.02);
        }
        opts = (cvy_allreduce_opts){.algorithm = "library"};
        run(CVY_DTYPE_F32, 1, 1e-6);
        opts = (cvy_allreduce_opts){0};
        run(CVY_DTYPE_F32, 1, 1e-6);
        comm->ops->destroy(comm);
    }
    unsetenv("CONVOY_NODE_RANKS");
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &comm));
}

int main(int argc, char **argv)
{
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    EXPECT(level >= MPI_THREAD_SERIALIZED);
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &comm));
    TEST(test_algorithms);
    TEST(test_the_measured_choice);
    TEST(test_half_the_bytes);
    TEST(test_memory_of_the_node);
    TEST(test_parts_and_what_is_common);
    TEST(test_newest_first);
    TEST(test_a_thread_of_its_own);
    TEST(test_two_levels);
    comm->ops->destroy(comm);
    MPI_Finalize();
    return test_end();
}
