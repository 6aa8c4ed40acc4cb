/* rows: clang asan minimal */
/*
 * test_program_groups.c: parameter groups of a training task: factors on learning rate and weight decay, frozen
 * weights, the first match counts, tasks may differ; and what is refused. Expected values follow from the gradients of
 * a plain step and the rule of SGD.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "program/program_util.h"

enum { BATCH = 4, X = 3, VARIABLES = 4, ELEMS_MAX = 6 };

static const char *const name[VARIABLES] = {"gen.weight", "gen.bias", "out.weight", "out.bias"};
static const int elems[VARIABLES] = {6, 2, 2, 1};

typedef struct values {
    double at[VARIABLES][ELEMS_MAX];
} values;

static cvy_program *new_program(int ntask, const cvy_training_opts *training)
{
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_F64, .seed = 3, .wisdom = "off"};
    cvy_model *m = new_model("groups");
    cvy_program *p = NULL;
    int task = 0;
    add_input(m, "x", X);
    add_input(m, "y", 1);
    EXPECT_OK(cvy_model_add(m, "fc", "gen", "channels: 2", "x"));
    EXPECT_OK(cvy_model_add(m, "fc", "out", "channels: 1", NULL));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "out, y"));
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    for (int i = 0; i < ntask; i++)
        EXPECT_OK(cvy_program_add_training(p, m, BATCH, &training[i], &task));
    EXPECT_OK(cvy_program_plan(p));
    cvy_model_destroy(&m);
    return p;
}

static values weights(const cvy_program *p)
{
    values v = {{{0}}};
    for (int i = 0; i < VARIABLES; i++)
        EXPECT_OK(cvy_program_get(p, name[i], v.at[i], elems[i]));
    return v;
}

/* Runs a step and returns by how much it has lowered each number. */
static values step(cvy_program *p, int task, double lr)
{
    const values before = weights(p);
    fill(p, task, "x", BATCH * X, 1);
    fill(p, task, "y", BATCH, 2);
    EXPECT_OK(cvy_program_step(p, task, lr));
    values change = weights(p);
    for (int i = 0; i < VARIABLES; i++)
        for (int k = 0; k < elems[i]; k++)
            change.at[i][k] = before.at[i][k] - change.at[i][k];
    return change;
}

/* lr lr_mult (gradient + weight_decay decay_mult weight), for each variable */
static void expect_rule(const cvy_training_opts *training, const double lr_mult[VARIABLES],
                        const double decay[VARIABLES])
{
    const double lr = 0.1;
    const cvy_training_opts plain = cvy_training_opts_default();
    cvy_program *p = new_program(1, &plain), *q = new_program(1, training);
    const values w = weights(q), gradient = step(p, 0, 1), change = step(q, 0, lr);
    for (int i = 0; i < VARIABLES; i++)
        for (int k = 0; k < elems[i]; k++)
            EXPECT_NEAR(change.at[i][k], lr * lr_mult[i] * (gradient.at[i][k] + decay[i] * w.at[i][k]), 1e-13);
    cvy_program_destroy(&p);
    cvy_program_destroy(&q);
}

static void factors_follow_the_rule(void)
{
    const cvy_training_group groups[] = {
        {.size = sizeof groups[0], .match = "out.bias", .frozen = 1},
        {.size = sizeof groups[0], .match = "gen.*, nothing", .lr_mult = 2, .decay_mult = 3},
        {.size = sizeof groups[0], .match = "*", .lr_mult = 0.5, .no_decay = 1, .decay_mult = 7},
    };
    cvy_training_opts training = cvy_training_opts_default();
    training.weight_decay = 0.01;
    expect_rule(&training, (const double[]){1, 1, 1, 1}, (const double[]){0.01, 0, 0.01, 0});
    training.groups = groups, training.ngroups = 3;
    expect_rule(&training, (const double[]){2, 2, 0.5, 0}, (const double[]){0.03, 0, 0, 0});
}

static int is_zero(const values *change, int variable)
{
    for (int k = 0; k < elems[variable]; k++)
        if (change->at[variable][k] != 0)
            return 0;
    return 1;
}

static void tasks_have_groups_of_their_own(void)
{
    const cvy_training_group first = {.size = sizeof first, .match = "gen.*", .frozen = 1},
                             second = {.size = sizeof second, .match = "out.*", .frozen = 1};
    cvy_training_opts training[2] = {cvy_training_opts_default(), cvy_training_opts_default()};
    training[0].groups = &first, training[1].groups = &second;
    training[0].ngroups = training[1].ngroups = 1;
    cvy_program *p = new_program(2, training);
    for (int task = 0; task < 2; task++) {
        const values change = step(p, task, 0.1);
        for (int i = 0; i < VARIABLES; i++)
            EXPECT_INT(is_zero(&change, i), (i < 2) == (task == 0));
    }
    cvy_program_destroy(&p);
}

/* An older header has shorter groups, which lie closer together. */
static void older_groups_are_read(void)
{
    enum { OLD = offsetof(cvy_training_group, no_decay) };
    const cvy_training_group groups[] = {{.size = OLD, .match = "gen.*", .lr_mult = 3},
                                         {.size = OLD, .match = "out.*", .decay_mult = 2}};
    union {
        cvy_training_group aligned;
        unsigned char bytes[2 * sizeof(cvy_training_group)];
    } old;
    cvy_training_opts training = cvy_training_opts_default();
    memset(&old, 1, sizeof old);
    memcpy(old.bytes, &groups[0], OLD);
    memcpy(old.bytes + OLD, &groups[1], OLD);
    training.weight_decay = 0.5;
    training.groups = &old.aligned, training.ngroups = 2;
    expect_rule(&training, (const double[]){3, 3, 1, 1}, (const double[]){0.5, 0, 1, 0});
}

static void what_is_refused(void)
{
    const size_t size = sizeof(cvy_training_group);
    const struct {
        cvy_training_group group[2];
        int ngroups;
        const char *text;
    } bad[] = {
        {{{.size = size}}, 1, "groups[0] has no pattern"},
        {{{.size = size, .match = "*", .lr_mult = -1}}, 1, "lr_mult is -1"},
        {{{.size = size, .match = "*", .decay_mult = NAN}}, 1, "expected numbers of at least 0"},
        {{{.match = "*"}}, 1, "the size of cvy_training_group is 0"},
        {{{.size = size, .match = "*"}, {.size = size - 8, .match = "*"}}, 2, "groups[1] has another size"},
        {{{.size = size, .match = "*"}}, -1, "ngroups is -1"},
    };
    cvy_model *m = new_model("refused");
    cvy_program *p = NULL;
    cvy_training_opts training = cvy_training_opts_default();
    cvy_training_group none = {.size = size, .match = "head.*"};
    int task = 0;
    add_input(m, "x", X);
    EXPECT_OK(cvy_model_add(m, "fc", "out", "channels: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "out, x"));
    EXPECT_OK(cvy_program_create(context, NULL, &p));
    for (int i = 0; i < CVY_COUNT(bad); i++) {
        training.groups = bad[i].group, training.ngroups = bad[i].ngroups;
        EXPECT_FAULT(cvy_program_add_training(p, m, BATCH, &training, &task), CVY_E_ARGUMENT, bad[i].text);
    }
    char pattern[300] = "";
    memset(pattern, 'p', sizeof pattern - 1);
    training.groups = NULL, training.ngroups = 0, training.trains = pattern;
    EXPECT_FAULT(cvy_program_add_training(p, m, BATCH, &training, &task), CVY_E_ARGUMENT,
                 "trains: a pattern has 299 characters");
    training.trains = NULL;
    training.groups = NULL, training.ngroups = 1;
    EXPECT_FAULT(cvy_program_add_training(p, m, BATCH, &training, &task), CVY_E_ARGUMENT, "groups is NULL");
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);

    m = new_model("no match");
    add_input(m, "x", X);
    add_input(m, "y", 1);
    EXPECT_OK(cvy_model_add(m, "fc", "out", "channels: 1", "x"));
    EXPECT_OK(cvy_model_add(m, "mse", "loss", NULL, "out, y"));
    EXPECT_OK(cvy_program_create(context, NULL, &p));
    training.groups = &none;
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &training, &task));
    EXPECT_FAULT(cvy_program_plan(p), CVY_E_ARGUMENT, "no weight of the model matches 'head.*'; its first one is out.");
    cvy_program_destroy(&p);

    const cvy_training_group hidden[] = {{.size = size, .match = "other, *.bias"},
                                         {.size = size, .match = "out.*"},
                                         {.size = size, .match = "out.weight", .frozen = 1}};
    training.groups = hidden, training.ngroups = 3;
    EXPECT_OK(cvy_program_create(context, NULL, &p));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &training, &task));
    EXPECT_FAULT(
        cvy_program_plan(p), CVY_E_ARGUMENT,
        "groups: 'out.weight' gets no weight, because groups before it take all that it matches, 'out.*' the first");
    cvy_program_destroy(&p);
    training.ngroups = 2; /* a group may lose some of its weights to the one before it */
    EXPECT_OK(cvy_program_create(context, NULL, &p));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, &training, &task));
    EXPECT_OK(cvy_program_plan(p));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

int main(void)
{
    EXPECT_OK(cvy_context_create(NULL, &context));
    TEST(factors_follow_the_rule);
    TEST(tasks_have_groups_of_their_own);
    TEST(older_groups_are_read);
    TEST(what_is_refused);
    cvy_context_destroy(&context);
    return test_end();
}
