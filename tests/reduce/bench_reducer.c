/*
 * bench_reducer.c: measures what the public reducer costs in addition to the requests that it is made of. Both sum the
 * same bytes in the same buckets, in turns.
 *
 *   mpiexec -n 2 build/release/tests/bench_reducer [BUFFERS [BYTES_EACH]]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base_mem.h"
#include "base/machine/base_clock.h"
#include "context/context.h"
#include "test_util.h"

enum { TURNS = 40, BUFFERS_MAX = 256 };

static cvy_context *context;
static int nbuffer = 16;
static int64_t elems = (4 << 20) / 4;

static double by_requests(cvy_request **request)
{
    const cvy_comm_reduce_ops *reduce = context->comm->reduce;
    int open = nbuffer, done[BUFFERS_MAX] = {0};
    EXPECT_OK(context->comm->ops->barrier(context->comm));
    const double start_s = cvy_clock_s();
    for (int i = 0; i < nbuffer; i++) {
        EXPECT_OK(reduce->start(request[i]));
        for (int j = 0; j <= i; j++)
            if (!done[j]) {
                EXPECT_OK(reduce->test(request[j], &done[j]));
                open -= done[j];
            }
    }
    while (open)
        for (int i = 0; i < nbuffer; i++)
            if (!done[i]) {
                EXPECT_OK(reduce->test(request[i], &done[i]));
                open -= done[i];
            }
    return cvy_clock_s() - start_s;
}

static double by_reducer(cvy_reducer *r)
{
    EXPECT_OK(context->comm->ops->barrier(context->comm));
    const double start_s = cvy_clock_s();
    for (int i = 0; i < nbuffer; i++)
        EXPECT_OK(cvy_reducer_start(r, i));
    EXPECT_OK(cvy_reducer_wait(r, CVY_REDUCER_ALL));
    return cvy_clock_s() - start_s;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    nbuffer = argc > 1 ? atoi(argv[1]) : nbuffer;
    elems = argc > 2 ? atoll(argv[2]) / 4 : elems;
    if (nbuffer < 1 || nbuffer > BUFFERS_MAX || elems < 16)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const size_t each = (size_t)((elems + 15) / 16 * 16) * sizeof(float), bytes = each * (size_t)nbuffer;
    const cvy_reducer_opts opts = {.size = sizeof opts, .bucket_bytes = 1}; /* one bucket for each buffer */
    cvy_request *request[BUFFERS_MAX] = {0};
    cvy_reducer *r = NULL;
    char *memory = NULL, name[16];
    int shared = 0, index = 0;
    double best[2] = {1e30, 1e30}, mean[2] = {0};
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &context));
    EXPECT_OK(cvy_mem_alloc_pages(bytes, &memory));
    const cvy_allreduce_opts reduce = {.threads = context->threads};
    EXPECT_OK(context->comm->node_memory->share(context->comm, &reduce, memory, bytes, &shared));
    EXPECT_OK(cvy_reducer_create(context, &opts, &r));
    for (int i = 0; i < nbuffer; i++) {
        snprintf(name, sizeof name, "g%d", i);
        EXPECT_OK(context->comm->reduce->create(context->comm, &reduce, memory + each * (size_t)i,
                                                (int64_t)(each / sizeof(float)), CVY_DTYPE_F32, NULL, &request[i]));
        EXPECT_OK(cvy_reducer_add(r, name, elems, CVY_DTYPE_F32, &index));
    }
    EXPECT_OK(cvy_reducer_ready(r));
    for (int turn = 0; turn < TURNS; turn++) {
        const double seconds[2] = {by_requests(request), by_reducer(r)};
        for (int way = 0; way < 2; way++) {
            best[way] = CVY_MIN(best[way], seconds[way]);
            mean[way] += seconds[way] / TURNS;
        }
    }
    if (cvy_context_rank(context) == 0)
        printf("%d x %lld bytes, %d ranks: requests %.3f ms (mean %.3f), reducer %.3f ms (mean %.3f): %+.1f %%\n",
               nbuffer, (long long)each, cvy_context_nranks(context), best[0] * 1e3, mean[0] * 1e3, best[1] * 1e3,
               mean[1] * 1e3, (best[1] / best[0] - 1) * 100);
    cvy_reducer_destroy(&r);
    for (int i = 0; i < nbuffer; i++)
        context->comm->reduce->destroy(&request[i]);
    context->comm->node_memory->unshare(context->comm, memory);
    cvy_mem_free_pages(&memory, bytes);
    cvy_context_destroy(&context);
    MPI_Finalize();
    return test_failures != 0;
}
