/* ranks: 2 3 4 */
/* rows: mpich mpi asan */
/* lane: clock */
/*
 * test_update_server.c: parameter servers whose workers go on together give the losses and weights of one rank alone.
 *
 * This covers one server and two, micro-batches, batch norm over ranks, weighted losses, dropout, several optimisers,
 * workers without samples, and a tail batch with its own plan. If workers do not wait for each other, one worker gives
 * what one rank alone gives, several learn too, and no worker gets further ahead than the bound. What does not fit is
 * refused.
 *
 * Tolerances are those of test_program_ranks.c: f64 1e-12 for the first loss and 1e-10 for the rest, f32 1e-5 and 1e-3.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <time.h>

#include "program/program_impl.h"
#include "program/ranks_util.h"
#include "update/server/server.h"

enum { STEPS = 9 };

static cvy_model *new_model(void)
{
    cvy_model *m = new_network("served");
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "classes", "class_weights: [1, 0.5, 2]", "fc, label, weight"));
    return m;
}

static void fill(cvy_program *p, int step, cvy_dtype dtype)
{
    const int64_t rows = cvy_program_rows(p, step);
    const int64_t *id = cvy_program_feed(p, step, "sample_id");
    const cvy_span x = {.dtype = dtype, .data = cvy_program_feed(p, step, "x")},
                   weight = {.dtype = dtype, .data = cvy_program_feed(p, step, "weight")};
    int32_t *label = cvy_program_feed(p, step, "label");
    for (int64_t r = 0; r < rows; r++) {
        const int64_t n = id ? id[r] : cvy_program_first_row(p, step) + r;
        fill_sample(&x, r, n);
        if (weight.data)
            cvy_set(&weight, r, 1 + 0.25 * (double)(n % 2));
        label[r] = (int32_t)(n % 3);
    }
}

struct way {
    int64_t batch, tail, accumulate, group;
    const char *optimizer, *options;
    double lr, clip_value;
};

static const struct way ways[] = {
    {13, 5, 1, 4, "sgd", "momentum: 0.8", 0.05,
     0},                                       /* groups of batch norm span ranks; every third step is a tail of 5 */
    {13, 0, 2, -2, "adam", NULL, 0.02, 0},     /* micro-batches of 7 and 6 */
    {2, 0, 1, -2, "rmsprop", NULL, 0.01, 0.1}, /* with three workers one has no sample */
    {12, 0, 1, -2, "lars", "trust_coefficient: 0.05, momentum: 0.5", 1, 0},
    {12, 0, 1, -2, "lamb", NULL, 0.02, 0},
};

typedef struct server_opts {
    cvy_update_mode mode;
    int64_t servers, staleness;
} server_opts;

struct outcome {
    double loss[STEPS + 1]; /* the last is that of a forward step, over all ranks */
    double weights[WEIGHTS];
};

static void train(cvy_context *context, const struct way *w, server_opts update, cvy_dtype program_dtype,
                  struct outcome *o)
{
    const cvy_dtype dtype = program_dtype == CVY_DTYPE_F64 ? CVY_DTYPE_F64 : CVY_DTYPE_F32; /* of feeds and weights */
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .dtype = program_dtype,
                                   .batch_norm_group = w->group,
                                   .bucket_bytes = 256,
                                   .update_mode = update.mode,
                                   .update_servers = update.servers,
                                   .update_staleness = update.staleness};
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer = w->optimizer,
                                        .optimizer_options = w->options,
                                        .accumulate = w->accumulate,
                                        .weight_decay = 1e-3,
                                        .clip_value = w->clip_value};
    cvy_model *m = new_model();
    cvy_program *p = NULL;
    int step = 0, tail = 0, forward = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, w->batch, &training, &step));
    tail = step;
    if (w->tail)
        EXPECT_OK(cvy_program_add_training(p, m, w->tail, &training, &tail));
    EXPECT_OK(cvy_program_add_forward(p, m, 11, NULL, &forward));
    EXPECT_OK(cvy_program_plan(p));
    fill(p, step, dtype);
    fill(p, tail, dtype);
    fill(p, forward, dtype);
    for (int i = 0; i < STEPS; i++) {
        const int now = i % 3 == 2 ? tail : step;
        EXPECT_OK(cvy_program_step(p, now, w->lr));
        EXPECT_OK(cvy_program_loss(p, now, "classes", &o->loss[i]));
    }
    /* The weights that every rank reads are those of the servers. */
    EXPECT_OK(cvy_program_step(p, forward, 0));
    EXPECT_OK(cvy_program_loss(p, forward, "classes", &o->loss[STEPS]));
    EXPECT_OK(context->comm->ops->allreduce(context->comm, &o->loss[STEPS], 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    read_weights(p, dtype, o->weights);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void compare(const struct outcome *got, const struct outcome *expected, double first, double rest)
{
    EXPECT_NEAR(got->loss[0], expected->loss[0], first * fabs(expected->loss[0]));
    for (int i = 1; i <= STEPS; i++)
        EXPECT_NEAR(got->loss[i], expected->loss[i], rest * fabs(expected->loss[0]));
    for (int i = 0; i < WEIGHTS; i++)
        EXPECT_NEAR(got->weights[i], expected->weights[i], rest);
}

static void together(void)
{
    static struct outcome one, many;
    for (int servers = 1; servers <= 2 && servers < cvy_context_nranks(all); servers++)
        for (int i = 0; i < CVY_COUNT(ways); i++)
            for (int d = i > 0; d < 2; d++) {
                const cvy_dtype dtype = d ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
                train(alone, &ways[i], (server_opts){0}, dtype, &one);
                train(all, &ways[i], (server_opts){CVY_UPDATE_PARAMETER_SERVER, servers, 0}, dtype, &many);
                compare(&many, &one, d ? 1e-12 : 1e-5, d ? 1e-10 : 1e-3);
                EXPECT(one.loss[STEPS - 1] < 0.95 * one.loss[0]);
            }
}

/* The bf16 copies of weights follow what the servers send. */
static void rounded(void)
{
    static struct outcome one, many;
    train(alone, &ways[1], (server_opts){0}, CVY_DTYPE_BF16, &one);
    train(all, &ways[1], (server_opts){CVY_UPDATE_PARAMETER_SERVER, 1, 0}, CVY_DTYPE_BF16, &many);
    compare(&many, &one, 1e-3, 3e-2);
}

/* ---- workers that do not wait for each other ---- */

enum { FREE_STEPS = 24 };

static cvy_model *new_free_model(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("free", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 8, kernel: 3, pad: 1, bias: false", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "max_pool", "pool", "kernel: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3, bias: false", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "classes", NULL, "fc, label"));
    return m;
}

struct free_run {
    double loss[FREE_STEPS];    /* as this worker sees them */
    double begun_s[FREE_STEPS]; /* by a clock that all ranks of the machine share */
    double first, last;         /* of the forward step, over all ranks: before training and after it */
    double staleness;
    int64_t most;
};

static double forward_loss(cvy_context *context, cvy_program *p, int forward)
{
    double loss = 0;
    EXPECT_OK(cvy_program_step(p, forward, 0));
    EXPECT_OK(cvy_program_loss(p, forward, "classes", &loss));
    EXPECT_OK(context->comm->ops->allreduce(context->comm, &loss, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    return loss;
}

/* The first worker takes delay_ms longer for each step. */
static void train_free(cvy_context *context, server_opts update, int delay_ms, struct free_run *r)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .dtype = CVY_DTYPE_F32,
                                   .batch_norm_group = -1,
                                   .bucket_bytes = 256,
                                   .update_mode = update.mode,
                                   .update_servers = update.servers,
                                   .update_staleness = update.staleness};
    const cvy_training_opts training = {
        .size = sizeof training, .optimizer_options = "momentum: 0.5", .weight_decay = 1e-3};
    const struct timespec delay = {0, delay_ms * 1000000L};
    cvy_model *m = new_free_model();
    cvy_program *p = NULL;
    int step = 0, tail = 0, forward = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 12, &training, &step));
    EXPECT_OK(cvy_program_add_training(p, m, 7, &training, &tail));
    EXPECT_OK(cvy_program_add_forward(p, m, 11, NULL, &forward));
    EXPECT_OK(cvy_program_plan(p));
    fill(p, step, CVY_DTYPE_F32);
    fill(p, tail, CVY_DTYPE_F32);
    fill(p, forward, CVY_DTYPE_F32);
    r->first = forward_loss(context, p, forward);
    for (int i = 0; i < FREE_STEPS; i++) {
        const int now = i % 4 == 3 ? tail : step;
        r->begun_s[i] = cvy_clock_s();
        if (cvy_context_rank(context) == 0 && delay_ms > 0)
            nanosleep(&delay, NULL);
        EXPECT_OK(cvy_program_step(p, now, 0.05));
        EXPECT_OK(cvy_program_loss(p, now, "classes", &r->loss[i]));
        if (i == FREE_STEPS / 2) /* all workers also meet in the middle */
            EXPECT(isfinite(forward_loss(context, p, forward)));
    }
    r->last = forward_loss(context, p, forward);
    if (p->update.state)
        cvy_server_staleness(p->update.state, &r->staleness, &r->most);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

/* A worker that begins step i has received the slowest worker's gradients of step i - staleness - 1, so the slowest had
 * begun that step. Worker 0 is the slow one. *most_out: how many steps this worker was ahead of it, by these times. */
static void check_bound(const struct free_run *r, int works, int64_t staleness, int *most_out)
{
    struct free_run slow = *r;
    EXPECT_OK(all->comm->ops->broadcast(all->comm, &slow, sizeof slow, 0));
    *most_out = 0;
    for (int i = 0; i < FREE_STEPS; i++) {
        const int64_t sure = i - staleness - 1;
        if (sure >= 0 && works)
            EXPECT(slow.begun_s[sure] <= r->begun_s[i]);
        for (int k = 0; k <= i; k++)
            if (slow.begun_s[k] > r->begun_s[i])
                *most_out = CVY_MAX(*most_out, i - k);
    }
}

static void apart(void)
{
    static struct free_run one, many;
    const int rank = cvy_context_rank(all), nranks = cvy_context_nranks(all);
    train_free(alone, (server_opts){0}, 0, &one);
    EXPECT(one.last < 0.5 * one.first);
    for (int servers = 1; servers <= 2 && servers < nranks; servers++)
        for (int64_t staleness = -1; staleness <= 2; staleness += 3) {
            const int nworkers = nranks - servers;
            int most = 0;
            /* On a busy machine the first worker may not be the slow one, unless it waits long. */
            for (int delay_ms = 4; delay_ms < 300; delay_ms *= 4) {
                train_free(all, (server_opts){CVY_UPDATE_PARAMETER_SERVER, servers, staleness}, delay_ms, &many);
                int64_t most_stale = many.most;
                EXPECT_OK(all->comm->ops->broadcast(all->comm, &most_stale, sizeof most_stale, 0));
                if (nworkers == 1 || staleness >= 0 || most_stale > 2)
                    break;
            }
            EXPECT_NEAR(many.first, one.first, 1e-5 * one.first);
            EXPECT(many.last < 0.5 * many.first);
            if (nworkers == 1) { /* the same as one rank alone */
                for (int i = 0; i < FREE_STEPS && rank == 0; i++)
                    EXPECT_NEAR(many.loss[i], one.loss[i], 1e-3 * one.loss[0]);
                EXPECT_NEAR(many.last, one.last, 1e-3 * one.first);
                continue;
            }
            check_bound(&many, rank < nworkers, staleness >= 0 ? staleness : FREE_STEPS, &most);
            if (rank > 0 && rank < nworkers)
                EXPECT(staleness < 0 || most <= staleness + 1); /* on a busy machine it may never be ahead */
            if (rank == 0)
                EXPECT(many.most >= 1 && (staleness < 0 || many.most <= staleness) &&
                       many.staleness <= (double)many.most);
            if (rank == 0 && staleness < 0)
                EXPECT(many.most > 2);
        }
}

/* Checks which weights each server trains, and that a server has no samples. */
static void shares(void)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .update_mode = CVY_UPDATE_PARAMETER_SERVER, .update_servers = 1};
    cvy_model *m = new_model();
    cvy_program *p = NULL;
    int step = 0;
    const int rank = cvy_context_rank(all), nranks = cvy_context_nranks(all);
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_INT(cvy_program_nworkers(p), nranks - 1);
    EXPECT_OK(cvy_program_add_training(p, m, 11, NULL, &step));
    EXPECT_OK(cvy_program_plan(p));
    int64_t rows = cvy_program_rows(p, step), sum = rows;
    EXPECT_OK(all->comm->ops->allreduce(all->comm, &sum, 1, CVY_DTYPE_I64, CVY_REDUCE_SUM));
    EXPECT_INT(sum, 11);
    EXPECT_INT(rows, rank == nranks - 1 ? 0 : 11 * (rank + 1) / (nranks - 1) - 11 * rank / (nranks - 1));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

/* Adds a training step and plans it, which must fail with this message. */
static void refused(cvy_context *context, server_opts update, cvy_training_opts training, int64_t bucket,
                    const char *words)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .update_mode = update.mode,
                                   .update_servers = update.servers,
                                   .update_staleness = update.staleness,
                                   .bucket_bytes = bucket};
    cvy_model *m = new_model();
    cvy_program *p = NULL;
    int step = 0;
    training.size = sizeof training;
    cvy_status status = cvy_program_create(context, &opts, &p);
    if (status == CVY_OK)
        status = cvy_program_add_training(p, m, 8, &training, &step);
    if (status == CVY_OK)
        status = cvy_program_plan(p);
    EXPECT_INT(status, CVY_E_CONFIG);
    if (!strstr(cvy_error_text(), words))
        fprintf(stderr, "expected '%s' in: %s\n", words, cvy_error_text());
    EXPECT(strstr(cvy_error_text(), words) != NULL);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void bad_input(void)
{
    const int nranks = cvy_context_nranks(all);
    const cvy_training_opts plain = {.size = sizeof plain}, clips = {.size = sizeof clips, .clip_norm = 1};
    refused(alone, (server_opts){CVY_UPDATE_PARAMETER_SERVER, 1, 0}, plain, 0, "there is one rank: start 2 or more");
    refused(all, (server_opts){CVY_UPDATE_PARAMETER_SERVER, nranks, 0}, plain, 0, "ranks must train: expected 1 ..");
    refused(all, (server_opts){CVY_UPDATE_PARAMETER_SERVER, 0, 0}, plain, 0, "servers is 0");
    refused(all, (server_opts){CVY_UPDATE_PARAMETER_SERVER, 1, 0}, clips, 0, "take clip_value");
    refused(all, (server_opts){CVY_UPDATE_PARAMETER_SERVER, 1, -1}, plain, 0,
            "is a sum over all workers within a step");
    refused(all, (server_opts){CVY_UPDATE_PARAMETER_SERVER, 1, -2}, plain, 0, "staleness is -2");
    if (nranks > 3) /* f32 and f64: two buckets */
        refused(all, (server_opts){CVY_UPDATE_PARAMETER_SERVER, 3, 0}, plain, 0,
                "too few for 3 servers: take fewer servers, or set opts.bucket_bytes lower");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    TEST(together);
    TEST(rounded);
    TEST(apart);
    TEST(shares);
    TEST(bad_input);
    cvy_context_destroy(&alone);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
