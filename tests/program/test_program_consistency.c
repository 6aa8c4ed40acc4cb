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

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_status.h"
#include "program/program_view.h"
#include "test_util.h"

static cvy_context *all;

struct made {
    const char *fc, *trains, *off, *momentum, *plan;
    int64_t batch;
    double lr_mult; /* of the first layer */
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
    const cvy_program_opts opts = {.size = sizeof opts,
                                   .seed = 1,
                                   .passes_off = m->off,
                                   .wisdom = "off",
                                   .shards = m->shards,
                                   .plan_file = m->plan};
    const cvy_training_group group = {.size = sizeof group, .match = "conv.*", .lr_mult = m->lr_mult};
    const cvy_training_opts training = {.size = sizeof training,
                                        .optimizer_options = m->momentum ? m->momentum : "momentum: 0",
                                        .trains = m->trains,
                                        .groups = &group,
                                        .ngroups = 1};
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

/* An earlier plan that has chosen nothing; each rank has its own copy. */
static const char *plan_file(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/convoy-plan-%ld.json", (long)getpid());
    EXPECT_OK(cvy_file_replace(path, "{\"choices\": {}}", 15));
    return path;
}

/* The longest names, where ranks of a tensor axis tell each other theirs; longer ones are refused. */
static void long_names(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .wisdom = "off", .tensor = 2};
    const cvy_training_opts training = {.size = sizeof training};
    cvy_model *model = NULL;
    cvy_program *p = NULL;
    char name[122] = "";
    int step = 0;
    if (cvy_context_nranks(all) != 2)
        return;
    memset(name, 'n', sizeof name - 1);
    EXPECT_OK(cvy_model_create("long", &model));
    EXPECT_OK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){1, {6}}));
    EXPECT_OK(cvy_model_add_input(model, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_FAULT(cvy_model_add(model, "fc", name, "channels: 8", "x"), CVY_E_ARGUMENT, "a name of 121 characters");
    name[120] = '\0';
    EXPECT_OK(cvy_model_add(model, "fc", name, "channels: 8", "x"));
    EXPECT_OK(cvy_model_add(model, "fc", "fc", "channels: 2", NULL));
    EXPECT_OK(cvy_model_add(model, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    EXPECT_OK(cvy_program_create(all, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, model, 4, &training, &step));
    EXPECT_OK(cvy_program_plan(p));
    int weights = 0;
    for (int i = 0; i < cvy_program_vars(p)->count; i++)
        weights += cvy_program_vars(p)->at[i]->role == CVY_ROLE_WEIGHT;
    EXPECT_INT(weights, 4);
    cvy_program_destroy(&p);
    cvy_model_destroy(&model);
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
    TEST(long_names);
    other.fc = "channels: 4";
    refused(usual, other, "fc.weight");
    other = usual, other.norm = 0;
    refused(usual, other, "bn.");
    other = usual, other.trains = "fc.*";
    refused(usual, other, "trains 'fc.*' in task 0");
    other = usual, other.momentum = "momentum: 0.9";
    refused(usual, other, "the optimiser sgd with the options");
    other = usual, other.lr_mult = 0.5;
    refused(usual, other, "the group 'conv.*' with lr_mult 0.5");
    other = usual, other.plan = plan_file();
    refused(usual, other, "a plan_file with the checksum ");
    EXPECT_OK(plan(&other)); /* all ranks have it */
    remove(other.plan);
    other = usual, other.steps = 2;
    refused(usual, other, "task 1");
    cvy_context_destroy(&all);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
