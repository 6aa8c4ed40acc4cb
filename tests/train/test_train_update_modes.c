/* ranks: 2 3 */
/* rows: asan */
/*
 * test_train_update_modes.c: jobs with update modes other than sync: a run that is stopped in the middle and resumed
 * ends with the same bits as an uninterrupted one; on another number of ranks it ends with the same numbers; and a
 * state that a mode cannot continue from is reported.
 *
 * The job has what could be forgotten in a checkpoint: momentum, a schedule, running statistics, dropout, a tail batch,
 * the sums of an epoch. It is stopped after every kind of step: synchronous, delayed, and a tail batch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "context/context.h"
#include "format/format.h"
#include "test_util.h"

enum { STEPS = 20 };

/* Seven steps an epoch; the last one has 4 samples. */
static const char job_text[] = "model:\n"
                               "  layers:\n"
                               "    - conv: {channels: 8, kernel: 3, pad: 1, bias: false}\n"
                               "    - batch_norm\n"
                               "    - relu\n"
                               "    - max_pool: {kernel: 2}\n"
                               "    - dropout: {p: 0.2}\n"
                               "    - fc: {channels: 4}\n"
                               "data:\n"
                               "  train: {format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4, noise: 0.3}\n"
                               "  val: {format: synthetic, samples: 20, shape: [3, 8, 8], classes: 4}\n"
                               "  augment: [mirror]\n"
                               "train: {batch: 10, steps: 20, optimizer: {name: sgd, lr: 0.05, momentum: 0.8, "
                               "weight_decay: 0.001}, schedule: cosine}\n"
                               "batch_norm: {group: 2}\n"
                               "comm: {bucket: 512, algorithm: halving}\n"
                               "log: {every: 1}\n";

/* Without running statistics the ranks of a node share the weights, and each reduces a part of the gradients. */
static const char no_statistics[] =
    "model={layers: [conv: {channels: 8, kernel: 3, pad: 1}, relu, max_pool: {kernel: 2}, fc: {channels: 4}]}";

struct mode {
    const char *set;  /* override of the job */
    const char *same; /* override that makes results equal on any number of ranks; NULL: there is none */
    double tolerance;
};
static const struct mode modes[] = {
    {"update={mode: delayed, warm_up: 2 steps, cool_down: 4 steps}", "train.dtype=f64", 1e-10},
    {"update={mode: delayed, warm_up: 0 %, cool_down: 0 %}", "train.dtype=f64", 1e-10},
    {"update={mode: local, every: 3}", NULL, 0},
    {"update=zero1", "train.dtype=f32", 1e-3},
};

static cvy_context *all;
static char folder[64];

struct stopper {
    cvy_train_control *control;
    int64_t at;
};

static void stop_there(void *user, const cvy_progress *p)
{
    struct stopper *s = user;
    if (s->at > 0 && p->step >= s->at)
        cvy_train_control_request(s->control, CVY_TRAIN_STOP);
}

/* Trains up to step `stop` (0: to the end) into folder/out. */
static cvy_status train(cvy_context *context, const char *const *sets, int nsets, const char *out, int64_t stop,
                        int resume)
{
    char path[128];
    struct stopper s = {.at = stop};
    snprintf(path, sizeof path, "%s/%s", folder, out);
    CVY_TRY(cvy_train_control_create(&s.control));
    const cvy_job_source job = {.size = sizeof job, .text = job_text, .sets = sets, .nsets = nsets};
    const cvy_train_opts opts = {
        .size = sizeof opts, .out = path, .resume = resume, .control = s.control, .progress = stop_there, .user = &s};
    const cvy_status status = cvy_run_train(context, &job, &opts, NULL);
    cvy_train_control_destroy(&s.control);
    return status;
}

static void set_path(char path[256], const char *out, int step, const char *file)
{
    snprintf(path, 256, "%s/%s/checkpoints/step-%08d/%s", folder, out, step, file);
}

static int same_file(const char *a, const char *b, const char *file)
{
    char *x = NULL, *y = NULL, path[2][256];
    size_t nx = 0, ny = 0;
    set_path(path[0], a, STEPS, file);
    set_path(path[1], b, STEPS, file);
    const int same = cvy_file_read(path[0], 1 << 26, &x, &nx) == CVY_OK &&
                     cvy_file_read(path[1], 1 << 26, &y, &ny) == CVY_OK && nx == ny && memcmp(x, y, nx) == 0;
    cvy_mem_free(&x);
    cvy_mem_free(&y);
    return same;
}

/* The largest difference of all weights, each divided by the largest element of its tensor. */
static double difference(const char *a, const char *b)
{
    cvy_safetensors *x = NULL, *y = NULL;
    char path[2][256];
    double worst = 0;
    set_path(path[0], a, STEPS, "weights.safetensors");
    set_path(path[1], b, STEPS, "weights.safetensors");
    EXPECT_OK(cvy_safetensors_open(path[0], &x));
    EXPECT_OK(cvy_safetensors_open(path[1], &y));
    for (int i = 0; x && y && i < cvy_safetensors_count(x); i++) {
        double p[4096], q[4096], largest = 1e-300, off = 0;
        const cvy_tensor_entry *e = cvy_safetensors_at(x, i);
        const int64_t n = cvy_shape_elems(&e->shape);
        EXPECT(n <= 4096);
        EXPECT_OK(cvy_safetensors_read(x, i, CVY_DTYPE_F64, p));
        EXPECT_OK(cvy_safetensors_read(y, cvy_safetensors_index(y, e->name), CVY_DTYPE_F64, q));
        for (int64_t k = 0; k < n; k++) {
            off = fmax(off, fabs(p[k] - q[k]));
            largest = fmax(largest, fabs(p[k]));
        }
        worst = fmax(worst, off / largest);
    }
    cvy_safetensors_close(&x);
    cvy_safetensors_close(&y);
    return worst;
}

static void clear(const char *out)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, out);
    EXPECT_OK(all->comm->ops->barrier(all->comm));
    if (cvy_context_rank(all) == 0)
        EXPECT_OK(cvy_file_remove_tree(path));
    EXPECT_OK(all->comm->ops->barrier(all->comm));
}

/* sets: one override for the mode, and one more. */
static void resumes(const char *const *sets, int nsets)
{
    static const int stops[] = {7, 17};
    const int root = cvy_context_rank(all) == 0;
    EXPECT_OK(train(all, sets, nsets, "whole", 0, 0));
    for (int i = 0; i < CVY_COUNT(stops); i++) {
        test_checks++;
        const cvy_status status = train(all, sets, nsets, "broken", stops[i], 0);
        EXPECT(status == CVY_STOPPED || status == CVY_OK); /* local stops at the next averaging, which may be the end */
        EXPECT_OK(train(all, sets, nsets, "broken", 0, 1));
        if (root && !(same_file("whole", "broken", "weights.safetensors") &&
                      same_file("whole", "broken", "state.safetensors"))) {
            test_failures++;
            printf("%s, stopped behind step %d: resumed with other bits (%.2g)\n", sets[0], stops[i],
                   difference("whole", "broken"));
        }
        clear("broken");
    }
    clear("whole");
}

/* A run begins on all ranks and ends on one. */
static void moves_to_other_ranks(const struct mode *mode)
{
    const char *const sets[] = {mode->set, mode->same};
    const int root = cvy_context_rank(all) == 0;
    EXPECT_OK(train(all, sets, 2, "together", 0, 0));
    EXPECT_INT(train(all, sets, 2, "moved", 9, 0), CVY_STOPPED);
    if (root) {
        cvy_context *alone = NULL;
        EXPECT_OK(cvy_context_create(NULL, &alone));
        EXPECT_OK(train(alone, sets, 2, "moved", 0, 1));
        EXPECT_OK(train(alone, sets, 2, "alone", 0, 0));
        cvy_context_destroy(&alone);
        EXPECT(difference("together", "moved") < mode->tolerance);
        EXPECT(difference("together", "alone") < mode->tolerance);
    }
    clear("together");
    clear("moved");
    clear("alone");
}

/* Lines of metrics.jsonl name the mode of the step. */
static void says_the_mode(void)
{
    char path[192], *text = NULL;
    size_t bytes = 0;
    int sync = 0, late = 0;
    EXPECT_OK(train(all, &modes[0].set, 1, "log", 0, 0));
    snprintf(path, sizeof path, "%s/log/metrics.jsonl", folder);
    if (cvy_context_rank(all) == 0) {
        EXPECT_OK(cvy_file_read(path, 1 << 20, &text, &bytes));
        for (const char *at = text; at && (at = strstr(at, "\"update\":")); at++) {
            at += strlen("\"update\":");
            at += strspn(at, " \"");
            sync += strncmp(at, "sync", 4) == 0;
            late += strncmp(at, "delayed", 7) == 0;
        }
        EXPECT_INT(sync, 6);
        EXPECT_INT(late, STEPS - 6);
        EXPECT(text && strstr(text, "\"bytes_wire\":"));
        cvy_mem_free(&text);
    }
    clear("log");
}

static void not_resumed_in_sync(void)
{
    EXPECT_INT(train(all, &modes[0].set, 1, "late", 6, 0), CVY_STOPPED);
    EXPECT_FAULT(train(all, NULL, 0, "late", 0, 1), CVY_E_CONFIG,
                 "was saved with an update pending, but this job's updates are not delayed");
    clear("late");
}

/* Averages in pieces of the smallest bucket size. */
static void smallest_pieces(void)
{
    const char *const sets[] = {"update={mode: local, every: 3}", "comm.bucket=1"};
    EXPECT_OK(train(all, sets, 2, "smallest", 0, 0));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    if (cvy_context_rank(all) == 0) {
        snprintf(folder, sizeof folder, "/tmp/convoy-update-XXXXXX");
        EXPECT(mkdtemp(folder) != NULL);
    }
    EXPECT_OK(all->comm->ops->broadcast(all->comm, folder, sizeof folder, 0));
    for (int i = 0; i < CVY_COUNT(modes); i++) {
        const char *const by_messages[] = {modes[i].set, "comm.node_memory=false"}, *const in_parts[] = {modes[i].set,
                                                                                                         no_statistics};
        resumes(&modes[i].set, 1);
        if (i == 0)
            resumes(by_messages, 2);
        resumes(in_parts, 2);
        if (modes[i].same)
            moves_to_other_ranks(&modes[i]);
    }
    smallest_pieces();
    says_the_mode();
    not_resumed_in_sync();
    clear("");
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
