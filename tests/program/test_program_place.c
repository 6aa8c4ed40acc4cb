/* ranks: 2 3 */
/*
 * test_program_place.c: layers that are placed on stages by hand are there, whatever their order in the model, and the
 * results are those of one rank; places that cannot be are refused with what would work.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/stages_util.h"

static const struct way usual = {12, 4, "adam", NULL, 0};
static int nstages;

static int stage_of(const struct trained *t, const char *layer)
{
    return cvy_index_find(&t->program->pipeline.of_layer, layer) + 1;
}

static void as_alone(struct trained *t)
{
    static struct trained one;
    train(alone, &usual, &(cvy_program_opts){0}, CVY_DTYPE_F64, &one);
    run(t, CVY_DTYPE_F64);
    compare(t, &one, 1e-12);
    end(&one);
}

static void first_layers(void)
{
    struct trained t = {.model = make_model()};
    const cvy_program_opts opts = {.pipeline = nstages, .first_layers = nstages == 2 ? "a, r2" : "a,s1 s2"};
    EXPECT_OK(plan(all, &usual, &opts, CVY_DTYPE_F64, &t));
    EXPECT_INT(stage_of(&t, "a"), 1);
    EXPECT_INT(stage_of(&t, "b"), 1);
    EXPECT_INT(stage_of(&t, "s1"), nstages - 1);
    EXPECT_INT(stage_of(&t, "early"), nstages - 1);
    EXPECT_INT(stage_of(&t, "bn2"), 2);
    EXPECT_INT(stage_of(&t, "late"), nstages);
    EXPECT_FAULT(cvy_program_set_stage(t.program, "c", 1), CVY_E_ARGUMENT, "place it before");
    as_alone(&t);
    end(&t);
}

/* The branch with the loss `early` goes to the last stage, although the layers after it in the model do not. */
static void a_branch(void)
{
    struct trained t = {.model = make_model()};
    const cvy_program_opts opts = {.pipeline = nstages};
    EXPECT_OK(cvy_model_set_stage(t.model, "early_fc", nstages));
    EXPECT_OK(cvy_model_set_stage(t.model, "c", 1));
    EXPECT_OK(plan(all, &usual, &opts, CVY_DTYPE_F64, &t));
    EXPECT_INT(stage_of(&t, "early_fc"), nstages);
    EXPECT_INT(stage_of(&t, "early"), nstages);
    EXPECT_INT(stage_of(&t, "c"), 1);
    EXPECT_INT(stage_of(&t, "r2"), 1);
    as_alone(&t);
    end(&t);
}

/* What a pass of the user does. */
static void by_a_call(void)
{
    struct trained t = {.model = make_model()};
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = CVY_DTYPE_F64, .pipeline = nstages};
    int task = 0;
    EXPECT_OK(cvy_program_create(all, &opts, &t.program));
    EXPECT_OK(cvy_program_set_stage(t.program, "s2", nstages));
    EXPECT_OK(cvy_program_set_stage(t.program, "s2", nstages));
    EXPECT_FAULT(cvy_program_set_stage(t.program, "s2", 1), CVY_E_CONFIG, "layer s2 is placed on stage");
    EXPECT_FAULT(cvy_program_set_stage(t.program, "s1", 0), CVY_E_CONFIG, "take a stage from 1 to");
    EXPECT_OK(cvy_program_add_training(t.program, t.model, 6, NULL, &task));
    EXPECT_OK(cvy_program_plan(t.program));
    EXPECT_INT(stage_of(&t, "s2"), nstages);
    end(&t);
}

static void check_refused(const char *first, const char *layer, int stage, const char *layer2, int stage2,
                          const char *message)
{
    struct trained t = {.model = make_model()};
    const cvy_program_opts opts = {.pipeline = nstages, .first_layers = first};
    if (layer)
        EXPECT_OK(cvy_model_set_stage(t.model, layer, stage));
    if (layer2)
        EXPECT_OK(cvy_model_set_stage(t.model, layer2, stage2));
    EXPECT_FAULT(plan(all, &usual, &opts, CVY_DTYPE_F32, &t), CVY_E_CONFIG, message);
    end(&t);
}

static void refused(void)
{
    const char *rest = nstages == 3 ? ", late" : "";
    char names[64];
    snprintf(names, sizeof names, "a, s7%s", rest);
    check_refused(names, NULL, 0, NULL, 0, "the model stages has no such layer, did you mean 's1'?");
    snprintf(names, sizeof names, "r2, b%s", rest);
    check_refused(names, NULL, 0, NULL, 0, "stage 2 begins with b, which does not come after r2");
    snprintf(names, sizeof names, "bn, b%s", rest);
    check_refused(names, NULL, 0, NULL, 0, "the first stage begins with a, the first layer of the model, not with bn");
    check_refused("a", NULL, 0, NULL, 0, "names 1 layer, and");
    check_refused("a, b, c, late", NULL, 0, NULL, 0, "names 4 layers, and");
    check_refused("", NULL, 0, NULL, 0, "names 0 layers, and");
    snprintf(names, sizeof names, "a, b%s", rest);
    check_refused(names, "bn", 2, NULL, 0, "layer bn is placed on stage 2 and on stage 1");
    check_refused(NULL, "c", nstages + 1, NULL, 0, "layer c is placed on stage");
    check_refused(NULL, "a", 2, "r2", 1, "layer r2 is placed on stage 1, but it reads what layer a on stage 2 makes");
    check_refused(NULL, "a", 2, NULL, 0, "it has 0 layers before it, and each earlier stage needs one: take stage 1");
    check_refused(NULL, "late", 1, "early", 1, "it has 0 layers after it, and each later stage needs one");
    if (nstages == 3)
        check_refused(NULL, "r", 1, "b", 3, "with 0 layers between them, and each stage between needs one");
}

static void models(void)
{
    cvy_model *m = make_model();
    EXPECT_FAULT(cvy_model_set_stage(m, "early_f", 1), CVY_E_ARGUMENT, "did you mean 'early_fc'?");
    EXPECT_FAULT(cvy_model_set_stage(m, "early", 0), CVY_E_ARGUMENT, "a stage of at least 1");
    EXPECT_FAULT(cvy_model_set_stage(m, NULL, 1), CVY_E_ARGUMENT, "expected a name");
    cvy_model_destroy(&m);
}

/* One stage holds all layers, so a network with places can be tested on one rank. */
static void one_stage(void)
{
    struct trained t = {.model = make_model()};
    const cvy_program_opts opts = {.first_layers = "a, b"};
    EXPECT_OK(cvy_model_set_stage(t.model, "c", 7));
    EXPECT_OK(plan(alone, &usual, &opts, CVY_DTYPE_F32, &t));
    end(&t);
}

/* A layer that is used twice, with another one between: all of them are on one stage. */
static void used_twice(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .pipeline = nstages};
    for (int placed = 0; placed < 2; placed++) {
        cvy_model *m = NULL;
        cvy_program *p = NULL;
        cvy_tree *tree = NULL;
        int task = 0;
        static const char text[] =
            "{inputs: {x: 4, label: 4}, layers: [{fc: {name: twice, channels: 4}}, "
            "{relu: {name: mid}}, {fc: {name: twice, channels: 4, output: again}}, "
            "{relu: {name: last}}, {relu: {name: very}}, {mse: {name: loss, from: [very, label]}}]}";
        cvy_pool *pool = NULL;
        EXPECT_OK(cvy_pool_create(&pool));
        EXPECT_OK(cvy_tree_parse_text(pool, "text", text, sizeof text - 1, &tree));
        EXPECT_OK(cvy_model_from_fields(tree, NULL, NULL, 0, NULL, 0, &m));
        EXPECT_OK(cvy_model_set_stage(m, "mid", placed ? 1 : 2));
        EXPECT_OK(cvy_model_set_stage(m, "twice", 1));
        EXPECT_OK(cvy_program_create(all, &opts, &p));
        EXPECT_OK(cvy_program_add_training(p, m, 4, NULL, &task));
        if (placed)
            EXPECT_OK(cvy_program_plan(p));
        else
            EXPECT_FAULT(cvy_program_plan(p), CVY_E_CONFIG, "reads what layer mid on stage 2 makes");
        cvy_program_destroy(&p);
        cvy_model_destroy(&m);
        cvy_pool_destroy(&pool);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &all));
    /* One thread, because all ranks compute the expected values at the same time. */
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &alone));
    nstages = cvy_context_nranks(all);
    TEST(first_layers);
    TEST(a_branch);
    TEST(by_a_call);
    TEST(refused);
    TEST(models);
    TEST(one_stage);
    TEST(used_twice);
    cvy_context_destroy(&all);
    cvy_context_destroy(&alone);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
