/* ranks: 1 2 3 */
/* rows: mpich mpi asan */
/*
 * test_backend_emulated.c: training on the emulated device, whose memory the host cannot look at, and whose work runs
 * late and by chance.
 *
 * Whole runs of a job (checkpoints, resume, validation, the comparison of replicas, deterministic mode) must leave the
 * same bits as the host if the reference kernels compute, and almost the same weights if kernels of the device do.
 *
 * On several ranks the job is deterministic, so that any number of ranks must reproduce one run on the host alone. This
 * is needed because the host reduces in the shared memory of a node, in another order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "backend/emulated/emulated.h"
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

enum { LAST = 15, SETS = 8 };

static char folder[] = "/tmp/convoy-emulated-XXXXXX";
static int rank, nranks;

struct training {
    const char *name; /* of the run's folder */
    MPI_Comm comm;
    int on_device, resume;
    const char *sets[SETS]; /* overrides of the job */
};

static cvy_status train(const struct training *t)
{
    char out[128];
    int n = 0;
    cvy_context *context = NULL;
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    cvy_status status = cvy_context_create_mpi(t->comm, &opts, &context);
    if (status == CVY_OK && t->on_device)
        status = cvy_context_use(context, &cvy_emulated_backend);
    snprintf(out, sizeof out, "%s/%s", folder, t->name);
    while (n < SETS && t->sets[n])
        n++;
    const cvy_job_source job = {.size = sizeof job, .text = job_text, .sets = (const char **)t->sets, .nsets = n};
    const cvy_train_opts train = {.size = sizeof train, .out = out, .resume = t->resume};
    if (status == CVY_OK)
        status = cvy_run_train(context, &job, &train, NULL);
    if (status < 0)
        printf("%s: %s\n", t->name, cvy_error_text());
    cvy_context_destroy(&context);
    return status;
}

static cvy_status read_file(const char *run, const char *file, char **data, size_t *bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/checkpoints/step-%08d/%s", folder, run, LAST, file);
    return cvy_file_read(path, 1 << 26, data, bytes);
}

static int same_file(const char *a, const char *b, const char *file)
{
    char *x = NULL, *y = NULL;
    size_t nx = 0, ny = 0;
    const int same = read_file(a, file, &x, &nx) == CVY_OK && read_file(b, file, &y, &ny) == CVY_OK && nx == ny &&
                     memcmp(x, y, nx) == 0;
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

static void remove_run(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        EXPECT_OK(cvy_file_remove_tree(path));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Leaves the folder as if the run had been killed after step 9. */
static void lose_checkpoints(const char *name)
{
    for (int step = 12; step <= LAST; step += 3) {
        char path[300];
        snprintf(path, sizeof path, "%s/checkpoints/step-%08d", name, step);
        remove_run(path);
    }
}

/* Rank 0 trains alone on the host. The device then makes a whole run, and completes one that lost its last checkpoints;
 * the second time, the host completes it. */
static void check_job(const char *first, const char *second)
{
    const struct training host = {"host", MPI_COMM_SELF, .sets = {"plan.kernels=reference", first, second}};
    struct training device = {"device", MPI_COMM_WORLD, .on_device = 1,
                              .sets = {"plan.kernels=reference", first, second}};
    if (rank == 0)
        EXPECT_OK(train(&host));
    const cvy_emulated_done before = cvy_emulated_done_now;
    EXPECT_OK(train(&device));
    EXPECT(cvy_emulated_done_now.copies > before.copies + 100);
    EXPECT_INT(cvy_emulated_done_now.bytes, 0);
    expect_same("host", "device");
    device.resume = 1;
    for (device.on_device = 1; device.on_device >= (nranks > 1); device.on_device--) {
        lose_checkpoints("device");
        EXPECT_OK(train(&device));
        expect_same("host", "device");
    }
    remove_run("device");
    remove_run("host");
}

static void reference_bits(void)
{
    if (nranks == 1)
        check_job(NULL, NULL);
}

static void reference_bits_deterministic(void)
{
    check_job("deterministic=true", NULL);
}

/* The largest difference between the weights of two runs, as floats after the header of the file. */
static double difference(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t nx = 0, ny = 0;
    uint64_t header = 0;
    double most = 0;
    EXPECT_OK(read_file(a, "weights.safetensors", &x, &nx));
    EXPECT_OK(read_file(b, "weights.safetensors", &y, &ny));
    EXPECT(nx == ny && nx > 8);
    if (nx == ny && nx > 8)
        memcpy(&header, x, 8);
    for (size_t at = (size_t)header + 8; header && at + 4 <= nx; at += 4) {
        float u, v;
        memcpy(&u, x + at, 4);
        memcpy(&v, y + at, 4);
        most = fabs((double)u - v) <= most ? most : fabs((double)u - v); /* NaN counts as the most */
    }
    cvy_mem_free(&x);
    cvy_mem_free(&y);
    return most;
}

/* The kernels of the device add in another order than the host's. Adam divides by the size of a gradient, so rounding
 * shows in the weights. */
static void device_kernels(void)
{
    const struct training host = {"host", MPI_COMM_SELF, .sets = {"deterministic=true"}};
    struct training device = {"device", MPI_COMM_WORLD, .on_device = 1, .sets = {"deterministic=true"}};
    if (rank == 0)
        EXPECT_OK(train(&host));
    const int64_t before = cvy_emulated_done_now.launches;
    EXPECT_OK(train(&device));
    EXPECT(cvy_emulated_done_now.launches > before + 100);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        const double most = difference("host", "device");
        printf("weights differ by up to %.2g\n", most);
        EXPECT(most < 2e-3);
    }
    /* With another seed of the device the bits are the same. */
    struct training again = {"again", MPI_COMM_WORLD, .on_device = 1, .sets = {"deterministic=true"}};
    cvy_emulated_setup_now.seed = 77;
    EXPECT_OK(train(&again));
    expect_same("device", "again");
    remove_run("again");
    remove_run("device");
    remove_run("host");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank == 0)
        EXPECT(mkdtemp(folder) != NULL);
    cvy_emulated_setup_now.poison = 1; /* nothing is read that was not written */
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    TEST(reference_bits);
    TEST(reference_bits_deterministic);
    TEST(device_kernels);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        EXPECT_OK(cvy_file_remove_tree(folder));
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
