/* ranks: 1 2 3 4 */
/*
 * test_update_delayed.c: compares delayed updates with the rule itself: SGD with momentum whose gradient is one step
 * old, with synchronous steps at the beginning and at the end.
 *
 * The plain implementation asks a program of one rank for the gradient at given weights (a step with rate 1 and without
 * momentum subtracts it from them), and does the rest in a few lines. The losses of all steps and the final weights
 * must be the same in f64 on any number of ranks, with two micro-batches, ranks without a sample, and evaluation in the
 * middle. In f32 they must be the same but for rounding, with weights in the shared memory of a node and with messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <string.h>

#include "program/program_impl.h"
#include "test_util.h"

enum { CONV = 4 * 2 * 9, BN = 4, FC = 3 * 4 * 4, WEIGHTS = CONV + 2 * BN + FC, STEPS = 14, WARM = 3, COOL = 4 };

static const struct {
    const char *name;
    int64_t elems;
} variables[] = {{"conv.weight", CONV}, {"bn.scale", BN}, {"bn.shift", BN}, {"fc.weight", FC}};
static cvy_context *all, *alone;

/* Every rank needs the whole sums of running statistics. A network that has them does not keep its weights in the
 * shared memory of a node. */
static cvy_model *new_model(int normalises)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("late", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 4, kernel: 3, pad: 1, bias: false", "x"));
    if (normalises)
        EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "max_pool", "pool", "kernel: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3, bias: false", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

/* Sample n of the batch does not depend on the rank that has it, and each step has other samples. */
static void fill(cvy_program *p, int step, cvy_dtype dtype, int64_t batch, int number)
{
    const cvy_program_task *s = p->task[step];
    const cvy_span x = {.dtype = dtype, .data = cvy_program_feed(p, step, "x")};
    int32_t *label = cvy_program_feed(p, step, "label");
    int64_t before = 0;
    for (int m = 0; m < s->nmicro; m++) {
        const cvy_batch *share = &s->plan->lowered[m]->graph->batch;
        for (int64_t r = 0; r < share->local_n; r++) {
            const int64_t row = s->plan->first_row[m] + r, n = number * batch + before + share->first + r;
            for (int64_t i = 0; i < 32; i++)
                cvy_set(&x, row * 32 + i,
                        sin(0.7 * (double)(n * 32 + i) + 0.3 * (double)(n * i % 101)) + (i % 3 == n % 3));
            label[row] = (int32_t)(n % 3);
        }
        before += share->global_n;
    }
}

/* If the network has no batch norm, its part of `out` is unchanged. */
static void read_weights(const cvy_program *p, cvy_dtype dtype, double *out)
{
    double raw[WEIGHTS];
    const cvy_span span = {.dtype = dtype, .data = raw};
    for (int v = 0; v < CVY_COUNT(variables); v++) {
        if (!cvy_vars_find(cvy_program_vars(p), variables[v].name)) {
            out += variables[v].elems;
            continue;
        }
        EXPECT_OK(cvy_program_get(p, variables[v].name, raw, variables[v].elems));
        for (int64_t i = 0; i < variables[v].elems; i++)
            *out++ = cvy_get(&span, i);
    }
}

static void write_weights(cvy_program *p, const double *from)
{
    for (int v = 0; v < CVY_COUNT(variables); from += variables[v++].elems)
        if (cvy_vars_find(cvy_program_vars(p), variables[v].name))
            EXPECT_OK(cvy_program_set(p, variables[v].name, from, variables[v].elems));
}

static int waits(int step)
{
    return step >= WARM && step + 1 < STEPS - COOL;
}

struct outcome {
    double loss[STEPS], weights[WEIGHTS];
};

/* The rule, in plain C on one rank. */
static void plainly(int64_t batch, int64_t accumulate, int normalises, struct outcome *o)
{
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_F64, .seed = 5, .batch_norm_group = 4};
    const cvy_training_opts sgd = {.size = sizeof sgd, .optimizer_options = "momentum: 0", .accumulate = accumulate};
    cvy_model *m = new_model(normalises);
    cvy_program *p = NULL;
    int step = 0, pending = 0;
    double gradient[2][WEIGHTS], momentum[WEIGHTS] = {0}, *w = o->weights;
    EXPECT_OK(cvy_program_create(alone, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, &sgd, &step));
    EXPECT_OK(cvy_program_plan(p));
    read_weights(p, CVY_DTYPE_F64, w);
    for (int t = 0; t < STEPS; t++) {
        double *g = gradient[t % 2];
        memcpy(g, w, sizeof gradient[0]);
        fill(p, step, CVY_DTYPE_F64, batch, t);
        write_weights(p, w);
        EXPECT_OK(cvy_program_step(p, step, 1));
        EXPECT_OK(cvy_program_loss(p, step, "loss", &o->loss[t]));
        read_weights(p, CVY_DTYPE_F64, g);
        for (int i = 0; i < WEIGHTS; i++)
            g[i] = w[i] - g[i];
        for (int late = t - pending; late <= t - waits(t); late++)
            for (int i = 0; i < WEIGHTS; i++) {
                momentum[i] = 0.8 * momentum[i] + gradient[late % 2][i];
                w[i] -= 0.05 / (1 + late) * momentum[i];
            }
        pending = waits(t);
    }
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

/* share: weights are in the shared memory of the node; otherwise, in f32, ranks send messages. */
static void delayed(int64_t batch, int64_t accumulate, int normalises, cvy_dtype dtype, int share, struct outcome *o)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .dtype = dtype,
                                   .seed = 5,
                                   .batch_norm_group = 4,
                                   .bucket_bytes = 256,
                                   .share_weights = share,
                                   .reduce_no_node = dtype == CVY_DTYPE_F32 && !share,
                                   .update_mode = CVY_UPDATE_DELAYED};
    const cvy_training_opts sgd = {.size = sizeof sgd, .optimizer_options = "momentum: 0.8", .accumulate = accumulate};
    cvy_model *m = new_model(normalises);
    cvy_program *p = NULL;
    int step = 0, forward = 0;
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, &sgd, &step));
    EXPECT_OK(cvy_program_add_forward(p, m, batch, NULL, &forward));
    EXPECT_OK(cvy_program_plan(p));
    EXPECT(p->task[step]->alternate && (cvy_program_shares_weights(p)) == (share && cvy_context_nranks(all) > 1));
    for (int t = 0; t < STEPS; t++) {
        fill(p, step, dtype, batch, t);
        EXPECT_OK(cvy_program_step(p, step, 0.05 / (1 + t)));
        EXPECT_OK(cvy_program_loss(p, step, "loss", &o->loss[t]));
        EXPECT(cvy_program_pending(p) != NULL);
        if (!waits(t)) {
            EXPECT_OK(cvy_program_flush(p));
            EXPECT(cvy_program_pending(p) == NULL);
        }
        if (t == WARM + 2) { /* evaluation does not change pending updates */
            fill(p, forward, dtype, batch, t);
            EXPECT_OK(cvy_program_step(p, forward, 0));
        }
    }
    EXPECT_OK(cvy_program_flush(p)); /* nothing to do */
    read_weights(p, dtype, o->weights);
    EXPECT_OK(all->comm->ops->barrier(all->comm)); /* weights are shared: nobody frees them while another rank reads */
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void compare(const struct outcome *got, const struct outcome *expected, double tolerance)
{
    for (int i = 0; i < STEPS; i++)
        EXPECT_NEAR(got->loss[i], expected->loss[i], tolerance);
    for (int i = 0; i < WEIGHTS; i++)
        EXPECT_NEAR(got->weights[i], expected->weights[i], tolerance);
}

static void follows_the_rule(void)
{
    static const struct {
        int64_t batch, accumulate;
    } cases[] = {{12, 1}, {13, 2}, {3, 1}};
    for (int i = 0; i < CVY_COUNT(cases); i++) {
        struct outcome plain, got;
        plainly(cases[i].batch, cases[i].accumulate, 1, &plain);
        delayed(cases[i].batch, cases[i].accumulate, 1, CVY_DTYPE_F64, 0, &got);
        compare(&got, &plain, 1e-11);
        delayed(cases[i].batch, cases[i].accumulate, 1, CVY_DTYPE_F32, 0, &got);
        compare(&got, &plain, 2e-4);
        memset(&plain, 0, sizeof plain);
        plainly(cases[i].batch, cases[i].accumulate, 0, &plain);
        memset(&got, 0, sizeof got);
        delayed(cases[i].batch, cases[i].accumulate, 0, CVY_DTYPE_F32, 1, &got);
        compare(&got, &plain, 2e-4);
    }
}

/* Checks that the test would notice updates that are not delayed. */
static void differs_from_sync(void)
{
    const int normalises = 1;
    struct outcome plain, got;
    plainly(12, 1, normalises, &plain);
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_F64, .seed = 5, .batch_norm_group = 4};
    const cvy_training_opts sgd = {.size = sizeof sgd, .optimizer_options = "momentum: 0.8"};
    cvy_model *m = new_model(normalises);
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 12, &sgd, &step));
    EXPECT_OK(cvy_program_plan(p));
    for (int t = 0; t < STEPS; t++) {
        fill(p, step, CVY_DTYPE_F64, 12, t);
        EXPECT_OK(cvy_program_step(p, step, 0.05 / (1 + t)));
        EXPECT_OK(cvy_program_flush(p));
        EXPECT_OK(cvy_program_loss(p, step, "loss", &got.loss[t]));
    }
    EXPECT_NEAR(got.loss[WARM], plain.loss[WARM], 1e-11);
    EXPECT(fabs(got.loss[WARM + 1] - plain.loss[WARM + 1]) > 1e-6);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void unfit_steps(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .update_mode = CVY_UPDATE_DELAYED};
    const int normalises = 1;
    const cvy_training_opts keeps = {.size = sizeof keeps, .outputs = "fc"},
                            some = {.size = sizeof some, .trains = "fc.*"};
    cvy_model *m = new_model(normalises);
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 12, &keeps, &step));
    EXPECT_FAULT(cvy_program_plan(p), CVY_E_UNSUPPORTED,
                 "fc is computed in forward or backward and read by the update or by the caller");
    cvy_program_destroy(&p);
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 12, NULL, &step));
    EXPECT_OK(cvy_program_add_training(p, m, 12, &some, &step));
    EXPECT_FAULT(cvy_program_plan(p), CVY_E_UNSUPPORTED,
                 "delayed updates need training steps of the same weights and losses, but step 1 has");
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    follows_the_rule();
    differs_from_sync();
    unfit_steps();
    cvy_context_destroy(&alone);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
