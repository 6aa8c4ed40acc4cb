/*
 * grad_norm2, clip_scale, clip_value: gradient clipping. They run in the update phase, after the gradients are summed
 * over ranks. Source: Pascanu, Mikolov and Bengio 2013 (norm); elementwise clamping as in Mikolov 2012.
 *
 *     grad_norm2: dst = sum over sources and elements of src^2         (f64; the sums of several nodes are added)
 *     clip_scale: dst = min(1, max_norm / sqrt(src))                   (f64; updates multiply their gradient by it)
 *     clip_value: dst = src clamped to -limit .. limit
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "graph/graph_op.h"
#include "op/pointwise/op_clip.h"

static cvy_status grad_norm2_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, CVY_DTYPE_F64, &(cvy_shape){0});
}

static int64_t all_elems(const cvy_node *node)
{
    int64_t n = 0;
    for (int i = 0; i < node->nsrc; i++)
        n += cvy_shape_elems(cvy_node_src(node, i));
    return n;
}

static void grad_norm2_cost(const cvy_node *node, cvy_cost *cost_out)
{
    *cost_out = (cvy_cost){.flop = 2 * all_elems(node), .read_elems = all_elems(node), .write_elems = 1};
}

static cvy_status grad_norm2_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    double sum = 0;
    for (int s = 0; s < node->nsrc; s++)
        for (int64_t i = 0; i < src[s].elems; i++)
            sum += cvy_get(&src[s], i) * cvy_get(&src[s], i);
    cvy_set(dst, 0, sum);
    return CVY_OK;
}

static const cvy_sample grad_norm2_samples[] = {{.src = "3x5"}, {.src = "2x3x3x3,7,1x5,4100"}, {0}};

CVY_OP_DEFINE(grad_norm2) = {
    .name = "grad_norm2",
    .summary = "sum of squares of several tensors",
    .nsrc_min = 1,
    .nsrc_max = CVY_NODE_SRC_MAX,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = grad_norm2_infer,
    .cost = grad_norm2_cost,
    .reference = grad_norm2_reference,
    .summands = all_elems,
    .samples = grad_norm2_samples,
};

/* ---- clip_scale ---- */

static const cvy_option clip_scale_opts[] = {
    {"max_norm", CVY_TYPE_REAL, CVY_FIELD(cvy_clip_scale, max_norm), NULL, ">0", "",
     "upper bound of the norm of the whole gradient"},
    {0},
};

static cvy_status clip_scale_infer(cvy_node *node)
{
    CVY_CHECK(node->src[0]->dtype == CVY_DTYPE_F64 && node->src[0]->shape.ndim == 0, CVY_E_SHAPE,
              "clip_scale takes f64 scalar, got %s %s", cvy_dtype_text(node->src[0]->dtype),
              cvy_shape_text(&node->src[0]->shape));
    return cvy_node_set_dst(node, 0, CVY_DTYPE_F64, &(cvy_shape){0});
}

/* A NaN norm gives a NaN scale: the gradient is not finite then, and this must not be hidden. */
static cvy_status clip_scale_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const double norm = sqrt(cvy_get(src, 0)), max_norm = ((const struct cvy_clip_scale *)node->options)->max_norm;
    cvy_set(dst, 0, norm <= max_norm ? 1 : max_norm / norm);
    return CVY_OK;
}

static const cvy_sample clip_scale_samples[] = {
    {.src = "scalar:f64", .options = "max_norm: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64", .options = "max_norm: 2", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(clip_scale) = {
    .name = "clip_scale",
    .summary = "factor that scales a norm down to its bound",
    .options = clip_scale_opts,
    .options_size = sizeof(struct cvy_clip_scale),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = clip_scale_infer,
    .reference = clip_scale_reference,
    .samples = clip_scale_samples,
};

/* ---- clip_value ---- */

static const cvy_option clip_value_opts[] = {
    {"limit", CVY_TYPE_REAL, CVY_FIELD(cvy_clip_value, limit), NULL, ">0", "", "largest magnitude of an element"},
    {0},
};

static cvy_status clip_value_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

/* It uses comparisons, so that NaN stays NaN. */
static cvy_status clip_value_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const double limit = ((const struct cvy_clip_value *)node->options)->limit;
    for (int64_t i = 0; i < dst->elems; i++) {
        const double x = cvy_get(src, i);
        cvy_set(dst, i, x > limit ? limit : x < -limit ? -limit : x);
    }
    return CVY_OK;
}

static const cvy_sample clip_value_samples[] = {
    {.src = "2x7x3x5", .options = "limit: 0.5"}, {.src = "3", .options = "limit: 2"}, {0}};

CVY_OP_DEFINE(clip_value) = {
    .name = "clip_value",
    .summary = "clips each element to -limit .. limit",
    .options = clip_value_opts,
    .options_size = sizeof(struct cvy_clip_value),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_ELEMENTWISE | CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = clip_value_infer,
    .reference = clip_value_reference,
    .samples = clip_value_samples,
};
