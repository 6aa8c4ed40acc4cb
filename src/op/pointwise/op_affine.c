/*
 * affine: multiplies each sample by a trained tensor, adds one, or both. The tensors are broadcast over the batch and
 * over their axes of length 1. ConvNeXt scales its branches so (layer scale, Touvron et al. 2021); position embeddings
 * are added so.
 *
 *     dst    = src * scale + shift
 *     dsrc   = ddst * scale
 *     dscale = sum of ddst * src, dshift = sum of ddst, over the batch and the axes of length 1
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_affine.h"

#include <stdio.h>

#include "graph/graph_grad.h"
#include "op/tensor/op_walk.h"

static const cvy_option affine_rows[] = {
    {"shape", CVY_TYPE_INTS, CVY_FIELD(cvy_affine_opts, shape), "", "1..", "",
     "axes of the trained tensors, as many as a sample has, each as long as there or 1; by default one number for each "
     "channel"},
    {"scale", CVY_TYPE_BOOL, CVY_FIELD(cvy_affine_opts, scale), "true", "", "", "multiply by a trained tensor"},
    {"shift", CVY_TYPE_BOOL, CVY_FIELD(cvy_affine_opts, shift), "true", "", "", "add a trained tensor"},
    {"init", CVY_TYPE_REAL, CVY_FIELD(cvy_affine_opts, init), "1", "", "", "the scale at the start"},
    {"shift_init", CVY_TYPE_REAL, CVY_FIELD(cvy_affine_opts, shift_init), "0", "", "", "the shift at the start"},
    {"tensor", CVY_TYPE_INTS, CVY_FIELD(cvy_affine_opts, tensor), "", "1..", "",
     "the tensor is called as the layer, without .scale or .shift, and has these axes in files; only one of the two "
     "may be "
     "there"},
    {0},
};

/* The shape of the variables. */
static cvy_status stored_shape(const cvy_affine_opts *o, const cvy_shape *src, cvy_shape *out)
{
    const cvy_shape whole = cvy_affine_shape(o, src), shape = cvy_shape_make(src->ndim - 1, whole.dim + 1);
    *out = o->tensor.count > 0 ? cvy_shape_make(o->tensor.count, o->tensor.at) : shape;
    CVY_CHECK(o->tensor.count == 0 || !o->scale || !o->shift, CVY_E_ARGUMENT,
              "affine: with `tensor` scale and shift would have one name; set `scale` or `shift` to false");
    CVY_CHECK(cvy_shape_elems(out) == cvy_shape_elems(&shape), CVY_E_SHAPE,
              "affine: `tensor` is %s, but the tensor is %s", cvy_shape_text(out), cvy_shape_text(&shape));
    return CVY_OK;
}

static cvy_status affine_infer(cvy_node *node)
{
    const cvy_affine_opts *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0);
    char value[48], shift_value[48];
    CVY_CHECK(o->scale || o->shift, CVY_E_ARGUMENT, "affine: `scale` and `shift` are both false; set one of them");
    CVY_CHECK(src->ndim >= 2 && (o->shape.count == 0 || o->shape.count == src->ndim - 1), CVY_E_SHAPE,
              "affine: `shape` has %d axes for a source %s; it needs those of a sample", o->shape.count,
              cvy_shape_text(src));
    const cvy_shape whole = cvy_affine_shape(o, src);
    cvy_shape shape;
    for (int d = 1; d < src->ndim; d++)
        CVY_CHECK(whole.dim[d] == 1 || whole.dim[d] == src->dim[d], CVY_E_SHAPE,
                  "affine: entry %d of `shape` is %lld, expected 1 or %lld for a source %s", d - 1,
                  (long long)whole.dim[d], (long long)src->dim[d], cvy_shape_text(src));
    CVY_TRY(stored_shape(o, src, &shape));
    snprintf(value, sizeof value, "value: %.17g", o->init);
    snprintf(shift_value, sizeof shift_value, "value: %.17g", o->shift_init);
    const cvy_init scale = {.method = "constant", .options = value},
                   shift = {.method = "constant", .options = shift_value};
    if (o->scale)
        CVY_TRY(cvy_node_param(node, o->tensor.count > 0 ? "" : "scale", &shape, &scale, 0));
    if (o->shift)
        CVY_TRY(cvy_node_param(node, o->tensor.count > 0 ? "" : "shift", &shape, &shift, 0));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, src);
}

static cvy_status affine_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_affine_opts *o = fwd->options;
    const int nweight = o->scale + o->shift;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL, *d[2] = {NULL, NULL};
    int wanted = 0;
    if (!ddst)
        return CVY_OK;
    for (int i = 1; i <= nweight; i++)
        wanted |= cvy_grad_wanted(g, fwd->src[i]);
    if (wanted) {
        cvy_value *const from[] = {ddst, fwd->src[0]};
        CVY_TRY(cvy_grad_emit(g, fwd, "affine_grad_weight", o, from, 1 + o->scale, d, nweight));
        for (int i = 0; i < nweight; i++)
            if (cvy_grad_wanted(g, fwd->src[1 + i]))
                CVY_TRY(cvy_grad_add(g, fwd->src[1 + i], d[i]));
    }
    if (!cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    if (o->scale) {
        cvy_value *const from[] = {ddst, fwd->src[1]};
        CVY_TRY(cvy_grad_emit(g, fwd, "affine_grad_src", o, from, 2, &dsrc, 1));
    }
    return cvy_grad_add(g, fwd->src[0], dsrc ? dsrc : ddst);
}

static void affine_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_affine_opts *o = node->options;
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = (o->scale + o->shift) * n, .read_elems = n, .write_elems = n};
}

/* From an element of the source to that of the trained tensors, which do not change along some axes. */
static cvy_walk walk_of(const cvy_affine_opts *o, const cvy_shape *src)
{
    const cvy_shape shape = cvy_affine_shape(o, src);
    cvy_walk w = {.ndim = src->ndim};
    int64_t step = 1;
    for (int d = src->ndim - 1; d >= 0; d--) {
        w.dim[d] = src->dim[d];
        w.stride[d] = shape.dim[d] == 1 ? 0 : step;
        step *= shape.dim[d];
    }
    return w;
}

static cvy_status affine_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_affine_opts *o = node->options;
    const cvy_walk w = walk_of(o, cvy_node_src(node, 0));
    for (int64_t i = 0; i < dst->elems; i++) {
        const int64_t at = cvy_walk_at(&w, i);
        const double x = cvy_get(&src[0], i), scaled = o->scale ? x * cvy_get(&src[1], at) : x;
        cvy_set(dst, i, o->shift ? scaled + cvy_get(&src[o->scale ? 2 : 1], at) : scaled);
    }
    return CVY_OK;
}

/* It may be split by samples only: the option `shape` is that of a whole sample. */
static const cvy_sample affine_samples[] = {
    {.src = "2x5x3x4"},
    {.src = "3x7", .options = "init: 0.5"},
    {.src = "2x32x3x3", .options = "shift: false, init: 1e-6"},
    {.src = "2x20x7", .options = "scale: false"},
    {.src = "2x3x4x6", .options = "shape: [1, 1, 6]"},
    {.src = "2x3x4x5", .options = "shape: [3, 1, 5], scale: false"},
    {.src = "2x3x4x5", .options = "shape: [1, 4, 1]"},
    {.src = "3x6x5", .options = "shape: [6, 5], shift: false"},
    {.src = "2x3x5", .options = "shape: [1, 1]"},
    {.src = "2x3x5", .options = "shape: [3, 1], scale: false, tensor: [1, 3, 1]"},
    {.src = "16x96x56x56", .options = "shift: false", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(affine) = {
    .name = "affine",
    .summary = "multiplies by a trained tensor and adds one, broadcast over the batch",
    .options = affine_rows,
    .options_size = sizeof(cvy_affine_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = affine_infer,
    .grad = affine_grad,
    .cost = affine_cost,
    .reference = affine_reference,
    .samples = affine_samples,
};

/* affine_grad_src: ddst, scale -> dsrc. It is tested with the samples of affine, through its gradient; so is the
 * operator below. */
static cvy_status affine_grad_src_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

static void affine_grad_src_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = n, .write_elems = n};
}

static cvy_status affine_grad_src_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_walk w = walk_of(node->options, cvy_node_src(node, 0));
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(&src[0], i) * cvy_get(&src[1], cvy_walk_at(&w, i)));
    return CVY_OK;
}

CVY_OP_DEFINE(affine_grad_src) = {
    .name = "affine_grad_src",
    .pass = CVY_LAYER_GRAD_SRC,
    .summary = "gradient of affine for its source",
    .options = affine_rows,
    .options_size = sizeof(cvy_affine_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = affine_grad_src_infer,
    .cost = affine_grad_src_cost,
    .reference = affine_grad_src_reference,
};

/* affine_grad_weight: ddst and, with scale, src -> dscale, dshift. */
static cvy_status affine_grad_weight_infer(cvy_node *node)
{
    const cvy_affine_opts *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0);
    cvy_shape shape;
    CVY_TRY(stored_shape(o, src, &shape));
    for (int i = 0; i < o->scale + o->shift; i++)
        CVY_TRY(cvy_node_set_dst(node, i, cvy_graph_weight_dtype(node->graph), &shape));
    return CVY_OK;
}

static void affine_grad_weight_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_affine_opts *o = node->options;
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = (2 * o->scale + o->shift) * n, .read_elems = node->nsrc * n};
}

static int64_t affine_grad_weight_summands(const cvy_node *node)
{
    return cvy_shape_elems(cvy_node_src(node, 0)) / CVY_MAX(cvy_shape_elems(cvy_node_dst(node, 0)), 1) + 1;
}

static cvy_status affine_grad_weight_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_affine_opts *o = node->options;
    const cvy_shape *whole = cvy_node_src(node, 0), shape = cvy_affine_shape(o, whole);
    unsigned summed = 0;
    cvy_walk along, others;
    for (int d = 0; d < shape.ndim; d++)
        summed |= (unsigned)(shape.dim[d] == 1) << d;
    cvy_walk_split(whole, summed, &along, &others);
    for (int64_t k = 0; k < dst[0].elems; k++) {
        double scale = 0, shift = 0;
        for (int64_t r = 0; r < src[0].elems / dst[0].elems; r++) {
            const int64_t i = cvy_walk_at(&others, k) + cvy_walk_at(&along, r);
            shift += cvy_get(&src[0], i);
            scale += o->scale ? cvy_get(&src[0], i) * cvy_get(&src[1], i) : 0;
        }
        if (o->scale)
            cvy_set(&dst[0], k, scale);
        if (o->shift)
            cvy_set(&dst[o->scale], k, shift);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(affine_grad_weight) = {
    .name = "affine_grad_weight",
    .pass = CVY_LAYER_GRAD_WEIGHT,
    .summary = "gradient of affine for its scale and shift",
    .options = affine_rows,
    .options_size = sizeof(cvy_affine_opts),
    .nsrc_min = 1,
    .nsrc_max = 2,
    .ndst = 2,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = affine_grad_weight_infer,
    .cost = affine_grad_weight_cost,
    .reference = affine_grad_weight_reference,
    .summands = affine_grad_weight_summands,
};
