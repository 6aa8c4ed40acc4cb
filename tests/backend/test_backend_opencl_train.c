/* rows: release */
/* seconds: 60 */
/*
 * test_backend_opencl_train.c: lenet, cifar-convnet and resnet-20 train on a device through OpenCL: a real driver,
 * compiler and queues. The losses of their steps are those on the host, two runs on the device have the same bits, and
 * kernels of the device compute everything.
 *
 * Arguments name the networks. The first one trains twice on the device; with CONVOY_TEST_LEVEL=2 all do, in bf16 too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include <convoy/convoy.h>

#include "backend/opencl.h"
#include "base/base_file.h"

enum { STEPS = 20 };

static char folder[] = "/tmp/convoy-opencl-XXXXXX";

struct losses {
    double of_step[STEPS + 1];
    int n;
};

static void keep_loss(void *user, const cvy_progress *p)
{
    struct losses *l = user;
    if (!p->event && p->step >= 1 && p->step <= STEPS) {
        l->of_step[p->step] = p->loss;
        l->n++;
    }
}

static const char *const text =
    "data: {train: {format: synthetic, samples: 80, shape: [3, 32, 32], classes: 10}, threads: 1}\n"
    "train: {batch: 8, epochs: 2, seed: 3, optimizer: {name: sgd, lr: 0.001, momentum: 0.9}}\n"
    "log: {every: 1}\n"
    "model: ";

/* The plan of a run names no reference kernel, which the host would run on copies. */
static void expect_no_reference(const char *run)
{
    char path[160], *plan = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/plan.json", run);
    EXPECT_OK(cvy_file_read(path, 1 << 26, &plan, &bytes));
    EXPECT(plan && strstr(plan, "\"gpu.sgd"));
    for (const char *at = plan; at && (at = strstr(at, "\"reference\"")) != NULL; at++)
        TEST_FAIL("%s: a reference kernel computes: %.*s", run, 150, at - 100 > plan ? at - 100 : plan);
    cvy_mem_free(&plan);
}

static void train(const char *network, const char *dtype, const char *backend, struct losses *losses)
{
    char job_text[400], path[128];
    cvy_context *context = NULL;
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .backend = backend};
    snprintf(job_text, sizeof job_text, "%s%s\n", text, network);
    snprintf(path, sizeof path, "%s/%s-%s", folder, network, backend ? backend : "host");
    const char *sets[] = {strcmp(network, "lenet") == 0 ? "data.train.shape=[1, 28, 28]" : "train.epochs=2",
                          strcmp(dtype, "bf16") == 0 ? "train.dtype=bf16" : "train.dtype=f32"};
    const cvy_job_source job = {.size = sizeof job, .text = job_text, .sets = sets, .nsets = CVY_COUNT(sets)};
    const cvy_train_opts train_opts = {.size = sizeof train_opts, .out = path, .progress = keep_loss, .user = losses};
    *losses = (struct losses){.n = 0};
    EXPECT_OK(cvy_context_create(&opts, &context));
    EXPECT_OK(cvy_run_train(context, &job, &train_opts, NULL));
    EXPECT_INT(losses->n, STEPS);
    cvy_context_destroy(&context);
    if (backend)
        expect_no_reference(path);
    EXPECT_OK(cvy_file_remove_tree(path));
}

/* The order of sums differs, and each step starts from what the one before has left. */
static void check(const char *network, const char *dtype, int twice)
{
    struct losses host, device, again;
    const int failures = test_failures;
    double worst = 0;
    train(network, dtype, NULL, &host);
    train(network, dtype, "opencl", &device);
    again = device;
    if (twice)
        train(network, dtype, "opencl", &again);
    for (int i = 1; i <= STEPS; i++) {
        const double d = fabs(device.of_step[i] - host.of_step[i]) / fmax(fabs(host.of_step[i]), 0.1);
        worst = d <= worst ? worst : d; /* NaN counts as the worst */
        EXPECT_NEAR(again.of_step[i], device.of_step[i], 0);
    }
    EXPECT(worst < (strcmp(dtype, "bf16") == 0 ? 0.05 : 1e-3));
    printf("%s %s in %s: loss %.5f to %.5f, on the device up to %.1e away\n",
           test_failures == failures ? "ok    " : "FAILED", network, dtype, host.of_step[1], host.of_step[STEPS],
           worst);
}

int main(int argc, char **argv)
{
    static const char *const networks[] = {"lenet", "cifar-convnet", "resnet-20"};
    const char *level = getenv("CONVOY_TEST_LEVEL");
    if (!opencl_is_there())
        return 77;
    if (!mkdtemp(folder)) {
        TEST_FAIL("no folder %s", folder);
        return test_end();
    }
    for (int i = 0; i < (argc > 1 ? argc - 1 : CVY_COUNT(networks)); i++) {
        const int all = level && atoi(level) >= 2;
        check(argc > 1 ? argv[i + 1] : networks[i], "f32", all || i == 0);
        if (all)
            check(argc > 1 ? argv[i + 1] : networks[i], "bf16", 1);
    }
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
