/* rows: clang asan onednn3 minimal */
/*
 * test_program.c: the public program on one rank: micro-batches; feeds, outputs, variables and files; faults; and that
 * a hundred programs leak no memory. Expected values are computed in plain C in double.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "program/program_util.h"
#include "program/program_view.h"

/* ---- micro-batches ---- */

/* Some layers have the names of numbers that a step reads too. */
static cvy_model *new_picture_model(void)
{
    cvy_model *m = new_model("pictures");
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 6, 6}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add_input(m, "weight", CVY_DTYPE_F32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv1", "channels: 6, kernel: 3, pad: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "relu", "step", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "max_pool", "lr", "kernel: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "dropout", "norm", "p: 0.3", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", "ignore_label: -1, class_weights: [1, 2, 0.5]",
                            "fc, label, weight"));
    return m;
}

static void fill_pictures(cvy_program *p, int step, int64_t batch, uint64_t turn)
{
    int32_t *label = cvy_program_feed(p, step, "label");
    fill(p, step, "x", batch * 72, turn);
    fill(p, step, "weight", batch, turn + 500);
    for (int64_t i = 0; i < batch; i++) {
        label[i] = i == 4 ? -1 : (int32_t)((i * 7 + (int64_t)turn) % 3);
        ((double *)cvy_program_feed(p, step, "weight"))[i] += 1.5;
    }
}

/* Trains five steps with the batch of 12 cut into `accumulate` pieces. */
static void train_pictures(int64_t accumulate, double losses[5], double *weights)
{
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_F64};
    const cvy_training_opts train = {.size = sizeof train,
                                     .accumulate = accumulate,
                                     .optimizer_options = "momentum: 0.9",
                                     .weight_decay = 0.01,
                                     .clip_norm = 0.5};
    cvy_model *m = new_picture_model();
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 12, &train, &step));
    EXPECT_OK(cvy_program_plan(p));
    EXPECT_INT(cvy_program_task_plan(p, step)->nmicro, accumulate);
    EXPECT_INT(cvy_program_rows(p, step), 12);
    for (int turn = 0; turn < 5; turn++) {
        fill_pictures(p, step, 12, (uint64_t)turn);
        EXPECT_OK(cvy_program_step(p, step, 0.2));
        EXPECT_OK(cvy_program_loss(p, step, "loss", &losses[turn]));
    }
    EXPECT_OK(cvy_program_get(p, "conv1.weight", weights, 108));
    EXPECT_OK(cvy_program_get(p, "fc.weight", weights + 108, 162));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

/* Weights of samples and classes, an ignored label and dropout do not depend on where the batch is cut. (12 samples in
 * 5 pieces: 3, 3, 2, 2, 2.) */
static void micro_batches(void)
{
    static const int64_t pieces[] = {2, 3, 5};
    double whole_loss[5], whole[270], loss[5], weights[270];
    train_pictures(1, whole_loss, whole);
    for (int k = 0; k < CVY_COUNT(pieces); k++) {
        train_pictures(pieces[k], loss, weights);
        for (int i = 0; i < 5; i++)
            EXPECT_NEAR(loss[i], whole_loss[i], 1e-12);
        for (int i = 0; i < 270; i++)
            EXPECT_NEAR(weights[i], whole[i], 1e-12);
    }
}

/* ---- feeds, outputs, variables, files ---- */

static void samples_have_numbers(void)
{
    cvy_model *m = new_picture_model();
    cvy_program *p = NULL;
    int step = 0;
    const cvy_training_opts train = {.size = sizeof train, .accumulate = 3};
    EXPECT_OK(cvy_program_create(context, NULL, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 8, &train, &step));
    EXPECT_OK(cvy_program_plan(p));
    /* If the caller gives no sample ids, each row has its own id, so that dropout masks differ between rows. */
    const int64_t *id = cvy_program_feed(p, step, "sample_id");
    EXPECT(id != NULL);
    for (int i = 0; id && i < 8; i++)
        EXPECT_INT(id[i], i);
    EXPECT(cvy_program_feed(p, step, "nothing") == NULL);
    EXPECT(cvy_program_feed(p, 7, "x") == NULL);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static cvy_program *new_small(int hidden, cvy_dtype dtype, int *train, int *forward)
{
    cvy_model *m = new_model("small");
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = dtype};
    const cvy_training_opts with_output = {
        .size = sizeof with_output, .optimizer_options = "momentum: 0", .outputs = "fc1, out"};
    cvy_program *p = NULL;
    char channels[32];
    snprintf(channels, sizeof channels, "channels: %d", hidden);
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {4}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {2}}));
    EXPECT_OK(cvy_model_add(m, "fc", "fc1", channels, "x"));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "out", "channels: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "out, y"));
    EXPECT_TEXT(cvy_model_output(m), "out");
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 3, &with_output, train));
    EXPECT_OK(cvy_program_add_forward(p, m, 2, NULL, forward));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m);
    return p;
}

static void outputs_and_variables(void)
{
    static const float w1[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, -1}, b1[3] = {0, 0.5f, 0}, w2[6] = {1, 1, 0, 0, 0, 2},
                       b2[2] = {0, -1};
    int train = 0, forward = 0;
    float got[12];
    cvy_shape shape;
    const void *data = NULL;
    const char *name = NULL;
    cvy_program *p = new_small(3, CVY_DTYPE_F32, &train, &forward);
    EXPECT_OK(cvy_program_set(p, "fc1.weight", w1, 12));
    EXPECT_OK(cvy_program_set(p, "fc1.bias", b1, 3));
    EXPECT_OK(cvy_program_set(p, "out.weight", w2, 6));
    EXPECT_OK(cvy_program_set(p, "out.bias", b2, 2));
    EXPECT_OK(cvy_program_get(p, "fc1.weight", got, 12));
    EXPECT(memcmp(got, w1, sizeof w1) == 0);
    /* fc1 = (x0, x1 + 0.5, -x3); relu; out = (h0 + h1, 2 h2 - 1) */
    float *x = cvy_program_feed(p, forward, "x"), *y = cvy_program_feed(p, forward, "y");
    memcpy(x, (float[]){1, 2, 3, 4, -1, -2, -3, -4}, 8 * sizeof *x);
    memcpy(y, (float[]){3.5f, 0, 0, 5}, 4 * sizeof *y);
    double loss = 0;
    EXPECT_OK(cvy_program_step(p, forward, 0));
    EXPECT_OK(cvy_program_output(p, forward, "out", &data, &shape));
    EXPECT_TEXT(cvy_shape_text(&shape), "2x2");
    EXPECT(memcmp(data, (float[]){3.5f, -1, 0, 7}, 4 * sizeof(float)) == 0);
    EXPECT_OK(cvy_program_loss(p, forward, "loss", &loss));
    EXPECT_NEAR(loss, (1.0 + 4.0) / 4, 1e-6);
    /* The outputs of a training step are those before its update. */
    x = cvy_program_feed(p, train, "x");
    memcpy(x, (float[]){1, 2, 3, 4, -1, -2, -3, -4, 0, 0, 0, 0}, 12 * sizeof *x);
    EXPECT_OK(cvy_program_step(p, train, 0.1));
    EXPECT_OK(cvy_program_output(p, train, "fc1", &data, &shape));
    EXPECT_TEXT(cvy_shape_text(&shape), "3x3");
    EXPECT(memcmp(data, (float[]){1, 2.5f, -4, -1, -1.5f, 4, 0, 0.5f, 0}, 9 * sizeof(float)) == 0);
    EXPECT_OK(cvy_program_get(p, "out.bias", got, 2));
    EXPECT(got[0] != b2[0] || got[1] != b2[1]);
    /* All variables can be listed. */
    int count = 0;
    while (cvy_program_variable(p, count, &name, &shape) == CVY_OK) {
        EXPECT(name && shape.ndim >= 1);
        count++;
    }
    EXPECT_INT(count, 4);
    const cvy_memory_use use = cvy_program_memory_use(p, &(int){0}, 1);
    const cvy_vars *vars = cvy_program_vars(p);
    EXPECT_INT(use.feeds, cvy_program_task_plan(p, 0)->feeds.bytes + cvy_program_task_plan(p, 1)->feeds.bytes);
    EXPECT_INT(cvy_program_bytes(p),
               use.arena + use.feeds +
                   (int64_t)(vars->at[0]->bytes + vars->at[1]->bytes + vars->at[2]->bytes + vars->at[3]->bytes));
    cvy_program_destroy(&p);
}

/* A view has no memory of its own. As an output it has the numbers of its source, also if that has a layout of its
 * own, is no output, and is read by nothing else. */
static void views_as_outputs(void)
{
    static const char *const kernels[] = {"native", "auto"}, *const outputs[] = {"maps", "flat"};
    for (int i = 0; i < 2; i++) {
        const cvy_program_opts opts = {.size = sizeof opts, .kernels = kernels[i]};
        cvy_model *m = new_model("views");
        cvy_program *p = NULL;
        cvy_shape shape;
        float values[2][3 * 16 * 36];
        int forward[2];
        EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 6, 6}}));
        EXPECT_OK(cvy_model_add(m, "conv", "maps", "channels: 16, kernel: 3, pad: 1", "x"));
        EXPECT_OK(cvy_model_add(m, "reshape", "rows", "shape: [16, 36]", NULL));
        EXPECT_OK(cvy_model_add(m, "flatten", "flat", NULL, NULL));
        EXPECT_OK(cvy_program_create(context, &opts, &p));
        for (int k = 0; k < 2; k++)
            EXPECT_OK(cvy_program_add_forward(p, m, 3, outputs[k], &forward[k]));
        EXPECT_OK(cvy_program_plan(p));
        for (int k = 0; k < 2; k++) {
            const void *data = NULL;
            float *x = cvy_program_feed(p, forward[k], "x");
            for (int j = 0; j < 3 * 72; j++)
                x[j] = (float)(j * 37 % 41) / 20 - 1;
            EXPECT_OK(cvy_program_step(p, forward[k], 0));
            EXPECT_OK(cvy_program_output(p, forward[k], outputs[k], &data, &shape));
            if (data)
                memcpy(values[k], data, sizeof values[k]);
        }
        EXPECT_TEXT(cvy_shape_text(&shape), "3x576");
        EXPECT(memcmp(values[0], values[1], sizeof values[0]) == 0 && values[0][100] != 0);
        cvy_program_destroy(&p);
        cvy_model_destroy(&m);
    }
}

static void files(void)
{
    char path[] = "/tmp/convoy-program-XXXXXX", missing[64];
    const int fd = mkstemp(path);
    int train = 0, forward = 0;
    double w[12], v[12];
    EXPECT(fd >= 0);
    close(fd);
    snprintf(missing, sizeof missing, "%s/nowhere/w.safetensors", path);
    cvy_program *p = new_small(3, CVY_DTYPE_F64, &train, &forward), *q = new_small(3, CVY_DTYPE_F64, &train, &forward);
    for (int i = 0; i < 12; i++)
        w[i] = noise((uint64_t)i + 77);
    EXPECT_OK(cvy_program_set(p, "fc1.weight", w, 12));
    EXPECT_OK(cvy_program_save(p, path));
    EXPECT_OK(cvy_program_load(q, path));
    EXPECT_OK(cvy_program_get(q, "fc1.weight", v, 12));
    EXPECT(memcmp(w, v, sizeof w) == 0);
    EXPECT(cvy_program_save(p, missing) == CVY_E_IO);
    EXPECT_FAULT(cvy_program_load(p, missing), CVY_E_IO, "nowhere");
    EXPECT_FAULT(cvy_program_save(p, NULL), CVY_E_ARGUMENT, "the path of the file of weights is NULL");
    EXPECT_FAULT(cvy_program_load(p, ""), CVY_E_ARGUMENT, "the path of the file of weights is empty");
    EXPECT_FAULT(cvy_program_set(p, "fc1.weight", NULL, 12), CVY_E_ARGUMENT, "array for variable fc1.weight is NULL");
    EXPECT_FAULT(cvy_program_get(p, "fc1.weight", NULL, 12), CVY_E_ARGUMENT, "array for variable fc1.weight is NULL");
    EXPECT_FAULT(cvy_program_get(p, NULL, v, 12), CVY_E_ARGUMENT, "name of a variable is NULL");
    cvy_program *other = new_small(5, CVY_DTYPE_F64, &train, &forward);
    EXPECT_FAULT(cvy_program_load(other, path), CVY_E_SHAPE, "fc1.weight");
    cvy_program_destroy(&other);
    cvy_program_destroy(&q);
    cvy_program_destroy(&p);
    unlink(path);
}

static void printed(void)
{
    static const char *const hows[] = {"text", "dot", "json", "explain"};
    int train = 0, forward = 0;
    char *text = NULL;
    cvy_program *p = new_small(3, CVY_DTYPE_F32, &train, &forward);
    for (int i = 0; i < CVY_COUNT(hows); i++) {
        EXPECT_OK(cvy_program_print(p, train, hows[i], &text));
        EXPECT(text && strstr(text, "fc1"));
        cvy_text_release(&text);
    }
    EXPECT_FAULT(cvy_program_print(p, train, "poem", &text), CVY_E_ARGUMENT, "poem");
    cvy_program_destroy(&p);
}

/* ---- a step with a smaller batch continues the training of the full batches ---- */

/* Trains with Adam on two batches of 4 and one of 2, in turns. One plan for 4 samples, the last two with weight 0 for
 * the smaller batch, must give the same. */
static void tail_batch(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_F64};
    const cvy_training_opts adam = {.size = sizeof adam, .optimizer = "adam"};
    double got[2][6];
    for (int separate = 0; separate < 2; separate++) {
        cvy_model *m = new_model("tail");
        cvy_program *p = NULL;
        int full = 0, tail = 0;
        add_input(m, "x", 3);
        add_input(m, "y", 2);
        EXPECT_OK(cvy_model_add_input(m, "weight", CVY_DTYPE_F64, &(cvy_shape){0}));
        EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 2, bias: false", "x"));
        EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "fc, y, weight"));
        EXPECT_OK(cvy_program_create(context, &opts, &p));
        EXPECT_OK(cvy_program_add_training(p, m, 4, &adam, &full));
        EXPECT_OK(cvy_program_add_training(p, m, 2, &adam, &tail));
        EXPECT_OK(cvy_program_plan(p));
        for (int turn = 0; turn < 6; turn++) {
            const int n = turn % 3 == 2 ? 2 : 4, step = separate && n == 2 ? tail : full;
            fill(p, step, "x", n * 3, (uint64_t)turn);
            fill(p, step, "y", n * 2, (uint64_t)turn + 100);
            for (int i = 0; i < cvy_program_rows(p, step); i++)
                ((double *)cvy_program_feed(p, step, "weight"))[i] = i < n;
            EXPECT_OK(cvy_program_step(p, step, 0.1));
        }
        EXPECT_OK(cvy_program_get(p, "fc.weight", got[separate], 6));
        cvy_program_destroy(&p);
        cvy_model_destroy(&m);
    }
    for (int i = 0; i < 6; i++)
        EXPECT_NEAR(got[1][i], got[0][i], 1e-14);
}

/* ---- faults ---- */

static cvy_status plan_one(cvy_model *m, int64_t batch, const cvy_training_opts *train, const cvy_program_opts *opts)
{
    cvy_program *p = NULL;
    int step = 0;
    cvy_status status = cvy_program_create(context, opts, &p);
    if (status == CVY_OK)
        status = cvy_program_add_training(p, m, batch, train, &step);
    if (status == CVY_OK)
        status = cvy_program_plan(p);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    return status;
}

static cvy_model *broken(const char *op, const char *name, const char *options, const char *from)
{
    cvy_model *m = new_model("broken");
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 6, 6}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {5}}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv1", "channels: 4, kernel: 3", "x"));
    EXPECT_OK(cvy_model_add(m, op, name, options, from));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 5", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "fc, y"));
    return m;
}

static cvy_model *sound(void)
{
    return broken("relu", NULL, NULL, NULL);
}

static void faults_of_models(void)
{
    cvy_model *m = sound();
    EXPECT_FAULT(cvy_model_add(m, "conf", NULL, NULL, NULL), CVY_E_CONFIG, "conv");
    EXPECT_FAULT(cvy_model_add(m, "relu", "conv1", NULL, NULL), CVY_E_ARGUMENT, "conv1");
    EXPECT_FAULT(cvy_model_add(m, "relu", NULL, NULL, "conv7"), CVY_E_ARGUMENT, "conv7");
    EXPECT_FAULT(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){0}), CVY_E_ARGUMENT, "x");
    cvy_model_destroy(&m);
    /* The message for a shape that does not fit names the layer and both shapes. */
    EXPECT_FAULT(plan_one(broken("add", "sum", NULL, "conv1, x"), 4, NULL, NULL), CVY_E_SHAPE, "sum");
    EXPECT(strstr(cvy_error_text(), "4x4x4x4") && strstr(cvy_error_text(), "4x2x6x6"));
    EXPECT_FAULT(plan_one(broken("conv", "conv2", "channels: 4, kernel: 9", NULL), 4, NULL, NULL), CVY_E_SHAPE,
                 "conv2");
    EXPECT(strstr(cvy_error_text(), "9") && strstr(cvy_error_text(), "4"));
    EXPECT_FAULT(plan_one(broken("conv", "conv2", "channels: 4, kernel: 3, strid: 2", NULL), 4, NULL, NULL),
                 CVY_E_CONFIG, "stride");
    EXPECT(strstr(cvy_error_text(), "conv2"));
    m = sound();
    EXPECT_OK(cvy_model_add(m, "mse", "loss2", NULL, "conv1, y"));
    EXPECT_FAULT(plan_one(m, 4, NULL, NULL), CVY_E_SHAPE, "loss2");
    EXPECT(strstr(cvy_error_text(), "4x4x4x4") && strstr(cvy_error_text(), "4x5"));
}

static void faults_of_programs(void)
{
    cvy_program *p = NULL;
    int step = 0, forward = 0;
    double value = 0;
    const void *data = NULL;
    EXPECT_FAULT(plan_one(sound(), 0, NULL, NULL), CVY_E_ARGUMENT, "0");
    EXPECT_FAULT(plan_one(sound(), 4, &(cvy_training_opts){.size = sizeof(cvy_training_opts), .losses = "lost"}, NULL),
                 CVY_E_ARGUMENT, "lost");
    EXPECT_FAULT(plan_one(sound(), 4, &(cvy_training_opts){.size = sizeof(cvy_training_opts), .losses = "fc"}, NULL),
                 CVY_E_ARGUMENT, "fc");
    EXPECT_FAULT(
        plan_one(sound(), 4, &(cvy_training_opts){.size = sizeof(cvy_training_opts), .outputs = "nothing"}, NULL),
        CVY_E_ARGUMENT, "nothing");
    EXPECT_FAULT(
        plan_one(sound(), 4, &(cvy_training_opts){.size = sizeof(cvy_training_opts), .trains = "deconv*"}, NULL),
        CVY_E_ARGUMENT, "deconv*");
    EXPECT_FAULT(
        plan_one(sound(), 4, &(cvy_training_opts){.size = sizeof(cvy_training_opts), .optimizer = "adams"}, NULL),
        CVY_E_CONFIG, "adams");
    EXPECT_FAULT(plan_one(sound(), 4,
                          &(cvy_training_opts){.size = sizeof(cvy_training_opts), .optimizer_options = "momentun: 0.9"},
                          NULL),
                 CVY_E_CONFIG, "momentum");
    EXPECT_FAULT(plan_one(sound(), 4, &(cvy_training_opts){.size = sizeof(cvy_training_opts), .accumulate = 5}, NULL),
                 CVY_E_ARGUMENT, "5");
    EXPECT_FAULT(
        plan_one(sound(), 4, NULL, &(cvy_program_opts){.size = sizeof(cvy_program_opts), .passes_off = "overlapp"}),
        CVY_E_CONFIG, "overlap");
    EXPECT_FAULT(plan_one(sound(), 4, NULL, &(cvy_program_opts){.size = sizeof(cvy_program_opts), .kernels = "fast"}),
                 CVY_E_CONFIG, "fast");
    EXPECT_FAULT(
        plan_one(sound(), 4, NULL, &(cvy_program_opts){.size = sizeof(cvy_program_opts), .dtype = CVY_DTYPE_U8}),
        CVY_E_CONFIG, "u8");
    EXPECT_FAULT(plan_one(sound(), 4, NULL,
                          &(cvy_program_opts){.size = sizeof(cvy_program_opts), .plan_file = "/nowhere/plan.json"}),
                 CVY_E_IO, "/nowhere/plan.json");

    p = new_small(3, CVY_DTYPE_F32, &step, &forward);
    EXPECT_FAULT(cvy_program_loss(p, step, "los", &value), CVY_E_ARGUMENT, "los");
    EXPECT_FAULT(cvy_program_step(p, 9, 0.1), CVY_E_ARGUMENT, "9");
    EXPECT_FAULT(cvy_program_output(p, forward, "fc1", &data, NULL), CVY_E_ARGUMENT, "fc1");
    EXPECT_FAULT(cvy_program_get(p, "fc1.wait", &value, 1), CVY_E_ARGUMENT, "fc1.wait");
    EXPECT_FAULT(cvy_program_get(p, "fc1.weight", &value, 1), CVY_E_ARGUMENT, "3x4");
    EXPECT_FAULT(cvy_program_plan(p), CVY_E_ARGUMENT, "once");
    /* NULL has a message of its own, not that of the fault before. */
    EXPECT(cvy_program_feed(p, step, "X") == NULL);
    EXPECT(strstr(cvy_error_text(), "task 0 has no input \"X\"; its inputs are x, "));
    EXPECT(cvy_program_feed(p, 7, "x") == NULL);
    EXPECT(strstr(cvy_error_text(), "task 7 has no feed \"x\": the program has 2 tasks"));
    cvy_model *m = sound();
    EXPECT_FAULT(cvy_program_add_forward(p, m, 2, NULL, &forward), CVY_E_ARGUMENT, "planned");
    cvy_model_destroy(&m);
    cvy_program_destroy(&p);
}

/* A label that is no class is found in the step, and the message names it. */
static void bad_label(void)
{
    cvy_model *m = new_picture_model();
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_program_create(context, NULL, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 4, NULL, &step));
    EXPECT_OK(cvy_program_plan(p));
    ((int32_t *)cvy_program_feed(p, step, "label"))[2] = 3;
    for (int i = 0; i < 4; i++) { /* all samples have the weight 1 until the caller gives others */
        EXPECT(((float *)cvy_program_feed(p, step, "weight"))[i] == 1);
        ((float *)cvy_program_feed(p, step, "weight"))[i] = 0;
    }
    EXPECT_OK(cvy_program_step(p, step, 0.1)); /* a sample of weight 0 may have any label */
    for (int i = 0; i < 4; i++)
        ((float *)cvy_program_feed(p, step, "weight"))[i] = 1;
    EXPECT_FAULT(cvy_program_step(p, step, 0.1), CVY_E_FORMAT, "loss");
    EXPECT(strstr(cvy_error_text(), "3"));
    ((int32_t *)cvy_program_feed(p, step, "label"))[2] = 1;
    EXPECT_OK(cvy_program_step(p, step, 0.1));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

/* ---- no memory is leaked ---- */

/* Returns the bytes in use on the heap of the whole process. Resident memory is no substitute: the part of its free
 * memory that the allocator returns to the system differs by megabytes from run to run. */
static int64_t heap_bytes(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 heap = mallinfo2();
#else
    const struct mallinfo heap = mallinfo(); /* its numbers are int, enough for this test */
#endif
    return (int64_t)heap.uordblks + (int64_t)heap.hblkhd;
}

static void one_life(const char *kernels)
{
    const cvy_program_opts opts = {.size = sizeof opts, .kernels = kernels};
    cvy_context *alone = NULL;
    cvy_model *m = new_picture_model();
    cvy_program *p = NULL;
    int step = 0, forward = 0;
    EXPECT_OK(cvy_context_create(NULL, &alone));
    EXPECT_OK(cvy_program_create(alone, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 4, NULL, &step));
    EXPECT_OK(cvy_program_add_forward(p, m, 4, NULL, &forward));
    EXPECT_OK(cvy_program_plan(p));
    EXPECT_OK(cvy_program_step(p, step, 0.1));
    EXPECT_OK(cvy_program_step(p, forward, 0));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    cvy_context_destroy(&alone);
    EXPECT(alone == NULL && m == NULL && p == NULL);
}

static void live_a_hundred_times(const char *kernels, int64_t allowed)
{
    for (int i = 0; i < 10; i++)
        one_life(kernels);
    const int64_t heap = heap_bytes(), held = cvy_memory_bytes();
    for (int i = 0; i < 100; i++) {
        one_life(kernels);
        EXPECT_INT(cvy_memory_bytes(), held);
    }
    const int64_t grown = heap_bytes() - heap;
    printf("       a hundred programs, %s kernels: heap %+lld bytes\n", kernels, (long long)grown);
    EXPECT(grown <= allowed);
}

/* The smallest block takes 32 bytes of the heap, so a block leaked by each program would show. The OpenMP team and the
 * C library's own threads sometimes take up to two thousand bytes once. oneDNN has its own cache, which is full after
 * some hundred programs. */
static void a_hundred_lives(void)
{
    live_a_hundred_times("native", 100 * 32 - 1);
    live_a_hundred_times("auto", 64 << 10);
}

/* Whichever allocation fails, planning reports it and leaks nothing. */
static cvy_status plan_small(void)
{
    cvy_model *m = NULL;
    cvy_status status = cvy_model_create("small", &m);
    if (status == CVY_OK)
        status = cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}});
    if (status == CVY_OK)
        status = cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0});
    if (status == CVY_OK)
        status = cvy_model_add(m, "conv", "conv1", "channels: 8, kernel: 3", "x");
    if (status == CVY_OK)
        status = cvy_model_add(m, "batch_norm", "bn1", NULL, NULL);
    if (status == CVY_OK)
        status = cvy_model_add(m, "fc", "fc", "channels: 2", NULL);
    if (status == CVY_OK)
        status = cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label");
    if (status != CVY_OK) {
        cvy_model_destroy(&m);
        return status;
    }
    return plan_one(m, 4, &(cvy_training_opts){.size = sizeof(cvy_training_opts), .accumulate = 2, .optimizer = "adam"},
                    NULL);
}

static void no_memory(void)
{
    EXPECT_SURVIVES_NO_MEMORY(plan_small());
}

int main(void)
{
    EXPECT_OK(cvy_context_create(NULL, &context));
    TEST(micro_batches);
    TEST(samples_have_numbers);
    TEST(outputs_and_variables);
    TEST(views_as_outputs);
    TEST(files);
    TEST(printed);
    TEST(tail_batch);
    TEST(faults_of_models);
    TEST(faults_of_programs);
    TEST(bad_label);
    TEST(a_hundred_lives);
    TEST(no_memory);
    cvy_context_destroy(&context);
    return test_end();
}
