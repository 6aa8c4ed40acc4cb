/*
 * onnx_reduce.c: reductions over axes of a sample, and MeanVarianceNormalization.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

/* What the reductions of ONNX are made of: a layer before, our method, and one after. */
static const struct reduction {
    const char *name, *before, *method, *after;
} reductions[] = {
    {"ReduceMean", NULL, "mean", NULL},         {"ReduceSum", NULL, "sum", NULL},
    {"ReduceMax", NULL, "max", NULL},           {"ReduceMin", "scale", "max", "scale"},
    {"ReduceL1", "abs", "sum", NULL},           {"ReduceL2", "square", "sum", "sqrt"},
    {"ReduceSumSquare", "square", "sum", NULL}, {"ReduceLogSum", NULL, "sum", "log"},
    {"ReduceLogSumExp", "exp", "sum", "log"},
};

/* The axes, which must not hold that of the samples. *out 0: nothing is reduced. */
static cvy_status read_axes(const cvy_onnx_node *node, int ndim, unsigned *out)
{
    const int64_t *axes = NULL;
    int n = 0;
    *out = 0;
    CVY_TRY(cvy_onnx_ints(node, "axes", 1, &axes, &n));
    CVY_ONNX_CHECK(n > 0 || cvy_onnx_int(node, "noop_with_empty_axes", 0), node, "%s",
                   "it needs axes, because the first one, that of the samples, cannot be reduced");
    for (int i = 0; i < n; i++) {
        int axis = 0;
        CVY_TRY(cvy_onnx_axis(node, axes[i], ndim, &axis));
        *out |= 1U << axis;
    }
    return CVY_OK;
}

static cvy_status around(const cvy_onnx_node *node, const char *op, const char **output)
{
    return op ? cvy_onnx_step(node, op, strcmp(op, "scale") == 0 ? "by: -1" : NULL, *output, output) : CVY_OK;
}

/* A mean or maximum over all positions is global pooling. */
static cvy_status add_reduction(const cvy_onnx_node *node, const char *method, unsigned axes, const char **output)
{
    const int ndim = cvy_onnx_shape(node->x, *output)->ndim;
    const char *pool = strcmp(method, "mean") == 0  ? "global_avg_pool"
                       : strcmp(method, "max") == 0 ? "global_max_pool"
                                                    : NULL;
    int64_t list[CVY_NDIM_MAX];
    int n = 0;
    cvy_text options = {0};
    if (pool && ndim > 2 && axes == (1U << ndim) - 4)
        return cvy_onnx_step(node, pool, NULL, *output, output);
    for (int d = 1; d < ndim; d++)
        if (axes >> d & 1)
            list[n++] = d;
    cvy_onnx_list(&options, "axes", list, n);
    cvy_text_add(&options, ", method: %s", method);
    const cvy_status status =
        options.status == CVY_OK ? cvy_onnx_step(node, "reduction", options.data, *output, output) : options.status;
    cvy_text_free(&options);
    return status;
}

static cvy_status translate_reduction(const cvy_onnx_node *node)
{
    const struct reduction *r = reductions;
    const cvy_onnx_value *src = NULL;
    const int keep = (int)cvy_onnx_int(node, "keepdims", 1);
    unsigned axes = 0;
    int n = 0;
    int64_t sample[CVY_NDIM_MAX];
    while (strcmp(r->name, node->op) != 0)
        r++;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(read_axes(node, src->shape.ndim, &axes));
    const char *output = src->layer;
    for (int d = 1; d < src->shape.ndim; d++)
        if (keep || !(axes >> d & 1))
            sample[n++] = axes >> d & 1 ? 1 : src->shape.dim[d];
    CVY_TRY(around(node, r->before, &output));
    if (axes)
        CVY_TRY(add_reduction(node, r->method, axes, &output));
    CVY_TRY(around(node, r->after, &output));
    CVY_TRY(cvy_onnx_reshape(node, output, sample, n, &output));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(reduce_mean) = {"ReduceMean", .attributes = "axes keepdims noop_with_empty_axes",
                                .translate = translate_reduction};
CVY_ONNX_DEFINE(reduce_sum) = {"ReduceSum", .attributes = "axes keepdims noop_with_empty_axes",
                               .translate = translate_reduction};
CVY_ONNX_DEFINE(reduce_max) = {"ReduceMax", .attributes = "axes keepdims noop_with_empty_axes",
                               .translate = translate_reduction};
CVY_ONNX_DEFINE(reduce_min) = {"ReduceMin", .attributes = "axes keepdims noop_with_empty_axes",
                               .translate = translate_reduction};
CVY_ONNX_DEFINE(reduce_l1) = {"ReduceL1", .attributes = "axes keepdims noop_with_empty_axes",
                              .translate = translate_reduction};
CVY_ONNX_DEFINE(reduce_l2) = {"ReduceL2", .attributes = "axes keepdims noop_with_empty_axes",
                              .translate = translate_reduction};
CVY_ONNX_DEFINE(reduce_sum_square) = {"ReduceSumSquare", .attributes = "axes keepdims noop_with_empty_axes",
                                      .translate = translate_reduction};
CVY_ONNX_DEFINE(reduce_log_sum) = {"ReduceLogSum", .attributes = "axes keepdims noop_with_empty_axes",
                                   .translate = translate_reduction};
CVY_ONNX_DEFINE(reduce_log_sum_exp) = {"ReduceLogSumExp", .attributes = "axes keepdims noop_with_empty_axes",
                                       .translate = translate_reduction};

/* (x - mean) / standard deviation, over axes next to each other. */
static cvy_status translate_mean_variance(const cvy_onnx_node *node)
{
    static const int64_t usual[] = {0, 2, 3};
    const cvy_onnx_value *src = NULL;
    const int64_t *axes = NULL;
    int n = 0;
    cvy_text options = {0};
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "axes", -1, &axes, &n));
    axes = n ? axes : usual;
    n = n ? n : CVY_COUNT(usual);
    CVY_ONNX_CHECK(n < CVY_NDIM_MAX, node, "%d axes", n);
    for (int i = 0; i < n; i++) {
        int axis = 0;
        CVY_TRY(cvy_onnx_axis(node, axes[i], src->shape.ndim, &axis));
    }
    cvy_onnx_list(&options, "axes", axes, n);
    cvy_text_add(&options, ", scale_shift: false, eps: 1e-18");
    const cvy_status status =
        options.status == CVY_OK ? cvy_onnx_simple(node, "layer_norm", options.data) : options.status;
    cvy_text_free(&options);
    return status;
}
CVY_ONNX_DEFINE(mean_variance_normalization) = {"MeanVarianceNormalization", .attributes = "axes",
                                                .translate = translate_mean_variance};
