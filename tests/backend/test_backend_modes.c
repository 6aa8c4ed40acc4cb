/* ranks: 1 2 */
/* rows: mpich mpi asan */
/*
 * test_backend_modes.c: jobs on the emulated device in all update modes and on all axes of the grid: checkpoints with
 * an update pending, averages of weights, histograms, resume, and a device that is lost.
 *
 * With the reference kernels a run leaves the same files as on the host, also if it was interrupted and the other of
 * the two went on.
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
                               "    - conv: {channels: 4, kernel: 3, pad: 1}\n"
                               "    - relu\n"
                               "    - fc: {channels: 4}\n"
                               "data:\n"
                               "  train: {format: synthetic, samples: 90, shape: [3, 8, 8], classes: 4}\n"
                               "  val: 10%\n"
                               "  threads: 1\n"
                               "train: {batch: 16, epochs: 2, optimizer: {name: adam, lr: 0.01}}\n"
                               "comm: {node_memory: false, algorithm: doubling, bucket: 1024}\n"
                               "checkpoint: {every: 3 steps, keep: 9}\n";

enum { LAST = 12, BROKEN = 6, SETS = 6 };

static char folder[] = "/tmp/convoy-modes-XXXXXX";
static int rank, nranks;

static cvy_status train(const char *name, int on_device, int resume, const char *const *sets)
{
    char out[128];
    int n = 0;
    cvy_context *context = NULL;
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    cvy_status status = cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context);
    if (status == CVY_OK && on_device)
        status = cvy_context_use(context, &cvy_emulated_backend);
    snprintf(out, sizeof out, "%s/%s", folder, name);
    while (n < SETS && sets[n])
        n++;
    const cvy_job_source job = {.size = sizeof job, .text = job_text, .sets = (const char **)sets, .nsets = n};
    const cvy_train_opts train = {.size = sizeof train, .out = out, .resume = resume};
    if (status == CVY_OK)
        status = cvy_run_train(context, &job, &train, NULL);
    cvy_context_destroy(&context);
    MPI_Barrier(MPI_COMM_WORLD);
    return status;
}

static int same_file(const char *a, const char *b, int step, const char *file)
{
    char *x = NULL, *y = NULL, path[2][256];
    size_t nx = 0, ny = 0;
    snprintf(path[0], sizeof path[0], "%s/%s/checkpoints/step-%08d/%s", folder, a, step, file);
    snprintf(path[1], sizeof path[1], "%s/%s/checkpoints/step-%08d/%s", folder, b, step, file);
    const int same = cvy_file_read(path[0], 1 << 26, &x, &nx) == CVY_OK &&
                     cvy_file_read(path[1], 1 << 26, &y, &ny) == CVY_OK && nx == ny && memcmp(x, y, nx) == 0;
    cvy_mem_free(&x);
    cvy_mem_free(&y);
    return same;
}

struct mode {
    const char *name;
    int ranks; /* the number of ranks is a multiple of it */
    int is_pipeline;
    const char *sets[SETS];
};

/* Each stage of a pipeline saves its part. */
static void expect_same(const struct mode *m, const char *a, const char *b, int step)
{
    static const char *const whole[] = {"weights.safetensors", "state.safetensors"},
                             *const parts[] = {"weights-00001-of-00002.safetensors",
                                               "weights-00002-of-00002.safetensors", "state-00001-of-00002.safetensors",
                                               "state-00002-of-00002.safetensors"};
    const char *const *files = m->is_pipeline ? parts : whole;
    for (int i = 0; i < (m->is_pipeline ? CVY_COUNT(parts) : CVY_COUNT(whole)) && rank == 0; i++)
        if (!same_file(a, b, step, files[i]))
            TEST_FAIL("%s: %s of step %d differs in the runs %s and %s", m->name, files[i], step, a, b);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void remove_tree(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (rank == 0)
        EXPECT_OK(cvy_file_remove_tree(path));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Leaves the folder as if the run had been killed after step BROKEN. */
static void lose_checkpoints(const char *name)
{
    for (int step = BROKEN + 3; step <= LAST; step += 3) {
        char path[128];
        snprintf(path, sizeof path, "%s/checkpoints/step-%08d", name, step);
        remove_tree(path);
    }
}

static const struct mode modes[] = {
    {"sync", 1, 0, {"log={tensorboard: %s/events, tensorboard_histograms: 2}"}},
    {"average", 1, 0, {"train.optimizer={name: sgd, lr: 0.01, average: 0.9}"}},
    {"delayed", 2, 0, {"update={mode: delayed, warm_up: 1 steps, cool_down: 1 steps}"}},
    {"deferred", 2, 0, {"comm.overlap=forward"}},
    {"local", 2, 0, {"update={mode: local, every: 2}"}},
    {"pipeline", 2, 1, {"parallel={pipeline: 2, first_layers: [conv1, conv2]}", "train.accumulate=2"}},
    {"tensor", 2, 0, {"parallel.tensor=2"}},
    {"spatial", 2, 0, {"parallel.spatial=2"}},
};

static void as_on_host(const struct mode *m)
{
    char text[160];
    const char *sets[SETS] = {"plan.kernels=reference", text};
    snprintf(text, sizeof text, m->sets[0], folder);
    for (int i = 1; i + 1 < SETS; i++)
        sets[i + 1] = m->sets[i];
    EXPECT_OK(train("host", 0, 0, sets));
    EXPECT_OK(train("device", 1, 0, sets));
    EXPECT_INT(cvy_emulated_done_now.bytes, 0);
    expect_same(m, "host", "device", BROKEN);
    expect_same(m, "host", "device", LAST);
    for (int on_device = 0; on_device < 2; on_device++) {
        lose_checkpoints("device");
        EXPECT_OK(train("device", on_device, 1, sets));
        expect_same(m, "host", "device", LAST);
    }
    remove_tree("host");
    remove_tree("device");
}

static void update_modes(void)
{
    for (int i = 0; i < CVY_COUNT(modes); i++)
        if (nranks % modes[i].ranks == 0)
            as_on_host(&modes[i]);
}

/* Its updates need kernels of the device, so the runs that are compared are both there. */
static void zero1(void)
{
    const struct mode mode = {"zero1", 2, 0, {"update=zero1"}};
    const char *const *sets = mode.sets;
    EXPECT_OK(train("whole", 1, 0, sets));
    EXPECT_OK(train("broken", 1, 0, sets));
    lose_checkpoints("broken");
    EXPECT_OK(train("broken", 1, 1, sets));
    expect_same(&mode, "whole", "broken", LAST);
    remove_tree("whole");
    remove_tree("broken");
}

/* A server works on memory of the host. */
static void server_is_refused(void)
{
    const char *const sets[SETS] = {"update={mode: parameter_server, servers: 1}"};
    if (nranks > 1)
        EXPECT_FAULT(train("server", 1, 0, sets), CVY_E_UNSUPPORTED, "parameter_server");
}

/* The message names the node and the device, and what was saved. One rank alone, since others would wait. */
static void device_is_lost(void)
{
    const struct mode mode = {"lost", 1, 0, {NULL}};
    const char *const *sets = mode.sets;
    if (nranks > 1)
        return;
    const int64_t begin = cvy_emulated_done_now.launches;
    EXPECT_OK(train("whole", 1, 0, sets));
    const int64_t all = cvy_emulated_done_now.launches - begin;
    cvy_emulated_setup_now.lost_after = cvy_emulated_done_now.launches + all * 3 / 4;
    EXPECT(train("lost", 1, 0, sets) < 0);
    EXPECT(strstr(cvy_error_text(), "emulated:0 on node ") && strstr(cvy_error_text(), "is lost") &&
           strstr(cvy_error_text(), "is complete, and --resume continues"));
    cvy_emulated_setup_now.lost_after = -1;
    EXPECT_OK(train("lost", 1, 1, sets));
    expect_same(&mode, "whole", "lost", LAST);
    remove_tree("whole");
    remove_tree("lost");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank == 0)
        EXPECT(mkdtemp(folder) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    cvy_emulated_setup_now.poison = 1;
    TEST(update_modes);
    TEST(zero1);
    TEST(server_is_refused);
    TEST(device_is_lost);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        EXPECT_OK(cvy_file_remove_tree(folder));
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
