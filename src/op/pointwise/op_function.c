/*
 * exp, log, sqrt, square, reciprocal, power, abs, erf, softsign, sin, cos: functions of each element, for networks that
 * are built from parts, as graphs of ONNX and Caffe are.
 *
 *     dst  = value(src)
 *     dsrc = ddst * slope(src, dst)
 *
 * One table has all functions, and they share one gradient operator, whose options say which function it is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_function.h"

#include <math.h>

#include "graph/graph_grad.h"

/* ---- the functions; p: the exponent of power ---- */

static double exp_value(double x, double p)
{
    (void)p;
    return exp(x);
}

static double exp_slope(double x, double y, double p)
{
    (void)x;
    (void)p;
    return y;
}

static double log_value(double x, double p)
{
    (void)p;
    return log(x);
}

static double log_slope(double x, double y, double p)
{
    (void)y;
    (void)p;
    return 1 / x;
}

static double sqrt_value(double x, double p)
{
    (void)p;
    return sqrt(x);
}

static double sqrt_slope(double x, double y, double p)
{
    (void)x;
    (void)p;
    return 0.5 / y;
}

static double square_value(double x, double p)
{
    (void)p;
    return x * x;
}

static double square_slope(double x, double y, double p)
{
    (void)y;
    (void)p;
    return 2 * x;
}

static double reciprocal_value(double x, double p)
{
    (void)p;
    return 1 / x;
}

static double reciprocal_slope(double x, double y, double p)
{
    (void)x;
    (void)p;
    return -y * y;
}

static double power_value(double x, double p)
{
    return pow(x, p);
}

static double power_slope(double x, double y, double p)
{
    (void)y;
    return p == 0 ? 0 : p * pow(x, p - 1);
}

static double abs_value(double x, double p)
{
    (void)p;
    return fabs(x);
}

/* At 0 it is 0, as in PyTorch. */
static double abs_slope(double x, double y, double p)
{
    (void)y;
    (void)p;
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static double erf_value(double x, double p)
{
    (void)p;
    return erf(x);
}

static double erf_slope(double x, double y, double p)
{
    (void)y;
    (void)p;
    return 1.12837916709551257390 * exp(-x * x); /* 2 / sqrt(pi) */
}

static double softsign_value(double x, double p)
{
    (void)p;
    return x / (1 + fabs(x));
}

static double softsign_slope(double x, double y, double p)
{
    const double below = 1 + fabs(x);
    (void)y;
    (void)p;
    return 1 / (below * below);
}

static double sin_value(double x, double p)
{
    (void)p;
    return sin(x);
}

static double sin_slope(double x, double y, double p)
{
    (void)y;
    (void)p;
    return cos(x);
}

static double cos_value(double x, double p)
{
    (void)p;
    return cos(x);
}

static double cos_slope(double x, double y, double p)
{
    (void)y;
    (void)p;
    return -sin(x);
}

enum { EXP, LOG, SQRT, SQUARE, RECIPROCAL, POWER, ABS, ERF, SOFTSIGN, SIN, COS };

static const struct function {
    double (*value)(double x, double p);
    double (*slope)(double x, double y, double p);
    int flop; /* an exponential counts as ten */
} functions[] = {
    [EXP] = {exp_value, exp_slope, 10},
    [LOG] = {log_value, log_slope, 10},
    [SQRT] = {sqrt_value, sqrt_slope, 4},
    [SQUARE] = {square_value, square_slope, 1},
    [RECIPROCAL] = {reciprocal_value, reciprocal_slope, 4},
    [POWER] = {power_value, power_slope, 20},
    [ABS] = {abs_value, abs_slope, 1},
    [ERF] = {erf_value, erf_slope, 20},
    [SOFTSIGN] = {softsign_value, softsign_slope, 5},
    [SIN] = {sin_value, sin_slope, 10},
    [COS] = {cos_value, cos_slope, 10},
};

/* ---- what all of them share ---- */

/* The operator's `family` is its row of the table. */
static int number_of(const cvy_op_def *op)
{
    return (int)((const struct function *)op->family - functions);
}

static cvy_status function_infer(cvy_node *node)
{
    ((cvy_function_opts *)node->options)->function = number_of(node->op);
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static cvy_status function_backward(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *const from[] = {cvy_grad_of(g, fwd->dst[0]), fwd->src[0], fwd->dst[0]};
    cvy_value *dsrc = NULL;
    if (!from[0] || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    CVY_TRY(cvy_grad_emit(g, fwd, "function_grad", fwd->options, from, 3, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void function_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = functions[number_of(node->op)].flop * n, .read_elems = n, .write_elems = n};
}

static cvy_status function_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_function_opts *o = node->options;
    const struct function *f = node->op->family;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, f->value(cvy_get(src, i), o->exponent));
    return CVY_OK;
}

/* clang-format off */
#define FUNCTION_FIELDS(number)                                                                                        \
    .options_size = sizeof(cvy_function_opts), .family = &functions[number], .nsrc_min = 1, .nsrc_max = 1, .ndst = 1,  \
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE, .infer = function_infer,                       \
    .grad = function_backward, .cost = function_cost, .reference = function_reference
/* clang-format on */

/* ---- the operators; those that are 0 at 0 are elementwise, because the padding of a blocked layout stays zero ---- */

static const cvy_sample any_samples[] = {{.src = "2x7x3x5"}, {.src = "1x1"}, {.src = "2x33x4"}, {0}};
static const cvy_sample positive_samples[] = {{.src = "2x7x3x5", .flags = CVY_SAMPLE_POSITIVE},
                                              {.src = "1x1", .flags = CVY_SAMPLE_POSITIVE},
                                              {.src = "2x33x4", .flags = CVY_SAMPLE_POSITIVE},
                                              {0}};

CVY_OP_DEFINE(exp) = {
    .name = "exp",
    .summary = "exponential function",
    .samples = any_samples,
    FUNCTION_FIELDS(EXP),
};

CVY_OP_DEFINE(log) = {
    .name = "log",
    .summary = "natural logarithm",
    .samples = positive_samples,
    FUNCTION_FIELDS(LOG),
};

CVY_OP_DEFINE(sqrt) = {
    .name = "sqrt",
    .summary = "square root",
    .flags = CVY_OP_ELEMENTWISE,
    .samples = positive_samples,
    FUNCTION_FIELDS(SQRT),
};

CVY_OP_DEFINE(square) = {
    .name = "square",
    .summary = "square of each element",
    .flags = CVY_OP_ELEMENTWISE,
    .samples = any_samples,
    FUNCTION_FIELDS(SQUARE),
};

CVY_OP_DEFINE(reciprocal) = {
    .name = "reciprocal",
    .summary = "one divided by each element",
    .samples = positive_samples,
    FUNCTION_FIELDS(RECIPROCAL),
};

static const cvy_option power_rows[] = {
    {"exponent", CVY_TYPE_REAL, CVY_FIELD(cvy_function_opts, exponent), NULL, "", "", "to which power"},
    {0},
};

static const cvy_sample power_samples[] = {{.src = "2x7x3x5", .options = "exponent: 1.5", .flags = CVY_SAMPLE_POSITIVE},
                                           {.src = "1x1", .options = "exponent: -2", .flags = CVY_SAMPLE_POSITIVE},
                                           {.src = "2x33x4", .options = "exponent: 3"},
                                           {.src = "2x5", .options = "exponent: 0"},
                                           {0}};

CVY_OP_DEFINE(power) = {
    .name = "power",
    .summary = "each element to the power of a constant",
    .options = power_rows,
    .samples = power_samples,
    FUNCTION_FIELDS(POWER),
};

CVY_OP_DEFINE(abs) = {
    .name = "abs",
    .summary = "absolute value",
    .flags = CVY_OP_ELEMENTWISE,
    .samples = any_samples,
    FUNCTION_FIELDS(ABS),
};

CVY_OP_DEFINE(erf) = {
    .name = "erf",
    .summary = "Gauss error function",
    .flags = CVY_OP_ELEMENTWISE,
    .samples = any_samples,
    FUNCTION_FIELDS(ERF),
};

CVY_OP_DEFINE(softsign) = {
    .name = "softsign",
    .summary = "softsign, x / (1 + |x|)",
    .flags = CVY_OP_ELEMENTWISE,
    .samples = any_samples,
    FUNCTION_FIELDS(SOFTSIGN),
};

CVY_OP_DEFINE(sin) = {
    .name = "sin",
    .summary = "sine",
    .flags = CVY_OP_ELEMENTWISE,
    .samples = any_samples,
    FUNCTION_FIELDS(SIN),
};

CVY_OP_DEFINE(cos) = {
    .name = "cos",
    .summary = "cosine",
    .samples = any_samples,
    FUNCTION_FIELDS(COS),
};

/* ---- function_grad: ddst, src, dst -> dsrc; it is tested with the samples of the functions, through their gradient --
 */

static cvy_status function_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static void function_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = (functions[((const cvy_function_opts *)node->options)->function].flop + 1) * n,
                           .read_elems = 3 * n,
                           .write_elems = n};
}

static cvy_status function_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_function_opts *o = node->options;
    const struct function *f = &functions[o->function];
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(&src[0], i) * f->slope(cvy_get(&src[1], i), cvy_get(&src[2], i), o->exponent));
    return CVY_OK;
}

CVY_OP_DEFINE(function_grad) = {
    .name = "function_grad",
    .summary = "gradient of exp, log, sqrt and other functions of each element",
    .options_size = sizeof(cvy_function_opts),
    .nsrc_min = 3,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = function_grad_infer,
    .cost = function_grad_cost,
    .reference = function_grad_reference,
};
