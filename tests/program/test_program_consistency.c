/* ranks: 2 3 */
/* rows: mpich mpi asan */
/*
 * test_program_consistency.c: ranks whose programs differ in weights, sums, options or the number of steps get an error
 * before the first step, with the first difference, on all ranks; equal programs with unequal shares, even empty ones,
 * do not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "base/base_status.h"
#include "test_util.h"

static cvy_context *all;

struct made {
    const char *fc, *trains, *off;
    int64_t batch;
    int norm, steps, shards;
};

static cvy_model *new_model(const struct made *m)
{
    cvy_model *model = NULL;
    EXPECT_OK(cvy_model_create("alike", &model));
    EXPECT_OK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 4, 4}}));
    EXPECT_OK(cvy_model_add_input(model, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(model, "conv", "conv", "channels: 8, kernel: 3, pad: 1", "x"));
    if (m->norm)
        EXPECT_OK(cvy_model_add(model, "batch_norm", "bn", NULL, NULL));
    EXPECT_OK(cvy_model_add(model, "fc", "fc", m->fc, NULL));
    EXPECT_OK(cvy_model_add(model, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return model;
}

static cvy_status plan(const struct made *m)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .seed = 1, .passes_off = m->off, .wisdom = "off", .shards = m->shards};
    const cvy_training_opts training = {
        .size = sizeof training, .optimizer_options = "momentum: 0", .trains = m->trains};
    cvy_model *model = new_model(m);
    cvy_program *p = NULL;
    int step = 0;
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    for (int i = 0; i < m->steps; i++)
        EXPECT_OK(cvy_program_add_training(p, model, m->batch, &training, &step));
    const cvy_status status = cvy_program_plan(p);
    cvy_program_destroy(&p);
    cvy_model_destroy(&model);
    return status;
}

/* Plans a program that is different on the last rank, and expects the message `text`. */
static void refused(struct made usual, struct made other, const char *text)
{
    const int is_last = cvy_context_rank(all) == cvy_context_nranks(all) - 1;
    EXPECT_FAULT(plan(is_last ? &other : &usual), CVY_E_DISAGREE, text);
}

int main(int argc, char **argv)
{
    const struct made usual = {.fc = "channels: 3", .batch = 6, .norm = 1, .steps = 1};
    struct made other = usual;
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    EXPECT_OK(plan(&usual));
    EXPECT_OK(plan(&(struct made){.fc = "channels: 3", .batch = 1, .norm = 1, .steps = 2}));
    EXPECT_OK(plan(&(struct made){.fc = "channels: 3", .batch = 7, .steps = 1, .shards = 4}));
    other.fc = "channels: 4";
    refused(usual, other, "fc.weight");
    other = usual, other.norm = 0;
    refused(usual, other, "bn.");
    other = usual, other.trains = "fc.*";
    refused(usual, other, "the sum of a bucket of gradients in step 0, ");
    other = usual, other.steps = 2;
    refused(usual, other, "task 1");
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
