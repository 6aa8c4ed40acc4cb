/*
 * onnx_norm.c: normalisation. An export for inference has the running statistics only; ours has its training form, too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

static cvy_status translate_batch_norm(const cvy_onnx_node *node)
{
    static const char *const parameter[] = {NULL, "scale", "shift", "running_mean", "running_var"};
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *t[5] = {NULL};
    const char *name = NULL, *output = NULL;
    char *options = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    for (int i = 1; i < 5; i++) {
        CVY_TRY(cvy_onnx_constant(node, i, &t[i]));
        CVY_ONNX_CHECK(t[i], node, "it has no source %d (%s)", i, parameter[i]);
    }
    CVY_ONNX_CHECK(node->x->opset >= 9 || cvy_onnx_int(node, "spatial", 1), node, "%s",
                   "statistics for each position (spatial 0) are not supported");
    /* ONNX weighs the old statistics, ours the new ones */
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "eps: %.9g, momentum: %.9g",
                            cvy_onnx_real(node, "epsilon", 1e-5),
                            cvy_build_decimal(1 - cvy_onnx_real(node, "momentum", 0.9))));
    CVY_TRY(cvy_onnx_add(node,
                         &(cvy_onnx_layer){.op = "batch_norm",
                                           .options = options,
                                           .weight = t[1],
                                           .more = {t[2], t[3], t[4]},
                                           .from = {src->layer},
                                           .nfrom = 1},
                         &name, &output));
    for (int i = 1; i < 5; i++)
        CVY_TRY(cvy_onnx_set(node, name, parameter[i], t[i]));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(batch_normalization) = {"BatchNormalization",
                                        .attributes = "epsilon is_test momentum spatial training_mode",
                                        .translate = translate_batch_norm};

/* scale and shift of a normalisation within samples */
static cvy_status add_scaled(const cvy_onnx_node *node, const char *op, const char *options,
                             const cvy_onnx_tensor *scale, const cvy_onnx_tensor *shift)
{
    const cvy_onnx_value *src = NULL;
    const char *name = NULL, *output = NULL;
    float *zeros = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_add(
        node,
        &(cvy_onnx_layer){
            .op = op, .options = options, .weight = scale, .more = {shift}, .from = {src->layer}, .nfrom = 1},
        &name, &output));
    CVY_TRY(cvy_onnx_set(node, name, "scale", scale));
    if (shift) {
        CVY_TRY(cvy_onnx_set(node, name, "shift", shift));
    } else {
        CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *zeros * (size_t)CVY_MAX(scale->elems, 1), &zeros));
        CVY_TRY(cvy_onnx_settle(node, name, "shift", &(cvy_onnx_tensor){.name = "", .kind = CVY_ONNX_CONSTANT}));
        CVY_TRY(cvy_onnx_set_values(node, name, "shift", CVY_DTYPE_F32, zeros, scale->elems));
    }
    return cvy_onnx_done(node, 0, output);
}

static cvy_status translate_layer_norm(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *scale = NULL, *shift = NULL;
    cvy_text options = {0};
    int first = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_constant(node, 1, &scale));
    CVY_TRY(cvy_onnx_constant(node, 2, &shift));
    CVY_TRY(cvy_onnx_axis(node, cvy_onnx_int(node, "axis", -1), src->shape.ndim, &first));
    CVY_ONNX_CHECK(scale, node, "%s", "it has no scale");
    CVY_ONNX_CHECK(!cvy_onnx_is_read(node, 1) && !cvy_onnx_is_read(node, 2), node, "%s",
                   "its mean and deviation are read, which is not supported");
    for (int i = first; i < src->shape.ndim; i++)
        cvy_text_add(&options, "%s%d", i > first ? ", " : "axes: [", i);
    cvy_text_add(&options, "], eps: %.9g", cvy_onnx_real(node, "epsilon", 1e-5));
    const cvy_status status =
        options.status == CVY_OK ? add_scaled(node, "layer_norm", options.data, scale, shift) : options.status;
    cvy_text_free(&options);
    return status;
}
CVY_ONNX_DEFINE(layer_normalization) = {"LayerNormalization", .attributes = "axis epsilon stash_type",
                                        .translate = translate_layer_norm};

/* Groups of channels; of InstanceNormalization each channel is one. */
static cvy_status translate_group_norm(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *scale = NULL, *shift = NULL;
    char *options = NULL;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_constant(node, 1, &scale));
    CVY_TRY(cvy_onnx_constant(node, 2, &shift));
    CVY_ONNX_CHECK(src->shape.ndim >= 3, node, "a source of shape %s has no positions", cvy_shape_text(&src->shape));
    const int64_t channels = src->shape.dim[1];
    const int64_t groups =
        strcmp(node->op, "InstanceNormalization") == 0 ? channels : cvy_onnx_int(node, "num_groups", 0);
    CVY_ONNX_CHECK(scale && shift && scale->elems == channels && shift->elems == channels, node, "%s",
                   "it needs a scale and a shift for each channel (operator set 21)");
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "groups: %lld, eps: %.9g", (long long)groups,
                            cvy_onnx_real(node, "epsilon", 1e-5)));
    return add_scaled(node, "group_norm", options, scale, shift);
}
CVY_ONNX_DEFINE(group_normalization) = {"GroupNormalization", .attributes = "epsilon num_groups stash_type",
                                        .translate = translate_group_norm};
CVY_ONNX_DEFINE(instance_normalization) = {"InstanceNormalization", .attributes = "epsilon",
                                           .translate = translate_group_norm};

static cvy_status translate_lrn(const cvy_onnx_node *node)
{
    char *options = NULL;
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "size: %lld, alpha: %.9g, beta: %.9g, k: %.9g",
                            (long long)cvy_onnx_int(node, "size", 1), cvy_onnx_real(node, "alpha", 1e-4),
                            cvy_onnx_real(node, "beta", 0.75), cvy_onnx_real(node, "bias", 1)));
    return cvy_onnx_simple(node, "lrn", options);
}
CVY_ONNX_DEFINE(lrn) = {"LRN", .attributes = "alpha beta bias size", .translate = translate_lrn};
