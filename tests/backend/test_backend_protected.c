/* ranks: 1 2 3 */
/* rows: mpich mpi asan */
/*
 * test_backend_protected.c: training on a backend whose memory the host cannot read (protected.h).
 *
 * Whole runs of a job (checkpoints, resume, validation, the comparison of replicas, deterministic mode) must leave the
 * same bits as the host backend. Any access of the host to a tensor would end the process.
 *
 * On several ranks the job is deterministic, so that any number of ranks must reproduce one run on the host alone. This
 * is needed because the host backend reduces in the shared memory of a node, in another order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <signal.h>
#include <stdio.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "backend/protected.h"
#include "base/base_file.h"
#include "context/context.h"
#include "test_util.h"

static const char job_text[] = "model:\n"
                               "  layers:\n"
                               "    - conv: {channels: 8, kernel: 3, pad: 1, bias: false}\n"
                               "    - batch_norm\n"
                               "    - relu\n"
                               "    - max_pool: {kernel: 2}\n"
                               "    - dropout: {p: 0.3}\n"
                               "    - fc: {channels: 4}\n"
                               "data:\n"
                               "  train: {format: synthetic, samples: 150, shape: [3, 8, 8], classes: 4}\n"
                               "  val: 10%\n"
                               "  augment: [mirror, {random_crop: {size: 8, pad: 1}}]\n"
                               "  threads: 1\n"
                               "train: {batch: 32, epochs: 3, optimizer: {name: adam, lr: 0.01}, schedule: cosine, "
                               "clip_norm: 1, metrics: [accuracy]}\n"
                               "watchdog: {replicas: 4}\n"
                               "checkpoint: {every: 3 steps, keep: 9}\n";

enum { LAST = 15 };

static char folder[] = "/tmp/convoy-protected-XXXXXX";
static int rank, nranks;

/* Only calls functions that a signal handler may call. */
static void report(int number, siginfo_t *info, void *unused)
{
    static const char text[] = "FAILED host code has looked at protected memory\n", other[] = "FAILED SIGSEGV\n";
    const char *at = info->si_addr;
    int inside = 0;
    (void)number, (void)unused;
    for (int i = 0; i < protected_memory.n; i++) {
        const char *begin = protected_memory.range[i].data;
        inside |= at >= begin && at < begin + protected_memory.range[i].bytes;
    }
    (void)!write(STDOUT_FILENO, inside ? text : other, inside ? sizeof text - 1 : sizeof other - 1);
    _exit(1);
}

struct training {
    const char *name; /* name of the run's folder */
    MPI_Comm comm;
    int protected, resume;
    const char *steps; /* the step where the run ends, as an override; NULL: at the end */
    const char *dtype, *shards;
};

static cvy_status train(const struct training *t)
{
    char out[128];
    const char *sets[8];
    int n = 0;
    cvy_context *context = NULL;
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    cvy_status status = cvy_context_create_mpi(t->comm, &opts, &context);
    if (status == CVY_OK && t->protected)
        status = cvy_context_use(context, &protected_backend);
    snprintf(out, sizeof out, "%s/%s", folder, t->name);
    sets[n++] = t->dtype;
    if (t->shards)
        sets[n++] = t->shards;
    if (t->steps)
        sets[n++] = t->steps;
    const cvy_job_source job = {.size = sizeof job, .text = job_text, .sets = sets, .nsets = n};
    const cvy_train_opts train = {.size = sizeof train, .out = out, .resume = t->resume};
    if (status == CVY_OK)
        status = cvy_run_train(context, &job, &train, NULL);
    if (status < 0)
        printf("%s: %s\n", t->name, cvy_error_text());
    cvy_context_destroy(&context);
    return status;
}

static int same_file(const char *a, const char *b, const char *file)
{
    char *x = NULL, *y = NULL, path[2][256];
    size_t nx = 0, ny = 0;
    snprintf(path[0], sizeof path[0], "%s/%s/checkpoints/step-%08d/%s", folder, a, LAST, file);
    snprintf(path[1], sizeof path[1], "%s/%s/checkpoints/step-%08d/%s", folder, b, LAST, file);
    const int same = cvy_file_read(path[0], 1 << 26, &x, &nx) == CVY_OK &&
                     cvy_file_read(path[1], 1 << 26, &y, &ny) == CVY_OK && nx == ny && memcmp(x, y, nx) == 0;
    cvy_mem_free(&x);
    cvy_mem_free(&y);
    return same;
}

static void expect_same(const char *a, const char *b)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        EXPECT(same_file(a, b, "weights.safetensors"));
        EXPECT(same_file(a, b, "state.safetensors"));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 trains alone on the host. The protected backend then makes a whole run, and completes one that lost its last
 * checkpoints. */
static void check_job(const char *dtype, const char *shards)
{
    const struct training host = {"host", MPI_COMM_SELF, .dtype = dtype, .shards = shards};
    const struct training whole = {"whole", MPI_COMM_WORLD, .protected = 1, .dtype = dtype, .shards = shards};
    if (rank == 0)
        EXPECT_OK(train(&host));
    protected_memory.nopened = protected_memory.ncopied = 0;
    EXPECT_OK(train(&whole));
    EXPECT(protected_memory.nopened > 100 && protected_memory.ncopied > 10);
    EXPECT_INT(protected_memory.n, 0);
    expect_same("host", "whole");
    /* Leaves the folder as if the run had been killed after step 9. */
    if (rank == 0)
        for (int step = 12; step <= LAST; step += 3) {
            char path[256];
            snprintf(path, sizeof path, "%s/whole/checkpoints/step-%08d", folder, step);
            EXPECT_OK(cvy_file_remove_tree(path));
        }
    MPI_Barrier(MPI_COMM_WORLD);
    const struct training again = {"whole",     MPI_COMM_WORLD, .protected = 1,
                                   .resume = 1, .dtype = dtype, .shards = shards};
    EXPECT_OK(train(&again));
    expect_same("host", "whole");
    if (rank == 0) {
        char path[256];
        snprintf(path, sizeof path, "%s/whole", folder);
        EXPECT_OK(cvy_file_remove_tree(path));
        snprintf(path, sizeof path, "%s/host", folder);
        EXPECT_OK(cvy_file_remove_tree(path));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void plain(void)
{
    if (nranks == 1)
        check_job("train.dtype=f32", NULL);
}

static void deterministic(void)
{
    check_job("train.dtype=f32", "deterministic=true");
}

/* Features that still need the host to read tensors must be refused with a message. */
static void refused(void)
{
    struct training t = {"refused", MPI_COMM_WORLD, .protected = 1, .dtype = "train.dtype=f32"};
    t.steps = "update={mode: local, every: 2}";
    if (nranks > 1) {
        EXPECT_INT(train(&t), CVY_E_UNSUPPORTED);
        EXPECT(strstr(cvy_error_text(), "update mode local") != NULL);
    }
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO};
    MPI_Init(&argc, &argv);
    sigaction(SIGSEGV, &action, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank == 0)
        EXPECT(mkdtemp(folder) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    TEST(plain);
    TEST(deterministic);
    TEST(refused);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        EXPECT_OK(cvy_file_remove_tree(folder));
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
