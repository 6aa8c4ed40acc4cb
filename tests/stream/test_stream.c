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

/* Sample number t of a solver, from which both can be read again; the target is 2 x0 - x1. */
static void make_sample(int64_t t, double *x, double *y)
{
    x[0] = (double)(t % 1000) / 1000;
    x[1] = (double)(t / 1000) / 1000 + rank;
    *y = 2 * x[0] - x[1];
}

static cvy_status push(cvy_stream *s, int64_t first, int n)
{
    double x[2 * MOST], y[MOST];
    for (int i = 0; i < n; i++)
        make_sample(first + i, &x[2 * i], &y[i]);
    EXPECT_OK(cvy_stream_put(s, "x", CVY_DTYPE_F64, x, 2 * n));
    EXPECT_OK(cvy_stream_put(s, "y", CVY_DTYPE_F64, y, n));
    return cvy_stream_push(s);
}

/* All samples of a reservoir are whole, and those of a solver are in their order. Returns the number of the last sample
 * of solver 0, or -1. */
static int64_t check_samples(const cvy_reservoir *r)
{
    const int64_t held = cvy_reservoir_held(r), bytes = cvy_reservoir_bytes(r);
    char *state = malloc((size_t)bytes);
    EXPECT_OK(cvy_reservoir_save(r, state, bytes));
    const float *x = (const float *)(void *)(state + bytes - (int64_t)sizeof(float) * 3 * held), *y = x + 2 * held;
    int64_t last[4] = {-1, -1, -1, -1};
    int wrong = 0;
    for (int64_t i = 0; i < held; i++) {
        const int from = (int)x[2 * i + 1];
        const int64_t t = llround(1000.0 * (double)x[2 * i]) + 1000 * llround(1000.0 * ((double)x[2 * i + 1] - from));
        wrong += fabsf(y[i] - (2 * x[2 * i] - x[2 * i + 1])) > 1e-5f || from < 0 || from > 3 || t <= last[from & 3];
        last[from & 3] = t;
    }
    free(state);
    EXPECT_INT(wrong, 0);
    return last[0];
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

/* STEPS steps, and as many more as it takes until new weights have come. */
static void solve(cvy_stream *s, cvy_program *p, float *taken, int64_t *version)
{
    int64_t before = 0;
    const double until = now() + 60;
    for (int t = 0; t < STEPS || (*version == 0 && now() < until); t++) {
        EXPECT_OK(push(s, (int64_t)t * MOST, t % MOST)); /* at times none */
        EXPECT_OK(cvy_stream_take(s, version));
        EXPECT(*version == before || *version == before + 1);
        before = *version;
        if (t < STEPS)
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
    cvy_reservoir *r = trains() ? make_reservoir("newest", 100000) : NULL;
    const cvy_stream_opts opts = {.size = sizeof opts,
                                  .role = role(),
                                  .reservoir = r,
                                  .program = p,
                                  .queue = 50, /* so that it is full at times, and its end is passed */
                                  .when_full = "wait",
                                  .wait_s = 60};
    cvy_stream *s = NULL;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    const float first = weight_of(p);
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
        EXPECT_OK(cvy_stream_flush(s, 60));
        EXPECT(version > 0 && weight_of(p) != first);
    }
    const cvy_stream_counts c = counts_of(s);
    EXPECT(c.dropped == 0 && c.waiting == 0);
    cvy_stream_destroy(&s); /* on a solver: the trainers learn that it has ended */
    EXPECT(s == NULL);
    const int64_t pushed = total(c.pushed), received = total(c.received), held = total(r ? cvy_reservoir_held(r) : 0);
    EXPECT(pushed > 0 && received == pushed && held == pushed);
    if (trains())
        check_samples(r);
    for (int i = 0; i < 2000 && trains(); i++) { /* the trainers go on alone */
        EXPECT_OK(cvy_reservoir_draw(r, p, task));
        EXPECT_OK(cvy_program_step(p, task, 0.1));
    }
    if (trains())
        EXPECT_NEAR(weight_of(p), 2, 0.1);
    cvy_reservoir_destroy(&r);
    cvy_program_destroy(&p);
}

/* ---- a slow trainer ---- */

/* Between the sides, besides the stream: trainers wait until all solvers are here. */
static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Unless a push may wait for long, the trainers take nothing before the solvers have pushed all. */
static void slow_trainer(const char *policy, double wait_s)
{
    enum { QUEUE = 64, PUSHES = 100 };
    cvy_reservoir *r = trains() ? make_reservoir("newest", 100000) : NULL;
    const cvy_stream_opts opts = {
        .size = sizeof opts, .role = role(), .reservoir = r, .queue = QUEUE, .when_full = policy, .wait_s = wait_s};
    const int waits_long = wait_s > 1;
    cvy_stream *s = NULL;
    cvy_status status = CVY_OK;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    for (int t = 0; t < PUSHES && solves(); t++)
        EXPECT_OK(push(s, (int64_t)t * MOST, MOST));
    if (solves()) {
        const cvy_stream_counts c = counts_of(s);
        EXPECT(c.pushed == PUSHES * MOST && c.waiting <= QUEUE && (waits_long ? c.dropped == 0 : c.dropped > 0));
        EXPECT(c.longest_push_s < wait_s + 10); /* the bound, and room for a busy machine */
        EXPECT(waits_long || policy[0] != 'w' || c.longest_push_s >= wait_s);
    }
    if (!waits_long)
        meet();
    while (trains() && status == CVY_OK) {
        pause_s(0.01);
        status = cvy_stream_receive(s);
        EXPECT(status == CVY_OK || status == CVY_END);
    }
    if (solves())
        EXPECT_OK(cvy_stream_flush(s, 60));
    const cvy_stream_counts c = counts_of(s);
    cvy_stream_destroy(&s);
    EXPECT(total(c.pushed - c.dropped) == total(r ? cvy_reservoir_seen(r) : 0));
    if (trains()) { /* thinned samples are from the whole time, but the last ones may be left out */
        const int64_t last = check_samples(r);
        EXPECT(last < 0 || policy[0] != 't' || last > PUSHES * MOST / 2);
        EXPECT(last < 0 || policy[0] != 'd' || last < PUSHES * MOST / 2);
        EXPECT(last < 0 || !waits_long || last == PUSHES * MOST - 1);
    }
    cvy_reservoir_destroy(&r);
}

/* ---- a side that ends early, or does not answer ---- */

static void trainer_ends(void)
{
    int task = 0;
    cvy_program *p = make_program(1, &task);
    cvy_reservoir *r = trains() ? make_reservoir("newest", 100) : NULL;
    const cvy_stream_opts opts = {.size = sizeof opts, .role = role(), .reservoir = r, .program = p, .lost_s = 60};
    cvy_stream *s = NULL;
    cvy_status status = CVY_OK;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    const double began = now();
    if (trains())
        train(s, r, p, task, 3);
    for (int t = 0; solves() && status == CVY_OK; t++) { /* solvers see the end in different steps */
        status = push(s, t, 3);
        EXPECT_OK(cvy_stream_take(s, NULL));
        pause_s(0.001 * (1 + rank));
    }
    if (solves()) {
        EXPECT(status == CVY_END && push(s, 0, 3) == CVY_END && cvy_stream_flush(s, 1) == CVY_END);
        EXPECT(counts_of(s).waiting == 0);
    }
    cvy_stream_counts c = counts_of(s);
    cvy_stream_destroy(&s);
    EXPECT(now() - began < 50); /* nobody has waited for lost_s */
    EXPECT(total(c.delivered) == total(c.received));
    cvy_reservoir_destroy(&r);
    cvy_program_destroy(&p);
}

/* A sample is larger than what MPI sends without asking the receiver. Trainers end while samples are under way, or take
 * all of them. */
static void large_samples(int takes_all)
{
    enum { LARGE = 40000, SAMPLES = 30 };
    static float field[LARGE];
    const cvy_reservoir_opts keep = {.size = sizeof keep, .capacity = 2 * SAMPLES, .keep = "newest"};
    cvy_reservoir *r = NULL;
    EXPECT_OK(cvy_reservoir_create(&keep, &r));
    EXPECT_OK(cvy_reservoir_add_field(r, "field", CVY_DTYPE_F32, &(cvy_shape){1, {LARGE}}));
    const cvy_stream_opts opts = {
        .size = sizeof opts, .role = role(), .reservoir = r, .queue = SAMPLES, .when_full = "drop", .lost_s = 60};
    cvy_stream *s = NULL;
    cvy_status status = CVY_OK;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    const double began = now();
    for (int i = 0; trains() && status == CVY_OK && (takes_all || i < 2); i++)
        status = cvy_stream_receive(s);
    for (int i = 0; solves() && status == CVY_OK && (takes_all ? i < SAMPLES : now() - began < 50); i++) {
        for (int k = 0; k < LARGE; k++)
            field[k] = (float)(i + k);
        EXPECT_OK(cvy_stream_put(s, "field", CVY_DTYPE_F32, field, LARGE));
        status = cvy_stream_push(s);
    }
    EXPECT(status == (solves() ? takes_all ? CVY_OK : CVY_END : takes_all ? CVY_END : CVY_OK));
    if (takes_all && solves())
        EXPECT_OK(cvy_stream_flush(s, 50));
    const cvy_stream_counts c = counts_of(s);
    cvy_stream_destroy(&s);
    EXPECT(now() - began < 50);
    EXPECT(total(c.delivered) == total(c.received));
    EXPECT(!takes_all || total(c.delivered) == total(c.pushed));
    cvy_reservoir_destroy(&r);
}

/* Solver 0 ends after three steps, the others go on; all of them come to an end. */
static void solver_ends_early(void)
{
    int task = 0;
    cvy_program *p = make_program(1, &task);
    cvy_reservoir *r = trains() ? make_reservoir("uniform", 100) : NULL;
    const cvy_stream_opts opts = {.size = sizeof opts, .role = role(), .reservoir = r, .program = p, .lost_s = 60};
    cvy_stream *s = NULL;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    const double began = now();
    for (int t = 0; solves() && t < (rank == 0 ? 3 : 20); t++) {
        EXPECT_OK(push(s, (int64_t)t * MOST, MOST));
        EXPECT_OK(cvy_stream_take(s, NULL));
    }
    if (trains())
        train(s, r, p, task, INT_MAX);
    cvy_stream_destroy(&s);
    EXPECT(now() - began < 50);
    cvy_reservoir_destroy(&r);
    cvy_program_destroy(&p);
}

/* Each solver takes what it has, with other numbers of calls than the others. */
static void independent_solvers(void)
{
    int task = 0;
    int64_t version = 0;
    cvy_program *p = make_program(1, &task);
    cvy_reservoir *r = trains() ? make_reservoir("uniform", 100) : NULL;
    const cvy_stream_opts opts = {
        .size = sizeof opts, .role = role(), .reservoir = r, .program = p, .lost_s = 60, .independent = 1};
    cvy_stream *s = NULL;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    const double until = now() + 50;
    while (solves() && version < 2 && now() < until) {
        EXPECT_OK(push(s, 0, MOST));
        for (int i = 0; i <= rank; i++)
            EXPECT_OK(cvy_stream_take(s, &version));
        pause_s(0.001);
    }
    EXPECT(!solves() || version >= 2);
    if (trains())
        train(s, r, p, task, INT_MAX);
    cvy_stream_destroy(&s);
    cvy_reservoir_destroy(&r);
    cvy_program_destroy(&p);
}

/* A solver that looks for weights after the trainer has ended gets the last ones once. */
static void last_weights_come_once(void)
{
    int task = 0;
    int64_t version = 0, last = 0;
    cvy_program *p = make_program(1, &task);
    cvy_reservoir *r = trains() ? make_reservoir("uniform", 100) : NULL;
    const cvy_stream_opts opts = {
        .size = sizeof opts, .role = role(), .reservoir = r, .program = p, .lost_s = 60, .independent = 1};
    cvy_stream *s = NULL;
    cvy_status status = CVY_OK;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    if (trains())
        train(s, r, p, task, 3);
    const double until = now() + 50;
    while (solves() && status == CVY_OK && now() < until) { /* it does not look while the trainer is there */
        status = push(s, 0, MOST);
        pause_s(0.001);
    }
    for (int i = 0; solves() && i < 100; i++) {
        EXPECT_OK(cvy_stream_take(s, &version));
        if (i < 50)
            last = version;
        pause_s(0.001);
    }
    EXPECT(!solves() || (status == CVY_END && version >= 1 && version <= 3 && version == last));
    cvy_stream_destroy(&s);
    cvy_reservoir_destroy(&r);
    cvy_program_destroy(&p);
}

/* The trainers call nothing until the solvers have noticed. Then both sides end. */
static void trainer_is_lost(void)
{
    cvy_reservoir *r = trains() ? make_reservoir("newest", 100) : NULL;
    const cvy_stream_opts opts = {.size = sizeof opts, .role = role(), .reservoir = r, .lost_s = 0.5};
    cvy_stream *s = NULL;
    cvy_status status = CVY_OK;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    const double began = now();
    while (solves() && status == CVY_OK && now() - began < 60)
        status = push(s, 0, 3);
    if (solves()) {
        EXPECT(status == CVY_E_COMM && strstr(cvy_error_text(), "the trainer, rank "));
        EXPECT(now() - began >= 0.5);
        EXPECT(push(s, 0, 3) == CVY_E_COMM && counts_of(s).waiting == 0);
    }
    meet();
    cvy_stream_destroy(&s);
    cvy_reservoir_destroy(&r);
}

/* A solver whose own steps are longer than lost_s does not take its trainer for lost. */
static void slow_solver(void)
{
    cvy_reservoir *r = trains() ? make_reservoir("newest", 100) : NULL;
    const cvy_stream_opts opts = {.size = sizeof opts, .role = role(), .reservoir = r, .lost_s = 0.2};
    cvy_stream *s = NULL;
    cvy_status status = CVY_OK;
    EXPECT_OK(cvy_stream_create(world, &opts, &s));
    for (int t = 0; t < 3 && solves(); t++) {
        EXPECT_OK(push(s, t, 3));
        pause_s(0.5);
    }
    while (trains() && status == CVY_OK) {
        status = cvy_stream_receive(s);
        pause_s(0.001);
    }
    EXPECT(!trains() || status == CVY_END || status == CVY_E_COMM); /* it may be lost at the beginning */
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
    if (nranks > 2) {
        o.role = rank == 0 ? "solver" : "trainer";
        expect_refused(&o, CVY_E_ARGUMENT, "would get no samples");
    }
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
        expect_refused(&o, CVY_E_DISAGREE, "opts.program is NULL on");
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
    if (trains())
        EXPECT_FAULT(cvy_reservoir_add_field(r, "z", CVY_DTYPE_F32, &(cvy_shape){0}), CVY_E_ARGUMENT,
                     "given to a stream");
    cvy_stream_destroy(&s);
    cvy_stream_destroy(&s);
    cvy_reservoir_destroy(&r);
}

/* One rank that is both: more samples than the queue holds, a flush without a receive, and a receive without samples.
 */
static void on_its_own(void)
{
    cvy_reservoir *r = make_reservoir("newest", 10000);
    const cvy_stream_opts o = {.size = sizeof o, .role = "both", .reservoir = r, .queue = 5, .lost_s = 30};
    cvy_stream *s = NULL;
    const double began = now();
    EXPECT_OK(cvy_stream_create(world, &o, &s));
    EXPECT_FAULT(cvy_stream_receive(s), CVY_E_COMM, "none can come");
    EXPECT_OK(push(s, 0, MOST));
    EXPECT_OK(cvy_stream_flush(s, 20));
    EXPECT_OK(cvy_stream_receive(s));
    EXPECT(cvy_reservoir_held(r) == MOST && check_samples(r) == MOST - 1);
    const cvy_stream_counts c = counts_of(s);
    EXPECT(c.delivered == MOST && c.received == MOST && c.dropped == 0);
    EXPECT(now() - began < 15);
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
        large_samples(0);
        large_samples(1);
        TEST(solver_ends_early);
        TEST(independent_solvers);
        TEST(last_weights_come_once);
    }
    TEST(refused);
    TEST(programs_differ);
    TEST(misuse);
    EXPECT(cvy_memory_bytes() == bytes);
    if (nranks == 1)
        TEST(on_its_own);
    if (nranks > 1) { /* these may keep memory */
        TEST(trainer_is_lost);
        TEST(slow_solver);
    }
    cvy_context_destroy(&mine);
    cvy_context_destroy(&world);
    MPI_Comm_free(&side);
    MPI_Finalize();
    return test_end();
}
