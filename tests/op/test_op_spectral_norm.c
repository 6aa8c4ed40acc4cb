/*
 * test_op_spectral_norm.c: a weight is divided by its largest singular value, which the first step finds and later
 * steps follow; evaluation keeps the vectors; all applications of a layer share one division; its gradient is that of
 * the quotient once the vectors have converged.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/conv/op_spectral_norm.h"
#include "op/graph_eval.h"
#include "pass/pass.h"

enum { ROWS = 3, COLS = 4 };

struct layer {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value *x, *first, *second;
    cvy_gradients gradients;
    cvy_eval e;
};

/* Two applications of `op` with the same name. */
static cvy_status open_layer(const char *op, const char *options, const cvy_shape *sample, int training,
                             struct layer *out)
{
    const cvy_graph_opts opts = {
        .name = "g", .batch = {2, 0, 2, 1, 0}, .training = training, .dtype = CVY_DTYPE_F64, .seed = 1};
    cvy_tree *tree = NULL;
    cvy_value *from[2] = {NULL, NULL};
    cvy_node *loss = NULL;
    *out = (struct layer){0};
    CVY_TRY(cvy_vars_create(&out->vars));
    CVY_TRY(cvy_graph_create(out->vars, &opts, &out->graph));
    CVY_TRY(cvy_graph_feed(out->graph, "x", CVY_DTYPE_F64, sample, 0, &out->x));
    CVY_TRY(cvy_sample_options(out->graph->pool, options, &tree));
    CVY_TRY(cvy_graph_layer(out->graph, op, "a", tree, &out->x, 1, &out->first));
    CVY_TRY(cvy_graph_layer(out->graph, op, "a", tree, &out->x, 1, &out->second));
    from[0] = out->second;
    CVY_TRY(cvy_graph_feed(out->graph, "weights", CVY_DTYPE_F64, &out->second->shape, 1, &from[1]));
    CVY_TRY(
        cvy_graph_add_parsed(out->graph, &cvy_weighted_sum_op, "loss", "loss", NULL, from, 2, CVY_PHASE_MICRO, &loss));
    if (training)
        CVY_TRY(cvy_pass_autodiff(out->graph, &loss->dst[0], 1, NULL, NULL, &out->gradients));
    return cvy_eval_create(out->graph, &out->e);
}

static void close_layer(struct layer *l)
{
    cvy_eval_destroy(&l->e);
    cvy_graph_destroy(&l->graph);
    cvy_vars_destroy(&l->vars);
}

static cvy_span *span_of(struct layer *l, const char *name)
{
    static cvy_span none;
    const cvy_value *v = cvy_graph_find(l->graph, name);
    EXPECT(v != NULL);
    return v ? cvy_eval_of(&l->e, v) : &none;
}

static void fill(cvy_span *s, const double *values, int64_t n)
{
    EXPECT_INT(s->elems, n);
    for (int64_t i = 0; i < s->elems && i < n; i++)
        cvy_set(s, i, values[i]);
}

static int count_nodes(const struct layer *l, const char *op)
{
    int n = 0;
    for (int i = 0; i < l->graph->nnode; i++)
        n += strcmp(l->graph->node[i]->op->name, op) == 0;
    return n;
}

static const cvy_shape vector = {.ndim = 1, .dim = {COLS}};
static const char *const fc = "channels: 3, bias: false, spectral_norm: true";
static const double weight[ROWS * COLS] = {5, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1}; /* singular values 5, 2, 1 */
static const double v_start[COLS] = {0.3, -0.4, 0.5, 0.7};

/* Puts values that are not special into x and into the weights of the loss. */
static void fill_rest(struct layer *l)
{
    cvy_span *x = cvy_eval_of(&l->e, l->x), *by = span_of(l, "weights");
    for (int64_t i = 0; i < x->elems; i++)
        cvy_set(x, i, sin(1.7 * (double)i + 1));
    for (int64_t i = 0; i < by->elems; i++)
        cvy_set(by, i, cos(2.3 * (double)i + 2));
}

static void first_step(void)
{
    struct layer l;
    static const double zero[ROWS] = {0};
    EXPECT_OK(open_layer("fc", fc, &vector, 1, &l));
    EXPECT_INT(count_nodes(&l, "spectral_norm"), 1);
    EXPECT_INT(count_nodes(&l, "spectral_norm_keep"), 1);
    EXPECT_INT(count_nodes(&l, "fc"), 2);
    fill_rest(&l);
    fill(span_of(&l, "a.weight"), weight, ROWS * COLS);
    fill(span_of(&l, "a.weight_u"), zero, ROWS);
    fill(span_of(&l, "a.weight_v"), v_start, COLS);
    EXPECT_OK(cvy_eval_run(&l.e, 1));
    const cvy_span *used = span_of(&l, "a.spectral_norm");
    for (int i = 0; i < ROWS * COLS; i++)
        EXPECT_NEAR(cvy_get(used, i), weight[i] / 5, 1e-12);
    /* The step leaves the vectors for the next one. */
    const cvy_span *u = span_of(&l, "a.keep"), *v = span_of(&l, "a.keep:1");
    EXPECT_NEAR(fabs(cvy_get(u, 0)), 1, 1e-12);
    EXPECT_NEAR(fabs(cvy_get(v, 0)), 1, 1e-12);
    EXPECT_NEAR(cvy_get(v, 1), 0, 1e-6);
    close_layer(&l);
}

/* One iteration from vectors that are not zero: v (0, 0.6, 0, 0.8) gives W v = (0, 1.2, 0.8). */
static void one_iteration(void)
{
    struct layer l;
    static const double u[ROWS] = {1, 0, 0}, v[COLS] = {0, 0.6, 0, 0.8};
    EXPECT_OK(open_layer("fc", fc, &vector, 1, &l));
    fill_rest(&l);
    fill(span_of(&l, "a.weight"), weight, ROWS * COLS);
    fill(span_of(&l, "a.weight_u"), u, ROWS);
    fill(span_of(&l, "a.weight_v"), v, COLS);
    EXPECT_OK(cvy_eval_run(&l.e, 1));
    const double norm = sqrt(1.2 * 1.2 + 0.8 * 0.8), u1 = 1.2 / norm, u2 = 0.8 / norm, back = hypot(2 * u1, u2),
                 v1 = 2 * u1 / back, v3 = u2 / back, sigma = u1 * 2 * v1 + u2 * v3;
    EXPECT_NEAR(cvy_get(span_of(&l, "a.keep"), 1), u1, 1e-15);
    EXPECT_NEAR(cvy_get(span_of(&l, "a.keep"), 2), u2, 1e-15);
    EXPECT_NEAR(cvy_get(span_of(&l, "a.keep:1"), 1), v1, 1e-15);
    EXPECT_NEAR(cvy_get(span_of(&l, "a.keep:1"), 3), v3, 1e-15);
    EXPECT_NEAR(cvy_get(span_of(&l, "a.spectral_norm"), 0), 5 / sigma, 1e-14);
    close_layer(&l);
}

/* Evaluation divides by what the vectors say, even if it is not the largest singular value. */
static void evaluation(void)
{
    struct layer l;
    static const double u[ROWS] = {0, 1, 0}, v[COLS] = {0, 1, 0, 0};
    EXPECT_OK(open_layer("fc", fc, &vector, 0, &l));
    EXPECT_INT(count_nodes(&l, "spectral_norm_keep"), 0);
    fill_rest(&l);
    fill(span_of(&l, "a.weight"), weight, ROWS * COLS);
    fill(span_of(&l, "a.weight_u"), u, ROWS);
    fill(span_of(&l, "a.weight_v"), v, COLS);
    EXPECT_OK(cvy_eval_run(&l.e, 1));
    for (int i = 0; i < ROWS * COLS; i++)
        EXPECT_NEAR(cvy_get(span_of(&l, "a.spectral_norm"), i), weight[i] / 2, 1e-15);
    close_layer(&l);
}

/* Runs the layer with this weight from the first step on, and returns the loss. Many iterations make the vectors exact,
 * so the loss is a smooth function of the weight. */
static double loss_with(struct layer *l, const double *w, int64_t n, double *u, double *v)
{
    fill(span_of(l, "a.weight"), w, n);
    for (int i = 0; i < 40; i++) {
        cvy_span *us = span_of(l, "a.weight_u"), *vs = span_of(l, "a.weight_v");
        fill(us, u, us->elems);
        fill(vs, v, vs->elems);
        EXPECT_OK(cvy_eval_run(&l->e, 1));
        for (int64_t k = 0; k < us->elems; k++)
            u[k] = cvy_get(span_of(l, "a.keep"), k);
        for (int64_t k = 0; k < vs->elems; k++)
            v[k] = cvy_get(span_of(l, "a.keep:1"), k);
    }
    return cvy_get(span_of(l, "loss"), 0);
}

static void check_gradient(const char *op, const char *options, const cvy_shape *sample)
{
    struct layer l;
    enum { MOST = 128 };
    double w[MOST], d[MOST], u[MOST], v[MOST];
    const double h = 1e-5;
    EXPECT_OK(open_layer(op, options, sample, 1, &l));
    fill_rest(&l);
    const int64_t n = span_of(&l, "a.weight")->elems;
    EXPECT(n <= MOST);
    for (int i = 0; i < MOST; i++) {
        w[i] = sin(3.1 * i * i + 0.5);
        u[i] = 0;
        v[i] = cos(1.1 * i);
    }
    loss_with(&l, w, n, u, v);
    EXPECT_INT(l.gradients.count, 1);
    for (int64_t i = 0; i < n && l.gradients.count == 1; i++)
        d[i] = cvy_get(cvy_eval_of(&l.e, l.gradients.at[0].value), i);
    for (int64_t i = 0; i < n; i++) {
        const double before = w[i];
        w[i] = before + h;
        const double high = loss_with(&l, w, n, u, v);
        w[i] = before - h;
        const double low = loss_with(&l, w, n, u, v);
        w[i] = before;
        EXPECT_NEAR(d[i], (high - low) / (2 * h), 1e-6);
    }
    close_layer(&l);
}

static void gradients(void)
{
    const cvy_shape picture = {.ndim = 3, .dim = {2, 4, 3}};
    check_gradient("fc", fc, &vector);
    check_gradient("conv", "channels: 4, kernel: 3, pad: 1, bias: false, spectral_norm: true", &picture);
    check_gradient("conv", "channels: 4, kernel: 2, groups: 2, bias: false, spectral_norm: true", &picture);
    check_gradient("deconv", "channels: 3, kernel: 2, stride: 2, bias: false, spectral_norm: true", &picture);
}

/* A layer with another source would need another weight. */
static void other_shape(void)
{
    struct layer l;
    const cvy_shape longer = {.ndim = 1, .dim = {COLS + 1}};
    cvy_tree *tree = NULL;
    cvy_value *y = NULL, *dst = NULL;
    EXPECT_OK(open_layer("fc", fc, &vector, 1, &l));
    EXPECT_OK(cvy_graph_feed(l.graph, "y", CVY_DTYPE_F64, &longer, 0, &y));
    EXPECT_OK(cvy_sample_options(l.graph->pool, fc, &tree));
    EXPECT_INT(cvy_graph_layer(l.graph, "fc", "a", tree, &y, 1, &dst), CVY_E_SHAPE);
    EXPECT(strstr(cvy_error_text(), "a.weight is 3x4 already, and is now declared as 3x5") != NULL);
    close_layer(&l);
}

int main(void)
{
    TEST(first_step);
    TEST(one_iteration);
    TEST(evaluation);
    TEST(gradients);
    TEST(other_shape);
    return test_end();
}
