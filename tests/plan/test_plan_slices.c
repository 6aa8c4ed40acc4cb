/* ranks: 1 2 */
/* rows: mpich onednn3 minimal */
/*
 * test_plan_slices.c: branches write directly into the memory of their concat, and read its gradient there.
 *
 * In networks whose concats follow batch norm, the steps copy no activation, and they compute the same bits as with
 * copies.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>
#include <stdio.h>

#include "program/program_view.h"
#include "test_util.h"

enum { SIDE = 6, CLASSES = 5, STEPS = 3, BATCH = 8, WEIGHTS = 5000 };

static cvy_context *context;

static void add_loss(cvy_model *m)
{
    char from[64];
    snprintf(from, sizeof from, "%s, label", cvy_model_output(m));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, from));
}

/* ---- what is still copied ---- */

static int count(const cvy_plan *plan, const char *op)
{
    int found = 0;
    for (int i = 0; i < plan->ninstr; i++)
        found +=
            plan->instr[i].call && plan->instr[i].call->node && strcmp(plan->instr[i].call->node->op->name, op) == 0;
    return found;
}

/* Counts reorders of anything but weights, inputs and outputs. */
static int moved_activations(const cvy_plan *plan)
{
    int found = 0;
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_value *v =
            cvy_call_reorders(plan->instr[i].call) ? plan->buffer[plan->instr[i].src_buffer[0]].value : NULL;
        found += v && v->kind == CVY_VALUE_TEMP && !v->is_output;
    }
    return found;
}

static void count_moves(const char *name, int side, const char *off, int64_t group, int *forward_out, int *backward_out,
                        int *reorders_out)
{
    const cvy_program_opts opts = {.size = sizeof opts, .passes_off = off, .batch_norm_group = group};
    const cvy_training_opts train = {.size = sizeof train};
    const cvy_shape input = {3, {3, side, side}};
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int step = 0, test = 0;
    EXPECT_OK(cvy_model_zoo(name, NULL, &input, 10, &m));
    add_loss(m);
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 4, &train, &step));
    EXPECT_OK(cvy_program_add_forward(p, m, 4, NULL, &test));
    EXPECT_OK(cvy_program_prepare(p));
    *forward_out = count(cvy_program_task_plan(p, step), "concat") + count(cvy_program_task_plan(p, test), "concat");
    *backward_out = count(cvy_program_task_plan(p, step), "slice");
    *reorders_out = moved_activations(cvy_program_task_plan(p, step));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void nothing_is_moved(void)
{
    static const struct {
        const char *name;
        int side, concats, slices;
    } nets[] = {{"googlenet-bn", 64, 9, 36}, {"inception-v3", 139, 11, 46}};
    for (int i = 0; i < CVY_COUNT(nets); i++) {
        /* Batch norm over 2 samples is on one rank. Over all 4 it may span both ranks, and is then several nodes. */
        for (int64_t group = 2; group <= 4; group += 2) {
            int concats, slices, reorders, reorders_without;
            count_moves(nets[i].name, nets[i].side, NULL, group, &concats, &slices, &reorders);
#if CVY_HAVE_ONEDNN
            EXPECT_INT(concats, 0);
            EXPECT_INT(slices, 0);
#else
            EXPECT(concats <= 2 * nets[i].concats &&
                   slices < nets[i].slices); /* convolutions of 1x1 and 5x5 have plain layouts only */
#endif
            count_moves(nets[i].name, nets[i].side, "slices", group, &concats, &slices, &reorders_without);
            EXPECT_INT(concats, 2 * nets[i].concats);
            EXPECT_INT(slices, nets[i].slices);
            EXPECT(reorders <=
                   reorders_without); /* none with AVX-512; other CPUs have convolutions that want plain layouts */
        }
    }
}

/* ---- the same bits ---- */

/* Batch norm and max pooling before a concat, a concat of a concat, a concat whose source is read by other nodes, and
 * one whose parts are not whole blocks. */
static cvy_model *new_model(int channels)
{
    cvy_model *m = NULL;
    char conv0[64], conv2[64], conv4[64], conv5[64];
    snprintf(conv0, sizeof conv0, "channels: %d, kernel: 3, pad: 1", channels);
    snprintf(conv2, sizeof conv2, "channels: %d, kernel: 3, pad: 1", 2 * channels);
    snprintf(conv4, sizeof conv4, "channels: %d, kernel: 1, bias: false", channels);
    snprintf(conv5, sizeof conv5, "channels: %d, kernel: 1", channels);
    EXPECT_OK(cvy_model_create("slices", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, SIDE, SIDE}}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv0", conv0, "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn1", NULL, "conv0"));
    EXPECT_OK(cvy_model_add(m, "relu", "relu1", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "conv", "conv2", conv2, "conv0"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn2", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "concat", "inner", NULL, "relu1, bn2"));
    EXPECT_OK(cvy_model_add(m, "max_pool", "pool3", "kernel: 3, stride: 1, pad: 1", "conv0"));
    EXPECT_OK(cvy_model_add(m, "concat", "outer", NULL, "pool3, inner"));
    EXPECT_OK(cvy_model_add(m, "conv", "conv4", conv4, "outer"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn4", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", "relu4", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "conv", "conv5", conv5, "relu4"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn5", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "concat", "read_twice", NULL, "relu4, bn5"));
    EXPECT_OK(cvy_model_add(m, "conv", "conv6", "channels: 5, kernel: 1", "read_twice"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn6", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "concat", "odd", NULL, "bn6, read_twice"));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 5", NULL));
    add_loss(m);
    return m;
}

static void train(const char *off, cvy_dtype dtype, const char *kernels, int64_t group, int64_t accumulate,
                  float *weights, double *loss, int *moves)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .passes_off = off,
                                   .dtype = dtype,
                                   .kernels = kernels,
                                   .batch_norm_group = group,
                                   .seed = 5};
    const cvy_training_opts training = {
        .size = sizeof training, .accumulate = accumulate, .optimizer_options = "momentum: 0.9"};
    const int channels = dtype == CVY_DTYPE_BF16 ? 32 : 16;
    cvy_model *m = new_model(channels);
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &training, &step));
    EXPECT_OK(cvy_program_plan(p));
    *moves = count(cvy_program_task_plan(p, step), "concat") + count(cvy_program_task_plan(p, step), "slice");
    float *x = cvy_program_feed(p, step, "x");
    int32_t *label = cvy_program_feed(p, step, "label");
    const int64_t rows = cvy_program_rows(p, step), first = cvy_program_first_row(p, step), elems = 3 * SIDE * SIDE;
    for (int64_t i = 0; i < rows * elems; i++)
        x[i] = (float)sin(0.37 * (double)(first * elems + i));
    for (int64_t r = 0; r < rows; r++)
        label[r] = (int32_t)((first + r) % CLASSES);
    for (int i = 0; i < STEPS; i++)
        EXPECT_OK(cvy_program_step(p, step, 0.05));
    EXPECT_OK(cvy_program_loss(p, step, "loss", loss));
    memset(weights, 0, WEIGHTS * sizeof *weights);
    EXPECT_OK(cvy_program_get(p, "conv0.weight", weights, (size_t)channels * 27));
    EXPECT_OK(cvy_program_get(p, "conv4.weight", weights + channels * 27, (size_t)channels * 4 * (size_t)channels));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void same_bits_in(cvy_dtype dtype)
{
    static const char *const kernels[] = {"auto", "native"};
    static float with[WEIGHTS], without[WEIGHTS];
    for (int i = 0; i < 8; i++) {
        const int64_t group = i % 2 ? 2 : 4, accumulate = 1 + i / 2 % 2;
        double loss = 0, loss_without = 1;
        int moves = 0, moves_without = 0;
        train(NULL, dtype, kernels[i / 4], group, accumulate, with, &loss, &moves);
        train("slices", dtype, kernels[i / 4], group, accumulate, without, &loss_without, &moves_without);
        /* In bf16, batch norm over ranks copies. A group of two samples is on one rank. */
        EXPECT(moves < moves_without || (dtype == CVY_DTYPE_BF16 && group == 4 && moves == moves_without));
        EXPECT(loss == loss_without && isfinite(loss));
        EXPECT(memcmp(with, without, sizeof with) == 0);
    }
}

static void same_bits(void)
{
    same_bits_in(CVY_DTYPE_F32);
    same_bits_in(CVY_DTYPE_BF16);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &context));
    TEST(nothing_is_moved);
    TEST(same_bits);
    cvy_context_destroy(&context);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
