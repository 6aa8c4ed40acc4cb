/* ranks: 1 2 3 4 */
/*
 * test_stream.c: samples go from solvers to trainers, each once and whole, and weights come back, the same on all
 * solvers in the same call. With a trainer that is slow, a push is held no longer than its bound, and what the policy
 * keeps arrives. A trainer that ends or does not answer is told to the solver, which goes on.
 *
 * On one rank the rank is both; on two or more the last rank trains, on four the last two.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "test_util.h"

enum { BATCH = 8, STEPS = 40, MOST = 12 };

static cvy_context *world, *mine;
static int rank, nranks, ntrainers;
static MPI_Comm side;

static int trains(void)
{
    return nranks == 1 || rank >= nranks - ntrainers;
}

static int solves(void)
{
    return nranks == 1 || !trains();
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_s(double seconds)
{
    const struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
    nanosleep(&t, NULL);
}

/* A program of this side: trainers train together, each solver has its own. */
static cvy_program *make_program(uint64_t seed, int *task)
{
    const cvy_program_opts opts = {.size = sizeof opts, .seed = seed, .wisdom = "off"};
    cvy_program *p = NULL;
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("stream", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {2}}));
    EXPECT_OK(cvy_model_add_input(m, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "fc, y"));
    EXPECT_OK(cvy_program_create(mine, &opts, &p));
    if (trains())
        EXPECT_OK(cvy_program_add_training(p, m, BATCH * cvy_context_nranks(mine), NULL, task));
    else
        EXPECT_OK(cvy_program_add_forward(p, m, BATCH, "fc", task));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m);
    return p;
}

static cvy_reservoir *make_reservoir(const char *keep, int64_t capacity)
{
    const cvy_reservoir_opts opts = {.size = sizeof opts, .capacity = capacity, .keep = keep, .seed = (uint64_t)rank};
    cvy_reservoir *r = NULL;
    EXPECT_OK(cvy_reservoir_create(&opts, &r));
    EXPECT_OK(cvy_reservoir_add_field(r, "x", CVY_DTYPE_F32, &(cvy_shape){1, {2}}));
    EXPECT_OK(cvy_reservoir_add_field(r, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    return r;
}

static const char *role(void)
{
    return nranks == 1 ? "both" : trains() ? "trainer" : "solver";
}

/* The solver's number t has the target 2 x0 - x1. */
static cvy_status push(cvy_stream *s, int64_t first, int n)
{
    double x[2 * MOST], y[MOST];
    for (int i = 0; i < n; i++) {
        const double t = (double)(first + i);
        x[2 * i] = sin(t);
        x[2 * i + 1] = cos(3 * t) + rank;
        y[i] = 2 * x[2 * i] - x[2 * i + 1];
    }
    EXPECT_OK(cvy_stream_put(s, "x", CVY_DTYPE_F64, x, 2 * n));
    EXPECT_OK(cvy_stream_put(s, "y", CVY_DTYPE_F64, y, n));
    return cvy_stream_push(s);
}

static cvy_stream_counts counts_of(const cvy_stream *s)
{
    cvy_stream_counts c = cvy_stream_counts_default();
    EXPECT_OK(cvy_stream_get_counts(s, &c));
    EXPECT(c.pushed == c.delivered + c.dropped + c.waiting);
    return c;
}

/* All numbers of a run, added over ranks. */
static int64_t total(int64_t value)
{
    long long v = value, sum = 0;
    MPI_Allreduce(&v, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static float weight_of(const cvy_program *p)
{
    float w[2] = {0};
    EXPECT_OK(cvy_program_get(p, "fc.weight", w, 2));
    return w[0];
}

/* ---- the whole way: all samples arrive, the network learns, and the solvers get what was learnt ---- */

static void solve(cvy_stream *s, cvy_program *p, float *taken, int64_t *version)
{
    int64_t before = 0;
    for (int t = 0; t < STEPS; t++) {
        EXPECT_OK(push(s, (int64_t)t * MOST, 1 + t % MOST));
        EXPECT_OK(cvy_stream_take(s, version));
        EXPECT(*version == before || *version == before + 1);
        before = *version;
        taken[t] = weight_of(p);
        pause_s(0.002);
    }
}

/* All solvers have the same weights after the same call. */
static void compare_solvers(const float *taken)
{
    float most[STEPS], least[STEPS];
    MPI_Allreduce(taken, most, STEPS, MPI_FLOAT, MPI_MAX, side);
    MPI_Allreduce(taken, least, STEPS, MPI_FLOAT, MPI_MIN, side);
    for (int t = 0; t < STEPS; t++)
        EXPECT(most[t] == least[t]);
}

static void train(cvy_stream *s, cvy_reservoir *r, cvy_program *p, int task, int steps)
{
    cvy_status status = CVY_OK;
    for (int i = 0; i < steps && (status = cvy_stream_receive(s)) == CVY_OK; i++) {
        EXPECT(cvy_reservoir_held(r) > 0);
        EXPECT_OK(cvy_reservoir_draw(r, p, task));
        EXPECT_OK(cvy_program_step(p, task, 0.05));
        EXPECT_OK(cvy_stream_publish(s));
    }
    EXPECT(status == CVY_OK || status == CVY_END);
}

static void whole_way(void)
{
    int task = 0;
    float taken[STEPS];
    int64_t version = 0;
    cvy_program *p = make_program(trains() ? 1 : 2, &task);
    cvy_reservoir *r = trains() ? make_reservoir("uniform", 10000) : NULL;
    const cvy_stream_opts opts = {
        .size = sizeof opts, .role = role(), .reservoir = r, .program = p, .when_full = "wait", .wait_s = 20};
    cvy_stream *s = NULL;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    if (nranks == 1)
        for (int t = 0; t < STEPS; t++) {
            EXPECT_OK(push(s, (int64_t)t * MOST, 1 + t % MOST));
            train(s, r, p, task, 1);
            EXPECT_OK(cvy_stream_take(s, &version));
            EXPECT(version == t + 1);
        }
    else if (solves())
        solve(s, p, taken, &version);
    else
        train(s, r, p, task, INT_MAX);
    if (nranks > 1 && solves()) {
        compare_solvers(taken);
        EXPECT_OK(cvy_stream_flush(s, 20));
        EXPECT(version > 0 && taken[STEPS - 1] != taken[0]);
    }
    const cvy_stream_counts c = counts_of(s);
    EXPECT(c.dropped == 0 && c.waiting == 0);
    cvy_stream_destroy(&s); /* on a solver: the trainers learn that it has ended */
    EXPECT(s == NULL);
    const int64_t pushed = total(c.pushed), received = total(c.received), held = total(r ? cvy_reservoir_held(r) : 0);
    EXPECT(pushed > 0 && received == pushed && held == pushed);
    for (int i = 0; i < 500 && trains(); i++) { /* the trainers go on alone */
        EXPECT_OK(cvy_reservoir_draw(r, p, task));
        EXPECT_OK(cvy_program_step(p, task, 0.05));
    }
    if (trains())
        EXPECT(fabs(weight_of(p) - 2) < 0.02);
    cvy_reservoir_destroy(&r);
    cvy_program_destroy(&p);
}

/* ---- a slow trainer ---- */

static void slow_trainer(const char *policy, double wait_s)
{
    enum { QUEUE = 64 };
    cvy_reservoir *r = trains() ? make_reservoir("newest", 100000) : NULL;
    const cvy_stream_opts opts = {
        .size = sizeof opts, .role = role(), .reservoir = r, .queue = QUEUE, .when_full = policy, .wait_s = wait_s};
    cvy_stream *s = NULL;
    cvy_status status = CVY_OK;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    if (solves()) {
        for (int t = 0; t < 100; t++)
            EXPECT_OK(push(s, (int64_t)t * MOST, MOST));
        const cvy_stream_counts c = counts_of(s);
        EXPECT(c.pushed == 100 * MOST && c.waiting <= QUEUE);
        /* The bound, and room for a busy machine. */
        EXPECT(c.longest_push_s < (policy[0] == 'w' ? wait_s : 0) + 0.5);
        EXPECT(wait_s > 1 ? c.dropped == 0 : c.dropped > 0);
    }
    while (trains() && status == CVY_OK) {
        pause_s(0.02);
        status = cvy_stream_receive(s);
        EXPECT(status == CVY_OK || status == CVY_END);
    }
    if (solves())
        EXPECT_OK(cvy_stream_flush(s, 30));
    const cvy_stream_counts c = counts_of(s);
    cvy_stream_destroy(&s);
    EXPECT(total(c.pushed - c.dropped) == total(r ? cvy_reservoir_seen(r) : 0));
    cvy_reservoir_destroy(&r);
}

/* ---- a trainer that ends, or does not answer ---- */

static void trainer_ends(void)
{
    int task = 0;
    cvy_program *p = make_program(1, &task);
    cvy_reservoir *r = trains() ? make_reservoir("newest", 100) : NULL;
    const cvy_stream_opts opts = {.size = sizeof opts, .role = role(), .reservoir = r, .program = p};
    cvy_stream *s = NULL;
    cvy_status status = CVY_OK;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    if (trains())
        train(s, r, p, task, 3);
    for (int t = 0; solves() && status == CVY_OK; t++) {
        status = push(s, t, 3);
        EXPECT_OK(cvy_stream_take(s, NULL));
        pause_s(0.001);
    }
    if (solves()) {
        EXPECT(status == CVY_END && push(s, 0, 3) == CVY_END && cvy_stream_flush(s, 1) == CVY_END);
        EXPECT(counts_of(s).waiting == 0);
    }
    cvy_stream_destroy(&s);
    cvy_reservoir_destroy(&r);
    cvy_program_destroy(&p);
}

static void trainer_is_lost(void)
{
    cvy_reservoir *r = trains() ? make_reservoir("newest", 100) : NULL;
    const cvy_stream_opts opts = {.size = sizeof opts, .role = role(), .reservoir = r, .lost_s = 0.5};
    cvy_stream *s = NULL;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    if (trains())
        pause_s(3);
    const double began = now();
    cvy_status status = CVY_OK;
    while (solves() && status == CVY_OK && now() - began < 30)
        status = push(s, 0, 3);
    if (solves()) {
        EXPECT(status == CVY_E_COMM && strstr(cvy_error_text(), "the trainer, rank ") && now() - began < 2.9);
        EXPECT(push(s, 0, 3) == CVY_E_COMM && counts_of(s).waiting == 0);
    }
    cvy_stream_destroy(&s);
    cvy_reservoir_destroy(&r);
}

/* ---- what does not fit ---- */

static void expect_refused(const cvy_stream_opts *opts, cvy_status status, const char *words)
{
    cvy_stream *s = NULL;
    EXPECT_FAULT(cvy_stream_create(world, opts, &s), status, words);
    EXPECT(s == NULL);
}

static void refused(void)
{
    cvy_reservoir *r = make_reservoir("newest", 100), *empty = NULL;
    EXPECT_OK(cvy_reservoir_create(&(cvy_reservoir_opts){.size = sizeof(cvy_reservoir_opts), .capacity = 3}, &empty));
    cvy_stream_opts opts = {.size = sizeof opts, .role = role(), .reservoir = r};
    cvy_stream_opts o = opts;
    o.role = "teacher";
    expect_refused(&o, CVY_E_ARGUMENT, "opts.role is 'teacher'");
    o = opts;
    o.role = "trainer";
    expect_refused(&o, CVY_E_ARGUMENT, "no rank of the stream has the role solver");
    o.role = "solver";
    expect_refused(&o, CVY_E_ARGUMENT, "no rank of the stream has the role trainer");
    o = opts;
    o.when_full = "burst";
    expect_refused(&o, CVY_E_ARGUMENT, "opts.when_full is 'burst'");
    o = opts;
    o.wait_s = -1;
    expect_refused(&o, CVY_E_ARGUMENT, "opts.wait_s is -1");
    o = opts;
    o.reservoir = trains() ? empty : NULL;
    expect_refused(&o, CVY_E_ARGUMENT, "no fields");
    o.reservoir = NULL;
    expect_refused(&o, CVY_E_ARGUMENT, "opts.reservoir is NULL");
    if (ntrainers > 1) {
        o.reservoir = r;
        if (rank == nranks - 1)
            EXPECT_OK(cvy_reservoir_add_field(r, "z", CVY_DTYPE_F32, &(cvy_shape){0}));
        expect_refused(&o, CVY_E_DISAGREE, "has other fields");
    }
    cvy_reservoir_destroy(&r);
    cvy_reservoir_destroy(&empty);
}

static void programs_differ(void)
{
    int task = 0;
    cvy_program *p = make_program(1, &task);
    cvy_reservoir *r = make_reservoir("newest", 100);
    cvy_stream_opts o = {.size = sizeof o, .role = role(), .reservoir = r, .program = rank == 0 ? p : NULL};
    if (nranks > 1)
        expect_refused(&o, CVY_E_DISAGREE, "variable 0 of the stream's program");
    cvy_reservoir_destroy(&r);
    cvy_program_destroy(&p);
}

static void misuse(void)
{
    cvy_reservoir *r = make_reservoir("newest", 100);
    cvy_stream_opts o = {.size = sizeof o, .role = role(), .reservoir = r};
    cvy_stream *s = NULL;
    const double nan3[] = {1, NAN, 2};
    EXPECT_OK(cvy_stream_create(world, &o, &s));
    if (solves()) {
        const char *name = NULL;
        EXPECT(cvy_stream_field(s, 1, &name, NULL, NULL) == CVY_OK && strcmp(name, "y") == 0);
        EXPECT(cvy_stream_put(s, "z", CVY_DTYPE_F64, nan3, 3) == CVY_E_ARGUMENT);
        EXPECT(cvy_stream_put(s, "y", CVY_DTYPE_F64, nan3, 3) == CVY_E_NUMERIC);
        EXPECT(cvy_stream_put(s, "x", CVY_DTYPE_F64, nan3, 3) == CVY_E_SHAPE);
        EXPECT(cvy_stream_push(s) == CVY_E_SHAPE);
        EXPECT(cvy_stream_take(s, NULL) == CVY_E_ARGUMENT && cvy_stream_flush(s, -1) == CVY_E_ARGUMENT);
    }
    if (!solves()) {
        EXPECT(cvy_stream_push(s) == CVY_E_ARGUMENT && cvy_stream_take(s, NULL) == CVY_E_ARGUMENT);
        EXPECT(cvy_stream_put(s, "y", CVY_DTYPE_F64, nan3, 3) == CVY_E_ARGUMENT);
        EXPECT(cvy_stream_publish(s) == CVY_E_ARGUMENT);
    }
    if (!trains())
        EXPECT(cvy_stream_receive(s) == CVY_E_ARGUMENT && cvy_stream_publish(s) == CVY_E_ARGUMENT);
    cvy_stream_destroy(&s);
    cvy_stream_destroy(&s);
    cvy_reservoir_destroy(&r);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    ntrainers = nranks > 3 ? 2 : 1;
    MPI_Comm_split(MPI_COMM_WORLD, trains(), rank, &side);
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &world));
    EXPECT_OK(trains() ? cvy_context_create_mpi(side, &opts, &mine) : cvy_context_create(&opts, &mine));
    const int64_t bytes = cvy_memory_bytes();
    TEST(whole_way);
    if (nranks > 1) {
        slow_trainer("drop", 0);
        slow_trainer("thin", 0);
        slow_trainer("wait", 0.01);
        slow_trainer("wait", 30);
        TEST(trainer_ends);
    }
    TEST(refused);
    TEST(programs_differ);
    TEST(misuse);
    EXPECT(cvy_memory_bytes() == bytes);
    if (nranks > 1)
        TEST(trainer_is_lost); /* may keep memory */
    cvy_context_destroy(&mine);
    cvy_context_destroy(&world);
    MPI_Comm_free(&side);
    MPI_Finalize();
    return test_end();
}
