/* ranks: 1 2 */
/* rows: asan soak */
/*
 * test_train_no_memory.c: a training run in which the k-th allocation fails, for k over the whole run: each time it
 * ends with CVY_E_MEMORY and a message, or it succeeds without something that it can do without.
 *
 * It can do without a line of the log, or a checkpoint that is not the last one. It never crashes, hangs or leaks (the
 * sanitizer build checks that). With several ranks only the last one has no memory, and all ranks end with its fault:
 * what fails on one rank is reported to the others.
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
#include "test_util.h"

static const char job_text[] = "model:\n"
                               "  layers:\n"
                               "    - conv: {channels: 3, kernel: 3, pad: 1, bias: false}\n"
                               "    - batch_norm\n"
                               "    - relu\n"
                               "    - max_pool: {kernel: 2}\n"
                               "    - dropout: {p: 0.3}\n"
                               "    - fc: {channels: 2}\n"
                               "data:\n"
                               "  train: {format: synthetic, samples: 20, shape: [2, 6, 6], classes: 2}\n"
                               "  val: 20%\n"
                               "  augment: [mirror, {random_crop: {size: 6, pad: 1}}]\n"
                               "  threads: 1\n"
                               "train: {batch: 6, epochs: 1, optimizer: {name: adam, lr: 0.01}, schedule: cosine, "
                               "clip_norm: 1, accumulate: 2, metrics: [accuracy, auc]}\n"
                               "checkpoint: {every: 2 steps, best: accuracy}\n"
                               "log: {every: 1}\n";

static char folder[64] = "/tmp/convoy-no-memory-XXXXXX";
static int rank, nranks;

/* Runs once. The k-th allocation of the last rank fails, and with for_good all later ones too. k 0: none fails. */
static cvy_status run(int64_t k, int for_good, int resume)
{
    char out[96];
    cvy_context *context = NULL;
    snprintf(out, sizeof out, "%s/run", folder);
    if (!resume && rank == 0)
        (void)!cvy_file_remove_tree(out);
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .log_level = CVY_LOG_ERROR};
    const cvy_job_source job = {.size = sizeof job, .text = job_text};
    const cvy_train_opts train = {.size = sizeof train, .out = out, .resume = resume};
    cvy_status status = cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context);
    if (rank == nranks - 1)
        cvy_mem_fail_at(k, for_good);
    if (status == CVY_OK)
        status = cvy_run_train(context, &job, &train, NULL);
    cvy_mem_fail_at(0, 0);
    cvy_context_destroy(&context);
    return status;
}

/* Makes about `tries` runs, with k spread over all allocations of a run. */
static void spread(int tries, int for_good, int resume)
{
    int64_t count = cvy_mem_count();
    EXPECT_OK(run(0, 0, resume));
    count = cvy_mem_count() - count;
    MPI_Bcast(&count, 1, MPI_INT64_T, nranks - 1, MPI_COMM_WORLD);
    const int64_t stride = CVY_MAX(count / tries, 1);
    int64_t nfault = 0;
    for (int64_t k = 1 + stride / 2; k <= count; k += stride) {
        const cvy_status status = run(k, for_good, resume);
        if (status != CVY_OK && (status != CVY_E_MEMORY || !strstr(cvy_error_text(), "cannot"))) {
            printf("allocation %lld of %lld: %s: %s\n", (long long)k, (long long)count, cvy_status_text(status),
                   cvy_error_text());
            EXPECT(status == CVY_E_MEMORY);
        }
        nfault += status != CVY_OK;
    }
    EXPECT(nfault > 0);
    EXPECT_OK(run(0, 0, resume));
}

static void once(void)
{
    spread(100, 0, 0);
}

static void for_good(void)
{
    spread(30, 1, 0);
}

static void at_a_resume(void)
{
    spread(30, 0, 1);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank == 0)
        EXPECT(mkdtemp(folder) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    TEST(once);
    TEST(for_good);
    TEST(at_a_resume);
    if (rank == 0)
        (void)!cvy_file_remove_tree(folder);
    MPI_Finalize();
    return test_end();
}
