/* ranks: 1 2 */
/* rows: mpich asan */
/*
 * test_extension_function.c: operators whose functions are in this program. A loss of the program trains as the same
 * loss of the library does, in f32 and f64 and on any number of ranks; a function that fails ends the call with its
 * message; a wrong gradient is found; wrong descriptors and ranks that differ are refused and change nothing; nothing
 * is computed twice to save memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <math.h>
#include <stdlib.h>

#include "extension/extension.h"
#include "test_util.h"

enum { INPUTS = 4, OUTPUTS = 3, ROWS = 8, STEPS = 25, WEIGHTS = 8 * INPUTS, CHAIN = 6 };

/* What the functions find through `user`. */
struct host {
    int forward, backward; /* calls */
    int fails_at;          /* the number of the call of forward that fails; 0: none */
    double wrong;          /* relative error of the derivative for the last element of each sample */
};

static cvy_context *context;

static double get(const cvy_operator_tensor *t, int64_t i)
{
    return t->dtype == CVY_DTYPE_F64 ? ((const double *)t->data)[i] : ((const float *)t->data)[i];
}

static void set(const cvy_operator_tensor *t, int64_t i, double x)
{
    if (t->dtype == CVY_DTYPE_F64)
        ((double *)t->data)[i] = x;
    else
        ((float *)t->data)[i] = (float)x;
}

/* ---- own_mse: the mean squared difference of two sources, for each sample ---- */

static int mse_forward(const cvy_operator_call *c)
{
    struct host *host = c->user;
    const int64_t n = c->dst[0].elems, each = n ? c->src[0].elems / n : 0;
    if (++host->forward == host->fails_at) {
        snprintf(c->message, c->message_bytes, "call %d was to fail", host->forward);
        return 1;
    }
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int64_t e = k * each; e < (k + 1) * each; e++)
            sum += pow(get(&c->src[0], e) - get(&c->src[1], e), 2);
        set(&c->dst[0], k, sum / (double)each);
    }
    return 0;
}

static int mse_backward(const cvy_operator_call *c)
{
    struct host *host = c->user;
    const int64_t n = c->ddst->elems, each = n ? c->src[0].elems / n : 0;
    host->backward++;
    for (int64_t e = 0; e < n * each; e++) {
        const double d = 2 * (get(&c->src[0], e) - get(&c->src[1], e)) / (double)each * get(c->ddst, e / each);
        if (c->dsrc[0].data)
            set(&c->dsrc[0], e, e % each == each - 1 ? d * (1 + host->wrong) : d);
        if (c->dsrc[1].data)
            set(&c->dsrc[1], e, -d);
    }
    return 0;
}

static cvy_operator own_mse(struct host *host)
{
    return (cvy_operator){.size = sizeof(cvy_operator),
                          .name = "own_mse",
                          .nsrc_min = 2,
                          .nsrc_max = 2,
                          .splits = CVY_OPERATOR_SPLIT_SAMPLES,
                          .reads = CVY_OPERATOR_READS_SOURCES,
                          .forward = mse_forward,
                          .backward = mse_backward,
                          .user = host};
}

/* ---- twice: a layer of the size of its source ---- */

static int twice_forward(const cvy_operator_call *c)
{
    ((struct host *)c->user)->forward++;
    for (int64_t i = 0; i < c->dst[0].elems; i++)
        set(&c->dst[0], i, 2 * get(&c->src[0], i));
    return 0;
}

static int twice_backward(const cvy_operator_call *c)
{
    ((struct host *)c->user)->backward++;
    for (int64_t i = 0; i < c->dsrc[0].elems; i++)
        set(&c->dsrc[0], i, 2 * get(c->ddst, i));
    return 0;
}

static cvy_operator twice(struct host *host)
{
    return (cvy_operator){.size = sizeof(cvy_operator),
                          .name = "twice",
                          .nsrc_min = 1,
                          .nsrc_max = 1,
                          .splits = CVY_OPERATOR_SPLIT_SAMPLES,
                          .reads = CVY_OPERATOR_READS_RESULT, /* so it is kept, or would be recomputed */
                          .forward = twice_forward,
                          .backward = twice_backward,
                          .user = host,
                          .result = {1, {64}}};
}

/* ---- training ---- */

static void add_network(cvy_model *m, int is_own)
{
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {INPUTS}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {OUTPUTS}}));
    EXPECT_OK(cvy_model_add_input(m, "weight", CVY_DTYPE_F32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "fc", "hidden", "channels: 8", "x"));
    EXPECT_OK(cvy_model_add(m, "tanh", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "out", "channels: 3", NULL));
    if (is_own)
        EXPECT_OK(cvy_model_add(m, "own_mse", "each", NULL, "out, y"));
    EXPECT_OK(cvy_model_add(m, is_own ? "mean" : "mse", "loss", NULL, is_own ? "each, weight" : "out, y, weight"));
}

struct trained {
    double weight[WEIGHTS], loss;
    cvy_status status;
};

/* The samples are those of the global batch, whatever the number of ranks. Each rank leaves out its last `padding`. */
static void train_on(cvy_context *on, int is_own, cvy_program_opts opts, int64_t padding, struct trained *out)
{
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int task = -1;
    opts.seed = 2;
    opts.wisdom = "off";
    EXPECT_OK(cvy_model_create("host", &m));
    EXPECT_OK(cvy_model_use_context(m, on));
    add_network(m, is_own);
    EXPECT_OK(cvy_program_create(on, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, ROWS, NULL, &task));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m);
    const int64_t rows = cvy_program_rows(p, task), first = cvy_program_first_row(p, task);
    double x[ROWS * INPUTS], y[ROWS * OUTPUTS];
    for (int64_t i = 0; i < rows * INPUTS; i++)
        x[i] = sin(0.7 * (double)(first * INPUTS + i));
    for (int64_t i = 0; i < rows * OUTPUTS; i++)
        y[i] = cos(0.4 * (double)(first * OUTPUTS + i));
    out->status = CVY_OK;
    for (int step = 0; step < STEPS && out->status == CVY_OK; step++) {
        if (padding)
            EXPECT_OK(cvy_program_set_rows(p, task, rows - padding));
        EXPECT_OK(cvy_program_write_input(p, task, "x", CVY_DTYPE_F64, x, (rows - padding) * INPUTS));
        EXPECT_OK(cvy_program_write_input(p, task, "y", CVY_DTYPE_F64, y, (rows - padding) * OUTPUTS));
        out->status = cvy_program_step(p, task, 0.3);
    }
    if (out->status == CVY_OK)
        EXPECT_OK(cvy_program_loss(p, task, "loss", &out->loss));
    float narrow[WEIGHTS];
    EXPECT_OK(cvy_program_get(p, "hidden.weight", opts.dtype == CVY_DTYPE_F64 ? (void *)out->weight : narrow, WEIGHTS));
    for (int i = 0; i < WEIGHTS && opts.dtype != CVY_DTYPE_F64; i++)
        out->weight[i] = narrow[i];
    cvy_program_destroy(&p);
}

static void trains_as_the_librarys_loss(void)
{
    struct host host = {0};
    const cvy_operator op = own_mse(&host);
    EXPECT_OK(cvy_context_add_operator(context, &op));
    for (int wide = 0; wide < 2; wide++)
        for (int64_t padding = 0; padding < 2; padding++) {
            const cvy_program_opts opts = {.size = sizeof opts, .dtype = wide ? CVY_DTYPE_F64 : CVY_DTYPE_F32};
            struct trained own = {0}, ours = {0};
            train_on(context, 0, opts, padding, &ours);
            train_on(context, 1, opts, padding, &own);
            for (int i = 0; i < WEIGHTS; i++)
                EXPECT_NEAR(own.weight[i], ours.weight[i], wide ? 1e-13 : 2e-6);
            EXPECT_NEAR(own.loss, ours.loss, wide ? 1e-13 : 2e-6);
            EXPECT(own.loss > 0 && own.loss < 0.5);
        }
    EXPECT_INT(host.forward, 4 * STEPS);
    EXPECT_INT(host.backward, 4 * STEPS);
}

/* All ranks together, and this rank alone. */
static void same_bits_on_any_number_of_ranks(void)
{
    struct host host = {0};
    const cvy_operator op = own_mse(&host);
    const cvy_program_opts opts = {.size = sizeof opts, .shards = 4};
    struct trained all = {0}, one = {0};
    cvy_context *alone = NULL;
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    EXPECT_OK(cvy_context_add_operator(alone, &op));
    train_on(context, 1, opts, 0, &all);
    train_on(alone, 1, opts, 0, &one);
    EXPECT(memcmp(all.weight, one.weight, sizeof all.weight) == 0);
    EXPECT(all.loss == one.loss);
    cvy_context_destroy(&alone);
}

/* All ranks fail in the same call; the program goes on. */
static void a_failure_ends_the_call(void)
{
    struct host host = {.fails_at = 7};
    cvy_operator op = own_mse(&host);
    cvy_context *own = NULL;
    struct trained t = {0};
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &own));
    EXPECT_OK(cvy_context_add_operator(own, &op));
    train_on(own, 1, cvy_program_opts_default(), 0, &t);
    EXPECT_INT(t.status, CVY_E_ARGUMENT);
    EXPECT(strstr(cvy_error_text(), "layer each") && strstr(cvy_error_text(), "call 7 was to fail") &&
           strstr(cvy_error_text(), "own_mse in this program"));
    EXPECT_INT(host.forward, 7);
    cvy_context_destroy(&own);
}

/* ---- the check ---- */

static char failed[400];

static void note(void *user, const char *line)
{
    (void)user;
    if (strncmp(line, "FAILED", 6) == 0 && !*failed)
        snprintf(failed, sizeof failed, "%s", line);
}

static int check_in(cvy_context *in, const char *sources, const double *const *values)
{
    cvy_operators_result r = cvy_operators_result_default();
    const cvy_operators_opts opts = {
        .size = sizeof opts, .only = "own_mse", .line = note, .sources = sources, .values = values};
    failed[0] = 0;
    EXPECT_OK(cvy_run_check_operators(in, NULL, &opts, &r));
    EXPECT_INT(r.operators, 1);
    return r.failed;
}

static void the_check_compares_with_differences(void)
{
    struct host host = {0};
    const cvy_operator op = own_mse(&host);
    /* of the size of temperatures */
    const double a[6] = {301, 280.5, 299, 0, 310.25, 273},
                 b[6] = {300, 281, 295, 1e-3, 300, 273}, *const values[] = {a, b};
    cvy_operators_result r = cvy_operators_result_default();
    cvy_context *own = NULL;
    EXPECT_OK(cvy_context_create(NULL, &own));
    EXPECT_OK(cvy_context_add_operator(own, &op));
    EXPECT_INT(check_in(own, "4x3,4x3", NULL), 0);
    EXPECT_TEXT(failed, "");
    EXPECT_INT(check_in(own, "2x3,2x3", values), 0);
    EXPECT_TEXT(failed, "");
    EXPECT_INT(check_in(own, NULL, NULL), 1); /* the operator has no samples */
    host.wrong = 0.25;
    EXPECT_INT(check_in(own, "4x3,4x3", NULL), 1);
    EXPECT(strstr(failed, "own_mse: gradient: ") && strstr(failed, "gradient of src0, element 2, is ") &&
           strstr(failed, "finite differences give "));
    host.wrong = 1e-3;
    EXPECT_INT(check_in(own, "2x3,2x3", values), 1);
    EXPECT(strstr(failed, "gradient of src0, element 2, is ") != NULL);
    const cvy_operators_opts nobody = {.size = sizeof nobody, .only = "mine"},
                             few = {.size = sizeof few, .sources = "4x3"},
                             lost = {.size = sizeof lost, .values = values};
    EXPECT_FAULT(cvy_run_check_operators(own, NULL, &nobody, &r), CVY_E_ARGUMENT,
                 "this program has no operator 'mine'; it has own_mse");
    EXPECT_FAULT(cvy_run_check_operators(own, NULL, &few, &r), CVY_E_ARGUMENT, "has 1 sources, expected 2 to 2");
    EXPECT_FAULT(cvy_run_check_operators(own, NULL, &lost, &r), CVY_E_ARGUMENT, "set `sources`");
    cvy_context_destroy(&own);
}

/* ---- what is refused ---- */

static void wrong_descriptors(void)
{
    struct host host = {0};
    const cvy_operator good = own_mse(&host);
    cvy_operator op = good;
    cvy_context *own = NULL;
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &own));
    EXPECT_FAULT(cvy_context_add_operator(NULL, &good), CVY_E_ARGUMENT, "context is NULL");
    EXPECT_FAULT(cvy_context_add_operator(own, NULL), CVY_E_ARGUMENT, "needs an operator");
    op.name = "relu";
    EXPECT_FAULT(cvy_context_add_operator(own, &op), CVY_E_ARGUMENT,
                 "the name 'relu' is taken by an operator of convoy");
    op = good;
    op.forward = NULL;
    EXPECT_FAULT(cvy_context_add_operator(own, &op), CVY_E_ARGUMENT, "own_mse: it has no forward function");
    op = good;
    op.nsaved = 1;
    EXPECT_FAULT(cvy_context_add_operator(own, &op), CVY_E_ARGUMENT, "saved results and no shape function");
    op = good;
    op.result = (cvy_shape){1, {0}};
    EXPECT_FAULT(cvy_context_add_operator(own, &op), CVY_E_ARGUMENT, "result is ");
    op = good;
    op.size = 0;
    EXPECT_FAULT(cvy_context_add_operator(own, &op), CVY_E_ARGUMENT, "the size of cvy_operator is 0");
    op.size = offsetof(cvy_operator, user); /* of an older header: what is behind it is not read */
    EXPECT_OK(cvy_context_add_operator(own, &op));
    EXPECT_FAULT(cvy_context_add_operator(own, &good), CVY_E_ARGUMENT,
                 "the name 'own_mse' is taken by an operator of this program");
    cvy_context_destroy(&own);
}

/* One rank alone differs: all refuse, and can go on with the right one. */
static void ranks_that_disagree(void)
{
    struct host host = {0};
    const cvy_operator good = own_mse(&host);
    cvy_operator other = good;
    cvy_context *own = NULL;
    const int differs = cvy_context_rank(context) == 1;
    if (cvy_context_nranks(context) == 1)
        return;
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &own));
    other.name = "another";
    EXPECT_FAULT(cvy_context_add_operator(own, differs ? &other : &good), CVY_E_DISAGREE, "or added other operators");
    other = good;
    other.reads = 0;
    EXPECT_FAULT(cvy_context_add_operator(own, differs ? &other : &good), CVY_E_DISAGREE, "or added other operators");
    EXPECT_FAULT(cvy_context_add_operator(own, differs ? NULL : &good), CVY_E_ARGUMENT, "needs an operator");
    EXPECT_OK(cvy_context_add_operator(own, &good));
    cvy_context_destroy(&own);
}

/* As cvy_network_open() makes its own context. */
static void a_copy_has_the_operators(void)
{
    struct host host = {0};
    const cvy_operator op = own_mse(&host), other = twice(&host);
    cvy_extensions from = {0}, to = {0};
    EXPECT_OK(cvy_extensions_add(&from, &op));
    EXPECT_OK(cvy_extensions_add(&from, &other));
    EXPECT_OK(cvy_extensions_copy(&to, &from));
    EXPECT_INT(to.nop, 2);
    cvy_extensions_unload(&from);
    EXPECT_TEXT(to.op[0]->forward.name, "own_mse");
    EXPECT_TEXT(to.op[1]->grad.name, "twice_grad");
    EXPECT(to.op[1]->own.user == &host);
    cvy_extensions_unload(&to);
}

static void mean_takes_one_source_and_a_weight(void)
{
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int task = -1;
    EXPECT_OK(cvy_model_create("three", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {INPUTS}}));
    EXPECT_OK(cvy_model_add(m, "fc", "out", "channels: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "mean", "loss", NULL, "out, x, x"));
    EXPECT_OK(cvy_program_create(context, NULL, &p));
    cvy_status status = cvy_program_add_training(p, m, ROWS, NULL, &task);
    status = status == CVY_OK ? cvy_program_plan(p) : status;
    EXPECT_FAULT(status, CVY_E_SHAPE, "mean takes an output and perhaps a weight, got 3 sources");
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

/* ---- memory ---- */

/* Trains a chain with layers of the program under a limit; 0: none. */
static void train_chain(struct host *host, int64_t limit, int64_t *need_out, float *weight)
{
    const cvy_program_opts opts = {.size = sizeof opts, .seed = 1, .wisdom = "off", .memory_limit = limit};
    const cvy_operator op = twice(host);
    cvy_context *own = NULL;
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int task = -1;
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &own));
    EXPECT_OK(cvy_context_add_operator(own, &op));
    EXPECT_OK(cvy_model_create("chain", &m));
    EXPECT_OK(cvy_model_use_context(m, own));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {64}}));
    for (int i = 0; i < CHAIN; i++) {
        EXPECT_OK(cvy_model_add(m, i ? "tanh" : "fc", NULL, i ? NULL : "channels: 64", i ? NULL : "x"));
        EXPECT_OK(cvy_model_add(m, "twice", NULL, NULL, NULL));
        EXPECT_OK(cvy_model_add(m, "sigmoid", NULL, NULL, NULL));
    }
    EXPECT_OK(cvy_model_add(m, "mean", "loss", NULL, NULL));
    EXPECT_OK(cvy_program_create(own, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 2048, NULL, &task));
    EXPECT_OK(cvy_program_plan(p));
    float *x = cvy_program_feed(p, task, "x");
    for (int64_t i = 0; i < 64 * cvy_program_rows(p, task); i++)
        x[i] = (float)(i % 17) / 17;
    for (int step = 0; step < 2; step++)
        EXPECT_OK(cvy_program_step(p, task, 0.1));
    *need_out = cvy_program_bytes(p);
    EXPECT_OK(cvy_program_get(p, "fc1.weight", weight, 64 * 64));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    cvy_context_destroy(&own);
}

static void nothing_is_computed_twice(void)
{
    static float free_weight[64 * 64], limited_weight[64 * 64];
    struct host unlimited = {0}, limited = {0};
    int64_t need = 0, less = 0;
    train_chain(&unlimited, 0, &need, free_weight);
    train_chain(&limited, need * 85 / 100, &less, limited_weight);
    EXPECT(less <= need * 85 / 100); /* so something else was recomputed */
    EXPECT_INT(unlimited.forward, 2 * CHAIN);
    EXPECT_INT(limited.forward, 2 * CHAIN);
    EXPECT_INT(limited.backward, 2 * CHAIN);
    EXPECT(memcmp(free_weight, limited_weight, sizeof free_weight) == 0);
}

static void no_memory_is_left(void)
{
    struct host host = {0};
    const cvy_operator op = own_mse(&host);
    cvy_context *own = NULL;
    EXPECT_OK(cvy_context_create(NULL, &own));
    EXPECT_SURVIVES_NO_MEMORY(cvy_context_add_operator(own, &op));
    cvy_context_destroy(&own);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD,
                                     &(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &context));
    TEST(trains_as_the_librarys_loss);
    TEST(same_bits_on_any_number_of_ranks);
    TEST(a_failure_ends_the_call);
    TEST(the_check_compares_with_differences);
    TEST(wrong_descriptors);
    TEST(ranks_that_disagree);
    TEST(a_copy_has_the_operators);
    TEST(mean_takes_one_source_and_a_weight);
    TEST(nothing_is_computed_twice);
    TEST(no_memory_is_left);
    cvy_context_destroy(&context);
    const int failed_checks = test_end();
    MPI_Finalize();
    return failed_checks;
}
