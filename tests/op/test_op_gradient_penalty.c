/*
 * test_op_gradient_penalty.c: the penalty of a critic is what its slope by finite differences gives, and the gradient
 * of the penalty for each weight is that by finite differences, for all layers that it supports; other layers are
 * named.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/graph_eval.h"
#include "pass/pass.h"

enum { N = 2, LAYERS_MAX = 8 };

struct critic {
    const char *op, *options;
};

struct setup {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value *x, *score, *loss;
    cvy_gradients gradients;
    cvy_eval e;
};

static cvy_status open_setup(const struct critic *layers, const char *penalty, struct setup *s)
{
    const cvy_graph_opts opts = {
        .name = "g", .batch = {N, 0, N, 1, 0}, .training = 1, .dtype = CVY_DTYPE_F64, .bn_group = 0, .seed = 1};
    const cvy_shape sample = {.ndim = 3, .dim = {2, 4, 3}};
    cvy_tree *tree = NULL;
    *s = (struct setup){0};
    CVY_TRY(cvy_vars_create(&s->vars));
    CVY_TRY(cvy_graph_create(s->vars, &opts, &s->graph));
    CVY_TRY(cvy_graph_feed(s->graph, "x", CVY_DTYPE_F64, &sample, 0, &s->x));
    s->score = s->x;
    for (int i = 0; layers[i].op; i++) {
        char name[16];
        snprintf(name, sizeof name, "layer%d", i);
        CVY_TRY(cvy_sample_options(s->graph->pool, layers[i].options, &tree));
        CVY_TRY(cvy_graph_layer(s->graph, layers[i].op, name, tree, &s->score, 1, &s->score));
    }
    cvy_value *const from[] = {s->score, s->x};
    CVY_TRY(cvy_sample_options(s->graph->pool, penalty, &tree));
    CVY_TRY(cvy_graph_layer(s->graph, "gradient_penalty", "penalty", tree, from, 2, &s->loss));
    CVY_TRY(cvy_pass_autodiff(s->graph, &s->loss, 1, NULL, NULL, &s->gradients));
    CVY_TRY(cvy_graph_verify(s->graph));
    return cvy_eval_create(s->graph, &s->e);
}

static void close_setup(struct setup *s)
{
    cvy_eval_destroy(&s->e);
    cvy_graph_destroy(&s->graph);
    cvy_vars_destroy(&s->vars);
}

static void fill_values(struct setup *s)
{
    for (int i = 0, k = 0; i < s->graph->nvalue; i++) {
        const cvy_value *v = s->graph->value[i];
        for (int64_t j = 0; !v->producer && j < s->e.at[i].elems; j++, k++)
            cvy_set(&s->e.at[i], j,
                    v->dtype == CVY_DTYPE_I64        ? (double)j
                    : strcmp(v->name, "(norm)") == 0 ? N
                    : v->kind == CVY_VALUE_VARIABLE  ? 0.6 * sin(1.3 * k * k + 0.2)
                                                     : cos(0.9 * k * k + 0.4));
    }
}

static double run_loss(struct setup *s)
{
    EXPECT_OK(cvy_eval_run(&s->e, 1));
    return cvy_get(cvy_eval_of(&s->e, s->loss), 0);
}

static double score_of(struct setup *s, int64_t n)
{
    const cvy_span *score = cvy_eval_of(&s->e, s->score);
    const int64_t each = score->elems / N;
    double sum = 0;
    EXPECT_OK(cvy_eval_run(&s->e, 1));
    for (int64_t i = n * each; i < (n + 1) * each; i++)
        sum += cvy_get(score, i);
    return sum;
}

/* The penalty from the slope of the score at each element of x. */
static double penalty_by_differences(struct setup *s, double target, double loss_weight)
{
    cvy_span *x = cvy_eval_of(&s->e, s->x);
    const int64_t each = x->elems / N;
    const double h = 1e-6;
    double loss = 0;
    for (int64_t n = 0; n < N; n++) {
        double squares = 0;
        for (int64_t i = n * each; i < (n + 1) * each; i++) {
            const double before = cvy_get(x, i);
            cvy_set(x, i, before + h);
            const double high = score_of(s, n);
            cvy_set(x, i, before - h);
            const double low = score_of(s, n);
            cvy_set(x, i, before);
            squares += (high - low) * (high - low) / (4 * h * h);
        }
        loss += (sqrt(squares) - target) * (sqrt(squares) - target) / N;
    }
    return loss_weight * loss;
}

static void check_weights(struct setup *s)
{
    const double h = 1e-6;
    double largest = 0;
    run_loss(s);
    for (int g = 0; g < s->gradients.count; g++) {
        cvy_value *read = NULL;
        EXPECT_OK(cvy_graph_read_variable(s->graph, s->gradients.at[g].variable, &read));
        cvy_span *w = cvy_eval_of(&s->e, read), *d = cvy_eval_of(&s->e, s->gradients.at[g].value);
        for (int64_t i = 0; i < w->elems; i++) {
            const double before = cvy_get(w, i), got = cvy_get(d, i);
            cvy_set(w, i, before + h);
            const double high = run_loss(s);
            cvy_set(w, i, before - h);
            const double low = run_loss(s);
            cvy_set(w, i, before);
            run_loss(s);
            largest = fmax(largest, fabs(got));
            if (!(fabs(got - (high - low) / (2 * h)) <= 1e-6 * fmax(1, fabs(got))))
                TEST_FAIL("%s[%lld]: %.12g, by differences %.12g", read->name, (long long)i, got,
                          (high - low) / (2 * h));
        }
    }
    EXPECT(largest > 1e-3); /* otherwise nothing was compared */
}

static void check(const struct critic *layers, int nweights)
{
    struct setup s;
    EXPECT_OK(open_setup(layers, "target: 0.7, loss_weight: 3", &s));
    EXPECT_INT(s.gradients.count, nweights);
    fill_values(&s);
    EXPECT_NEAR(run_loss(&s), penalty_by_differences(&s, 0.7, 3), 1e-6);
    check_weights(&s);
    close_setup(&s);
}

/* A bias before a piecewise linear layer does not change the slope, so it has no gradient. */
static void linear(void)
{
    check((const struct critic[]){{"fc", "channels: 3"}, {0}}, 1);
}

static void smooth(void)
{
    check(
        (const struct critic[]){
            {"fc", "channels: 5"}, {"tanh", NULL}, {"fc", "channels: 4"}, {"tanh", NULL}, {"fc", "channels: 1"}, {0}},
        5);
}

static void convolutions(void)
{
    check((const struct critic[]){{"conv", "channels: 4, kernel: 3, pad: 1, stride: [2, 1]"},
                                  {"leaky_relu", "slope: 0.2"},
                                  {"conv", "channels: 4, kernel: 2, groups: 2"},
                                  {"tanh", NULL},
                                  {"fc", "channels: 1"},
                                  {0}},
          5);
    check((const struct critic[]){{"deconv", "channels: 3, kernel: 2, stride: 2"},
                                  {"relu", NULL},
                                  {"reshape", "shape: [144]"},
                                  {"fc", "channels: 1"},
                                  {0}},
          2);
}

static void norms(void)
{
    check((const struct critic[]){{"conv", "channels: 4, kernel: 3, pad: 1"},
                                  {"layer_norm", "axes: [1, 2, 3]"},
                                  {"leaky_relu", "slope: 0.2"},
                                  {"fc", "channels: 5"},
                                  {"layer_norm", NULL},
                                  {"tanh", NULL},
                                  {"fc", "channels: 1"},
                                  {0}},
          9);
    check((const struct critic[]){{"conv", "channels: 4, kernel: 3, pad: 1"},
                                  {"group_norm", "groups: 2"},
                                  {"relu", NULL},
                                  {"conv", "channels: 3, kernel: 2"},
                                  {"instance_norm", NULL},
                                  {"layer_norm", "axes: 1, scale_shift: false"},
                                  {"tanh", NULL},
                                  {"fc", "channels: 1"},
                                  {0}},
          7);
}

static void with_spectral_norm(void)
{
    struct setup s;
    const struct critic layers[] = {{"conv", "channels: 4, kernel: 3, spectral_norm: true"},
                                    {"leaky_relu", "slope: 0.2"},
                                    {"fc", "channels: 1, spectral_norm: true"},
                                    {0}};
    EXPECT_OK(open_setup(layers, NULL, &s));
    fill_values(&s);
    EXPECT_NEAR(run_loss(&s), penalty_by_differences(&s, 1, 1), 1e-6);
    close_setup(&s);
}

static void unsupported(void)
{
    struct setup s;
    const struct critic norm[] = {{"conv", "channels: 4, kernel: 3"}, {"batch_norm", NULL}, {"fc", "channels: 1"}, {0}};
    EXPECT_INT(open_setup(norm, NULL, &s), CVY_E_ARGUMENT);
    EXPECT(strstr(cvy_error_text(), "layer1") && strstr(cvy_error_text(), "no second derivative"));
    close_setup(&s);
}

int main(void)
{
    TEST(linear);
    TEST(smooth);
    TEST(convolutions);
    TEST(norms);
    TEST(with_spectral_norm);
    TEST(unsupported);
    return test_end();
}
