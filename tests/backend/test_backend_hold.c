/* ranks: 1 2 */
/* rows: mpich asan */
/*
 * test_backend_hold.c: the emulated device decides by itself whether a step updates the weights, and the host prepares
 * the next step meanwhile.
 *
 * If a loss or a gradient is not finite, all variables keep their bits, with each optimiser and with all else that an
 * update writes, and the message is that of the host. Steps whose rows were sent while the step before ran have the
 * bits of steps that were taken one after the other, whatever the device does first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/emulated/emulated.h"
#include "context/context.h"
#include "program/program_impl.h"
#include "test_util.h"

enum { BATCH = 8, STEPS = 6, SEEDS = 20, IN = 3 * 6 * 6, WIDE = 16 };

static cvy_context *host, *device;

/* How the network is trained. */
static const struct kind {
    const char *name, *optimizer, *options;
    cvy_dtype dtype;
    double clip_norm, clip_weights;
    int64_t accumulate;
    cvy_update_mode mode;
} kinds[] = {
    {.name = "sgd", .optimizer = "sgd", .options = "momentum: 0.9, nesterov: true"},
    {.name = "adam with an average", .optimizer = "adam", .options = "average: 0.9"},
    {.name = "adamw, clipped", .optimizer = "adamw", .clip_norm = 1, .clip_weights = 1},
    {.name = "rmsprop", .optimizer = "rmsprop", .options = "momentum: 0.9, centered: true"},
    {.name = "adagrad", .optimizer = "adagrad", .accumulate = 2},
    {.name = "adadelta", .optimizer = "adadelta"},
    {.name = "lars", .optimizer = "lars"},
    {.name = "lamb", .optimizer = "lamb", .options = "average: 0.9"},
    {.name = "adam in bf16", .optimizer = "adam", .dtype = CVY_DTYPE_BF16},
    {.name = "lamb in bf16", .optimizer = "lamb", .dtype = CVY_DTYPE_BF16, .accumulate = 2},
};

/* A classifier with batch norm and spectral norm, and beside it two layers on z, whose products overflow if z is large:
 * outputs of about 1e20 make a loss that is finite, and a gradient of `small.weight` that is not. */
static cvy_model *make_model(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("hold", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 6, 6}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add_input(m, "z", CVY_DTYPE_F32, &(cvy_shape){1, {WIDE}}));
    EXPECT_OK(cvy_model_add_input(m, "t", CVY_DTYPE_F32, &(cvy_shape){1, {2}}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 4, kernel: 3, pad: 1, spectral_norm: true", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "norm", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 4", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "classes", NULL, "fc, label"));
    EXPECT_OK(cvy_model_add(m, "fc", "large", "channels: 32", "z"));
    EXPECT_OK(cvy_model_add(m, "fc", "small", "channels: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "values", NULL, "small, t"));
    return m;
}

static cvy_program *make_program(cvy_context *context, const struct kind *k, const char *kernels)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .seed = 5,
                                   .dtype = k->dtype,
                                   .bucket_bytes = 1024,
                                   .kernels = kernels,
                                   .update_mode = k->mode,
                                   .wisdom = "off",
                                   .reduce_no_node = 1,
                                   .reduce = "doubling"};
    const cvy_training_opts training = {.size = sizeof training,
                                        .accumulate = k->accumulate,
                                        .optimizer = k->optimizer,
                                        .optimizer_options = k->options,
                                        .clip_norm = k->clip_norm,
                                        .clip_weights = k->clip_weights};
    cvy_model *m = make_model();
    cvy_program *p = NULL;
    int task = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &training, &task));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m);
    return p;
}

/* z: of all rows; x: a factor in the last row of each rank. */
static void fill(cvy_program *p, int step, float z, float x)
{
    float *const images = cvy_program_feed(p, 0, "x"), *const wide = cvy_program_feed(p, 0, "z"),
                 *const target = cvy_program_feed(p, 0, "t");
    int32_t *const label = cvy_program_feed(p, 0, "label");
    const int64_t first = cvy_program_first_row(p, 0), rows = cvy_program_rows(p, 0);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < IN; i++)
            images[r * IN + i] = (float)((step * 7 + (first + r) * 31 + i * i) % 13) / 6 - 1;
        for (int64_t i = 0; i < WIDE; i++)
            wide[r * WIDE + i] = i % 7 == 3 ? z * (float)(1 + step % 3) : 0;
        target[2 * r] = target[2 * r + 1] = (float)(step % 4);
        label[r] = (int32_t)((step + first + r) % 4);
        if (r == rows - 1)
            images[r * IN + 5] *= x;
    }
}

/* ---- all variables with their shadow copies, as bytes of the space ---- */

enum { ROOM = 1 << 16 };

static size_t read_variables(cvy_program *p, char *to)
{
    const cvy_vars *vars = cvy_program_vars(p);
    size_t n = 0;
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        EXPECT(n + 2 * v->bytes < ROOM);
        EXPECT_OK(cvy_space_read(v->space, to + n, v->data, v->bytes));
        n += v->bytes;
        if (v->shadow)
            EXPECT_OK(cvy_space_read(v->space, to + n, v->shadow, cvy_variable_shadow_bytes(v)));
        n += v->shadow ? cvy_variable_shadow_bytes(v) : 0;
    }
    return n;
}

/* Takes a step that must fail; the message and what was lost are written. */
static void fail_step(cvy_program *p, const struct kind *k, double lr, char text[512])
{
    static char before[ROOM], after[ROOM];
    const size_t n = read_variables(p, before);
    const cvy_status status = cvy_program_step(p, 0, lr);
    if (status != CVY_E_NUMERIC)
        TEST_FAIL("%s: a step that is not finite returns %d", k->name, status);
    snprintf(text, 512, "%s: %s", cvy_program_lost(p, 0), cvy_error_text());
    EXPECT_INT(read_variables(p, after), n);
    if (memcmp(before, after, n) != 0)
        TEST_FAIL("%s: a step that is not finite has changed a variable: %s", k->name, text);
}

/* A gradient that is not finite, a larger one, and an input with its loss, between steps that are. */
static void train(cvy_program *p, const struct kind *k, char text[3][512], double loss[4])
{
    for (int i = 0; i < 4; i++) {
        fill(p, i, 1, 1);
        EXPECT_OK(cvy_program_step(p, 0, 1e-3));
        EXPECT_OK(cvy_program_loss(p, 0, "classes", &loss[i]));
        if (i == 3)
            break;
        fill(p, i, i == 0 ? 1e25F : i == 1 ? 1e38F : 1, i == 2 ? NAN : 1);
        fail_step(p, k, 1e-3, text[i]);
    }
}

static void variables_are_kept(void)
{
    for (int k = 0; k < CVY_COUNT(kinds); k++) {
        char expected[3][512], text[3][512];
        double loss[2][4];
        cvy_program *reference = make_program(host, &kinds[k], "reference"), *p = make_program(device, &kinds[k], NULL);
        cvy_emulated_setup_now.seed = (uint64_t)k + 1;
        train(reference, &kinds[k], expected, loss[0]);
        train(p, &kinds[k], text, loss[1]);
        EXPECT_INT(cvy_program_task_plan(p, 0)->update.can_hold, 1);
        for (int i = 0; i < 3; i++)
            EXPECT_TEXT(text[i], expected[i]);
        if (kinds[k].dtype == CVY_DTYPE_F32) {
            EXPECT(strstr(text[0], "a gradient: the first value that is not finite is in small.fc_grad_weight"));
            EXPECT(strstr(text[2], "the loss: the first value that is not finite is in the input x"));
        }
        for (int i = 0; i < 4; i++)
            EXPECT_NEAR(loss[1][i], loss[0][i], kinds[k].dtype == CVY_DTYPE_F32 ? 1e-4 : 0.05);
        cvy_program_destroy(&p);
        cvy_program_destroy(&reference);
    }
}

/* The host decides if it runs the updates, and if ranks have parts of the sums. */
static void the_host_decides(void)
{
    static const struct kind zero1 = {.name = "zero1", .optimizer = "sgd", .mode = CVY_UPDATE_ZERO1};
    char text[3][512];
    double loss[4];
    cvy_program *p = make_program(device, &kinds[0], "reference");
    train(p, &kinds[0], text, loss);
    EXPECT_INT(cvy_program_task_plan(p, 0)->update.can_hold, 0);
    cvy_program_destroy(&p);
    p = make_program(device, &zero1, NULL);
    train(p, &zero1, text, loss);
    EXPECT_INT(cvy_program_can_send(p, 0), cvy_program_update(p)->end != NULL); /* on one rank it is sync */
    cvy_program_destroy(&p);
}

/* ---- steps that are prepared while another runs ---- */

static void send(cvy_program *p, int step)
{
    fill(p, step, 1, 1);
    EXPECT_OK(cvy_program_send_feeds(p, 0));
}

/* ahead 1: the next rows are sent while a step runs; 2: between two steps, so that they are the latest work when the
 * next one begins. */
static void take_steps(int ahead, const struct kind *k, double loss[STEPS], char *variables)
{
    cvy_program *p = make_program(device, k, NULL);
    EXPECT_INT(cvy_program_can_send(p, 0), 1);
    fill(p, 0, 1, 1);
    for (int i = 0; i < STEPS; i++) {
        EXPECT_OK(cvy_program_step_begin(p, 0, 1e-3 * (i + 1)));
        if (ahead == 1 && i + 1 < STEPS)
            send(p, i + 1);
        (void)cvy_program_step_is_done(p, 0);
        EXPECT_OK(cvy_program_step_end(p, 0));
        EXPECT(cvy_program_step_is_done(p, 0));
        EXPECT_OK(cvy_program_loss(p, 0, "classes", &loss[i]));
        if (ahead == 2 && i + 1 < STEPS)
            send(p, i + 1);
        else if (!ahead)
            fill(p, i + 1, 1, 1);
    }
    (void)read_variables(p, variables);
    cvy_program_destroy(&p);
}

static void rows_are_sent_ahead(void)
{
    static char expected[ROOM], got[ROOM];
    double loss[STEPS], plain[STEPS];
    cvy_emulated_setup_now.poison = 1; /* nothing is read that was not written */
    take_steps(0, &kinds[1], plain, expected);
    for (int seed = 0; seed < SEEDS; seed++) {
        cvy_emulated_setup_now.seed = (uint64_t)(100 + seed);
        take_steps(1 + seed % 2, &kinds[1], loss, got);
        if (memcmp(loss, plain, sizeof loss) != 0 || memcmp(got, expected, sizeof got) != 0)
            TEST_FAIL("with seed %d steps differ from those that were taken one after the other", 100 + seed);
    }
    cvy_emulated_setup_now.poison = 0;
}

/* The rows of the next step are there already when the host looks for what is not finite in this one. */
static void a_fault_is_of_its_own_step(void)
{
    cvy_program *p = make_program(device, &kinds[0], NULL);
    fill(p, 0, 1, NAN);
    EXPECT_OK(cvy_program_step_begin(p, 0, 1e-3));
    fill(p, 1, 1, 1);
    EXPECT_OK(cvy_program_send_feeds(p, 0));
    EXPECT_FAULT(cvy_program_step_end(p, 0), CVY_E_NUMERIC, "is in the input x");
    EXPECT_OK(cvy_program_step(p, 0, 1e-3));
    cvy_program_destroy(&p);
}

/* The program says all that it takes of the device: tensors, inputs of this step and rows of the next one. */
static void memory_is_foreseen(void)
{
    const struct kind k = {.name = "sgd", .optimizer = "sgd", .options = "momentum: 0"};
    const int64_t before = cvy_emulated_done_now.bytes;
    cvy_program *p = make_program(device, &k, "reference"); /* kernels of the device have tables of their own */
    const cvy_plan_feeds *feeds = &cvy_program_task_plan(p, 0)->feeds;
    const cvy_memory_use use = cvy_program_memory_use(p, &(int){0}, 1);
    EXPECT_INT(use.feeds, feeds->bytes + feeds->ahead_bytes);
    EXPECT(feeds->ahead_bytes > 0 && feeds->ahead_bytes + feeds->step_bytes == feeds->bytes);
    EXPECT_INT(cvy_emulated_done_now.bytes - before, use.total);
    cvy_program_destroy(&p);
}

int main(int argc, char **argv)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &host));
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &device));
    EXPECT_OK(cvy_context_use(device, &cvy_emulated_backend));
    TEST(memory_is_foreseen);
    TEST(variables_are_kept);
    TEST(the_host_decides);
    TEST(rows_are_sent_ahead);
    TEST(a_fault_is_of_its_own_step);
    cvy_context_destroy(&host);
    cvy_context_destroy(&device);
    MPI_Finalize();
    return test_end();
}
