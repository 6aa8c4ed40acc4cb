/* ranks: 1 2 3 4 */
/* rows: mpich mpi asan */
/*
 * test_update_zero1.c: zero1 updates equal those of sync with messages: the same sums, cut in two.
 *
 * They differ by rounding: running statistics have their own buckets, so buckets are cut elsewhere. It compares
 * weights, the states that are collected on rank 0, losses and running statistics, with sgd and adam, gradients sent as
 * bf16, micro-batches, a tail batch of another size and ranks without samples. The other ranks' parts of a state take
 * no memory, and what cannot be updated in parts is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program/program_impl.h"
#include "test_util.h"

enum { STEPS = 8, ELEMS_MAX = 1 << 15 };

static cvy_context *all;

static cvy_model *new_model(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("shards", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 6, 6}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 5, kernel: 3, pad: 1, bias: false", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc1", "channels: 37", NULL));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc2", "channels: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc2, label"));
    return m;
}

static void fill(cvy_program *p, int step, int number)
{
    const cvy_program_task *s = p->task[step];
    const cvy_span x = {.dtype = CVY_DTYPE_F32, .data = cvy_program_feed(p, step, "x")};
    int32_t *label = cvy_program_feed(p, step, "label");
    for (int64_t r = 0; r < s->plan->rows; r++) {
        const int64_t n = number * 16 + s->split.first_row + r;
        for (int64_t i = 0; i < 72; i++)
            cvy_set(&x, r * 72 + i, sin(0.7 * (double)(n * 72 + i) + 0.3 * (double)(n * i % 101)) + (i % 3 == n % 3));
        label[r] = (int32_t)(n % 3);
    }
}

struct outcome {
    double loss[STEPS];
    float values[ELEMS_MAX];
    int64_t elems;
};

static void read_all(const cvy_program *p, int states, struct outcome *o)
{
    o->elems = 0;
    for (int i = 0; i < cvy_program_vars(p)->count; i++) {
        const cvy_variable *v = cvy_program_vars(p)->at[i];
        const int64_t n = cvy_shape_elems(&v->shape);
        if (v->role == CVY_ROLE_STATE && !states)
            continue;
        EXPECT(o->elems + n <= ELEMS_MAX);
        EXPECT_OK(cvy_program_get(p, v->name, o->values + o->elems, n));
        o->elems += n;
    }
}

static void train(cvy_update_mode mode, const cvy_training_opts *training, int64_t batch, const char *algorithm,
                  cvy_dtype wire, struct outcome *o)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .seed = 5,
                                   .batch_norm_group = 2,
                                   .bucket_bytes = 512,
                                   .share_weights = 1,
                                   .reduce_no_node = 1,
                                   .reduce = algorithm,
                                   .reduce_wire = wire,
                                   .update_mode = mode};
    cvy_training_opts tail = *training;
    cvy_model *m = new_model();
    cvy_vars *pending = NULL;
    cvy_program *p = NULL;
    int step[2];
    tail.accumulate = 1;
    memset(o, 0, sizeof *o);
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, training, &step[0]));
    EXPECT_OK(cvy_program_add_training(p, m, 2, &tail, &step[1]));
    EXPECT_OK(cvy_program_plan(p));
    EXPECT((p->update.shape.halves != 0) == (mode == CVY_UPDATE_ZERO1 && all->comm->nranks > 1));
    for (int t = 0; t < STEPS; t++) {
        fill(p, step[t % 3 == 2], t);
        EXPECT_OK(cvy_program_step(p, step[t % 3 == 2], 0.01));
        EXPECT_OK(cvy_program_loss(p, step[t % 3 == 2], "loss", &o->loss[t]));
    }
    EXPECT_OK(cvy_program_collect(p, &pending));
    EXPECT(pending == NULL);
    read_all(p, all->comm->rank == 0, o);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void as_in_sync(void)
{
    const cvy_training_opts sgd = {.size = sizeof sgd, .optimizer_options = "momentum: 0.8", .weight_decay = 0.01},
                            two = {.size = sizeof two, .optimizer = "adam", .accumulate = 2};
    const struct {
        const cvy_training_opts *training;
        int64_t batch;
        const char *algorithm;
        cvy_dtype wire;
        double tolerance;
    } cases[] = {{&sgd, 12, "halving", CVY_DTYPE_F32, 1e-6},
                 {&two, 13, "ring", CVY_DTYPE_F32, 1e-6},
                 {&sgd, 3, "halving", CVY_DTYPE_F32, 1e-6},
                 {&sgd, 12, "ring", CVY_DTYPE_BF16, 2e-3}};
    static struct outcome sync, shard;
    for (int i = 0; i < CVY_COUNT(cases); i++) {
        train(CVY_UPDATE_SYNC, cases[i].training, cases[i].batch, cases[i].algorithm, cases[i].wire, &sync);
        train(CVY_UPDATE_ZERO1, cases[i].training, cases[i].batch, cases[i].algorithm, cases[i].wire, &shard);
        int differ = 0;
        for (int64_t k = 0; k < sync.elems && shard.elems == sync.elems; k++)
            differ += fabs((double)sync.values[k] - shard.values[k]) > cases[i].tolerance;
        EXPECT_INT(differ, 0);
        for (int t = 0; t < STEPS; t++)
            EXPECT_NEAR(shard.loss[t], sync.loss[t], cases[i].tolerance);
        EXPECT(shard.elems == sync.elems && sync.elems > 300);
    }
}

/* Returns how many pages of a variable are in memory. */
static int64_t pages_of(const cvy_variable *v)
{
    static unsigned char there[4096];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int64_t n = (int64_t)((v->bytes + page - 1) / page);
    int64_t count = 0;
    EXPECT(n <= 4096);
    EXPECT_INT(mincore(v->data, v->bytes, there), 0);
    for (int64_t i = 0; i < n; i++)
        count += there[i] & 1;
    return count;
}

/* The weights take a megabyte, and each rank's momentum its share of that. The ends of parts may add some pages, and
 * with huge pages the share is rounded up to whole ones. */
static void states_take_a_share(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .update_mode = CVY_UPDATE_ZERO1, .reduce = "halving"};
    const cvy_training_opts sgd = {.size = sizeof sgd, .optimizer_options = "momentum: 0.8"};
    const int nranks = all->comm->nranks;
    cvy_model *m = NULL;
    cvy_vars *pending = NULL;
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_model_create("wide", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {512}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 512, bias: false", "x"));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, 8, &sgd, &step));
    EXPECT_OK(cvy_program_plan(p));
    EXPECT_OK(cvy_program_step(p, step, 0.01));
    const cvy_variable *momentum = cvy_vars_find(cvy_program_vars(p), "fc.weight.momentum");
    const int64_t whole = (int64_t)(momentum->bytes / (size_t)sysconf(_SC_PAGESIZE)),
                  parts = nranks == 3 ? 2 : nranks; /* halving needs a power of two */
    EXPECT(pages_of(momentum) <= (nranks == 1 ? whole : whole / parts + 2));
    if (p->update.shape.halves) {
        EXPECT_OK(cvy_program_collect(p, &pending));
        EXPECT(all->comm->rank != 0 || pages_of(momentum) == whole);
        cvy_program_release(p);
        EXPECT(pages_of(momentum) <= whole / parts + 2);
    }
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void unfit_optimisers(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .update_mode = CVY_UPDATE_ZERO1};
    const cvy_training_opts unfit[] = {{.size = sizeof unfit[0], .optimizer = "lars"},
                                       {.size = sizeof unfit[0], .optimizer = "lamb"},
                                       {.size = sizeof unfit[0], .clip_norm = 1},
                                       {.size = sizeof unfit[0], .optimizer = "rmsprop"}};
    static const char *const says[] = {
        "does not suit the optimiser lars:", "does not suit the optimiser lamb:",
        "does not suit the optimiser sgd with clip_norm:", "does not suit the optimiser rmsprop:"};
    for (int i = 0; i < CVY_COUNT(unfit) && all->comm->nranks > 1; i++) {
        cvy_model *m = new_model();
        cvy_program *p = NULL;
        int step = 0;
        EXPECT_OK(cvy_program_create(all, &opts, &p));
        EXPECT_OK(cvy_program_add_training(p, m, 12, &unfit[i], &step));
        EXPECT_FAULT(cvy_program_plan(p), CVY_E_CONFIG, says[i]);
        cvy_program_destroy(&p);
        cvy_model_destroy(&m);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    as_in_sync();
    states_take_a_share();
    unfit_optimisers();
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
