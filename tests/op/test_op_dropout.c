/*
 * test_op_dropout.c: a dropout mask depends on seed, layer, step and sample and not on rank or row; it drops the right
 * share, and evaluation has no mask.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_status.h"
#include "op/graph_eval.h"

enum { EACH = 3 * 41, SAMPLES = 7 };

struct setup {
    uint64_t seed;
    const char *layer;
    int64_t step, first, n;
};

/* Writes the output of a dropout layer with p 0.25 on ones, for the samples first .. first + n - 1. */
static cvy_status run(const struct setup *s, double *out)
{
    const cvy_graph_opts opts = {
        .name = "g", .batch = {SAMPLES, s->first, s->n, 1, 0}, .training = 1, .dtype = CVY_DTYPE_F64, .seed = s->seed};
    const cvy_shape sample = {2, {3, 41}};
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    cvy_tree *options = NULL;
    cvy_value *src = NULL, *dst = NULL, *id = NULL, *step = NULL;
    cvy_eval e = {0};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_vars_create(&vars));
    CVY_TRY_OUT(cvy_graph_create(vars, &opts, &g));
    CVY_TRY_OUT(cvy_graph_feed(g, "x", CVY_DTYPE_F64, &sample, 0, &src));
    CVY_TRY_OUT(cvy_tree_parse_text(g->pool, "job.yaml", "p: 0.25", 7, &options));
    CVY_TRY_OUT(cvy_graph_layer(g, "dropout", s->layer, options, &src, 1, &dst));
    CVY_TRY_OUT(cvy_graph_sample_id(g, &id));
    CVY_TRY_OUT(cvy_graph_step_number(g, &step));
    CVY_TRY_OUT(cvy_eval_create(g, &e));
    for (int64_t i = 0; i < s->n * EACH; i++)
        cvy_set(cvy_eval_of(&e, src), i, 1);
    for (int64_t i = 0; i < s->n; i++)
        cvy_set(cvy_eval_of(&e, id), i, (double)(1000 + s->first + i));
    cvy_set(cvy_eval_of(&e, step), 0, (double)s->step);
    CVY_TRY_OUT(cvy_eval_run(&e, 1));
    for (int64_t i = 0; i < s->n * EACH; i++)
        out[i] = cvy_get(cvy_eval_of(&e, dst), i);
out:
    cvy_eval_destroy(&e);
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
    return status;
}

static int differences(const double *a, const double *b, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += a[i] != b[i];
    return count;
}

static void mask_is_keyed(void)
{
    static double all[SAMPLES * EACH], other[SAMPLES * EACH];
    EXPECT_OK(run(&(struct setup){7, "drop1", 5, 0, SAMPLES}, all));
    for (int n = 0; n < SAMPLES; n++) {
        EXPECT_OK(run(&(struct setup){7, "drop1", 5, n, 1}, other));
        EXPECT_INT(differences(all + n * EACH, other, EACH), 0);
    }
    const struct setup others[] = {
        {8, "drop1", 5, 0, SAMPLES}, {7, "drop2", 5, 0, SAMPLES}, {7, "drop1", 6, 0, SAMPLES}};
    for (int i = 0; i < CVY_COUNT(others); i++) {
        EXPECT_OK(run(&others[i], other));
        /* Independent masks differ in 2 p (1 - p) of the elements: 0.375 of 861, with a standard deviation of 14. */
        EXPECT_NEAR(differences(all, other, SAMPLES * EACH), 0.375 * SAMPLES * EACH, 70);
    }
    EXPECT(differences(all, all + EACH, EACH) > 20);
}

static void a_quarter_is_dropped(void)
{
    static double out[SAMPLES * EACH];
    int zeros = 0;
    EXPECT_OK(run(&(struct setup){7, "drop1", 5, 0, SAMPLES}, out));
    for (int i = 0; i < SAMPLES * EACH; i++) {
        zeros += out[i] == 0;
        EXPECT(out[i] == 0 || fabs(out[i] - 4.0 / 3) < 1e-15);
    }
    EXPECT_NEAR(zeros, 0.25 * SAMPLES * EACH, 64); /* five standard deviations */
}

static cvy_status build(int training, const char *text, cvy_vars *vars, int *is_source_out)
{
    const cvy_graph_opts opts = {
        .name = "g", .batch = cvy_batch_share(4, 0, 1), .training = training, .dtype = CVY_DTYPE_F32};
    cvy_graph *g = NULL;
    cvy_tree *options = NULL;
    cvy_value *src = NULL, *dst = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_graph_create(vars, &opts, &g));
    CVY_TRY_OUT(cvy_graph_feed(g, "x", CVY_DTYPE_F32, &(cvy_shape){1, {5}}, 0, &src));
    CVY_TRY_OUT(cvy_tree_parse_text(g->pool, "job.yaml", text, strlen(text), &options));
    CVY_TRY_OUT(cvy_graph_layer(g, "dropout", "drop1", options, &src, 1, &dst));
    *is_source_out = dst == src;
out:
    cvy_graph_destroy(&g);
    return status;
}

static void absent_in_evaluation(void)
{
    cvy_vars *vars = NULL;
    int is_source = -1;
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(build(1, "p: 0.5", vars, &is_source));
    EXPECT_INT(is_source, 0);
    EXPECT_OK(build(0, "p: 0.5", vars, &is_source));
    EXPECT_INT(is_source, 1);
    EXPECT_OK(build(1, "p: 0", vars, &is_source));
    EXPECT_INT(is_source, 1);
    EXPECT_FAULT(build(0, "p: 1.5", vars, &is_source), CVY_E_CONFIG, "p");
    cvy_vars_destroy(&vars);
}

int main(void)
{
    TEST(mask_is_keyed);
    TEST(a_quarter_is_dropped);
    TEST(absent_in_evaluation);
    return test_end();
}
