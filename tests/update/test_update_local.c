/* ranks: 1 2 3 4 */
/*
 * test_update_local.c: compares local updates with the rule itself: as many programs of one rank as there are ranks,
 * each on its share of the batch, whose variables are read, averaged in double by the weights of the samples, and set
 * again every few steps.
 *
 * Weights, momentum and running statistics must be the same in f64, and in f32 but for rounding. This covers the shared
 * memory of a node and messages; gradients sent as bf16 (averages are not); gradient memory that is smaller than what
 * is averaged; and ranks without samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <string.h>

#include "program/program_update.h"
#include "test_util.h"

enum { STEPS = 11, EVERY = 3, RANKS_MAX = 4, ELEMS_MAX = 1024 };

static cvy_context *all, *alone;
static int weighted; /* samples have weights, also 0 */

static cvy_model *new_model(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("local", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    if (weighted)
        EXPECT_OK(cvy_model_add_input(m, "weight", CVY_DTYPE_F32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "conv", "conv", "channels: 5, kernel: 3, pad: 1, bias: false", "x"));
    EXPECT_OK(cvy_model_add(m, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, weighted ? "fc, label, weight" : "fc, label"));
    return m;
}

static double weight_of(int64_t n)
{
    return weighted ? 0.5 * (double)(n * n % 5) : 1;
}

/* Of a rank's samples of step `number`. */
static double share_weight(int64_t batch, int r, int nranks, int number)
{
    const cvy_batch share = cvy_batch_share(batch, r, nranks);
    double sum = 0;
    for (int64_t n = 0; n < share.local_n; n++)
        sum += weight_of(number * batch + share.first + n);
    return sum;
}

/* Fills rows with samples of step `number`'s batch, starting at sample `first`. */
static void fill(cvy_program *p, int step, cvy_dtype dtype, int64_t batch, int64_t first, int number)
{
    const cvy_span x = {.dtype = dtype, .data = cvy_program_feed(p, step, "x")};
    int32_t *label = cvy_program_feed(p, step, "label");
    const cvy_span weight = {.dtype = dtype, .data = weighted ? cvy_program_feed(p, step, "weight") : NULL};
    for (int64_t r = 0; r < cvy_program_rows(p, step); r++) {
        const int64_t n = number * batch + first + r;
        for (int64_t i = 0; i < 32; i++)
            cvy_set(&x, r * 32 + i, sin(0.7 * (double)(n * 32 + i) + 0.3 * (double)(n * i % 101)) + (i % 3 == n % 3));
        label[r] = (int32_t)(n % 3);
        if (weighted)
            cvy_set(&weight, r, weight_of(n));
    }
}

static cvy_program *new_program(cvy_context *context, const cvy_program_opts *opts, const cvy_model *m, int64_t batch,
                                int *step)
{
    const cvy_training_opts sgd = {.size = sizeof sgd, .optimizer_options = "momentum: 0.8"};
    cvy_program *p = NULL;
    EXPECT_OK(cvy_program_create(context, opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, batch, &sgd, step));
    EXPECT_OK(cvy_program_plan(p));
    return p;
}

/* Reads all variables, one after the other. */
static int64_t read_all(const cvy_program *p, cvy_dtype dtype, double *out)
{
    double raw[ELEMS_MAX];
    const cvy_span span = {.dtype = dtype, .data = raw};
    int64_t at = 0;
    const char *name;
    cvy_shape shape;
    for (int v = 0; cvy_program_variable(p, v, &name, &shape) == CVY_OK; v++) {
        const int64_t n = cvy_shape_elems(&shape);
        EXPECT(at + n <= ELEMS_MAX);
        EXPECT_OK(cvy_program_get(p, name, raw, n));
        for (int64_t i = 0; i < n; i++)
            out[at++] = cvy_get(&span, i);
    }
    return at;
}

static void write_all(cvy_program *p, const double *from)
{
    const char *name;
    cvy_shape shape;
    for (int v = 0; cvy_program_variable(p, v, &name, &shape) == CVY_OK; v++) {
        EXPECT_OK(cvy_program_set(p, name, from, cvy_shape_elems(&shape)));
        from += cvy_shape_elems(&shape);
    }
}

struct outcome {
    double loss[STEPS], values[ELEMS_MAX];
    int64_t elems;
};

static int averages(int step)
{
    return (step + 1) % EVERY == 0 || step + 1 == STEPS;
}

static void plainly(int64_t batch, int nranks, struct outcome *o)
{
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_F64, .seed = 5, .batch_norm_group = 2};
    cvy_model *m = new_model();
    cvy_program *p[RANKS_MAX] = {NULL};
    int step[RANKS_MAX] = {0};
    memset(o, 0, sizeof *o);
    for (int r = 0; r < nranks; r++) { /* a rank without a sample also has a program, but runs none of its steps */
        const int64_t n = cvy_batch_share(batch, r, nranks).local_n;
        p[r] = new_program(alone, &opts, m, n ? n : 1, &step[r]);
    }
    double since[RANKS_MAX] = {0};
    for (int t = 0; t < STEPS; t++) {
        double total = 0;
        for (int r = 0; r < nranks; r++) {
            const cvy_batch share = cvy_batch_share(batch, r, nranks);
            double loss = 0;
            total += share_weight(batch, r, nranks, t);
            since[r] += share_weight(batch, r, nranks, t);
            if (share.local_n == 0)
                continue;
            fill(p[r], step[r], CVY_DTYPE_F64, batch, share.first, t);
            EXPECT_OK(cvy_program_step(p[r], step[r], 0.05 / (1 + t)));
            EXPECT_OK(cvy_program_loss(p[r], step[r], "loss", &loss));
            o->loss[t] += loss * share_weight(batch, r, nranks, t);
        }
        o->loss[t] /= total;
        total = 0;
        for (int r = 0; r < nranks; r++)
            total += since[r];
        for (int r = 0; r < nranks && averages(t); r++) {
            double values[ELEMS_MAX];
            o->elems = read_all(p[r], CVY_DTYPE_F64, values);
            for (int64_t i = 0; i < o->elems; i++)
                o->values[i] = (r ? o->values[i] : 0) + values[i] * since[r] / total;
        }
        for (int r = 0; r < nranks && averages(t); r++)
            write_all(p[r], o->values);
        memset(since, 0, averages(t) ? sizeof since : 0);
    }
    for (int r = 0; r < nranks; r++)
        cvy_program_destroy(&p[r]);
    cvy_model_destroy(&m);
}

static void locally(int64_t batch, cvy_dtype dtype, int no_node, int64_t bucket, struct outcome *o)
{
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .dtype = dtype,
                                   .seed = 5,
                                   .batch_norm_group = 2,
                                   .bucket_bytes = bucket,
                                   .share_weights = 1,
                                   .reduce_no_node = no_node,
                                   .reduce = "ring",
                                   .reduce_wire = CVY_DTYPE_BF16,
                                   .update_mode = CVY_UPDATE_LOCAL};
    cvy_model *m = new_model();
    cvy_comm *comm = all->comm;
    int step = 0;
    memset(o, 0, sizeof *o);
    cvy_program *p = new_program(all, &opts, m, batch, &step);
    EXPECT_INT(cvy_program_first_row(p, step), cvy_batch_share(batch, comm->rank, comm->nranks).first);
    for (int t = 0; t < STEPS; t++) {
        const int64_t sent = comm->sent_bytes;
        fill(p, step, dtype, batch, cvy_program_first_row(p, step), t);
        EXPECT(cvy_program_is_flushed(p) == (t == 0 || averages(t - 1)));
        EXPECT_OK(cvy_program_step(p, step, 0.05 / (1 + t)));
        EXPECT_INT(comm->sent_bytes, sent); /* nothing is sent between averagings */
        EXPECT_OK(cvy_program_loss(p, step, "loss", &o->loss[t]));
        if (averages(t)) {
            EXPECT_OK(cvy_program_flush(p));
            EXPECT((comm->sent_bytes > sent) == (no_node && comm->nranks > 1));
            EXPECT_OK(cvy_program_flush(p)); /* nothing more to do */
        }
    }
    o->elems = read_all(p, dtype, o->values);
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void compare(const struct outcome *got, const struct outcome *expected, double tolerance)
{
    EXPECT_INT(got->elems, expected->elems);
    for (int i = 0; i < STEPS; i++)
        EXPECT_NEAR(got->loss[i], expected->loss[i], tolerance);
    for (int64_t i = 0; i < expected->elems; i++)
        EXPECT_NEAR(got->values[i], expected->values[i], tolerance);
}

static void same_on_all_ranks(const struct outcome *o)
{
    double first[ELEMS_MAX];
    memcpy(first, o->values, sizeof first);
    EXPECT_OK(all->comm->ops->broadcast(all->comm, first, sizeof first, 0));
    EXPECT(memcmp(first, o->values, sizeof first) == 0);
}

static void follows_the_rule(void)
{
    static const int64_t batches[] = {12, 13, 3};
    for (int i = 0; i < CVY_COUNT(batches); i++) {
        struct outcome plain, got;
        plainly(batches[i], all->comm->nranks, &plain);
        EXPECT(plain.elems > 500);
        locally(batches[i], CVY_DTYPE_F64, 0, 256, &got);
        compare(&got, &plain, 1e-11);
        for (int no_node = 0; no_node < 2; no_node++) {
            locally(batches[i], CVY_DTYPE_F32, no_node, no_node ? 1 << 20 : 256, &got);
            compare(&got, &plain, 5e-4);
            same_on_all_ranks(&got);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    for (weighted = 0; weighted < 2; weighted++)
        follows_the_rule();
    cvy_context_destroy(&alone);
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
