/* ranks: 2 3 */
/* rows: mpich mpi asan */
/*
 * test_program_reduce.c: programs and a reducer that reduce with different settings share one context: planned and run
 * in turns, each gives the same bits and sends as many bytes as it does alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/reducer.h>

#include "program/program_view.h"
#include "program/ranks_util.h"

enum { STEPS = 6, PROGRAMS = 4, BATCH = 8 };

static const cvy_program_opts settings[PROGRAMS] = {
    {.size = sizeof(cvy_program_opts), .bucket_bytes = 512},
    {.size = sizeof(cvy_program_opts), .bucket_bytes = 512, .reduce = "ring", .reduce_no_node = 1},
    {.size = sizeof(cvy_program_opts),
     .bucket_bytes = 512,
     .reduce = "halving",
     .reduce_no_node = 1,
     .reduce_wire = CVY_DTYPE_BF16},
    {.size = sizeof(cvy_program_opts), .bucket_bytes = 512, .reduce_no_node = 1, .reduce_progress = "thread"},
};

struct run {
    cvy_model *model;
    cvy_program *program;
    int step;
    int64_t sent_bytes;
    double weights[WEIGHTS];
};

static void fill(const struct run *r)
{
    const int64_t *id = cvy_program_feed(r->program, r->step, "sample_id"),
                  rows = cvy_program_rows(r->program, r->step);
    const cvy_span x = {.dtype = CVY_DTYPE_F32, .data = cvy_program_feed(r->program, r->step, "x")};
    float *weight = cvy_program_feed(r->program, r->step, "weight");
    int32_t *label = cvy_program_feed(r->program, r->step, "label");
    for (int64_t i = 0; i < rows; i++) {
        fill_sample(&x, i, id[i]);
        weight[i] = 1;
        label[i] = (int32_t)(id[i] % 3);
    }
}

static void create(cvy_context *context, int setting, struct run *r)
{
    const cvy_training_opts sgd = {.size = sizeof sgd, .optimizer_options = "momentum: 0.8"};
    *r = (struct run){.model = new_network("settings")};
    EXPECT_OK(cvy_model_add(r->model, "softmax_cross_entropy", "loss", NULL, "fc, label, weight"));
    EXPECT_OK(cvy_program_create(context, &settings[setting], &r->program));
    EXPECT_OK(cvy_program_add_training(r->program, r->model, BATCH, &sgd, &r->step));
}

static void step(struct run *r)
{
    const int64_t before = all->comm->sent_bytes;
    EXPECT_OK(cvy_program_step(r->program, r->step, 0.05));
    r->sent_bytes += all->comm->sent_bytes - before;
}

static void destroy(struct run *r)
{
    read_weights(r->program, CVY_DTYPE_F32, r->weights);
    cvy_program_destroy(&r->program);
    cvy_model_destroy(&r->model);
}

static void run_alone(cvy_context *context, int setting, struct run *r)
{
    create(context, setting, r);
    EXPECT_OK(cvy_program_plan(r->program));
    fill(r);
    for (int i = 0; i < STEPS; i++)
        step(r);
    destroy(r);
}

static cvy_reducer *new_reducer(void)
{
    const cvy_reducer_opts opts = {.size = sizeof opts, .algorithm = "doubling", .no_node = 1, .wire = CVY_DTYPE_BF16};
    cvy_reducer *r = NULL;
    int index = 0;
    EXPECT_OK(cvy_reducer_create(all, &opts, &r));
    EXPECT_OK(cvy_reducer_add(r, "numbers", 64, CVY_DTYPE_F32, &index));
    EXPECT_OK(cvy_reducer_ready(r));
    return r;
}

static void sum_something(cvy_reducer *r)
{
    float *numbers = cvy_reducer_buffer(r, 0);
    for (int i = 0; i < 64; i++)
        numbers[i] = 1;
    EXPECT_OK(cvy_reducer_start(r, 0));
    EXPECT_OK(cvy_reducer_wait(r, 0));
    numbers = cvy_reducer_sum(r, 0);
    EXPECT_NEAR(numbers[63], (double)cvy_context_nranks(all), 0);
}

static void in_turns(void)
{
    static struct run alone_run[PROGRAMS], r[PROGRAMS];
    for (int i = 0; i < PROGRAMS; i++)
        run_alone(all, i, &alone_run[i]);
    cvy_reducer *reducer = new_reducer();
    for (int i = 0; i < PROGRAMS; i++)
        create(all, i, &r[i]);
    for (int i = 0; i < PROGRAMS; i++)
        EXPECT_OK(cvy_program_prepare(r[i].program));
    for (int i = PROGRAMS - 1; i >= 0; i--) { /* each is bound after another one was planned */
        EXPECT_OK(cvy_program_allocate(r[i].program));
        fill(&r[i]);
    }
    for (int k = 0; k < STEPS; k++)
        for (int i = 0; i < PROGRAMS; i++) {
            step(&r[i]);
            sum_something(reducer);
        }
    cvy_reducer_destroy(&reducer);
    for (int i = 0; i < PROGRAMS; i++) {
        destroy(&r[i]);
        EXPECT_INT(r[i].sent_bytes, alone_run[i].sent_bytes);
        EXPECT(memcmp(r[i].weights, alone_run[i].weights, sizeof r[i].weights) == 0);
    }
    EXPECT(r[2].sent_bytes < r[1].sent_bytes); /* half the bytes on the wire */
}

/* A communicator of one rank needs no reductions: the settings are accepted and change nothing. */
static void on_one_rank(void)
{
    static struct run r[PROGRAMS];
    for (int i = 0; i < PROGRAMS; i++) {
        run_alone(alone, i, &r[i]);
        EXPECT(memcmp(r[i].weights, r[0].weights, sizeof r[i].weights) == 0);
    }
}

int main(int argc, char **argv)
{
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    TEST(in_turns);
    TEST(on_one_rank);
    cvy_context_destroy(&alone);
    cvy_context_destroy(&all);
    MPI_Finalize();
    return test_end();
}
