/* rows: clang asan */
/*
 * test_train_resume.c: a run that is killed at any moment, or stopped, and then resumed ends with the same bits as an
 * uninterrupted run.
 *
 * It compares weights, optimiser state and running statistics, with shuffle, augmentation, dropout, batch norm, a
 * schedule, a tail batch and Adam; in f32, and in bf16 if the CPU has it. (R1, R10 in part: one rank, one thread team.)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <convoy/convoy.h>

#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "checkpoint/checkpoint.h"
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
                               "train: {batch: 32, epochs: 6, optimizer: {name: adam, lr: 0.01}, schedule: cosine, "
                               "clip_norm: 1, metrics: [accuracy]}\n"
                               "checkpoint: {every: 3 steps, keep: 3, best: accuracy}\n";

/* Trains into `out` in a process of its own. */
static pid_t start(const char *dtype, const char *out, int resume)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    cvy_context *context = NULL;
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    const char *const sets[] = {dtype};
    const cvy_job_source job = {.size = sizeof job, .text = job_text, .sets = sets, .nsets = 1};
    const cvy_train_opts train = {.size = sizeof train, .out = out, .resume = resume};
    cvy_status status = cvy_context_create(&opts, &context);
    if (status == CVY_OK)
        status = cvy_run_train(context, &job, &train, NULL);
    if (status < 0)
        fprintf(stderr, "%s\n", cvy_error_text());
    cvy_context_destroy(&context);
    _exit(status < 0 ? 1 : 0);
}

static int finish(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
}

static int same_file(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t nx = 0, ny = 0;
    const int same = cvy_file_read(a, 1 << 26, &x, &nx) == CVY_OK && cvy_file_read(b, 1 << 26, &y, &ny) == CVY_OK &&
                     nx == ny && memcmp(x, y, nx) == 0;
    cvy_mem_free(&x);
    cvy_mem_free(&y);
    return same;
}

static int same_end(const char *a, const char *b)
{
    static const char *const files[] = {"weights.safetensors", "state.safetensors"};
    int same = 1;
    for (int i = 0; i < CVY_COUNT(files); i++) {
        char x[512], y[512];
        snprintf(x, sizeof x, "%s/checkpoints/step-00000030/%s", a, files[i]);
        snprintf(y, sizeof y, "%s/checkpoints/step-00000030/%s", b, files[i]);
        same &= same_file(x, y);
    }
    return same;
}

/* dtype: an override of the job, or NULL. */
static void check_resume(const char *dtype)
{
    char folder[] = "/tmp/convoy-resume-XXXXXX", whole[64], broken[64], sets[96];
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(broken, sizeof broken, "%s/broken", folder);
    snprintf(sets, sizeof sets, "%s/checkpoints", broken);

    const double begin = cvy_clock_s();
    EXPECT_INT(finish(start(dtype, whole, 0)), 0);
    double whole_s = cvy_clock_s() - begin;

    /* Kills the run again and again, after different times. What was not saved is computed again. */
    int kills = 0, resume = 0;
    srand(1);
    for (int tries = 0; tries < 40; tries++) {
        const pid_t pid = start(dtype, broken, resume);
        usleep((useconds_t)(whole_s * 1e6 * (0.2 + 0.6 * rand() / RAND_MAX)));
        if (tries < 12 && waitpid(pid, NULL, WNOHANG) == 0) {
            kill(pid, SIGKILL);
            finish(pid);
            kills++;
        } else {
            finish(pid);
        }
        cvy_checkpoint found = {0};
        const cvy_status status = cvy_checkpoint_find(sets, NULL, &found);
        const int64_t step = found.step;
        cvy_checkpoint_close(&found);
        resume = status == CVY_OK;
        if (resume && step == 30 && kills > 0)
            break;
        if (resume && step == 30) { /* the machine was slower while the whole run was timed: again, and kill sooner */
            whole_s /= 2;
            resume = 0;
        }
        if (!resume)
            (void)!cvy_file_remove_tree(broken);
    }
    EXPECT(kills > 0);
    EXPECT(same_end(whole, broken));
    (void)!cvy_file_remove_tree(folder);
}

/* Who asks a run to stop in its first pass over validation or test data learns how long it may take: there is no second
 * check for requests before it. */
static void check_first_pass(const char *data)
{
    const char *const sets[] = {data, "train.epochs=1", "checkpoint={}"};
    char out[] = "/tmp/convoy-first-pass-XXXXXX";
    cvy_context *context = NULL;
    cvy_train_control *control = NULL;
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    const cvy_job_source job = {.size = sizeof job, .text = job_text, .sets = sets, .nsets = 3};
    EXPECT(mkdtemp(out) != NULL);
    EXPECT_OK(cvy_context_create(&opts, &context));
    EXPECT_OK(cvy_train_control_create(&control));
    const cvy_train_opts train = {.size = sizeof train, .out = out, .control = control};
    EXPECT_OK(cvy_run_train(context, &job, &train, NULL));
    EXPECT(cvy_train_control_longest_s(control) > 0);
    cvy_train_control_destroy(&control);
    cvy_context_destroy(&context);
    EXPECT_OK(cvy_file_remove_tree(out));
}

int main(void)
{
    check_resume("train.dtype=f32");
    check_resume("train.dtype=bf16");
    check_first_pass("data={train: {format: synthetic, samples: 32, shape: [3, 8, 8], classes: 4}, "
                     "val: {format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}}");
    check_first_pass("data={train: {format: synthetic, samples: 32, shape: [3, 8, 8], classes: 4}, "
                     "test: {format: synthetic, samples: 200, shape: [3, 8, 8], classes: 4}}");
    return test_end();
}
