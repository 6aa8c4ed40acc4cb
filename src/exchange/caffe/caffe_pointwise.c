/*
 * caffe_pointwise.c: functions of each element, and sums, products and maxima of several blobs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/caffe/caffe.h"

CVY_CAFFE_DEFINE(sigmoid) = {"Sigmoid", .same = "sigmoid"};
CVY_CAFFE_DEFINE(tanh) = {"TanH", .same = "tanh"};
CVY_CAFFE_DEFINE(abs_val) = {"AbsVal", .same = "abs"};
CVY_CAFFE_DEFINE(bnll) = {"BNLL", .same = "softplus"};

static cvy_status translate_relu(const cvy_caffe_layer *layer)
{
    const double slope = layer->p->relu_param ? CVY_CAFFE_REAL(layer->p->relu_param->negative_slope) : 0;
    const char *at = NULL;
    CVY_CAFFE_CHECK(slope >= 0, layer, "a negative_slope of %g is below 0", slope);
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    if (slope == 0)
        CVY_TRY(cvy_caffe_then(layer, &at, "relu", "%s", ""));
    else
        CVY_TRY(cvy_caffe_then(layer, &at, "leaky_relu", "slope: %.9g", slope));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(relu) = {"ReLU", .translate = translate_relu};

static cvy_status translate_prelu(const cvy_caffe_layer *layer)
{
    const Cvy__Caffe__PReLUParameter *p = layer->p->prelu_param;
    const char *from = NULL, *name = NULL, *output = NULL;
    char *options = NULL;
    double slope = 0.25;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &from));
    CVY_TRY(cvy_caffe_constant(layer, "the slope", p ? p->filler : NULL, slope, &slope));
    CVY_TRY(cvy_pool_printf(layer->x->build.out->pool, &options, "per_channel: %s, init: %.9g",
                            p && p->channel_shared ? "false" : "true", slope));
    CVY_TRY(cvy_caffe_add_trained(layer,
                                  &(cvy_caffe_new_layer){.op = "prelu", .options = options, .from = {from}, .nfrom = 1},
                                  1, &name, &output));
    CVY_TRY(cvy_caffe_has(layer, layer->p, 0, name, "weight", CVY_CAFFE_AS_IS));
    if (p && p->channel_shared)
        cvy_caffe_has_shape(layer, &(cvy_shape){0});
    return cvy_caffe_done(layer, 0, output);
}
CVY_CAFFE_DEFINE(prelu) = {"PReLU", .translate = translate_prelu};

static cvy_status translate_elu(const cvy_caffe_layer *layer)
{
    const double alpha = layer->p->elu_param ? CVY_CAFFE_REAL(layer->p->elu_param->alpha) : 1;
    const char *at = NULL;
    CVY_CAFFE_CHECK(alpha >= 0, layer, "an alpha of %g is below 0", alpha);
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(cvy_caffe_then(layer, &at, "elu", "alpha: %.9g", alpha));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(elu) = {"ELU", .translate = translate_elu};

static cvy_status translate_swish(const cvy_caffe_layer *layer)
{
    const double beta = layer->p->swish_param ? CVY_CAFFE_REAL(layer->p->swish_param->beta) : 1;
    const char *from = NULL, *gate = NULL, *output = NULL;
    if (beta == 1)
        return cvy_caffe_simple(layer, "silu", NULL);
    CVY_TRY(cvy_caffe_bottom(layer, 0, &from));
    gate = from;
    CVY_TRY(cvy_caffe_then(layer, &gate, "scale", "by: %.9g", beta));
    CVY_TRY(cvy_caffe_then(layer, &gate, "sigmoid", "%s", ""));
    CVY_TRY(cvy_caffe_add(layer, &(cvy_caffe_new_layer){.op = "multiply", .from = {from, gate}, .nfrom = 2}, &output));
    return cvy_caffe_done(layer, 0, output);
}
CVY_CAFFE_DEFINE(swish) = {"Swish", .translate = translate_swish};

static cvy_status translate_clip(const cvy_caffe_layer *layer)
{
    const Cvy__Caffe__ClipParameter *p = layer->p->clip_param;
    const char *at = NULL;
    CVY_CHECK(p && p->has_min && p->has_max, CVY_E_FORMAT, "%s: %s: clip_param has no min or no max",
              layer->x->build.path, layer->where);
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(
        cvy_caffe_then(layer, &at, "clamp", "min: %.9g, max: %.9g", CVY_CAFFE_REAL(p->min), CVY_CAFFE_REAL(p->max)));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(clip) = {"Clip", .translate = translate_clip};

static cvy_status translate_dropout(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__DropoutParameter usual = CVY__CAFFE__DROPOUT_PARAMETER__INIT;
    const Cvy__Caffe__DropoutParameter *p = layer->p->dropout_param ? layer->p->dropout_param : &usual;
    const char *at = NULL;
    CVY_CAFFE_CHECK(p->scale_train, layer, "%s",
                    "scale_train: false, which scales in the test phase, is not supported: convoy scales in training");
    CVY_CHECK(p->dropout_ratio >= 0 && p->dropout_ratio < 1, CVY_E_FORMAT,
              "%s: %s: dropout_ratio is %g, expected 0 .. 1", layer->x->build.path, layer->where,
              (double)p->dropout_ratio);
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(cvy_caffe_then(layer, &at, "dropout", "p: %.9g", CVY_CAFFE_REAL(p->dropout_ratio)));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(dropout) = {"Dropout", .translate = translate_dropout};

static cvy_status translate_softmax(const cvy_caffe_layer *layer)
{
    const char *at = NULL;
    int axis = 0;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(cvy_caffe_axis(layer, layer->p->softmax_param ? layer->p->softmax_param->axis : 1,
                           cvy_caffe_shape(layer, at)->ndim, &axis));
    if (axis == 1)
        CVY_TRY(cvy_caffe_then(layer, &at, "softmax", "%s", ""));
    else
        CVY_TRY(cvy_caffe_then(layer, &at, "softmax", "axis: %d", axis));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(softmax) = {"Softmax", .translate = translate_softmax};

/* ---- shift + scale * x, and functions of it ---- */

/* A layer on *at with one number. */
static cvy_status add_number(const cvy_caffe_layer *layer, const char *op, const char *option, double value,
                             const char **at)
{
    cvy_text text = {0};
    cvy_text_add(&text, "%s: ", option);
    cvy_text_add_real(&text, value);
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_caffe_then(layer, at, op, "%s", text.data);
    cvy_text_free(&text);
    return status;
}

static cvy_status add_line(const cvy_caffe_layer *layer, double scale, double shift, const char **at)
{
    if (scale != 1)
        CVY_TRY(add_number(layer, "scale", "by", scale, at));
    return shift != 0 ? add_number(layer, "offset", "by", shift, at) : CVY_OK;
}

static cvy_status translate_power(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__PowerParameter usual = CVY__CAFFE__POWER_PARAMETER__INIT;
    const Cvy__Caffe__PowerParameter *p = layer->p->power_param ? layer->p->power_param : &usual;
    const double power = CVY_CAFFE_REAL(p->power), scale = CVY_CAFFE_REAL(p->scale);
    const char *at = NULL;
    CVY_CAFFE_CHECK(scale != 0 && power != 0, layer,
                    "power %g and scale %g make a constant, which is no layer of convoy", power, scale);
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(add_line(layer, scale, CVY_CAFFE_REAL(p->shift), &at));
    if (power == 2)
        CVY_TRY(cvy_caffe_then(layer, &at, "square", "%s", ""));
    else if (power != 1)
        CVY_TRY(cvy_caffe_then(layer, &at, "power", "exponent: %.9g", power));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(power) = {"Power", .translate = translate_power};

/* The factor of a base: base -1 is e. */
static cvy_status log_of_base(const cvy_caffe_layer *layer, double base, double *out)
{
    CVY_CHECK(base == -1 || (base > 0 && base != 1), CVY_E_FORMAT,
              "%s: %s: base is %g, expected -1 (e) or a number above 0", layer->x->build.path, layer->where, base);
    *out = base == -1 ? 1 : log(base);
    return CVY_OK;
}

/* base^(shift + scale x) = exp(log(base) shift + log(base) scale x) */
static cvy_status translate_exp(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__ExpParameter usual = CVY__CAFFE__EXP_PARAMETER__INIT;
    const Cvy__Caffe__ExpParameter *p = layer->p->exp_param ? layer->p->exp_param : &usual;
    const char *at = NULL;
    double factor = 1;
    CVY_TRY(log_of_base(layer, CVY_CAFFE_REAL(p->base_), &factor));
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(add_line(layer, factor * CVY_CAFFE_REAL(p->scale), factor * CVY_CAFFE_REAL(p->shift), &at));
    CVY_TRY(cvy_caffe_then(layer, &at, "exp", "%s", ""));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(exp) = {"Exp", .translate = translate_exp};

static cvy_status translate_log(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__LogParameter usual = CVY__CAFFE__LOG_PARAMETER__INIT;
    const Cvy__Caffe__LogParameter *p = layer->p->log_param ? layer->p->log_param : &usual;
    const char *at = NULL;
    double factor = 1;
    CVY_TRY(log_of_base(layer, CVY_CAFFE_REAL(p->base_), &factor));
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(add_line(layer, CVY_CAFFE_REAL(p->scale), CVY_CAFFE_REAL(p->shift), &at));
    CVY_TRY(cvy_caffe_then(layer, &at, "log", "%s", ""));
    CVY_TRY(add_line(layer, 1 / factor, 0, &at));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(log) = {"Log", .translate = translate_log};

CVY_CAFFE_DEFINE(threshold) = {
    "Threshold", .declined = "its result is 0 or 1, which has no gradient: apply it to the output of the network"};
CVY_CAFFE_DEFINE(arg_max) = {
    "ArgMax",
    .declined = "its result is an index, which has no gradient: `convoy predict` writes the class of each sample"};

/* ---- several blobs ---- */

static cvy_status add_combined(const cvy_caffe_layer *layer, const char *op, const char *const *from, int n)
{
    cvy_caffe_new_layer added = {.op = op, .nfrom = n};
    const char *output = NULL;
    memcpy(added.from, from, sizeof *from * (size_t)n);
    CVY_TRY(cvy_caffe_add(layer, &added, &output));
    return cvy_caffe_done(layer, 0, output);
}

static cvy_status translate_eltwise(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__EltwiseParameter usual = CVY__CAFFE__ELTWISE_PARAMETER__INIT;
    static const char *const op[] = {"multiply", "add", "maximum"}; /* in the order of the enum */
    enum { MOST = 8 };
    const Cvy__Caffe__EltwiseParameter *p = layer->p->eltwise_param ? layer->p->eltwise_param : &usual;
    const int n = (int)CVY_MIN(layer->p->n_bottom, (size_t)MOST + 1);
    const int is_sum = p->operation == CVY__CAFFE__ELTWISE_PARAMETER__ELTWISE_OP__SUM;
    const char *from[MOST] = {0};
    CVY_CAFFE_CHECK(n >= 2 && n <= MOST, layer, "it has %zu bottoms, expected 2 to %d", layer->p->n_bottom, MOST);
    CVY_CHECK(p->n_coeff == 0 || (is_sum && p->n_coeff == layer->p->n_bottom), CVY_E_FORMAT,
              "%s: %s has %zu coefficients and %d bottoms; a sum may have one for each", layer->x->build.path,
              layer->where, p->n_coeff, n);
    for (int i = 0; i < n; i++)
        CVY_TRY(cvy_caffe_bottom(layer, (size_t)i, &from[i]));
    for (int i = 1; i < n; i++)
        CVY_CHECK(cvy_shape_equal(cvy_caffe_shape(layer, from[0]), cvy_caffe_shape(layer, from[i])), CVY_E_SHAPE,
                  "%s: %s: its bottoms are %s and %s, expected one shape", layer->x->build.path, layer->where,
                  cvy_shape_text(cvy_caffe_shape(layer, from[0])), cvy_shape_text(cvy_caffe_shape(layer, from[i])));
    if (n == 2 && p->n_coeff == 2 && p->coeff[0] == 1 && p->coeff[1] == -1)
        return add_combined(layer, "subtract", from, 2);
    for (size_t i = 0; i < p->n_coeff; i++)
        CVY_TRY(add_line(layer, CVY_CAFFE_REAL(p->coeff[i]), 0, &from[i]));
    return add_combined(layer, op[p->operation], from, n);
}
CVY_CAFFE_DEFINE(eltwise) = {"Eltwise", .translate = translate_eltwise};
