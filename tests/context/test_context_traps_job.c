/*
 * test_context_traps_job.c: a host program that traps every exception of floating-point numbers, in all its threads,
 * runs whole trainings: data are read and augmented by threads of the library, statistics, metrics and schedules are
 * computed, and jobs are refused. No trap is sprung. Callbacks have the host's traps, and so has the host after each
 * call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdlib.h>

#include "context/traps.h"

#if defined(__GLIBC__)
static char folder[] = "/tmp/cvy-traps-XXXXXX";
static int callbacks, wrong_state;

/* Integers alone: inexact results are trapped here. */
static void on_progress(void *user, const cvy_progress *progress)
{
    (void)user;
    (void)progress;
    callbacks++;
    wrong_state += fegetexcept() != FE_ALL_EXCEPT;
}

static void write_table(const char *name, const char *first)
{
    char path[80];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    EXPECT(f != NULL);
    fprintf(f, "a,b,c,y\n%s", first);
    for (int i = 0; f && i < 40; i++)
        fprintf(f, "%d.%d,%de30,%de-41,%d.25\n", i, i % 7, i % 5, i % 3, i % 4);
    if (f)
        fclose(f);
}

/* job: with a %s for the folder of the data; or without. */
static cvy_status run(cvy_context *context, const char *name, const char *job)
{
    char text[1200], out[80];
    snprintf(text, sizeof text, job, folder);
    snprintf(out, sizeof out, "%s/%s", folder, name);
    snprintf(trap_doing, sizeof trap_doing, "the job \"%s\"", name);
    const cvy_job_source source = {.size = sizeof source, .text = text};
    const cvy_train_opts opts = {.size = sizeof opts, .out = out, .progress = on_progress};
    cvy_train_result result = {.size = sizeof result};
    cvy_status status = CVY_OK;
    TRAPPED(status, cvy_run_train(context, &source, &opts, &result));
    return status;
}

static const char pictures[] =
    "model: {layers: [{conv: {channels: 4, kernel: 3}}, batch_norm, gelu, {fc: {channels: 4}}]}\n"
    "data: {train: {format: synthetic, samples: 64, shape: [3, 12, 12], classes: 4}, val: 25%%, normalize: auto, "
    "threads: 2,\n"
    "  augment: [mirror, rotate90, {random_crop: {size: 10, pad: 1}}, {resize: {size: 9}}, {random_resized_crop: "
    "{size: 8}},\n"
    "            {cutout: {size: 3}}, log, asinh, {scale: {by: 1e-30}}, reverse_channels]}\n"
    "train: {batch: 16, epochs: 2, optimizer: {name: lamb, lr: 0.01}, schedule: cosine, metrics: [accuracy, ece, auc, "
    "nll]}\n";
static const char table[] =
    "model: {layers: [{fc: {channels: 8}}, softplus, {fc: {channels: 1}}]}\n"
    "data: {train: {path: %s/table.csv, y: y}, val: 25%%, normalize: auto}\n"
    "train: {batch: 8, epochs: 2, loss: mse, optimizer: {name: adam, lr: 1e-3}, metrics: [r2, rmse]}\n";
static const char not_finite[] = "model: {layers: [{fc: {channels: 1}}]}\n"
                                 "data: {train: {path: %s/nan.csv, y: y}, val: 25%%}\n"
                                 "train: {batch: 8, epochs: 2, loss: mse, optimizer: {name: sgd, lr: 1e30}}\n";

static void whole_trainings(void)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = THREADS};
    char command[80];
    cvy_context *context = NULL;
    EXPECT(mkdtemp(folder) != NULL);
    write_table("table.csv", "");
    write_table("nan.csv", "nan,inf,-1e39,0.5\n");
    trap_in_team(FE_ALL_EXCEPT);
    TRAPPED_OK(cvy_context_create(&opts, &context));
    EXPECT_OK(run(context, "pictures", pictures));
    EXPECT_OK(run(context, "table", table));
    EXPECT(callbacks > 0);
    EXPECT(run(context, "nan", not_finite) != CVY_OK);
    EXPECT(run(context, "none", "model: {layers: [{fc: {channels: 1}}]}\ndata: {train: %s/none.csv}\n") != CVY_OK);
    EXPECT_INT(wrong_state, 0);
    trap(FE_ALL_EXCEPT);
    EXPECT(is_trapped());
    trap(0);
    cvy_context_destroy(&context);
    trap_in_team(0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT(system(command) == 0);
}
#endif

int main(void)
{
#if defined(__GLIBC__)
    if (traps_begin())
        TEST(whole_trainings);
#endif
    return test_end();
}
