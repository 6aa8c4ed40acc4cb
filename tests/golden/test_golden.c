/* ranks: 1 2 3 */
/* rows: mpich asan onednn3 minimal */
/*
 * test_golden.c: three whole networks, ten steps each, against files made with PyTorch in double precision
 * (make_golden.py).
 *
 * It compares the losses of each step, the gradients of the first one, weights and running statistics after ten steps,
 * and an evaluation with them. Gradients are read through the public API: a second training step over the same
 * variables, plain SGD without decay, is taken first and undone.
 *
 * Tolerances are relative to the largest element of a tensor. The longest sum has 540 summands (a weight's gradient
 * sums over samples and positions), so each layer rounds by about eps * sqrt(540) = 23 eps. Six layers in both
 * directions and ten steps make about 23 * 12 * 10 eps. This is 6e-13 in f64 (eps 2e-16), where the tolerance is 1e-11,
 * and 2e-5 in f32 (eps 6e-8) with the fast kernels. Measured were 1e-15 and 1e-6.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"
#include "test_util.h"

enum { STEPS = 10, NAMES = 8 };

struct layer {
    const char *op, *name, *options, *from;
};

struct network {
    const char *name;
    struct {
        const char *name;
        cvy_dtype dtype;
        cvy_shape shape;
    } input[NAMES];
    struct layer layer[20];
    const char *output, *losses[4];
    int64_t batch;
    double lr;
    const char *optimizer, *optimizer_options;
};

static const struct network networks[] = {
    {
        .name = "plain",
        .input = {{"x", CVY_DTYPE_F32, {3, {4, 10, 7}}}, {"label", CVY_DTYPE_I32, {0}}},
        .layer = {{"conv", "conv1", "channels: 16, kernel: 3, pad: 1, groups: 2", "x"},
                  {"relu", "relu1", NULL, NULL},
                  {"lrn", "norm1", "size: 3, alpha: 0.5, beta: 0.75, k: 1.5", NULL},
                  {"conv", "conv2", "channels: 8, kernel: 3, pad: 2, dilation: 2", NULL},
                  {"relu", "relu2", NULL, NULL},
                  {"max_pool", "pool2", "kernel: 2", NULL},
                  {"conv", "conv3", "channels: 16, kernel: 3, stride: 2, pad: 1, groups: 4", NULL},
                  {"relu", "relu3", NULL, NULL},
                  {"fc", "fc", "channels: 5", NULL},
                  {"softmax_cross_entropy", "loss", "label_smoothing: 0.1", "fc, label"}},
        .output = "fc",
        .losses = {"loss"},
        .batch = 5,
        .lr = 0.05,
        .optimizer = "sgd",
        .optimizer_options = "momentum: 0.9",
    },
    {
        .name = "residual",
        .input = {{"x", CVY_DTYPE_F32, {3, {3, 8, 8}}}, {"label", CVY_DTYPE_I32, {0}}},
        .layer = {{"conv", "conv1", "channels: 8, kernel: 3, pad: 1, bias: false", "x"},
                  {"batch_norm", "bn1", NULL, NULL},
                  {"relu", "relu1", NULL, NULL},
                  {"conv", "conv2", "channels: 16, kernel: 3, stride: 2, pad: 1, bias: false", "relu1"},
                  {"batch_norm", "bn2", "momentum: 0.2, eps: 1e-3", NULL},
                  {"conv", "proj", "channels: 16, kernel: 1, stride: 2", "relu1"},
                  {"add", "sum", NULL, "bn2, proj"},
                  {"relu", "relu2", NULL, NULL},
                  {"global_avg_pool", "mean", NULL, NULL},
                  {"fc", "fc", "channels: 4", NULL},
                  {"softmax_cross_entropy", "loss", NULL, "fc, label"}},
        .output = "fc",
        .losses = {"loss"},
        .batch = 7,
        .lr = 0.1,
        .optimizer = "sgd",
        .optimizer_options = "momentum: 0.9, nesterov: true",
    },
    {
        .name = "regression",
        .input = {{"a", CVY_DTYPE_F32, {3, {2, 6, 6}}},
                  {"b", CVY_DTYPE_F32, {1, {3}}},
                  {"target", CVY_DTYPE_F32, {3, {1, 6, 6}}},
                  {"y", CVY_DTYPE_F32, {1, {3}}},
                  {"weight", CVY_DTYPE_F32, {0}}},
        .layer = {{"conv", "down", "channels: 8, kernel: 3, stride: 2, pad: 1", "a"},
                  {"tanh", "down_tanh", NULL, NULL},
                  {"deconv", "up", "channels: 6, kernel: 3, stride: 2, pad: 1, output_pad: 1", NULL},
                  {"concat", "both", NULL, "up, a"},
                  {"avg_pool", "pool", "kernel: 3, stride: 1, pad: 1, count_include_pad: false", NULL},
                  {"sigmoid", "pool_sigmoid", NULL, NULL},
                  {"conv", "image", "channels: 1, kernel: 3, pad: 1", NULL},
                  {"flatten", "flat", NULL, "down_tanh"},
                  {"concat", "features", NULL, "flat, b"},
                  {"fc", "hidden", "channels: 12", NULL},
                  {"leaky_relu", "hidden_relu", "slope: 0.1", NULL},
                  {"fc", "head", "channels: 3", NULL},
                  {"mse", "image_loss", "loss_weight: 2", "image, target"},
                  {"huber", "head_loss", "loss_weight: 0.5, delta: 0.7", "head, y"},
                  {"mae", "weighted_loss", "loss_weight: 0.25", "head, y, weight"}},
        .output = "head",
        .losses = {"image_loss", "head_loss", "weighted_loss"},
        .batch = 6,
        .lr = 0.01,
        .optimizer = "adam",
        .optimizer_options = "beta1: 0.9, beta2: 0.99, eps: 1e-4",
    },
};

/* One network under test. */
struct run {
    const struct network *net;
    cvy_dtype dtype;
    double tolerance;
    cvy_safetensors *golden;
    cvy_context *context;
    cvy_model *model;
    cvy_program *program;
    int train, probe, forward;
};

static double *read_golden(const struct run *r, const char *kind, const char *name, int64_t *elems_out)
{
    char key[128];
    double *values = NULL;
    snprintf(key, sizeof key, "%s.%s", kind, name);
    const int at = cvy_safetensors_index(r->golden, key);
    if (at < 0) {
        printf("%s has no tensor %s\n", r->net->name, key);
        EXPECT(at >= 0);
        return NULL;
    }
    *elems_out = cvy_shape_elems(&cvy_safetensors_at(r->golden, at)->shape);
    EXPECT_OK(cvy_mem_alloc((size_t)*elems_out * sizeof *values, &values));
    EXPECT_OK(cvy_safetensors_read(r->golden, at, CVY_DTYPE_F64, values));
    return values;
}

static double element(const void *data, cvy_dtype dtype, int64_t i)
{
    return dtype == CVY_DTYPE_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void compare(const struct run *r, const char *what, const char *name, const double *got, const double *expected,
                    int64_t n)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double off = fabs(got[i] - expected[i]);
        worst = off <= worst ? worst : off; /* keeps a NaN */
        largest = fmax(largest, fabs(expected[i]));
    }
    test_checks++;
    if (!(worst <= r->tolerance * largest)) {
        test_failures++;
        printf("%s %s, %s of %s: off by %.3g of %.3g, allowed are %.3g\n", r->net->name, cvy_dtype_text(r->dtype), what,
               name, worst, largest, r->tolerance * largest);
    }
}

/* ---- variables, as doubles ---- */

static double *get(const struct run *r, const char *name, int64_t n)
{
    double *wide = NULL;
    EXPECT_OK(cvy_mem_alloc((size_t)n * sizeof *wide, &wide));
    EXPECT_OK(cvy_program_get(r->program, name, wide, n));
    for (int64_t i = n - 1; i >= 0 && r->dtype == CVY_DTYPE_F32; i--)
        wide[i] = element(wide, r->dtype, i); /* in place, from the end */
    return wide;
}

static void set(const struct run *r, const char *name, const double *wide, int64_t n)
{
    float *narrow = NULL;
    EXPECT_OK(cvy_mem_alloc((size_t)n * sizeof *narrow, &narrow));
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)wide[i];
    EXPECT_OK(cvy_program_set(r->program, name, r->dtype == CVY_DTYPE_F64 ? (const void *)wide : narrow, n));
    cvy_mem_free(&narrow);
}

/* Calls visit(r, name, elems) for each tensor of the file whose key begins with "<kind>.". */
static void each(const struct run *r, const char *kind,
                 void (*visit)(const struct run *r, const char *name, const double *golden, int64_t n))
{
    const size_t length = strlen(kind);
    int count = 0;
    for (int i = 0; i < cvy_safetensors_count(r->golden); i++) {
        const char *key = cvy_safetensors_at(r->golden, i)->name;
        int64_t n = 0;
        if (strncmp(key, kind, length) != 0 || key[length] != '.')
            continue;
        double *golden = read_golden(r, kind, key + length + 1, &n);
        visit(r, key + length + 1, golden, n);
        cvy_mem_free(&golden);
        count++;
    }
    EXPECT(count > 0);
}

static void put_initial(const struct run *r, const char *name, const double *golden, int64_t n)
{
    set(r, name, golden, n);
}

static void check_final(const struct run *r, const char *name, const double *golden, int64_t n)
{
    double *got = get(r, name, n);
    compare(r, "ten steps", name, got, golden, n);
    cvy_mem_free(&got);
}

/* The probe's rate is a power of two and large compared with the weights, so that even in f32 the difference keeps the
 * digits of the gradient. */
#define PROBE_RATE 4096.0

static void check_gradient(const struct run *r, const char *name, const double *golden, int64_t n)
{
    int64_t same = 0;
    double *before = read_golden(r, "init", name, &same), *after = get(r, name, n);
    EXPECT_INT(same, n);
    for (int64_t i = 0; i < n; i++)
        after[i] = (before[i] - after[i]) / PROBE_RATE;
    compare(r, "gradient", name, after, golden, n);
    cvy_mem_free(&before);
    cvy_mem_free(&after);
}

/* ---- steps ---- */

/* Fills this rank's rows of batch b. */
static void fill(const struct run *r, int step, int b)
{
    const int64_t rows = cvy_program_rows(r->program, step), first = cvy_program_first_row(r->program, step);
    for (int i = 0; r->net->input[i].name; i++) {
        void *feed = cvy_program_feed(r->program, step, r->net->input[i].name);
        const int64_t row = cvy_shape_elems(&r->net->input[i].shape);
        int64_t n = 0;
        if (!feed) /* an input that only the losses use */
            continue;
        double *all = read_golden(r, "in", r->net->input[i].name, &n);
        const int64_t nbatch = n / (row * r->net->batch);
        const double *mine = all + ((b % nbatch) * r->net->batch + first) * row;
        for (int64_t e = 0; e < rows * row; e++) {
            if (r->net->input[i].dtype == CVY_DTYPE_I32)
                ((int32_t *)feed)[e] = (int32_t)mine[e];
            else if (r->dtype == CVY_DTYPE_F64)
                ((double *)feed)[e] = mine[e];
            else
                ((float *)feed)[e] = (float)mine[e];
        }
        cvy_mem_free(&all);
    }
}

static void ten_steps(const struct run *r)
{
    double losses[4][STEPS] = {{0}};
    for (int step = 0; step < STEPS; step++) {
        fill(r, r->train, step);
        EXPECT_OK(cvy_program_step(r->program, r->train, r->net->lr));
        for (int i = 0; i < 4 && r->net->losses[i]; i++)
            EXPECT_OK(cvy_program_loss(r->program, r->train, r->net->losses[i], &losses[i][step]));
    }
    for (int i = 0; i < 4 && r->net->losses[i]; i++) {
        int64_t n = 0;
        double *golden = read_golden(r, "loss", r->net->losses[i], &n);
        EXPECT_INT(n, STEPS);
        compare(r, "losses", r->net->losses[i], losses[i], golden, n);
        cvy_mem_free(&golden);
    }
}

static void evaluate(const struct run *r)
{
    const void *data = NULL;
    cvy_shape shape = {0};
    int64_t n = 0;
    fill(r, r->forward, 0);
    EXPECT_OK(cvy_program_step(r->program, r->forward, 0));
    EXPECT_OK(cvy_program_output(r->program, r->forward, r->net->output, &data, &shape));
    double *golden = read_golden(r, "eval", "output", &n), *got = NULL;
    const int64_t mine = cvy_shape_elems(&shape),
                  first = cvy_program_first_row(r->program, r->forward) * (n / r->net->batch);
    EXPECT_OK(cvy_mem_alloc((size_t)n * sizeof *got, &got));
    memcpy(got, golden, (size_t)n * sizeof *got); /* other ranks compare the rest */
    for (int64_t i = 0; i < mine; i++)
        got[first + i] = element(data, r->dtype, i);
    compare(r, "evaluation", r->net->output, got, golden, n);
    cvy_mem_free(&got);
    cvy_mem_free(&golden);
}

/* ---- set up ---- */

static void open_golden(struct run *r)
{
    char path[1024];
    const char *source = getenv("CONVOY_SOURCE"), *here = strstr(__FILE__, "tests/golden/");
    if (source)
        snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", source, r->net->name);
    else
        snprintf(path, sizeof path, "%.*stests/golden/%s.safetensors", here ? (int)(here - __FILE__) : 0, __FILE__,
                 r->net->name);
    EXPECT_OK(cvy_safetensors_open(path, &r->golden));
}

static void build(struct run *r)
{
    const cvy_program_opts program = {
        .size = sizeof program, .dtype = r->dtype, .batch_norm_group = -2, .bucket_bytes = 2048};
    const cvy_training_opts train = {.size = sizeof train,
                                     .optimizer = r->net->optimizer,
                                     .optimizer_options = r->net->optimizer_options,
                                     .weight_decay = 0.01},
                            plain = {.size = sizeof plain, .optimizer_options = "momentum: 0"};
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &r->context));
    EXPECT_OK(cvy_model_create(r->net->name, &r->model));
    for (int i = 0; r->net->input[i].name; i++)
        EXPECT_OK(
            cvy_model_add_input(r->model, r->net->input[i].name, r->net->input[i].dtype, &r->net->input[i].shape));
    for (const struct layer *l = r->net->layer; l->op; l++)
        EXPECT_OK(cvy_model_add(r->model, l->op, l->name, l->options, l->from));
    EXPECT_OK(cvy_program_create(r->context, &program, &r->program));
    EXPECT_OK(cvy_program_add_training(r->program, r->model, r->net->batch, &train, &r->train));
    EXPECT_OK(cvy_program_add_training(r->program, r->model, r->net->batch, &plain, &r->probe));
    EXPECT_OK(cvy_program_add_forward(r->program, r->model, r->net->batch, r->net->output, &r->forward));
    EXPECT_OK(cvy_program_plan(r->program));
}

static void check_network(const struct network *net, cvy_dtype dtype)
{
    const int before = test_failures;
    struct run r = {.net = net, .dtype = dtype, .tolerance = dtype == CVY_DTYPE_F64 ? 1e-11 : 2e-5};
    open_golden(&r);
    if (r.golden)
        build(&r);
    if (r.golden && test_failures == before) {
        each(&r, "init", put_initial);
        fill(&r, r.probe, 0);
        EXPECT_OK(cvy_program_step(r.program, r.probe, PROBE_RATE));
        each(&r, "grad", check_gradient);
        each(&r, "init", put_initial);
        ten_steps(&r);
        each(&r, "final", check_final);
        evaluate(&r);
    }
    cvy_program_destroy(&r.program);
    cvy_model_destroy(&r.model);
    cvy_context_destroy(&r.context);
    cvy_safetensors_close(&r.golden);
}

static void plain_f64(void)
{
    check_network(&networks[0], CVY_DTYPE_F64);
}
static void plain_f32(void)
{
    check_network(&networks[0], CVY_DTYPE_F32);
}
static void residual_f64(void)
{
    check_network(&networks[1], CVY_DTYPE_F64);
}
static void residual_f32(void)
{
    check_network(&networks[1], CVY_DTYPE_F32);
}
static void regression_f64(void)
{
    check_network(&networks[2], CVY_DTYPE_F64);
}
static void regression_f32(void)
{
    check_network(&networks[2], CVY_DTYPE_F32);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    TEST(plain_f64);
    TEST(plain_f32);
    TEST(residual_f64);
    TEST(residual_f32);
    TEST(regression_f64);
    TEST(regression_f32);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
