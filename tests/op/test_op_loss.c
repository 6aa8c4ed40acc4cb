/*
 * test_op_loss.c: compares losses and their normalisers with PyTorch, on one rank and on four ranks with unequal
 * shares, one of which is empty.
 *
 * PyTorch 2.15 computed the numbers in f64. There are 6 samples and 4 classes: output[i][k] = 2 sin(1.3 i + 2.1 k),
 * target 0 3 1 1 2 3, class weights 0.5 1 2 0.25, sample weights 1 0.5 2 1 0 3 (weighted mean of the terms of reduction
 * 'none'). For regression, target[i][k] = cos(0.9 i + 1.7 k); for bce, the target is whether that is above 0. For
 * positions there are 3 samples and 5 positions: output[i][k][p] = 2 sin(1.3 i + 2.1 k + 0.4 p), target (3 i + 2 p) mod
 * 4. The losses of distributions have the 4 real targets and output[i][k] for k = 0 .. 7, two numbers for each target:
 * GaussianNLLLoss gets var = exp(the last four). PyTorch has no pinball loss: it is written with maximum.
 * Signed weights are 1 -0.5 2 1 -1 3, and the weighted mean is divided by the sum of their magnitudes.
 * A mask has the weight ((n + j) mod 3) / 2 for element j of the target, and 0 on all of sample 1.
 * Focal and dice are written down in PyTorch by their formulas. The numbers of hinge and contrastive, and of masks,
 * which PyTorch has not in this form, come from their formulas in numpy.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "base/base_status.h"
#include "op/graph_eval.h"

enum { RANKS_MAX = 4 };

enum target { LABELS, WRONG_LABELS, REALS, SIGNS, POSITIONS, TWO_EACH };
enum weight { NO_WEIGHT, BY_SAMPLE, SIGNED, MASK, ALL_MASKED, HALF_MASK, NOT_FINITE }; /* HALF_MASK: of a wrong shape */

struct setup {
    const char *op, *options;
    enum target target;
    int weighted;
};

static const double sample_weight[6] = {1, 0.5, 2, 1, 0, 3}, signed_weight[6] = {1, -0.5, 2, 1, -1, 3};
static const double label[6] = {0, 3, 1, 1, 2, 3};

/* Returns element j of sample n, where n counts in the whole batch. */
static double output_at(const struct setup *s, int64_t n, int64_t j)
{
    return s->target == POSITIONS ? 2 * sin(1.3 * (double)n + 2.1 * (double)(j / 5) + 0.4 * (double)(j % 5))
                                  : 2 * sin(1.3 * (double)n + 2.1 * (double)j);
}

static double weight_at(const struct setup *s, int64_t n, int64_t j)
{
    if (s->weighted == BY_SAMPLE)
        return sample_weight[n];
    if (s->weighted == SIGNED)
        return signed_weight[n];
    if (s->weighted == NOT_FINITE)
        return n == 2 ? NAN : 1;
    return s->weighted == ALL_MASKED || n == 1 ? 0 : 0.5 * (double)((n + j) % 3);
}

/* What is there where a mask is 0 does not matter. */
static double target_at(const struct setup *s, int64_t n, int64_t j)
{
    const double real = cos(0.9 * (double)n + 1.7 * (double)j);
    if ((s->weighted == MASK || s->weighted == ALL_MASKED) && weight_at(s, n, j) == 0)
        return s->target == POSITIONS ? 77 : NAN;
    switch (s->target) {
    case LABELS: return label[n];
    case WRONG_LABELS: return label[n] + 1;
    case POSITIONS: return (double)((3 * n + 2 * j) % 4);
    case SIGNS: return real > 0;
    default: return real;
    }
}

static void fill_feed(cvy_eval *e, const char *name, double (*at)(const struct setup *, int64_t, int64_t),
                      const struct setup *s)
{
    cvy_span *x = cvy_eval_of(e, cvy_graph_find(e->graph, name));
    const int64_t each = cvy_span_prod(x, 1, x->ndim);
    for (int64_t i = 0; i < x->elems; i++)
        cvy_set(x, i, at(s, e->graph->batch.first + i / each, i % each));
}

/* Builds the graph of one rank. Output, target and weight are feeds; the loss is a layer. */
static cvy_status build(const struct setup *s, cvy_batch batch, cvy_vars *vars, cvy_graph **graph_out,
                        cvy_value **loss_out)
{
    const cvy_graph_opts opts = {.name = "loss", .batch = batch, .training = 1, .dtype = CVY_DTYPE_F64};
    const cvy_shape output = {s->target == POSITIONS ? 2 : 1, {s->target == TWO_EACH ? 8 : 4, 5}};
    const cvy_shape scalar = {0}, positions = {1, {5}}, reals = {1, {4}};
    const cvy_shape *target = s->target <= WRONG_LABELS ? &scalar : s->target == POSITIONS ? &positions : &reals;
    const cvy_dtype dtype = s->target <= WRONG_LABELS || s->target == POSITIONS ? CVY_DTYPE_I32 : CVY_DTYPE_F64;
    const cvy_shape half = {1, {2}}, *weight = s->weighted <= SIGNED || s->weighted == NOT_FINITE ? &scalar
                                               : s->weighted == HALF_MASK                         ? &half
                                                                                                  : target;
    cvy_value *src[3] = {NULL};
    cvy_tree *options = NULL;
    cvy_graph *g = NULL;
    CVY_TRY(cvy_graph_create(vars, &opts, &g));
    *graph_out = g;
    CVY_TRY(cvy_graph_feed(g, "output", CVY_DTYPE_F64, &output, 0, &src[0]));
    CVY_TRY(cvy_graph_feed(g, "target", dtype, target, 0, &src[1]));
    if (s->weighted)
        CVY_TRY(cvy_graph_feed(g, "weight", CVY_DTYPE_F32, weight, 0, &src[2]));
    CVY_TRY(cvy_tree_parse_text(g->pool, "job.yaml", s->options, strlen(s->options), &options));
    CVY_TRY(cvy_graph_layer(g, s->op, "loss", options, src, s->weighted ? 3 : 2, loss_out));
    return cvy_graph_verify(g);
}

static cvy_status compute(const struct setup *s, int nranks, double *loss_out)
{
    static const int64_t first[2][RANKS_MAX + 1] = {{0, 1, 1, 4, 6}, {0, 1, 1, 2, 3}}; /* rank 1 has no sample */
    const int64_t n = s->target == POSITIONS ? 3 : 6;
    cvy_eval ranks[RANKS_MAX] = {{0}};
    cvy_graph *graph[RANKS_MAX] = {NULL};
    cvy_vars *vars = NULL;
    cvy_value *loss = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_vars_create(&vars));
    for (int r = 0; r < nranks; r++) {
        const int64_t *bound = first[s->target == POSITIONS];
        const cvy_batch batch = {n, nranks == 1 ? 0 : bound[r], nranks == 1 ? n : bound[r + 1] - bound[r], nranks, r};
        CVY_TRY_OUT(build(s, batch, vars, &graph[r], &loss));
        CVY_TRY_OUT(cvy_eval_create(graph[r], &ranks[r]));
        fill_feed(&ranks[r], "output", output_at, s);
        fill_feed(&ranks[r], "target", target_at, s);
        if (s->weighted)
            fill_feed(&ranks[r], "weight", weight_at, s);
        if (cvy_graph_find(graph[r], "(norm)"))
            cvy_set(cvy_eval_of(&ranks[r], cvy_graph_find(graph[r], "(norm)")), 0, (double)n);
    }
    CVY_TRY_OUT(cvy_eval_run(ranks, nranks));
    *loss_out = cvy_get(cvy_eval_of(&ranks[0], loss), 0);
out:
    for (int r = 0; r < nranks; r++) {
        cvy_eval_destroy(&ranks[r]);
        cvy_graph_destroy(&graph[r]);
    }
    cvy_vars_destroy(&vars);
    return status;
}

static void expect(struct setup s, double expected)
{
    for (int nranks = 1; nranks <= RANKS_MAX; nranks += RANKS_MAX - 1) {
        double loss = 0;
        EXPECT_OK(compute(&s, nranks, &loss));
        test_checks++;
        if (fabs(loss - expected) <= 1e-13)
            continue;
        test_failures++;
        printf("%s %s on %d ranks is %.16g, expected %.16g\n", s.op, s.options, nranks, loss, expected);
    }
}

static void losses_equal_pytorch(void)
{
    expect((struct setup){"softmax_cross_entropy", "{}", LABELS, 0}, 2.169272732551351);
    expect((struct setup){"softmax_cross_entropy", "loss_weight: 0.5", LABELS, 0}, 2.169272732551351 / 2);
    expect((struct setup){"softmax_cross_entropy",
                          "{class_weights: [0.5, 1, 2, 0.25], ignore_label: 1, label_smoothing: 0.2}", LABELS, 0},
           2.0606521122154797);
    expect((struct setup){"softmax_cross_entropy", "{}", LABELS, 1}, 2.4027243186440836);
    expect((struct setup){"softmax_cross_entropy", "{class_weights: [0.5, 1, 2, 0.25], ignore_label: 2}", POSITIONS, 0},
           2.5335853772056574);
    expect((struct setup){"focal", "{}", LABELS, 0}, 1.7285762651818335);
    expect((struct setup){"focal", "gamma: 0", LABELS, 1}, 2.4027243186440836);
    expect((struct setup){"focal", "{gamma: 0.5, class_weights: [0.5, 1, 2, 0.25], ignore_label: 1}", LABELS, 1},
           1.5089089471628425);
    expect((struct setup){"focal", "{class_weights: [0.5, 1, 2, 0.25], ignore_label: 2}", POSITIONS, 0},
           2.1719805520279043);
    expect((struct setup){"dice", "{}", POSITIONS, 0}, 0.51351004688742963);
    expect((struct setup){"dice", "{smooth: 0.1, class_weights: [0.5, 1, 2, 0], ignore_label: 2}", POSITIONS, 0},
           0.74448608559723484);
    expect((struct setup){"dice", "{}", LABELS, 1}, 0.24720651391808932);
    expect((struct setup){"mse", "{}", REALS, 0}, 1.045040295005137);
    expect((struct setup){"mse", "{}", REALS, 1}, 1.1687376625370252);
    expect((struct setup){"mae", "{}", REALS, 0}, 0.9135644915114852);
    expect((struct setup){"huber", "delta: 0.7", REALS, 0}, 0.4123502550489371);
    expect((struct setup){"hinge", "{}", LABELS, 0}, 4.963857650861751);
    expect((struct setup){"hinge", "norm: l2", LABELS, 0}, 11.18221188583204);
    expect((struct setup){"hinge", "{norm: l2, ignore_label: 1}", LABELS, 1}, 8.709312926544269);
    expect((struct setup){"contrastive", "margin: 1.1", SIGNS, 0}, 0.4357599813423361);
    expect((struct setup){"bce", "{}", SIGNS, 0}, 0.511897530254913);
    expect((struct setup){"bce", "pos_weight: 3", SIGNS, 0}, 0.9341889778519109);
}

static void losses_of_distributions(void)
{
    expect((struct setup){"gaussian_nll", "{}", TWO_EACH, 0}, 1.1790534347534614);
    expect((struct setup){"gaussian_nll", "full: true", TWO_EACH, 0}, 2.0979919679581345);
    expect((struct setup){"gaussian_nll", "eps: 0.5", TWO_EACH, 0}, 0.77155606725805226);
    expect((struct setup){"gaussian_nll", "{}", TWO_EACH, 1}, 1.1656205156188966);
    expect((struct setup){"quantile", "levels: [0.1, 0.75]", TWO_EACH, 0}, 0.62268757831524058);
    expect((struct setup){"quantile", "levels: [0.1, 0.75]", TWO_EACH, 1}, 0.66519578194110762);
    expect((struct setup){"quantile", "{}", REALS, 0},
           0.9135644915114852 / 2); /* the median: half the absolute error */
}

static void masks(void)
{
    static const char classes[] = "{class_weights: [0.5, 1, 2, 0.25], ignore_label: 2}";
    expect((struct setup){"softmax_cross_entropy", "{}", POSITIONS, MASK}, 1.7456139365417702);
    expect((struct setup){"softmax_cross_entropy", classes, POSITIONS, MASK}, 1.8409567931429176);
    expect((struct setup){"focal", classes, POSITIONS, MASK}, 1.4075735984986288);
    expect((struct setup){"dice", "{}", POSITIONS, MASK}, 0.3344523505107873);
    expect((struct setup){"hinge", "{}", POSITIONS, MASK}, 4.406533840685298);
    expect((struct setup){"mse", "{}", REALS, MASK}, 1.1468537088876458);
    expect((struct setup){"huber", "delta: 0.7", REALS, MASK}, 0.445907978499456);
    expect((struct setup){"bce", "pos_weight: 3", SIGNS, MASK}, 0.7097334023261431);
    expect((struct setup){"quantile", "levels: [0.1, 0.75]", TWO_EACH, MASK}, 0.750119718919164);
}

/* Samples of event generators have negative weights, too. Weights that are not finite do not become a loss of 0. */
static void signed_weights(void)
{
    double loss = 0;
    expect((struct setup){"softmax_cross_entropy", "{}", LABELS, SIGNED}, 1.811070082151876);
    expect(
        (struct setup){"softmax_cross_entropy", "{class_weights: [0.5, 1, 2, 0.25], ignore_label: 1}", LABELS, SIGNED},
        -0.4875027525117797);
    expect((struct setup){"focal", "{}", LABELS, SIGNED}, 1.5667666160610658);
    expect((struct setup){"mse", "{}", REALS, SIGNED}, 0.8145102423233366);
    expect((struct setup){"quantile", "levels: [0.1, 0.75]", TWO_EACH, SIGNED}, 0.4353299128538384);
    EXPECT_OK(compute(&(struct setup){"mse", "{}", REALS, NOT_FINITE}, 1, &loss));
    EXPECT(isnan(loss));
    EXPECT_OK(compute(&(struct setup){"softmax_cross_entropy", "{}", LABELS, NOT_FINITE}, 4, &loss));
    EXPECT(isnan(loss));
}

/* No sample counts, so the loss is zero and not NaN. */
static void all_ignored(void)
{
    expect((struct setup){"softmax_cross_entropy", "ignore_label: [0, 1, 2, 3]", LABELS, 0}, 0);
    expect((struct setup){"softmax_cross_entropy", "{}", POSITIONS, ALL_MASKED}, 0);
    expect((struct setup){"dice", "{}", POSITIONS, ALL_MASKED}, 0);
    expect((struct setup){"mse", "{}", REALS, ALL_MASKED}, 0);
    expect((struct setup){"bce", "{}", SIGNS, ALL_MASKED}, 0);
    expect((struct setup){"gaussian_nll", "{}", TWO_EACH, ALL_MASKED}, 0);
}

static void mistakes_are_named(void)
{
    double loss = 0;
    struct setup s = {"softmax_cross_entropy", "class_weights: [1, 2]", LABELS, 0};
    struct setup m = {"quantile", "levels: [0, 0.5]", TWO_EACH, 0};
    EXPECT_FAULT(compute(&m, 1, &loss), CVY_E_CONFIG, "level 1 is 0, expected a number between 0 and 1, such as 0.05");
    m = (struct setup){"quantile", "levels: [0.5, 1]", TWO_EACH, 0};
    EXPECT_FAULT(compute(&m, 1, &loss), CVY_E_CONFIG, "level 2 is 1, expected a number between 0 and 1");
    m = (struct setup){"quantile", "levels: [0.5, 1.5]", TWO_EACH, 0};
    EXPECT_FAULT(compute(&m, 1, &loss), CVY_E_CONFIG, "1.5");
    m = (struct setup){"mse", "{}", REALS, HALF_MASK};
    EXPECT_FAULT(
        compute(&m, 1, &loss), CVY_E_SHAPE,
        "weight is 6x2, expected one for each of the 6 samples, or for each element or position of the target, "
        "6x4");
    m = (struct setup){"focal", "{}", POSITIONS, HALF_MASK};
    EXPECT_FAULT(compute(&m, 1, &loss), CVY_E_SHAPE, "or for each position of the target, 3x5");
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_SHAPE, "class_weights has 2 values, the output 6x4 has 4 classes");
    s = (struct setup){"softmax_cross_entropy", "{}", REALS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_SHAPE, "integer labels");
    s = (struct setup){"softmax_cross_entropy", "{}", WRONG_LABELS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_FORMAT, "row 1 of this rank's share has label 4, expected 0 .. 3");
    s = (struct setup){"softmax_cross_entropy", "class_weights: [1, 2, 3, 4]", WRONG_LABELS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_FORMAT, "label 4, expected 0 .. 3");
    s = (struct setup){"focal", "{}", WRONG_LABELS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_FORMAT, "label 4, expected 0 .. 3");
    s = (struct setup){"dice", "{}", WRONG_LABELS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_FORMAT, "row 1 of this rank's share has label 4, expected 0 .. 3");
    s = (struct setup){"dice", "class_weights: [0, 0, 0, 0]", LABELS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_CONFIG, "all class_weights are 0");
    s = (struct setup){"mse", "{}", LABELS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_SHAPE, "output is 6x4, target is 6");
    s = (struct setup){"bce", "{}", REALS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_FORMAT, "expected 0 .. 1");
    s = (struct setup){"huber", "delta: 0", REALS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_CONFIG, "delta");
    s = (struct setup){"gaussian_nll", "{}", REALS, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_SHAPE,
                 "needs 2 numbers for each target along axis 1: the output is 6x4, the target is 6x4");
    s = (struct setup){"quantile", "levels: [0.1, 0.5, 0.9]", TWO_EACH, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_SHAPE, "quantile needs 3 numbers for each target along axis 1");
    s = (struct setup){"quantile", "levels: [0.1, 1.5]", TWO_EACH, 0};
    EXPECT_FAULT(compute(&s, 1, &loss), CVY_E_CONFIG, "levels");
}

int main(void)
{
    TEST(losses_equal_pytorch);
    TEST(losses_of_distributions);
    TEST(masks);
    TEST(signed_weights);
    TEST(all_ignored);
    TEST(mistakes_are_named);
    return test_end();
}
