/* ranks: 1 2 3 */
/* rows: mpich asan onednn3 */
/*
 * test_program_bf16.c: programs with activations in bf16.
 *
 * Over ten steps the loss falls as it does in f32, on any number of ranks and with micro-batches. Inputs, outputs,
 * weights and files stay f32, and an embedding gets its indices unrounded. Training continues from a file bit for bit.
 * If the CPU has no bf16, the reference kernels are used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdio.h>
#include <unistd.h>

#include "program/program_view.h"
#include "test_util.h"

enum { BATCH = 12, STEPS = 10, CLASSES = 4, PIXELS = 3 * 12 * 12, WEIGHTS = 8 * 3 * 9 };

static cvy_context *context;
static const char *kernels; /* NULL, or "reference" if the CPU has no bf16 */

static cvy_model *new_model(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("small", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 12, 12}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv1", "channels: 8, kernel: 3, pad: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn1", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", "relu1", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "max_pool", "pool1", "kernel: 3, stride: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "conv", "conv2", "channels: 16, kernel: 3, pad: 1", NULL));
    EXPECT_OK(cvy_model_add(m, "relu", "relu2", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "avg_pool", "pool2", "kernel: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 4", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

/* The class of a sample shows in its mean and in its stripes. */
static void fill(cvy_program *p, int step, int64_t at)
{
    float *x = cvy_program_feed(p, step, "x");
    int32_t *label = cvy_program_feed(p, step, "label");
    const int64_t *id = cvy_program_feed(p, step, "sample_id");
    const int64_t first = cvy_program_first_row(p, step);
    EXPECT(x && label);
    for (int64_t r = 0; x && label && r < cvy_program_rows(p, step); r++) {
        const int64_t n = (id ? id[r] : first + r) + at * BATCH;
        label[r] = (int32_t)(n * 7 % CLASSES);
        for (int64_t i = 0; i < PIXELS; i++)
            x[r * PIXELS + i] =
                (float)(0.4 * label[r] - 0.6 + (i % (label[r] + 2) == 0) + 0.5 * sin(0.9 * (double)(n * PIXELS + i)));
    }
}

static cvy_status new_program(cvy_dtype dtype, int64_t accumulate, cvy_program **out)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .dtype = dtype, .seed = 5, .batch_norm_group = -1, .kernels = kernels};
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer_options = "momentum: 0",
                                        .accumulate = accumulate,
                                        .outputs = accumulate == 1 ? "fc" : NULL};
    cvy_model *m = new_model();
    int step = -1;
    cvy_program *p = NULL;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &training, &step));
    const cvy_status status = cvy_program_plan(p);
    cvy_model_destroy(&m);
    if (status != CVY_OK)
        cvy_program_destroy(&p);
    *out = p;
    return status;
}

static void train(cvy_program *p, int64_t first, int64_t end, double *loss)
{
    for (int64_t i = first; i < end; i++) {
        fill(p, 0, i);
        EXPECT_OK(cvy_program_step(p, 0, 0.1));
        EXPECT_OK(cvy_program_loss(p, 0, "loss", &loss[i]));
    }
}

/* The losses in bf16 stay close to those in f32. */
static void test_curve(int64_t accumulate)
{
    cvy_program *wide = NULL, *narrow = NULL;
    double a[STEPS], b[STEPS];
    const void *output = NULL;
    EXPECT_OK(new_program(CVY_DTYPE_F32, accumulate, &wide));
    EXPECT_OK(new_program(CVY_DTYPE_BF16, accumulate, &narrow));
    train(wide, 0, STEPS, a);
    train(narrow, 0, STEPS, b);
    for (int i = 0; i < STEPS; i++)
        EXPECT(fabs(a[i] - b[i]) <= 0.03 * fabs(a[0]) && isfinite(b[i]));
    EXPECT(b[STEPS - 1] < 0.8 * b[0]);
    EXPECT(fabs(a[0] - b[0]) > 0); /* otherwise nothing was computed in bf16 */
    if (accumulate == 1) {
        EXPECT_OK(cvy_program_output(narrow, 0, "fc", &output, NULL));
        for (int64_t i = 0; i < cvy_program_rows(narrow, 0) * CLASSES; i++)
            EXPECT(fabs(((const float *)output)[i]) < 100);
    }
    cvy_program_destroy(&wide);
    cvy_program_destroy(&narrow);
}

/* Weights are saved as f32, and training continues from the file as if it had not been interrupted. */
static void test_file(void)
{
    char path[64];
    cvy_program *p = NULL, *again = NULL;
    double loss[STEPS], loss_again[STEPS];
    float weight[WEIGHTS], weight_again[WEIGHTS];
    int fine = 0;
    snprintf(path, sizeof path, "bf16-%d-%d.safetensors", (int)getpid(), cvy_context_rank(context));
    EXPECT_OK(new_program(CVY_DTYPE_BF16, 1, &p));
    EXPECT_OK(new_program(CVY_DTYPE_BF16, 1, &again));
    train(p, 0, 4, loss);
    EXPECT_OK(cvy_program_save(p, path));
    EXPECT_OK(cvy_program_load(again, path));
    unlink(path);
    train(p, 4, STEPS, loss);
    train(again, 4, STEPS, loss_again);
    EXPECT_OK(cvy_program_get(p, "conv1.weight", weight, WEIGHTS));
    EXPECT_OK(cvy_program_get(again, "conv1.weight", weight_again, WEIGHTS));
    EXPECT(memcmp(loss + 4, loss_again + 4, (STEPS - 4) * sizeof *loss) == 0);
    EXPECT(memcmp(weight, weight_again, sizeof weight) == 0);
    for (int i = 0; i < WEIGHTS; i++)
        fine += cvy_bf16_get(cvy_bf16_of(weight[i])) != weight[i];
    EXPECT(fine > WEIGHTS / 2); /* the master weights have more digits than bf16 */
    cvy_program_destroy(&p);
    cvy_program_destroy(&again);
}

/* An input that an embedding reads is not rounded to bf16, which would name another row of the table: row r has the
 * numbers r modulo 2. */
static void test_indices(void)
{
    enum { ROWS = 1000, COUNT = 4 };
    static const float index[COUNT] = {515, 517, 520, 999};
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_BF16, .kernels = kernels};
    float weight[2 * ROWS];
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    const void *output = NULL;
    int forward = -1;
    EXPECT_OK(cvy_model_create("lookup", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {COUNT}}));
    EXPECT_OK(cvy_model_add(m, "embedding", "table", "rows: 1000, channels: 2", "x"));
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_forward(p, m, BATCH, NULL, &forward));
    EXPECT_OK(cvy_program_plan(p));
    for (int i = 0; i < 2 * ROWS; i++)
        weight[i] = (float)(i / 2 % 2);
    EXPECT_OK(cvy_program_set(p, "table.weight", weight, 2 * ROWS));
    float *x = cvy_program_feed(p, forward, "x");
    for (int64_t i = 0; i < cvy_program_rows(p, forward) * COUNT; i++)
        x[i] = index[i % COUNT];
    EXPECT_OK(cvy_program_step(p, forward, 0));
    EXPECT_OK(cvy_program_output(p, forward, "table", &output, NULL));
    for (int64_t i = 0; i < cvy_program_rows(p, forward) * COUNT * 2; i++)
        EXPECT(((const float *)output)[i] == (float)((int)index[i / 2 % COUNT] % 2));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void test_rounding(void)
{
    static const struct {
        float value;
        uint16_t bits;
    } pairs[] = {{1.0f, 0x3f80},        {-2.5f, 0xc020},   {1.00390625f, 0x3f80}, {1.01171875f, 0x3f82},
                 {1.00390637f, 0x3f81}, {3.4e38f, 0x7f80}, {INFINITY, 0x7f80},    {0.0f, 0},
                 {-0.0f, 0x8000},       {1e-40f, 0x0001}};
    for (int i = 0; i < CVY_COUNT(pairs); i++)
        EXPECT(cvy_bf16_of(pairs[i].value) == pairs[i].bits);
    EXPECT(isnan(cvy_bf16_get(cvy_bf16_of(NAN))) && cvy_bf16_get(0xc020) == -2.5f);
}

int main(int argc, char **argv)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    cvy_program *p = NULL;
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &context));
    const cvy_status status = new_program(CVY_DTYPE_BF16, 1, &p);
    EXPECT(status == CVY_OK || status == CVY_E_UNSUPPORTED);
    if (status == CVY_E_UNSUPPORTED) {
        EXPECT(strstr(cvy_error_text(), "use dtype f32") != NULL);
        kernels = "reference";
    }
    cvy_program_destroy(&p);
    test_rounding();
    test_curve(1);
    test_curve(3);
    test_file();
    test_indices();
    cvy_context_destroy(&context);
    MPI_Finalize();
    return test_end();
}
