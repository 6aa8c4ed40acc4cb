/*
 * caffe_loss.c: losses, with the factors that make ours equal to Caffe's.
 *
 * A loss of ours is the mean over samples of the mean over the elements (or positions) of a sample. Caffe's losses
 * divide by other numbers, which for a given shape is another factor: loss_weight.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/caffe/caffe.h"

#define MODE(name) CVY__CAFFE__LOSS_PARAMETER__NORMALIZATION_MODE__##name

static double weight_of(const cvy_caffe_layer *layer)
{
    return layer->p->n_loss_weight > 0 ? CVY_CAFFE_REAL(layer->p->loss_weight[0]) : 1;
}

/* Elements of a sample from this axis on. */
static int64_t elems_from(const cvy_shape *s, int axis)
{
    int64_t n = 1;
    for (int d = axis; d < s->ndim; d++)
        n *= s->dim[d];
    return n;
}

/* Adds a loss of ours on these two values. factor: that makes it equal to Caffe's. options: ", a: 1" or "". A loss
 * without a weight is left out. */
static cvy_status add_loss(const cvy_caffe_layer *layer, const char *op, const char *output, const char *target,
                           double factor, const char *options)
{
    cvy_caffe *x = layer->x;
    const double weight = weight_of(layer);
    const char *loss = NULL;
    cvy_text text = {0};
    if (weight == 0)
        return CVY_OK;
    if (weight * factor != 1) {
        cvy_text_add(&text, "loss_weight: ");
        cvy_text_add_real(&text, weight * factor);
    }
    cvy_text_add(&text, "%s", text.bytes || !*options ? options : options + strlen(", "));
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_caffe_add(layer, &(cvy_caffe_new_layer){op, text.data, {output, target}, 2}, &loss);
    cvy_text_free(&text);
    CVY_TRY(status);
    if (!x->main || weight >= x->main_weight) {
        x->main = output;
        x->main_weight = weight;
    }
    return cvy_caffe_done(layer, 0, loss);
}

/* The two values of a loss. */
static cvy_status take_two(const cvy_caffe_layer *layer, const char **output, const char **target)
{
    CVY_TRY(cvy_caffe_bottom(layer, 0, output));
    CVY_TRY(cvy_caffe_compared(layer, 1, *output, target));
    CVY_CAFFE_CHECK(layer->p->n_bottom == 2, layer, "it has %zu bottoms, expected 2", layer->p->n_bottom);
    return CVY_OK;
}

/* ---- classes ---- */

/* The factor for what Caffe divides the sum of the terms of N samples with P positions by: N P, the number of labels
 * that are not ignored, N, or 1. */
static cvy_status factor_of(const cvy_caffe_layer *layer, int64_t positions, int usual, double *out)
{
    const Cvy__Caffe__LossParameter *p = layer->p->loss_param;
    const int ignores = p && p->has_ignore_label;
    const int mode = p && p->has_normalization ? (int)p->normalization
                     : p && p->has_normalize   ? (p->normalize ? MODE(VALID) : MODE(BATCH_SIZE))
                                               : usual;
    CVY_CAFFE_CHECK(mode != MODE(NONE), layer, "%s",
                    "normalization NONE is not supported: the sum depends on the batch");
    CVY_CAFFE_CHECK(!ignores || mode == MODE(VALID), layer, "%s",
                    "an ignore_label with another normalization than VALID is not supported");
    *out = mode == MODE(BATCH_SIZE) ? (double)positions : 1;
    return CVY_OK;
}

static cvy_status ignored(const cvy_caffe_layer *layer, char **out)
{
    const Cvy__Caffe__LossParameter *p = layer->p->loss_param;
    return p && p->has_ignore_label
               ? cvy_pool_printf(layer->x->build.out->pool, out, ", ignore_label: %d", p->ignore_label)
               : cvy_pool_strdup(layer->x->build.out->pool, "", out);
}

static cvy_status cross_entropy(const cvy_caffe_layer *layer, const char *output, const char *target)
{
    char *options = NULL;
    double factor = 1;
    int axis = 0;
    CVY_TRY(cvy_caffe_axis(layer, layer->p->softmax_param ? layer->p->softmax_param->axis : 1,
                           cvy_caffe_shape(layer, output)->ndim, &axis));
    CVY_CAFFE_CHECK(axis == 1, layer, "its classes are on axis %d, expected 1", axis);
    CVY_TRY(factor_of(layer, elems_from(cvy_caffe_shape(layer, output), 2), MODE(VALID), &factor));
    CVY_TRY(ignored(layer, &options));
    /* positions of length 1 are none: the labels have no such axis */
    const cvy_shape *src = cvy_caffe_shape(layer, output);
    if (src->ndim > 2 && elems_from(src, 2) == 1)
        CVY_TRY(cvy_caffe_then(layer, &output, "flatten", "%s", ""));
    return add_loss(layer, "softmax_cross_entropy", output, target, factor, options);
}

static cvy_status translate_softmax_loss(const cvy_caffe_layer *layer)
{
    const char *output = NULL, *target = NULL;
    CVY_TRY(take_two(layer, &output, &target));
    CVY_TRY(cross_entropy(layer, output, target));
    if (layer->p->n_top < 2)
        return CVY_OK;
    CVY_TRY(cvy_caffe_then(layer, &output, "softmax", "%s", ""));
    return cvy_caffe_done(layer, 1, output);
}
CVY_CAFFE_DEFINE(softmax_loss) = {"SoftmaxWithLoss", .translate = translate_softmax_loss, .is_loss = 1};

/* On probabilities that a softmax makes it is the cross-entropy on the softmax's source. */
static cvy_status translate_multinomial(const cvy_caffe_layer *layer)
{
    const char *output = NULL, *target = NULL;
    const cvy_model *m = layer->x->build.out->model;
    CVY_TRY(take_two(layer, &output, &target));
    const int at = cvy_index_find(&m->layer_at, output);
    CVY_CAFFE_CHECK(at >= 0 && strcmp(m->layer[at].op->name, "softmax") == 0, layer, "%s",
                    "its source is no Softmax; use SoftmaxWithLoss");
    return cross_entropy(layer, m->layer[at].from[0], target);
}
CVY_CAFFE_DEFINE(multinomial_loss) = {"MultinomialLogisticLoss", .translate = translate_multinomial, .is_loss = 1};

CVY_CAFFE_DEFINE(infogain_loss) = {
    "InfogainLoss", .declined = "convoy has no matrix of gains; softmax_cross_entropy has class_weights", .is_loss = 1};

static cvy_status translate_hinge(const cvy_caffe_layer *layer)
{
    const Cvy__Caffe__HingeLossParameter *p = layer->p->hinge_loss_param;
    const char *output = NULL, *target = NULL;
    const int squared = p && p->norm == CVY__CAFFE__HINGE_LOSS_PARAMETER__NORM__L2;
    CVY_TRY(take_two(layer, &output, &target));
    return add_loss(layer, "hinge", output, target, 1, squared ? ", norm: l2" : "");
}
CVY_CAFFE_DEFINE(hinge_loss) = {"HingeLoss", .translate = translate_hinge, .is_loss = 1};

/* ---- distances ---- */

/* Caffe: the sum of squares divided by 2 N. Ours: the mean of squares of a sample. */
static cvy_status translate_euclidean(const cvy_caffe_layer *layer)
{
    const char *output = NULL, *target = NULL;
    CVY_TRY(take_two(layer, &output, &target));
    return add_loss(layer, "mse", output, target, (double)elems_from(cvy_caffe_shape(layer, output), 1) / 2, "");
}
CVY_CAFFE_DEFINE(euclidean_loss) = {"EuclideanLoss", .translate = translate_euclidean, .is_loss = 1};

static cvy_status translate_sigmoid_loss(const cvy_caffe_layer *layer)
{
    const char *output = NULL, *target = NULL;
    double factor = 1;
    CVY_TRY(take_two(layer, &output, &target));
    CVY_CAFFE_CHECK(!layer->p->loss_param || !layer->p->loss_param->has_ignore_label, layer, "%s",
                    "an ignore_label is not supported");
    CVY_TRY(factor_of(layer, elems_from(cvy_caffe_shape(layer, output), 1), MODE(BATCH_SIZE), &factor));
    return add_loss(layer, "bce", output, target, factor, "");
}
CVY_CAFFE_DEFINE(sigmoid_loss) = {"SigmoidCrossEntropyLoss", .translate = translate_sigmoid_loss, .is_loss = 1};

/* Ours works on the squared distance of the two. */
static cvy_status translate_contrastive(const cvy_caffe_layer *layer)
{
    const Cvy__Caffe__ContrastiveLossParameter *p = layer->p->contrastive_loss_param;
    const double margin = p ? CVY_CAFFE_REAL(p->margin) : 1;
    const char *a = NULL, *b = NULL, *similar = NULL, *at = NULL;
    char *options = NULL;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &a));
    CVY_TRY(cvy_caffe_bottom(layer, 1, &b));
    CVY_TRY(cvy_caffe_bottom(layer, 2, &similar));
    CVY_CAFFE_CHECK(!p || !p->legacy_version, layer, "%s", "legacy_version, with margin - d^2, is not supported");
    CVY_CAFFE_CHECK(margin > 0, layer, "a margin of %g, expected more than 0", margin);
    CVY_CHECK(cvy_shape_equal(cvy_caffe_shape(layer, a), cvy_caffe_shape(layer, b)), CVY_E_SHAPE,
              "%s: %s: it compares %s and %s", layer->x->build.path, layer->where,
              cvy_shape_text(cvy_caffe_shape(layer, a)), cvy_shape_text(cvy_caffe_shape(layer, b)));
    const char *const main = a;
    CVY_TRY(cvy_caffe_add(layer, &(cvy_caffe_new_layer){.op = "subtract", .from = {a, b}, .nfrom = 2}, &at));
    CVY_TRY(cvy_caffe_add(layer, &(cvy_caffe_new_layer){.op = "multiply", .from = {at, at}, .nfrom = 2}, &at));
    CVY_TRY(cvy_caffe_then(layer, &at, "flatten", "%s", ""));
    CVY_TRY(cvy_caffe_then(layer, &at, "reduction", "method: sum, axes: [1]"));
    CVY_TRY(cvy_pool_printf(layer->x->build.out->pool, &options, ", margin: %.9g", margin));
    CVY_TRY(add_loss(layer, "contrastive", at, similar, 1, options));
    if (layer->x->main == at) /* the network is applied for its features */
        layer->x->main = main;
    return CVY_OK;
}
CVY_CAFFE_DEFINE(contrastive_loss) = {"ContrastiveLoss", .translate = translate_contrastive, .is_loss = 1};
