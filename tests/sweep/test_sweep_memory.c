/* ranks: 1 3 */
/* rows: asan */
/*
 * test_sweep_memory.c: a search in which the k-th allocation of the last rank fails, for k over the whole search: each
 * time it ends, on all ranks with the same status, and holds no memory afterwards. If the allocation belongs to a
 * trial, only this trial fails.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "base/base_file.h"
#include "sweep/sweep.h"
#include "test_util.h"

static const char job_text[] = "model: {layers: [{fc: {channels: 2}}]}\n"
                               "data: {train: {format: synthetic, samples: 20, shape: [4], classes: 2}, val: 20%, "
                               "threads: 1}\n"
                               "train: {batch: 8, epochs: 4, optimizer: {name: sgd, lr: 0.1}, metrics: [accuracy]}\n";
static const char sweep_text[] =
    "{job: job.yaml, metric: loss, space: {train.optimizer.lr: [0.1, 0.2, 0.3], train.seed: [1, 2]},\n"
    " search: {successive_halving: {trials: 4, eta: 2, min: 1 epoch, max: 2 epochs}}}\n";

static char folder[64] = "/tmp/convoy-sweep-memory-XXXXXX";
static int rank, nranks;

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    EXPECT(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

/* k 0: no allocation fails. */
static cvy_status run(int64_t k, cvy_sweep_result *result)
{
    cvy_context *context = NULL;
    if (rank == 0)
        (void)!cvy_file_remove_tree("out");
    MPI_Barrier(MPI_COMM_WORLD);
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .log_level = CVY_LOG_ERROR};
    const cvy_sweep_opts sweep = {.size = sizeof sweep, .out = "out"};
    *result = (cvy_sweep_result){.size = sizeof *result};
    cvy_status status = cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context);
    EXPECT_OK(status);
    if (rank == nranks - 1)
        cvy_mem_fail_at(k, 0);
    status = cvy_run_sweep(context, "sweep.yaml", &sweep, result);
    cvy_mem_fail_at(0, 0);
    cvy_context_destroy(&context);
    EXPECT(cvy_memory_bytes() == 0);
    return status;
}

static void any_allocation_may_fail(void)
{
    enum { TRIES = 30 };
    cvy_sweep_result result;
    int64_t count = cvy_mem_count(), nfault = 0, nfailed = 0;
    EXPECT_OK(run(0, &result));
    EXPECT(result.trials == 4 && result.scored == 4 && result.failed == 0 && result.best > 0);
    count = cvy_mem_count() - count;
    MPI_Bcast(&count, 1, MPI_INT64_T, nranks - 1, MPI_COMM_WORLD);
    for (int i = 0; i < TRIES; i++) { /* at first densely, then more widely */
        const double part = (double)i / TRIES;
        const int64_t k = 1 + (int64_t)(part * part * (double)count);
        const cvy_status status = run(k, &result);
        int code = (int)status, first = code;
        MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (code != first || (status != CVY_OK && status != CVY_E_MEMORY))
            TEST_FAIL("allocation %lld of %lld: %s: %s", (long long)k, (long long)count, cvy_status_text(status),
                      cvy_error_text());
        nfault += status != CVY_OK;
        nfailed += status == CVY_OK && result.failed == 1;
    }
    EXPECT(nfault > 0 && nfailed > 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank == 0)
        EXPECT(mkdtemp(folder) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT(chdir(folder) == 0);
    if (rank == 0) {
        write_text("job.yaml", job_text);
        write_text("sweep.yaml", sweep_text);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    TEST(any_allocation_may_fail);
    if (rank == 0)
        (void)!cvy_file_remove_tree(folder);
    MPI_Finalize();
    return test_end();
}
