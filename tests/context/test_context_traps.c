/*
 * test_context_traps.c: a host program that traps floating-point exceptions, and rounds downward, trains and applies
 * networks whose layers overflow inside; no trap is sprung, and the numbers are those of another host, to the bit. Its
 * traps, rounding and exceptions are then as before, also in the threads of its own OpenMP loops and in its callbacks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <fenv.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "base/base_entry.h"
#include "test_util.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { THREADS = 2, ROWS = 64, FEATURES = 48, LAYERS = 8, STEPS = 3 };
enum { TRAPS = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW };

static const char *const layer[LAYERS] = {"relu", "sigmoid", "tanh", "softplus", "elu", "gelu", "silu", "softmax"};

struct numbers {
    double loss[LAYERS][STEPS];
    float applied[LAYERS][ROWS];
    double job_loss, job_val_loss;
};

#if defined(__GLIBC__)
static int traps(void)
{
    return fegetexcept();
}

/* Returns what is trapped then: not every processor can trap. */
static int trap(int exceptions)
{
    fedisableexcept(FE_ALL_EXCEPT);
    feenableexcept(exceptions);
    return fegetexcept();
}
#else
static int traps(void)
{
    return 0;
}

static int trap(int exceptions)
{
    (void)exceptions;
    return 0;
}
#endif

/* ---- the host's threads ---- */

static int state_of_host; /* what a callback must find */

static int state(void)
{
    return traps() << 16 | fegetround();
}

static void expect_state(int expected)
{
    EXPECT_INT(state(), expected);
#if defined(_OPENMP)
    int other = expected;
#pragma omp parallel num_threads(THREADS)
    if (omp_get_thread_num() == 1)
        other = state();
    EXPECT_INT(other, expected);
#endif
}

static void on_progress(void *user, const cvy_progress *progress)
{
    (void)progress;
    EXPECT_INT(state(), state_of_host);
    ++*(int *)user;
}

/* ---- training ---- */

static const char job[] = "model: {layers: [{fc: {channels: 16}}, sigmoid, dropout, {fc: {channels: 4}}]}\n"
                          "data: {train: {format: synthetic, samples: 64, shape: [1, 6, 6], classes: 4}, val: 25%}\n"
                          "train: {batch: 16, epochs: 2, optimizer: {name: adam, lr: 0.05}}\n";

static void run_job(cvy_context *context, cvy_train_result *result)
{
    char folder[] = "/tmp/cvy-traps-XXXXXX", out[40], command[60];
    int ncalls = 0;
    const cvy_job_source source = {.size = sizeof source, .text = job};
    const cvy_train_opts opts = {.size = sizeof opts, .out = out, .progress = on_progress, .user = &ncalls};
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(out, sizeof out, "%s/run", folder);
    EXPECT_OK(cvy_run_train(context, &source, &opts, result));
    EXPECT(ncalls > 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT(system(command) == 0);
}

static void train_with(cvy_context *context, int k, struct numbers *out)
{
    const cvy_program_opts opts = {.size = sizeof opts, .seed = 1, .wisdom = "off"};
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int train = 0, apply = 0;
    static float x[ROWS * FEATURES], y[ROWS];
    EXPECT_OK(cvy_model_create("traps", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {FEATURES}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    EXPECT_OK(cvy_model_add(m, layer[k], "first", NULL, "x"));
    EXPECT_OK(cvy_model_add(m, "fc", "hidden", "channels: 64", NULL));
    EXPECT_OK(cvy_model_add(m, layer[k], "second", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "out", "channels: 1", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "out, y"));
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, ROWS, NULL, &train));
    EXPECT_OK(cvy_program_add_forward(p, m, ROWS, "out", &apply));
    EXPECT_OK(cvy_program_plan(p));
    for (int i = 0; i < ROWS * FEATURES; i++)
        x[i] = (float)((i * 37) % 201 - 100); /* exp(100) is no f32 */
    for (int i = 0; i < ROWS; i++)
        y[i] = (float)(i % 2);
    EXPECT_OK(cvy_program_write_input(p, train, "x", CVY_DTYPE_F32, x, ROWS * FEATURES));
    EXPECT_OK(cvy_program_write_input(p, train, "y", CVY_DTYPE_F32, y, ROWS));
    EXPECT_OK(cvy_program_write_input(p, apply, "x", CVY_DTYPE_F32, x, ROWS * FEATURES));
    for (int i = 0; i < STEPS; i++) {
        EXPECT_OK(cvy_program_step(p, train, 1e-4));
        EXPECT_OK(cvy_program_loss(p, train, "loss", &out->loss[k][i]));
    }
    EXPECT_OK(cvy_program_step(p, apply, 0));
    EXPECT_OK(cvy_program_read_output(p, apply, "out", CVY_DTYPE_F32, out->applied[k], ROWS));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

/* With the first `n` of the layers, and a job. */
static void train_all(int n, struct numbers *out)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = THREADS};
    cvy_train_result result = {.size = sizeof result};
    cvy_context *context = NULL;
    memset(out, 0, sizeof *out);
    EXPECT_OK(cvy_context_create(&opts, &context));
    for (int k = 0; context && k < n; k++)
        train_with(context, k, out);
    run_job(context, &result);
    out->job_loss = result.train_loss;
    out->job_val_loss = result.val_loss;
    cvy_context_destroy(&context);
}

static void expect_same(const struct numbers *plain, const struct numbers *trapped)
{
    for (int k = 0; k < LAYERS; k++) {
        EXPECT(isfinite(plain->loss[k][STEPS - 1]));
        EXPECT(memcmp(plain->loss[k], trapped->loss[k], sizeof plain->loss[k]) == 0);
        EXPECT(memcmp(plain->applied[k], trapped->applied[k], sizeof plain->applied[k]) == 0);
    }
    EXPECT(plain->job_loss == trapped->job_loss && plain->job_val_loss == trapped->job_val_loss);
}

/* As in programs that are compiled with -ffast-math. Sums that keep denormals must not depend on the thread. */
static void with_denormals_flushed(void)
{
#if defined(__SSE2__)
    enum { FLUSH = 0x8040 };
    cvy_context *context = NULL;
    EXPECT(!cvy_math_was_unusual());
    _mm_setcsr(_mm_getcsr() | FLUSH);
    EXPECT_OK(cvy_context_create(NULL, &context));
    EXPECT(cvy_math_was_unusual()); /* so the threads of the team are set for each step */
    EXPECT_INT(_mm_getcsr() & FLUSH, FLUSH);
    _mm_setcsr(_mm_getcsr() & ~(unsigned)FLUSH);
    cvy_context_destroy(&context);
#endif
}

#if defined(_OPENMP)
/* The host has traps in the threads of its own loops, and none in the thread that calls the library. */
static void in_other_threads(void)
{
    static struct numbers plain, trapped;
    int expected = 0, left = 0;
    state_of_host = state();
    train_all(2, &plain);
#pragma omp parallel num_threads(THREADS)
    if (omp_get_thread_num() == 1) {
        trap(TRAPS);
        fesetround(FE_DOWNWARD);
    }
#pragma omp parallel num_threads(THREADS)
    if (omp_get_thread_num() == 1)
        expected = state(); /* LLVM's OpenMP gives the thread what the first one has */
    train_all(2, &trapped);
#pragma omp parallel num_threads(THREADS)
    if (omp_get_thread_num() == 1)
        left = state();
    EXPECT_INT(left, expected);
    expect_same(&plain, &trapped);
}
#endif

static void as_without_traps(void)
{
    static struct numbers plain, trapped;
    const int caught = trap(TRAPS); /* first of all: the library starts the team, and not the host */
    fesetround(FE_DOWNWARD);
    feclearexcept(FE_ALL_EXCEPT);
    state_of_host = state();
    train_all(LAYERS, &trapped);
    EXPECT_INT(fetestexcept(TRAPS), 0);
    EXPECT_INT(traps(), caught);
    expect_state(state_of_host);
    trap(0);
    fesetround(FE_TONEAREST);
    state_of_host = state();
    feraiseexcept(FE_DIVBYZERO);
    train_all(LAYERS, &plain);
    EXPECT_INT(fetestexcept(TRAPS), FE_DIVBYZERO); /* neither more nor less than before */
    feclearexcept(FE_ALL_EXCEPT);
    expect_same(&plain, &trapped);
}

/* Each test has a process whose team does not run yet. */
#define IN_A_PROCESS(test)                                                                                             \
    do {                                                                                                               \
        int status = 0;                                                                                                \
        const pid_t child = fork();                                                                                    \
        if (child == 0) {                                                                                              \
            TEST(test);                                                                                                \
            return test_end();                                                                                         \
        }                                                                                                              \
        EXPECT(waitpid(child, &status, 0) == child && status == 0);                                                    \
    } while (0)

int main(void)
{
#if defined(_OPENMP)
    IN_A_PROCESS(in_other_threads);
#endif
    IN_A_PROCESS(with_denormals_flushed);
    TEST(as_without_traps);
    return test_end();
}
