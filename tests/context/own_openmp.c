/*
 * own_openmp.c: a host program with OpenMP and BLAS of its own, for own_openmp.sh. It trains and applies a network
 * between and during its own parallel loops and products of matrices, and checks that these stay right and that its
 * settings stay as they were. It prints the losses and outputs as hexadecimal numbers. Without OpenMP it does the same
 * without loops and products, which the numbers must not show.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(HOST_BLAS)
#include <cblas.h>
int openblas_get_num_threads(void);
void openblas_set_num_threads(int threads);
#endif

enum { ROWS = 64, INPUTS = 16, HIDDEN = 64, STEPS = 10, TRAIN_THREADS = 2, HOST_THREADS = 3, N = 160, ROUNDS = 20 };

static void need(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void ok(cvy_status status)
{
    need(status == CVY_OK, cvy_error_text());
}

/* ---- the host's own work: sums of integers, which have no rounding ---- */

#if defined(HOST_BLAS)
static void multiply(void)
{
    double *a = malloc(sizeof *a * N * N), *b = malloc(sizeof *b * N * N), *c = malloc(sizeof *c * N * N);
    need(a && b && c, "no memory");
    for (int i = 0; i < N * N; i++) {
        a[i] = i % 7 - 3;
        b[i] = i % 5 - 2;
        c[i] = -1;
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i * N + k] * b[k * N + j];
            need(sum == c[i * N + j], "the host's product of matrices is wrong");
        }
    free(a);
    free(b);
    free(c);
}
#else
static void multiply(void)
{
}
#endif

#if defined(_OPENMP)
static void loop(void)
{
    enum { ITEMS = 100000 };
    long sum = 0;
    int team = 0;
#pragma omp parallel for schedule(runtime) reduction(+ : sum)
    for (int i = 0; i < ITEMS; i++)
        sum += i;
    need(sum == (long)ITEMS * (ITEMS - 1) / 2, "the host's parallel loop is wrong");
#pragma omp parallel reduction(+ : team)
    {
#pragma omp barrier
        team++;
    }
    need(team == HOST_THREADS, "the host's team has another size");
}
#else
static void loop(void)
{
}
#endif

static void host_works(void)
{
    loop();
    multiply();
}

static _Atomic int training_ends, rounds;

/* Another thread of the host, which has OpenMP settings of its own. */
static void *host_works_on(void *unused)
{
#if defined(_OPENMP)
    omp_set_num_threads(HOST_THREADS);
    omp_set_dynamic(0);
#endif
    do {
        host_works();
        atomic_fetch_add(&rounds, 1);
    } while (!atomic_load(&training_ends));
    return unused;
}

/* ---- its settings ---- */

struct settings {
    int threads, dynamic, levels, schedule, chunk, blas;
};

static void set(void)
{
#if defined(_OPENMP)
    omp_set_num_threads(HOST_THREADS);
    omp_set_dynamic(0);
    omp_set_max_active_levels(2);
    omp_set_schedule(omp_sched_guided, 7);
#endif
#if defined(HOST_BLAS)
    openblas_set_num_threads(2);
#endif
}

static struct settings look(void)
{
    struct settings s;
    memset(&s, 0, sizeof s);
#if defined(_OPENMP)
    omp_sched_t schedule;
    omp_get_schedule(&schedule, &s.chunk);
    s.schedule = (int)schedule;
    s.threads = omp_get_max_threads();
    s.dynamic = omp_get_dynamic();
    s.levels = omp_get_max_active_levels();
#endif
#if defined(HOST_BLAS)
    s.blas = openblas_get_num_threads();
#endif
    return s;
}

static void check_settings(const struct settings *before)
{
    const struct settings now = look();
    need(now.threads == before->threads, "omp_get_max_threads() has changed");
    need(now.dynamic == before->dynamic, "omp_get_dynamic() has changed");
    need(now.levels == before->levels, "omp_get_max_active_levels() has changed");
    need(now.schedule == before->schedule && now.chunk == before->chunk, "omp_get_schedule() has changed");
    need(now.blas == before->blas, "the number of threads of OpenBLAS has changed");
}

/* ---- the network ---- */

struct training {
    cvy_context *context;
    cvy_program *program;
    int train, apply;
};

static void begin(struct training *t)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = TRAIN_THREADS};
    const cvy_program_opts program = {.size = sizeof program, .seed = 3, .wisdom = "off"};
    cvy_model *m = NULL;
    ok(cvy_context_create(&opts, &t->context));
    ok(cvy_model_create("host", &m));
    ok(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {1, INPUTS, INPUTS}}));
    ok(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    ok(cvy_model_add(m, "conv", "conv", "channels: 16, kernel: 3, pad: 1", "x"));
    ok(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    ok(cvy_model_add(m, "relu", NULL, NULL, NULL));
    ok(cvy_model_add(m, "fc", "hidden", "channels: 64", NULL));
    ok(cvy_model_add(m, "tanh", NULL, NULL, NULL));
    ok(cvy_model_add(m, "fc", "fc", "channels: 1", NULL));
    ok(cvy_model_add(m, "mse", "loss", NULL, "fc, y"));
    ok(cvy_program_create(t->context, &program, &t->program));
    ok(cvy_program_add_training(t->program, m, ROWS, NULL, &t->train));
    ok(cvy_program_add_forward(t->program, m, ROWS, "fc", &t->apply));
    ok(cvy_program_plan(t->program));
    cvy_model_destroy(&m);
}

static void give_inputs(const struct training *t, int task)
{
    float *x = cvy_program_feed(t->program, task, "x"), *y = cvy_program_feed(t->program, task, "y");
    need(x && y, cvy_error_text());
    for (int i = 0; i < ROWS * INPUTS * INPUTS; i++)
        x[i] = (float)(i % 23 - 11) / 8;
    for (int i = 0; i < ROWS; i++)
        y[i] = (float)(i % 3);
}

static void step(const struct training *t)
{
    double loss = 0;
    give_inputs(t, t->train);
    ok(cvy_program_step(t->program, t->train, 0.01));
    ok(cvy_program_loss(t->program, t->train, "loss", &loss));
    printf("loss %a\n", loss);
}

static void apply(const struct training *t, float *out)
{
    give_inputs(t, t->apply);
    ok(cvy_program_step(t->program, t->apply, 0));
    ok(cvy_program_read_output(t->program, t->apply, "fc", CVY_DTYPE_F32, out, ROWS));
}

static void print_output(const struct training *t)
{
    float out[ROWS];
    apply(t, out);
    for (int i = 0; i < ROWS; i++)
        printf("%a\n", out[i]);
}

static void end(struct training *t)
{
    cvy_program_destroy(&t->program);
    cvy_context_destroy(&t->context);
}

/* ---- in turns, then at the same time ---- */

static void work_in_turns(void)
{
    const struct settings before = look();
    struct training t;
    host_works();
    begin(&t);
    check_settings(&before);
    for (int i = 0; i < STEPS; i++) {
        step(&t);
        check_settings(&before);
        host_works();
        print_output(&t);
        check_settings(&before);
        host_works();
    }
    end(&t);
    host_works();
    check_settings(&before);
}

static void work_at_once(void)
{
    const struct settings before = look();
    struct training t;
    pthread_t worker;
    float first[ROWS], again[ROWS];
    need(pthread_create(&worker, NULL, host_works_on, NULL) == 0, "no thread");
    begin(&t);
    for (int i = 0; i < STEPS; i++) {
        step(&t);
        print_output(&t);
        check_settings(&before);
    }
    apply(&t, first);
    do {
        apply(&t, again);
        need(memcmp(first, again, sizeof first) == 0, "the same samples have other outputs");
    } while (atomic_load(&rounds) < ROUNDS);
    atomic_store(&training_ends, 1);
    need(pthread_join(worker, NULL) == 0, "no join");
    end(&t);
    check_settings(&before);
    host_works();
}

int main(void)
{
    set();
    work_in_turns();
    work_at_once();
    return 0;
}
