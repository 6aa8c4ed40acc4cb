/* ranks: 1 2 */
/* rows: onednn3 */
/* level: 2 */
/*
 * test_pass_recompute.c: a program with a memory limit below its need recomputes values in the backward pass, computes
 * the same bits, and stays within the limit, with the more work the lower the limit; a deep chain of layers needs
 * memory for about the root of its depth; a program that cannot fit reports how much it needs and which batch would
 * fit, and that batch does fit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdio.h>
#include <stdlib.h>

#include "program/program_impl.h"
#include "test_util.h"

enum { BATCH = 20, SIDE = 16, CHANNELS = 16, BLOCKS = 6, STEPS = 4 };

enum { DEPTH = 144, WIDTH = 4096, ROWS = 256 };

static cvy_context *context;

/* How the ranks share the work, and the dtype of activations, of what runs now. */
static struct {
    int64_t pipeline, tensor, spatial, shards;
    cvy_dtype dtype;
} grid = {.dtype = CVY_DTYPE_F32};

/* Residual blocks with batch norm, a branch that is concatenated, pooling, LRN and other activations. */
static cvy_model *new_network(void)
{
    cvy_model *m = NULL;
    char name[3][16], from[40];
    EXPECT_OK(cvy_model_create("residual", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, SIDE, SIDE}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "stem", "channels: 16, kernel: 3, pad: 1, bias: false", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", "sum0", NULL, NULL));
    for (int b = 0; b < BLOCKS; b++) {
        snprintf(name[0], sizeof name[0], "conv%d", b);
        snprintf(name[1], sizeof name[1], "bn%d", b);
        snprintf(name[2], sizeof name[2], "sum%d", b + 1);
        EXPECT_OK(cvy_model_add(m, "conv", name[0], "channels: 16, kernel: 3, pad: 1, bias: false", NULL));
        EXPECT_OK(cvy_model_add(m, "batch_norm", name[1], NULL, NULL));
        snprintf(from, sizeof from, "bn%d, sum%d", b, b);
        EXPECT_OK(cvy_model_add(m, "add", NULL, NULL, from));
        EXPECT_OK(cvy_model_add(m, "relu", name[2], NULL, NULL));
    }
    EXPECT_OK(cvy_model_add(m, "conv", "branch", "channels: 8, kernel: 1", NULL));
    EXPECT_OK(cvy_model_add(m, "tanh", "bent", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "concat", "both", NULL, "bent, sum6"));
    EXPECT_OK(cvy_model_add(m, "lrn", NULL, "size: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "max_pool", NULL, "kernel: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "dropout", NULL, "p: 0.2", NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 5", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

/* A chain of layers with the same work and the same results. */
static cvy_model *new_chain(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("chain", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {1, 1, WIDTH}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    for (int i = 0; i < DEPTH; i++)
        EXPECT_OK(
            cvy_model_add(m, "conv", NULL, "channels: 1, kernel: [1, 3], pad: [0, 1], init: constant", i ? NULL : "x"));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 2", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

struct result {
    cvy_status status;
    int64_t need, recomputed;
    int64_t flop; /* of what is recomputed */
    double loss[STEPS];
    uint64_t weights; /* of all variables that this rank has */
};

/* Fills what this rank has of the inputs. */
static void fill(const cvy_plan *plan, int rank)
{
    for (int k = 0; k < plan->feeds.count; k++) {
        const cvy_plan_feed *f = &plan->feeds.feed[k];
        for (int64_t i = 0; i < (int64_t)(f->bytes / sizeof(float)); i++)
            if (strcmp(f->name, "x") == 0)
                ((float *)f->data)[i] = (float)((i + rank * 977) * 7919 % 1000) / 500 - 1;
            else if (strcmp(f->name, "label") == 0)
                ((int32_t *)f->data)[i] = (int32_t)((i + rank) % 5);
    }
}

static void run(int64_t batch, int64_t limit, const char *passes_off, int64_t accumulate, struct result *out)
{
    const cvy_program_opts program_opts = {.size = sizeof program_opts,
                                           .memory_limit = limit,
                                           .dtype = grid.dtype,
                                           .passes_off = passes_off,
                                           .batch_norm_group = 5,
                                           .pipeline = grid.pipeline,
                                           .tensor = grid.tensor,
                                           .spatial = {grid.spatial},
                                           .shards = grid.shards};
    const cvy_training_opts train = {
        .size = sizeof train, .optimizer_options = "momentum: 0.9", .accumulate = accumulate};
    cvy_model *m = new_network();
    cvy_program *p = NULL;
    int step = 0;
    memset(out, 0, sizeof *out);
    EXPECT_OK(cvy_program_create(context, &program_opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, &train, &step));
    out->status = cvy_program_plan(p);
    if (out->status == CVY_OK) {
        out->need = cvy_program_bytes(p);
        out->recomputed = p->task[step]->recomputed.nodes;
        out->flop = p->task[step]->recomputed.flop;
        EXPECT_INT(cvy_program_need(p), out->need);
        fill(cvy_program_task_plan(p, step), grid.tensor ? 0 : cvy_context_rank(context));
        for (int i = 0; i < STEPS; i++) {
            EXPECT_OK(cvy_program_step(p, step, 0.05));
            EXPECT_OK(cvy_program_loss(p, step, "loss", &out->loss[i]));
        }
        for (int v = 0; v < cvy_program_vars(p)->count; v++)
            for (size_t i = 0; !cvy_program_vars(p)->at[v]->elsewhere && i < cvy_program_vars(p)->at[v]->bytes; i++)
                out->weights =
                    (out->weights ^ ((unsigned char *)cvy_program_vars(p)->at[v]->data)[i]) * UINT64_C(0x100000001b3);
    }
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static int64_t largest(int64_t mine)
{
    int64_t all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* Trains without a limit and with lower and lower ones, and compares losses and weights. */
static void compare(int64_t accumulate, int64_t most_percent, int64_t least_percent)
{
    static struct result free_run, short_run;
    run(BATCH, 0, NULL, accumulate, &free_run);
    EXPECT_OK(free_run.status);
    EXPECT_INT(free_run.recomputed, 0);
    EXPECT(free_run.loss[STEPS - 1] != free_run.loss[0]);
    for (int64_t percent = most_percent, before = 0; percent >= least_percent; percent -= 5, before = short_run.flop) {
        const int64_t limit = largest(free_run.need) * percent / 100;
        run(BATCH, limit, NULL, accumulate, &short_run);
        EXPECT_OK(short_run.status);
        EXPECT(short_run.recomputed > 0 && short_run.flop >= before);
        EXPECT(short_run.need <= limit);
        EXPECT(memcmp(free_run.loss, short_run.loss, sizeof free_run.loss) == 0);
        EXPECT(free_run.weights == short_run.weights);
    }
}

static void same_bits(void)
{
    compare(1, 90, 75);
    compare(2, 90, 75);
}

static void same_bits_in_bf16(void)
{
    grid.dtype = CVY_DTYPE_BF16;
    compare(1, 90, 80);
    grid.dtype = CVY_DTYPE_F32;
}

/* A convolution whose result backward does not read, because the pooling or the activation after it needs only its own
 * result, would run again with what follows it. So other values are recomputed first. */
static void cheap_first(void)
{
    enum { SMALLEST = 2 * 27 * 32 * 32 * 32 * BATCH }; /* flop of a convolution */
    int64_t flop[2], need = 0;
    for (int i = 0; i < 2; i++) {
        const cvy_program_opts opts = {.size = sizeof opts, .memory_limit = need * 95 / 100};
        cvy_model *m = NULL;
        cvy_program *p = NULL;
        int step = 0;
        EXPECT_OK(cvy_model_create("pooled", &m));
        EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 32, 32}}));
        EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
        EXPECT_OK(cvy_model_add(m, "conv", NULL, "channels: 32, kernel: 3, pad: 1", "x"));
        EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
        EXPECT_OK(cvy_model_add(m, "max_pool", NULL, "kernel: 2", NULL));
        for (int k = 0; k < BLOCKS; k++) {
            EXPECT_OK(cvy_model_add(m, "conv", NULL, "channels: 32, kernel: 3, pad: 1", NULL));
            EXPECT_OK(cvy_model_add(m, "leaky_relu", NULL, NULL, NULL));
            EXPECT_OK(cvy_model_add(m, "conv", NULL, "channels: 32, kernel: 3, pad: 1", NULL));
            EXPECT_OK(cvy_model_add(m, "batch_norm", NULL, NULL, NULL));
            EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
        }
        EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 5", NULL));
        EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
        EXPECT_OK(cvy_program_create(context, &opts, &p));
        EXPECT_OK(cvy_program_add_training(p, m, BATCH, NULL, &step));
        EXPECT_OK(cvy_program_prepare(p));
        need = largest(cvy_program_need(p));
        flop[i] = p->task[step]->recomputed.flop;
        cvy_program_destroy(&p);
        cvy_model_destroy(&m);
    }
    EXPECT(flop[0] == 0 && flop[1] > 0 && flop[1] < SMALLEST / cvy_context_nranks(context));
}

/* A stage recomputes what its own layers made, and keeps the activations of several micro-batches. Ranks along the
 * other axes recompute their parts. */
static void same_bits_on_grids(void)
{
    grid.pipeline = 2;
    compare(4, 90, 80);
    grid.pipeline = 0;
    grid.tensor = 2;
    compare(1, 95, 95);
    grid.tensor = 0;
    grid.spatial = 2;
    compare(1, 95, 95);
    grid.spatial = 0;
    grid.shards = 4;
    compare(1, 95, 95);
    grid.shards = 0;
}

/* The bytes that a chain needs in each plan, without values; limit 0: none. */
static int64_t chain_need(int64_t limit, int64_t *flop_out)
{
    const cvy_program_opts opts = {.size = sizeof opts, .memory_limit = limit};
    cvy_model *m = new_chain();
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, ROWS, NULL, &step));
    const cvy_status status = cvy_program_prepare(p);
    if (status != (limit == 1 ? CVY_E_MEMORY : CVY_OK)) {
        EXPECT_OK(status);
        exit(1);
    }
    const int64_t need = largest(cvy_program_need(p));
    *flop_out = p->task[step]->recomputed.flop;
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    return need;
}

/* The root of DEPTH is 12: with as many segments, 12 values are kept and 12 are recomputed at a time. */
static void deep_chain(void)
{
    int64_t flop[3];
    const int64_t whole = chain_need(0, &flop[0]), least = chain_need(1, &flop[1]), one = whole / DEPTH;
    EXPECT(least < 36 * one);
    const int64_t half = chain_need(whole / 2, &flop[2]);
    EXPECT(half <= whole / 2 && half > whole / 3);
    EXPECT(flop[0] == 0 && flop[2] > 0 && flop[2] < flop[1]);
}

static void no_limit_reached(void)
{
    static struct result free_run, wide_run;
    run(BATCH, 0, NULL, 1, &free_run);
    run(BATCH, largest(free_run.need), NULL, 1, &wide_run);
    EXPECT_OK(wide_run.status);
    EXPECT_INT(wide_run.recomputed, 0);
    EXPECT_INT(wide_run.need, free_run.need);
}

static void what_would_fit(void)
{
    static struct result r;
    const int64_t whole_batch = 40 * BATCH;
    run(BATCH, 0, NULL, 1, &r);
    const int64_t limit = largest(r.need) * 2;
    run(whole_batch, limit, NULL, 1, &r);
    EXPECT_INT(r.status, CVY_E_MEMORY);
    const char *fits = strstr(cvy_error_text(), "batch of about ");
    EXPECT(fits != NULL);
    const long long batch = fits ? atoll(fits + 15) : 0;
    EXPECT(batch > BATCH && batch < whole_batch);
    run(batch, limit + limit / 20, NULL, 1, &r);
    EXPECT_OK(r.status);
    run(BATCH, 1000, NULL, 1, &r);
    EXPECT_INT(r.status, CVY_E_MEMORY);
    run(BATCH, limit * 90 / 200, "recompute", 1, &r);
    EXPECT_INT(r.status, CVY_E_MEMORY);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &context));
    TEST(same_bits);
    TEST(same_bits_in_bf16);
    TEST(cheap_first);
    if (cvy_context_nranks(context) == 2)
        TEST(same_bits_on_grids);
    TEST(deep_chain);
    TEST(no_limit_reached);
    TEST(what_would_fit);
    cvy_context_destroy(&context);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
