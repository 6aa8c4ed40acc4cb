/*
 * caffe_norm.c: normalisations and trained scales: LRN, BatchNorm, Scale, Bias and MVN.
 *
 * Caffe's batch normalisation has neither scale nor shift; a layer of the type Scale after it has them. Such a pair
 * becomes one layer of ours.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exchange/caffe/caffe.h"

static cvy_status translate_lrn(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__LRNParameter usual = CVY__CAFFE__LRNPARAMETER__INIT;
    const Cvy__Caffe__LRNParameter *p = layer->p->lrn_param ? layer->p->lrn_param : &usual;
    const int within = p->norm_region == CVY__CAFFE__LRNPARAMETER__NORM_REGION__WITHIN_CHANNEL;
    const char *at = NULL;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_CHECK(p->local_size % 2 == 1, CVY_E_FORMAT, "%s: %s: local_size is %u, expected an odd number",
              layer->x->build.path, layer->where, p->local_size);
    CVY_CAFFE_CHECK(cvy_caffe_shape(layer, at)->ndim == 4, layer, "a source of shape %s, expected 4 dimensions",
                    cvy_shape_text(cvy_caffe_shape(layer, at)));
    /* within channels Caffe ignores k and adds 1 */
    CVY_TRY(cvy_caffe_then(layer, &at, within ? "lrn_within" : "lrn", "size: %u, alpha: %.9g, beta: %.9g, k: %.9g",
                           p->local_size, CVY_CAFFE_REAL(p->alpha), CVY_CAFFE_REAL(p->beta),
                           within ? 1 : CVY_CAFFE_REAL(p->k)));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(lrn) = {"LRN", .translate = translate_lrn};

/* ---- Scale and Bias ---- */

/* The axes of a source that a trained tensor covers: "a, b, c", with 1 for those that it does not cover; the blob has
 * only those. */
static cvy_status covered_axes(const cvy_caffe_layer *layer, const cvy_shape *src, int64_t axis, int64_t num_axes,
                               cvy_text *out, cvy_shape *blob)
{
    int first = 0;
    if (num_axes == 0) {
        first = src->ndim;
        num_axes = 0;
    } else {
        CVY_TRY(cvy_caffe_axis(layer, axis, src->ndim, &first));
    }
    const int64_t end = num_axes < 0 ? src->ndim : first + num_axes;
    CVY_CHECK(end <= src->ndim, CVY_E_FORMAT, "%s: %s: %lld axes from axis %d of a source %s", layer->x->build.path,
              layer->where, (long long)num_axes, first, cvy_shape_text(src));
    *blob = (cvy_shape){0};
    for (int d = 1; d < src->ndim; d++) {
        const int covered = d >= first && d < end;
        cvy_text_add(out, "%s%lld", d > 1 ? ", " : "", covered ? (long long)src->dim[d] : 1LL);
        if (covered)
            blob->dim[blob->ndim++] = src->dim[d];
    }
    return out->status;
}

/* One layer `affine` with the axes of a Scale or Bias. values: ", init: 2". */
static cvy_status add_affine(const cvy_caffe_layer *layer, int64_t axis, int64_t num_axes, const char *values,
                             const char *const *parameter, int nparam)
{
    cvy_text axes = {0};
    cvy_shape blob;
    char *options = NULL;
    const char *from = NULL, *name = NULL, *output = NULL;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &from));
    cvy_status status = covered_axes(layer, cvy_caffe_shape(layer, from), axis, num_axes, &axes, &blob);
    if (status == CVY_OK)
        status = cvy_pool_printf(layer->x->build.out->pool, &options, "shape: [%s]%s", axes.data, values);
    cvy_text_free(&axes);
    CVY_TRY(status);
    CVY_TRY(cvy_caffe_add_trained(
        layer, &(cvy_caffe_new_layer){.op = "affine", .options = options, .from = {from}, .nfrom = 1}, nparam, &name,
        &output));
    for (int i = 0; i < nparam; i++) {
        CVY_TRY(cvy_caffe_has(layer, layer->p, i, name, parameter[i], CVY_CAFFE_AS_IS));
        cvy_caffe_has_shape(layer, &blob);
    }
    return cvy_caffe_done(layer, 0, output);
}

/* Two sources: the second is spread over the axes that it lacks. */
static cvy_status combine(const cvy_caffe_layer *layer, const char *op, int64_t axis)
{
    const char *a = NULL, *b = NULL;
    cvy_text shape = {0};
    int first = 0;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &a));
    CVY_TRY(cvy_caffe_bottom(layer, 1, &b));
    const cvy_shape *src = cvy_caffe_shape(layer, a), *by = cvy_caffe_shape(layer, b);
    CVY_CAFFE_CHECK(axis == 0 || axis == -src->ndim, layer,
                    "its second bottom begins at axis %lld, expected 0, that of the samples", (long long)axis);
    for (int d = 1; d < src->ndim; d++) {
        CVY_CHECK(d >= by->ndim || by->dim[d] == src->dim[d], CVY_E_SHAPE, "%s: %s: its bottoms are %s and %s",
                  layer->x->build.path, layer->where, cvy_shape_text(src), cvy_shape_text(by));
        cvy_text_add(&shape, "%s%lld", first++ ? ", " : "", d < by->ndim ? (long long)by->dim[d] : 1LL);
    }
    cvy_status status = shape.status;
    /* multiply takes one factor for each channel as it is */
    if (status == CVY_OK && by->ndim < src->ndim && !(by->ndim == 2 && strcmp(op, "multiply") == 0))
        status = cvy_caffe_then(layer, &b, "reshape", "shape: [%s]", shape.data);
    cvy_text_free(&shape);
    CVY_TRY(status);
    CVY_TRY(cvy_caffe_add(layer, &(cvy_caffe_new_layer){.op = op, .from = {a, b}, .nfrom = 2}, &a));
    return cvy_caffe_done(layer, 0, a);
}

static cvy_status translate_scale(const cvy_caffe_layer *layer)
{
    static const char *const parameter[] = {"scale", "shift"};
    static const Cvy__Caffe__ScaleParameter usual = CVY__CAFFE__SCALE_PARAMETER__INIT;
    const Cvy__Caffe__ScaleParameter *p = layer->p->scale_param ? layer->p->scale_param : &usual;
    char *values = NULL;
    double scale = 1, shift = 0;
    if (layer->p->n_bottom > 1) {
        CVY_CAFFE_CHECK(!p->bias_term, layer, "%s", "a bias_term besides a second bottom is not supported");
        return combine(layer, "multiply", p->axis);
    }
    CVY_TRY(cvy_caffe_constant(layer, "the scale", p->filler, 1, &scale));
    CVY_TRY(cvy_caffe_constant(layer, "the bias", p->bias_filler, 0, &shift));
    CVY_TRY(cvy_pool_printf(layer->x->build.out->pool, &values, ", init: %.9g%s", scale,
                            p->bias_term ? "" : ", shift: false"));
    if (p->bias_term && shift != 0)
        CVY_TRY(cvy_pool_printf(layer->x->build.out->pool, &values, "%s, shift_init: %.9g", values, shift));
    return add_affine(layer, p->axis, p->num_axes, values, parameter, 1 + p->bias_term);
}
CVY_CAFFE_DEFINE(scale) = {"Scale", .translate = translate_scale};

static cvy_status translate_bias(const cvy_caffe_layer *layer)
{
    static const char *const parameter[] = {"shift"};
    static const Cvy__Caffe__BiasParameter usual = CVY__CAFFE__BIAS_PARAMETER__INIT;
    const Cvy__Caffe__BiasParameter *p = layer->p->bias_param ? layer->p->bias_param : &usual;
    char *values = NULL;
    double shift = 0;
    if (layer->p->n_bottom > 1)
        return combine(layer, "add", p->axis);
    CVY_TRY(cvy_caffe_constant(layer, "the bias", p->filler, 0, &shift));
    CVY_TRY(cvy_pool_printf(layer->x->build.out->pool, &values, ", scale: false"));
    if (shift != 0)
        CVY_TRY(cvy_pool_printf(layer->x->build.out->pool, &values, ", scale: false, shift_init: %.9g", shift));
    return add_affine(layer, p->axis, p->num_axes, values, parameter, 1);
}
CVY_CAFFE_DEFINE(bias) = {"Bias", .translate = translate_bias};

/* ---- BatchNorm ---- */

static int is_one_or_absent(const Cvy__Caffe__FillerParameter *f, float value)
{
    return !f || (strcmp(f->type, "constant") == 0 && f->value == value);
}

/* The Scale that makes a pair with a BatchNorm: it alone reads the result, and it has a factor and a summand for each
 * channel. -1: none does. */
static int find_scale(const cvy_caffe_layer *layer, int ndim)
{
    const int at = cvy_caffe_reader(layer);
    const Cvy__Caffe__LayerParameter *next = at >= 0 ? layer->x->net->layer[at] : NULL;
    if (!next || !next->type || strcmp(next->type, "Scale") != 0 || next->n_bottom != 1 || next->n_top != 1 ||
        !next->scale_param)
        return -1;
    const Cvy__Caffe__ScaleParameter *s = next->scale_param;
    const int per_channel = (s->axis == 1 || s->axis == 1 - ndim) && s->num_axes == 1 && s->bias_term;
    for (size_t i = 0; i < next->n_param; i++)
        if (next->param[i]->name && *next->param[i]->name)
            return -1;
    return per_channel && is_one_or_absent(s->filler, 1) && is_one_or_absent(s->bias_filler, 0) ? at : -1;
}

/* The Scale's top is this layer's output, too. */
static cvy_status absorb(const cvy_caffe_layer *layer, int number, const char *name, const char *output)
{
    cvy_caffe *x = layer->x;
    const Cvy__Caffe__LayerParameter *scale = x->net->layer[number];
    const int before = x->names.count;
    int at = 0;
    CVY_TRY(cvy_mem_reserve(&x->blob, &x->blob_room, before, sizeof *x->blob));
    CVY_TRY(cvy_keys_add(&x->names, scale->top[0], &at));
    x->blob[at].output = output;
    x->absorbed[number] = 1;
    CVY_TRY(cvy_caffe_has(layer, scale, 0, name, "scale", CVY_CAFFE_AS_IS));
    return cvy_caffe_has(layer, scale, 1, name, "shift", CVY_CAFFE_AS_IS);
}

static cvy_status translate_batch_norm(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__BatchNormParameter usual = CVY__CAFFE__BATCH_NORM_PARAMETER__INIT;
    const Cvy__Caffe__BatchNormParameter *p = layer->p->batch_norm_param ? layer->p->batch_norm_param : &usual;
    const char *from = NULL, *name = NULL, *output = NULL;
    char *options = NULL;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &from));
    const cvy_shape *src = cvy_caffe_shape(layer, from);
    const int scale = find_scale(layer, src->ndim);
    CVY_TRY(cvy_pool_printf(layer->x->build.out->pool, &options, "eps: %.9g, momentum: %.9g%s%s",
                            CVY_CAFFE_REAL(p->eps),
                            CVY_CAFFE_REAL((float)(1 - CVY_CAFFE_REAL(p->moving_average_fraction))),
                            scale >= 0 ? "" : ", scale_shift: false",
                            p->has_use_global_stats && p->use_global_stats ? ", frozen: true" : ""));
    CVY_TRY(cvy_caffe_add_trained(
        layer, &(cvy_caffe_new_layer){.op = "batch_norm", .options = options, .from = {from}, .nfrom = 1}, 3, &name,
        &output));
    CVY_TRY(cvy_caffe_done(layer, 0, output));
    CVY_TRY(cvy_caffe_has(layer, layer->p, 0, name, "running_mean", CVY_CAFFE_DIVIDED));
    CVY_TRY(cvy_caffe_has(layer, layer->p, 1, name, "running_var", CVY_CAFFE_DIVIDED));
    return scale >= 0 ? absorb(layer, scale, name, output) : CVY_OK;
}
CVY_CAFFE_DEFINE(batch_norm) = {"BatchNorm", .translate = translate_batch_norm};

/* ---- MVN ---- */

static cvy_status subtract_mean(const cvy_caffe_layer *layer, const char *from, const char *axes)
{
    const char *at = from;
    CVY_TRY(cvy_caffe_then(layer, &at, "reduction", "method: mean, axes: %s, keep: true", axes));
    CVY_TRY(cvy_caffe_add(layer, &(cvy_caffe_new_layer){.op = "subtract", .from = {from, at}, .nfrom = 2}, &at));
    return cvy_caffe_done(layer, 0, at);
}

/* Caffe adds eps to the standard deviation, ours adds it to the variance: the square of a small eps gives the same, but
 * for values that do not vary. */
static cvy_status translate_mvn(const cvy_caffe_layer *layer)
{
    static const Cvy__Caffe__MVNParameter usual = CVY__CAFFE__MVNPARAMETER__INIT;
    const Cvy__Caffe__MVNParameter *p = layer->p->mvn_param ? layer->p->mvn_param : &usual;
    const char *at = NULL, *axes = NULL;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    const cvy_shape *src = cvy_caffe_shape(layer, at);
    CVY_CAFFE_CHECK(
        p->eps <= 1e-6F || !p->normalize_variance, layer,
        "an eps of %g is added to the standard deviation; convoy adds it to the variance, which is the same "
        "only up to 1e-6",
        (double)p->eps);
    CVY_CAFFE_CHECK(src->ndim >= 3, layer, "a source of shape %s, expected channels and positions",
                    cvy_shape_text(src));
    CVY_TRY(cvy_caffe_axes_from(layer, p->across_channels ? 1 : 2, src->ndim, &axes));
    if (!p->normalize_variance)
        return subtract_mean(layer, at, axes);
    const double eps = fmax((double)p->eps * (double)p->eps, 1e-30);
    if (p->across_channels)
        CVY_TRY(cvy_caffe_then(layer, &at, "layer_norm", "axes: %s, eps: %.9g, scale_shift: false", axes, eps));
    else
        CVY_TRY(cvy_caffe_then(layer, &at, "instance_norm", "eps: %.9g", eps));
    return cvy_caffe_done(layer, 0, at);
}
CVY_CAFFE_DEFINE(mvn) = {"MVN", .translate = translate_mvn};
