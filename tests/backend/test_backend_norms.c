/* ranks: 1 2 */
/* rows: clang mpich */
/* seconds: 40 */
/*
 * test_backend_norms.c: small networks with all kinds of norms train on the emulated device: groups of batch norm that
 * are on one rank or on several, samples that may not count, frozen statistics, norms of samples, spectral norm and a
 * gradient penalty. The losses of all steps must be almost those of the host, and no operator may be staged.
 *
 * The host computes with the reference kernels, as others differ from one processor to another. Rates are low: where
 * they are not, a training amplifies rounding from step to step, on the host as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "backend/emulated/emulated.h"
#include "base/base_file.h"
#include "context/context.h"
#include "test_util.h"

enum { STEPS = 8, SETS = 8 };

/* The first batch norm is fused with its relu and a residual, the second one has neither scale nor relu. */
static const char norms[] = "model:\n"
                            "  layers:\n"
                            "  - conv: {channels: 12, kernel: 3, pad: 1, bias: false}\n"
                            "  - batch_norm: {name: first}\n"
                            "  - conv: {channels: 12, kernel: 3, pad: 1, bias: false}\n"
                            "  - batch_norm\n"
                            "  - add: {from: [batch_norm2, first]}\n"
                            "  - relu\n"
                            "  - max_pool: {kernel: 2}\n"
                            "  - conv: {channels: 20, kernel: 3, pad: 1, bias: false}\n"
                            "  - batch_norm: {scale_shift: false}\n"
                            "  - group_norm: {groups: 4}\n"
                            "  - relu\n"
                            "  - instance_norm\n"
                            "  - layer_norm: {axes: 1}\n"
                            "  - fc: {channels: 10}\n"
                            "  - layer_norm\n"
                            "  - fc: {channels: 4}\n"
                            "data: {train: {format: synthetic, samples: 130, shape: [3, 12, 12], classes: 4}}\n"
                            "train: {batch: 13, steps: 8, metrics: none, optimizer: {name: sgd, lr: 0.0005}}\n"
                            "log: {every: 1}\n";

static const char turns[] =
    "model:\n"
    "  networks:\n"
    "    generator:\n"
    "      inputs: [z]\n"
    "      layers: [{fc: {channels: 128}}, {reshape: {shape: [8, 4, 4]}}, batch_norm, relu,\n"
    "               {deconv: {channels: 4, kernel: 4, stride: 2, pad: 1}}, {leaky_relu: {slope: 0.5}},\n"
    "               {deconv: {channels: 1, kernel: 4, stride: 2, pad: 1}}, tanh]\n"
    "    critic:\n"
    "      layers: [{conv: {channels: 8, kernel: 4, stride: 2, pad: 1, spectral_norm: true}}, {layer_norm: {axes: "
    "1}},\n"
    "               {leaky_relu: {slope: 0.2}}, {conv: {channels: 16, kernel: 4, stride: 2, pad: 1}},\n"
    "               {group_norm: {groups: 4}}, {leaky_relu: {slope: 0.2}}, {fc: {channels: 1, spectral_norm: true}}]\n"
    "  layers:\n"
    "  - noise: {name: z, shape: 5, from: x}\n"
    "  - generator: {name: fake, from: z}\n"
    "  - critic: {name: real, from: x}\n"
    "  - critic: {name: judged, from: fake}\n"
    "  - constant: {name: one, value: 1, from: real}\n"
    "  - constant: {name: zero, value: 0, from: judged}\n"
    "  - bce: {name: loss_real, from: [real, one]}\n"
    "  - bce: {name: loss_fake, from: [judged, zero]}\n"
    "  - gradient_penalty: {name: penalty, from: [real, x], target: 0, loss_weight: 0.1}\n"
    "  - bce: {name: loss_generator, from: [judged, one]}\n"
    "  output: fake\n"
    "data: {train: {format: synthetic, samples: 130, shape: [1, 16, 16], classes: 0}}\n"
    "train:\n"
    "  batch: 6\n"
    "  steps: 8\n"
    "  metrics: none\n"
    "  optimizer: {name: adam, lr: 0.0005}\n"
    "  turns:\n"
    "  - {losses: [loss_real, loss_fake, penalty], train: critic}\n"
    "  - {losses: loss_generator, train: generator}\n"
    "log: {every: 1}\n";

static const struct training {
    const char *name, *job, *sets[SETS];
    double tolerance; /* relative to the loss; rounding of bf16 is 0.4 % */
} trainings[] = {
    {"one group", norms, {"batch_norm.group=batch"}, 2e-4},
    {"groups", norms, {"batch_norm.group=3"}, 2e-4},
    {"a group a rank", norms, {"batch_norm.group=rank", "train.accumulate=2"}, 2e-4},
    {"a node for each pass", norms, {"plan.passes_off=all", "batch_norm.group=5"}, 2e-4},
    {"frozen", norms, {"batch_norm.frozen=true"}, 2e-4},
    {"weighted samples", norms, {"data.on_bad_sample=skip", "data.train.samples=31", "batch_norm.group=4"}, 2e-4},
    {"bf16", norms, {"train.dtype=bf16", "batch_norm.group=batch"}, 0.05},
    {"turns", turns, {NULL}, 2e-4},
    {"turns bf16", turns, {"train.dtype=bf16"}, 0.05},
};

static char folder[] = "/tmp/convoy-norms-XXXXXX";
static int rank;

static void take_loss(void *user, const cvy_progress *progress)
{
    double *losses = user;
    if (!progress->event && progress->step <= STEPS)
        losses[progress->step] = progress->loss;
}

static cvy_status train(const struct training *t, int on_device, double *losses)
{
    char out[128];
    const char *sets[SETS + 1] = {NULL};
    int n = 0;
    cvy_context *context = NULL;
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    for (; t->sets[n]; n++)
        sets[n] = t->sets[n];
    if (!on_device)
        sets[n++] = "plan.kernels=reference";
    const cvy_job_source job = {.size = sizeof job, .text = t->job, .sets = sets, .nsets = n};
    cvy_status status = cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context);
    if (status == CVY_OK && on_device)
        status = cvy_context_use(context, &cvy_emulated_backend);
    snprintf(out, sizeof out, "%s/%s", folder, on_device ? "device" : "host");
    const cvy_train_opts train = {.size = sizeof train, .out = out, .progress = take_loss, .user = losses};
    if (status == CVY_OK)
        status = cvy_run_train(context, &job, &train, NULL);
    if (status < 0)
        printf("%s: %s\n", t->name, cvy_error_text());
    cvy_context_destroy(&context);
    return status;
}

/* How many operators of the device's run the host computes, by its plan. */
static int count_staged(void)
{
    char path[128], *text = NULL;
    size_t bytes = 0;
    int n = 0;
    snprintf(path, sizeof path, "%s/device/plan.json", folder);
    EXPECT_OK(cvy_file_read(path, 1 << 26, &text, &bytes));
    for (const char *at = text; at && (at = strstr(at, "\"kernel\": \"reference\"")); at++)
        n++;
    EXPECT(text && strstr(text, "\"kernel\": \"gpu.") != NULL);
    cvy_mem_free(&text);
    return n;
}

static void compare(const struct training *t, const double *host, const double *device)
{
    double most = 0;
    for (int i = 1; i <= STEPS; i++) {
        const double apart = fabs(device[i] - host[i]) / fmax(fabs(host[i]), 0.1);
        most = apart <= most ? most : apart; /* NaN counts */
    }
    printf("%-20s the loss goes from %.4f to %.4f, and differs by %.1e\n", t->name, host[1], host[STEPS], most);
    EXPECT(host[1] > 0 && host[1] != host[STEPS]);
    EXPECT(most < t->tolerance);
    EXPECT(count_staged() == 0);
}

static void check_training(const struct training *t)
{
    double host[STEPS + 1] = {0}, device[STEPS + 1] = {0};
    if (rank == 0)
        EXPECT(mkdtemp(strcpy(folder, "/tmp/convoy-norms-XXXXXX")) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT_OK(train(t, 0, host));
    EXPECT_OK(train(t, 1, device));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        compare(t, host, device);
        EXPECT_OK(cvy_file_remove_tree(folder));
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cvy_emulated_setup_now.poison = 1; /* nothing is read that was not written */
    for (int i = 0; i < CVY_COUNT(trainings); i++)
        check_training(&trainings[i]);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
