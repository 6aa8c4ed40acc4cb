/*
 * train.c: the training of train.f90, in C. It prints the bits of a loss and of all weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDE = 6, HIGH = 5, CHANNELS = 2, CLASSES = 3, BATCH = 12, STEPS = 5, SAMPLE = CHANNELS * HIGH * WIDE };

static void check(cvy_status status)
{
    if (status != CVY_OK) {
        fprintf(stderr, "train: %s\n", cvy_error_text());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void print_bits(const float *x, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        printf("%08" PRIX32 "\n", bits);
    }
}

static void fill(cvy_program *program, int task, int step)
{
    float *x = cvy_program_feed(program, task, "x");
    int32_t *label = cvy_program_feed(program, task, "label");
    const int64_t first = cvy_program_first_row(program, task), rows = cvy_program_rows(program, task);
    for (int64_t i = 0; i < rows * SAMPLE; i++)
        x[i] = (float)((37 * (first * SAMPLE + i) + 11 * step) % 64 - 32) / 64;
    for (int64_t n = 0; n < rows; n++)
        label[n] = (int32_t)((first + n + step) % CLASSES);
}

int main(int argc, char **argv)
{
    const cvy_context_opts one_thread = {.size = sizeof one_thread, .threads = 1};
    const cvy_program_opts opts = {.size = sizeof opts, .seed = 7, .wisdom = "off", .precise = 1};
    const cvy_training_opts training = {.size = sizeof training, .optimizer = "adam", .weight_decay = 1e-3};
    cvy_context *context = NULL;
    cvy_model *model = NULL;
    cvy_program *program = NULL;
    int task, forward;
    double loss;
    MPI_Init(&argc, &argv);
    check(cvy_context_create_mpi(MPI_COMM_WORLD, &one_thread, &context));
    check(cvy_model_create("same", &model));
    check(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){3, {CHANNELS, HIGH, WIDE}}));
    check(cvy_model_add_input(model, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    check(cvy_model_add(model, "conv", "conv", "channels: 4, kernel: 3, pad: 1", "x"));
    check(cvy_model_add(model, "relu", NULL, NULL, NULL));
    check(cvy_model_add(model, "fc", "fc", "channels: 3", NULL));
    check(cvy_model_add(model, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    check(cvy_program_create(context, &opts, &program));
    check(cvy_program_add_training(program, model, BATCH, &training, &task));
    check(cvy_program_add_forward(program, model, BATCH, "fc", &forward));
    check(cvy_program_plan(program));
    for (int i = 1; i <= STEPS; i++) {
        fill(program, task, i);
        check(cvy_program_step(program, task, 0.01));
    }
    check(cvy_program_loss(program, task, "loss", &loss));
    memcpy(cvy_program_feed(program, forward, "x"), cvy_program_feed(program, task, "x"),
           sizeof(float) * SAMPLE * (size_t)cvy_program_rows(program, task));
    check(cvy_program_step(program, forward, 0));
    const void *score = NULL;
    static float weight[4 * CHANNELS * 9], matrix[CLASSES * 4 * HIGH * WIDE];
    check(cvy_program_output(program, forward, "fc", &score, NULL));
    check(cvy_program_get(program, "conv.weight", weight, sizeof weight / sizeof *weight));
    check(cvy_program_get(program, "fc.weight", matrix, sizeof matrix / sizeof *matrix));
    if (cvy_context_rank(context) == 0) {
        uint64_t bits;
        memcpy(&bits, &loss, sizeof bits);
        printf("%016" PRIX64 "\n", bits);
        print_bits(score, CLASSES);
        print_bits(weight, sizeof weight / sizeof *weight);
        print_bits(matrix, sizeof matrix / sizeof *matrix);
    }
    cvy_program_destroy(&program);
    cvy_model_destroy(&model);
    cvy_context_destroy(&context);
    MPI_Finalize();
    return 0;
}
