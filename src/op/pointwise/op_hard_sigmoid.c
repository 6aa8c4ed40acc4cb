/*
 * hard_sigmoid: an approximation of sigmoid by three straight lines, for gates. MobileNetV3 has it. Source:
 * Courbariaux, Bengio and David 2015; the default slope is that of Howard et al. 2019, section 5.2, and of PyTorch.
 *
 *     dst  = min(max(alpha * src + beta, 0), 1)
 *     dsrc = ddst * alpha if 0 < dst < 1, else 0      (from dst, so that src need not be kept)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_activation.h"

static const cvy_option hard_sigmoid_rows[] = {
    {"alpha", CVY_TYPE_REAL, CVY_FIELD(cvy_hard_sigmoid, alpha), "0.16666666666666666", ">0", "",
     "slope of the line in the middle"},
    {"beta", CVY_TYPE_REAL, CVY_FIELD(cvy_hard_sigmoid, beta), "0.5", "", "", "the value at 0"},
    {0},
};

static double hard_sigmoid_value(const void *options, double x)
{
    const struct cvy_hard_sigmoid *o = options;
    const double y = o->alpha * x + o->beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

static double hard_sigmoid_slope(const void *options, double y)
{
    const struct cvy_hard_sigmoid *o = options;
    return y > 0 && y < 1 ? o->alpha : 0;
}

static const cvy_activation_def hard_sigmoid_family = {"hard_sigmoid_grad", hard_sigmoid_value, hard_sigmoid_slope,
                                                       .from_dst = 1,       .flop = 4,          .slope_flop = 2};

static const cvy_sample hard_sigmoid_samples[] = {{.src = "2x7x3x5"},
                                                  {.src = "1x1"},
                                                  {.src = "2x33x4", .options = "alpha: 0.8, beta: 0.3"},
                                                  {.src = "2x16x3x3"},
                                                  {.src = "2x3x2x3x2", .options = "alpha: 2, beta: 0"},
                                                  {0}};

CVY_OP_DEFINE(hard_sigmoid) = {
    /* not CVY_OP_ELEMENTWISE: the value at 0 is beta, so the padding of a blocked layout would not stay zero */
    .name = "hard_sigmoid",         .summary = "min(max(alpha * x + beta, 0), 1)",
    .options = hard_sigmoid_rows,   .options_size = sizeof(struct cvy_hard_sigmoid),
    .family = &hard_sigmoid_family, .samples = hard_sigmoid_samples,
    CVY_ACTIVATION_FIELDS,
};

static const cvy_sample hard_sigmoid_grad_samples[] = {
    {.src = "2x7x3x5,2x7x3x5"}, {.src = "2x33x4,2x33x4", .options = "alpha: 0.8, beta: 0.3"}, {0}};

CVY_OP_DEFINE(hard_sigmoid_grad) = {
    .name = "hard_sigmoid_grad",
    .summary = "gradient of hard_sigmoid",
    .options = hard_sigmoid_rows,
    .options_size = sizeof(struct cvy_hard_sigmoid),
    .family = &hard_sigmoid_family,
    .samples = hard_sigmoid_grad_samples,
    CVY_ACTIVATION_GRAD_FIELDS,
};
