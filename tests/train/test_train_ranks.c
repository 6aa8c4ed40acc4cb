/* ranks: 1 2 3 4 */
/* rows: mpich mpi asan */
/*
 * test_train_ranks.c: the number of ranks does not change what a job computes, and neither do the optimising passes.
 *
 * Each job is trained for 20 steps on one rank, on all of them, and with all passes off and reference kernels. The
 * losses of every step and the final weights and statistics are compared with the one-rank run, which rank 0 makes in
 * its own context. The jobs have what could make a difference: batch norm whose groups span ranks, dropout,
 * augmentation, tail batches, micro-batches, and shares of different sizes, even empty ones. In a balanced epoch the
 * draws of one sample get masks of dropout of their own, on any number of ranks.
 *
 * Tolerances are relative. f64 uses the reference kernels: 1e-10. f32 with fast kernels: 1e-5 for the first step (eps
 * 6e-8 times the square root of the longest sum, a thousand summands). Later steps amplify a difference at learning
 * rates that halve the loss in 20 steps: 1e-3 up to the twentieth step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/base_file.h"
#include "checkpoint/checkpoint.h"
#include "test_util.h"

enum { STEPS = 20 };

struct job {
    const char *name, *text;
};

static const struct job jobs[] = {
    /* Five steps an epoch, the last of 6 samples; groups of 4 in a batch of 10. */
    {"convolutions",
     "model:\n"
     "  layers:\n"
     "    - conv: {channels: 8, kernel: 3, pad: 1, bias: false}\n"
     "    - batch_norm\n"
     "    - relu\n"
     "    - max_pool: {kernel: 2}\n"
     "    - conv: {channels: 16, kernel: 3, pad: 1, bias: false}\n"
     "    - batch_norm: {momentum: 0.3}\n"
     "    - relu\n"
     "    - dropout: {p: 0.2}\n"
     "    - fc: {channels: 4}\n"
     "data:\n"
     "  train: {format: synthetic, samples: 46, shape: [3, 12, 12], classes: 4, noise: 0.3}\n"
     "  augment: [{random_crop: {size: 12, pad: 1}}, mirror]\n"
     "train: {batch: 10, steps: 20, optimizer: {name: sgd, lr: 0.02, momentum: 0.8, weight_decay: 0.001},\n"
     "        loss: {name: softmax_cross_entropy, label_smoothing: 0.05}}\n"
     "batch_norm: {group: 4}\n"
     "comm: {bucket: 1 KiB}\n"},
    /* Batches of 4, 4 and 2: with three or four ranks some have no sample. */
    {"few samples", "model:\n"
                    "  layers:\n"
                    "    - conv: {channels: 8, kernel: 3, bias: false}\n"
                    "    - batch_norm\n"
                    "    - relu\n"
                    "    - avg_pool: {kernel: 2}\n"
                    "    - dropout: {p: 0.1}\n"
                    "    - fc: {channels: 2}\n"
                    "data:\n"
                    "  train: {format: synthetic, samples: 10, shape: [2, 6, 6], classes: 2}\n"
                    "  augment: [mirror]\n"
                    "train: {batch: 4, steps: 20, optimizer: {name: sgd, lr: 0.05, momentum: 0.5}}\n"
                    "batch_norm: {group: batch}\n"},
    /* Two micro-batches of 7 and 6 samples, and a tail of 4; Adam, clipping, a schedule; a loss with weights of
     * samples. */
    {"micro-batches", "model:\n"
                      "  layers:\n"
                      "    - conv: {channels: 16, kernel: 3, stride: 2, pad: 1}\n"
                      "    - lrn: {size: 3}\n"
                      "    - leaky_relu\n"
                      "    - conv: {channels: 8, kernel: 3, pad: 1, groups: 2, bias: false}\n"
                      "    - batch_norm\n"
                      "    - tanh\n"
                      "    - dropout: {p: 0.1}\n"
                      "    - fc: {channels: 3}\n"
                      "data:\n"
                      "  train: {format: synthetic, samples: 43, shape: [3, 8, 8], targets: 3, noise: 0.2}\n"
                      "  on_bad_sample: skip\n"
                      "  shuffle: true\n"
                      "train: {batch: 13, accumulate: 2, steps: 20, optimizer: {name: adam, lr: 0.02, weight_decay: "
                      "0.001}, schedule: cosine, clip_norm: 5,\n"
                      "        loss: [{name: mse, weight: 0.8}, {name: mae, weight: 0.2}]}\n"
                      "batch_norm: {group: 3}\n"},
    /* The rates depend on the layer, through the norms of whole weights, and on the batch. Neither may depend on the
     * number of ranks. */
    {"rates of layers",
     "model:\n"
     "  layers:\n"
     "    - conv: {channels: 8, kernel: 3, pad: 1, bias: false}\n"
     "    - batch_norm\n"
     "    - relu\n"
     "    - max_pool: {kernel: 2}\n"
     "    - fc: {channels: 4}\n"
     "data:\n"
     "  train: {format: synthetic, samples: 44, shape: [3, 8, 8], classes: 4, noise: 0.2}\n"
     "train: {batch: 12, steps: 20, lr_rule: sqrt, base_batch: 3,\n"
     "        schedule: {name: polynomial, power: 2, warmup: 1 epoch},\n"
     "        optimizer: {name: lars, lr: 1, trust_coefficient: 0.05, momentum: 0.5, weight_decay: 5e-4,\n"
     "                    decay_on: all}}\n"
     "batch_norm: {group: 4}\n"},
};

static const char *const f64[] = {"train.dtype=f64"};
static const char *const f64_off[] = {"train.dtype=f64", "plan.passes_off=all", "plan.kernels=reference",
                                      "comm.overlap=false"};
static const char *const f32_off[] = {"plan.passes_off=all", "plan.kernels=reference", "comm.overlap=false"};

struct outcome {
    double loss[STEPS];
    int64_t steps;
    cvy_safetensors *weights;
};

static char folder[64]; /* of all runs; every rank knows it */

static void note_loss(void *user, const cvy_progress *p)
{
    struct outcome *o = user;
    if (p->event || p->step < 1 || p->step > STEPS)
        return;
    o->loss[p->step - 1] = p->loss;
    o->steps = p->step;
}

/* Trains; rank 0 gets the outcome. */
static void train(cvy_context *context, const struct job *job, const char *const *sets, int nsets, const char *name,
                  struct outcome *o)
{
    char out[128], path[192];
    memset(o, 0, sizeof *o);
    snprintf(out, sizeof out, "%s/%s", folder, name);
    const cvy_job_source source = {.size = sizeof source, .text = job->text, .sets = sets, .nsets = nsets};
    const cvy_train_opts opts = {.size = sizeof opts, .out = out, .progress = note_loss, .user = o};
    EXPECT_OK(cvy_run_train(context, &source, &opts, NULL));
    if (cvy_context_rank(context) != 0)
        return;
    EXPECT_INT(o->steps, STEPS);
    snprintf(path, sizeof path, "%s/checkpoints/step-%08d/weights.safetensors", out, STEPS);
    EXPECT_OK(cvy_safetensors_open(path, &o->weights));
    EXPECT_OK(cvy_file_remove_tree(out)); /* removes the names; the open mapping stays valid */
}

static void train_alone(const struct job *job, const char *const *sets, int nsets, struct outcome *o)
{
    cvy_context *alone = NULL;
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    train(alone, job, sets, nsets, "alone", o);
    cvy_context_destroy(&alone);
}

/* The largest difference of a tensor, divided by its largest element. */
static double tensor_difference(const struct outcome *a, const struct outcome *b, int i)
{
    const cvy_tensor_entry *e = cvy_safetensors_at(b->weights, i);
    const int at = cvy_safetensors_index(a->weights, e->name);
    const int64_t n = cvy_shape_elems(&e->shape);
    double *x = NULL, *y = NULL, worst = 0, largest = 0;
    EXPECT(at >= 0);
    EXPECT_OK(cvy_mem_alloc((size_t)n * sizeof *x, &x));
    EXPECT_OK(cvy_mem_alloc((size_t)n * sizeof *y, &y));
    EXPECT_OK(cvy_safetensors_read(a->weights, at, CVY_DTYPE_F64, x));
    EXPECT_OK(cvy_safetensors_read(b->weights, i, CVY_DTYPE_F64, y));
    for (int64_t k = 0; k < n; k++) {
        const double off = fabs(x[k] - y[k]);
        worst = off <= worst ? worst : off;
        largest = fmax(largest, fabs(y[k]));
    }
    cvy_mem_free(&x);
    cvy_mem_free(&y);
    return worst / fmax(largest, 1e-300);
}

static void compare(const char *what, const struct outcome *a, const struct outcome *b, double first, double rest)
{
    for (int i = 0; i < STEPS; i++) {
        const double off = fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]), allowed = i == 0 ? first : rest;
        test_checks++;
        if (!(off <= allowed)) {
            test_failures++;
            printf("%s: loss of step %d is %.17g, on one rank %.17g: off by %.2g, allowed are %.2g\n", what, i + 1,
                   a->loss[i], b->loss[i], off, allowed);
        }
    }
    EXPECT_INT(cvy_safetensors_count(a->weights), cvy_safetensors_count(b->weights));
    for (int i = 0; i < cvy_safetensors_count(b->weights); i++) {
        const double off = tensor_difference(a, b, i);
        test_checks++;
        if (!(off <= rest)) {
            test_failures++;
            printf("%s: %s after %d steps is off by %.2g, allowed are %.2g\n", what,
                   cvy_safetensors_at(b->weights, i)->name, STEPS, off, rest);
        }
    }
}

static void expect_halved(const struct outcome *o)
{
    double begin = 0, end = 0;
    for (int i = 0; i < 3; i++) {
        begin += o->loss[i];
        end += o->loss[STEPS - 1 - i];
    }
    EXPECT(end <= 0.5 * begin);
}

/* Trains the job in one way on all ranks and compares it with the one-rank outcome, which rank 0 holds. */
static void check(cvy_context *all, const struct job *job, const char *way, const char *const *sets, int nsets,
                  const struct outcome *alone, double first, double rest)
{
    char what[128];
    struct outcome together;
    snprintf(what, sizeof what, "%s, %s, %d ranks", job->name, way, cvy_context_nranks(all));
    train(all, job, sets, nsets, "together", &together);
    if (cvy_context_rank(all) == 0 && together.weights && alone->weights)
        compare(what, &together, alone, first, rest);
    cvy_safetensors_close(&together.weights);
}

static void check_job(cvy_context *all, const struct job *job)
{
    struct outcome alone = {0};
    const int root = cvy_context_rank(all) == 0, before = test_failures;
    if (root) {
        train_alone(job, f64, CVY_COUNT(f64), &alone);
        expect_halved(&alone);
    }
    check(all, job, "f64", f64, CVY_COUNT(f64), &alone, 1e-10, 1e-10);
    check(all, job, "f64 all off", f64_off, CVY_COUNT(f64_off), &alone, 1e-10, 1e-10);
    cvy_safetensors_close(&alone.weights);
    if (root)
        train_alone(job, NULL, 0, &alone);
    check(all, job, "f32", NULL, 0, &alone, 1e-5, 1e-3);
    check(all, job, "f32 all off", f32_off, CVY_COUNT(f32_off), &alone, 1e-5, 1e-3);
    cvy_safetensors_close(&alone.weights);
    printf("%s %s\n", test_failures == before ? "ok    " : "FAILED", job->name);
}

/* ---- samples that repeat ---- */

/* Seven samples of class 0, whose loss is always the same, and one of class 1. A balanced epoch is one step that draws
 * it four times. Its loss has one of two values, so the loss of a step tells how many of the four masks keep x. */
static void write_repeats(const char *path)
{
    FILE *file = fopen(path, "w");
    EXPECT(file != NULL);
    fputs("x,label\n1,1\n", file);
    for (int i = 0; i < 7; i++)
        fputs("0,0\n", file);
    fclose(file);
}

static void check_repeats(cvy_context *all)
{
    char path[128], text[512];
    struct outcome alone = {0}, together;
    int between = 0;
    double low = INFINITY, high = 0;
    snprintf(path, sizeof path, "%s/repeats.csv", folder);
    snprintf(text, sizeof text,
             "model: {layers: [{dropout: {p: 0.5}}, {fc: {channels: 2}}]}\n"
             "data: {train: {path: %s, label: label}, balance: class, normalize: none}\n"
             "train: {batch: 8, epochs: 20, optimizer: {name: sgd, lr: 1e-12, momentum: 0}}\n",
             path);
    const struct job job = {"draws of one sample", text};
    if (cvy_context_rank(all) == 0) {
        write_repeats(path);
        train_alone(&job, f64, CVY_COUNT(f64), &alone);
    }
    check(all, &job, "f64", f64, CVY_COUNT(f64), &alone, 1e-10, 1e-10);
    train(all, &job, f64, CVY_COUNT(f64), "together", &together);
    for (int i = 0; i < STEPS && cvy_context_rank(all) == 0; i++) {
        low = fmin(low, together.loss[i]);
        high = fmax(high, together.loss[i]);
    }
    for (int i = 0; i < STEPS && cvy_context_rank(all) == 0; i++)
        between += together.loss[i] > low + 0.1 * (high - low) && together.loss[i] < high - 0.1 * (high - low);
    if (cvy_context_rank(all) == 0)
        EXPECT(between >= 5); /* masks that were alike would all keep it or all drop it */
    cvy_safetensors_close(&alone.weights);
    cvy_safetensors_close(&together.weights);
}

int main(int argc, char **argv)
{
    cvy_context *all = NULL;
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    if (cvy_context_rank(all) == 0) {
        snprintf(folder, sizeof folder, "/tmp/convoy-ranks-XXXXXX");
        EXPECT(mkdtemp(folder) != NULL);
    }
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < CVY_COUNT(jobs); i++)
        check_job(all, &jobs[i]);
    check_repeats(all);
    if (cvy_context_rank(all) == 0)
        EXPECT_OK(cvy_file_remove_tree(folder));
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
