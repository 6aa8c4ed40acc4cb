/*
 * layer_norm: normalises over the option `axes` of each sample, with a scale and a shift for each element of these
 * axes. Source: Ba, Kiros and Hinton 2016. op_sample_norm.h has the formulas.
 *
 *     axes: -1          the last axis, as in transformers: the features of each token of [N, T, C]
 *     axes: 1           the channels at each position of [N, C, positions...], as in ConvNeXt
 *     axes: [1, 2, 3]   all of a sample [N, C, H, W]; like LayerNorm([C, H, W]) of PyTorch
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/norm/op_sample_norm.h"

const cvy_option cvy_layer_norm_rows[] = {
    {"axes", CVY_TYPE_INTS, CVY_FIELD(cvy_sample_norm_opts, axes), "-1", "", "",
     "axes to normalise over, all next to each other; 1 is the channels, negative ones count from the end"},
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_sample_norm_opts, eps), "1e-5", ">0", "", "added to the variance"},
    {"scale_shift", CVY_TYPE_BOOL, CVY_FIELD(cvy_sample_norm_opts, scale_shift), "true", "", "",
     "learn a scale and a shift for each element of the axes"},
    {0},
};

/* The axes first .. end - 1 that are normalised. The options must be valid. */
static void axes_of(const cvy_sample_norm_opts *o, int ndim, int *first_out, int *end_out)
{
    *first_out = ndim;
    *end_out = 0;
    for (int i = 0; i < o->axes.count; i++) {
        const int axis = (int)(o->axes.at[i] < 0 ? o->axes.at[i] + ndim : o->axes.at[i]);
        *first_out = CVY_MIN(*first_out, axis);
        *end_out = CVY_MAX(*end_out, axis + 1);
    }
}

static int64_t product(const cvy_shape *shape, int first, int end)
{
    const cvy_shape part = cvy_shape_make(end - first, shape->dim + first);
    return cvy_shape_elems(&part);
}

static cvy_sample_sets layer_sets(const cvy_sample_norm_opts *o, const cvy_shape *src)
{
    int first, end;
    axes_of(o, src->ndim, &first, &end);
    const int64_t size = product(src, first, end), inner = product(src, end, src->ndim);
    return (cvy_sample_sets){
        .outer = product(src, 0, first), .size = size, .inner = inner, .params = size, .repeat = inner};
}

const cvy_sample_norm_def cvy_layer_norm_family = {"layer_norm_grad", "layer_norm_second", layer_sets};

static cvy_status check_axes(const cvy_ints *axes, const cvy_shape *src)
{
    unsigned seen = 0;
    CVY_CHECK(src->ndim >= 2, CVY_E_SHAPE, "layer_norm needs a source [N, ...] with at least two axes, got %s",
              cvy_shape_text(src));
    CVY_CHECK(axes->count > 0, CVY_E_SHAPE, "layer_norm: `axes` is empty; give at least one axis");
    for (int i = 0; i < axes->count; i++) {
        const int64_t axis = axes->at[i] < 0 ? axes->at[i] + src->ndim : axes->at[i];
        CVY_CHECK(axis >= 1 && axis < src->ndim, CVY_E_SHAPE,
                  "layer_norm: entry %d of `axes` is %lld, expected 1 to %d or -%d to -1 for source %s; axis 0 is the "
                  "batch",
                  i, (long long)axes->at[i], src->ndim - 1, src->ndim - 1, cvy_shape_text(src));
        CVY_CHECK(!(seen >> axis & 1), CVY_E_SHAPE, "layer_norm: `axes` names axis %lld of source %s twice",
                  (long long)axis, cvy_shape_text(src));
        seen |= 1U << axis;
    }
    while (!(seen & 1))
        seen >>= 1;
    CVY_CHECK((seen & (seen + 1)) == 0, CVY_E_SHAPE,
              "layer_norm: `axes` leaves out an axis of source %s that is between two others; give axes that are next "
              "to each other",
              cvy_shape_text(src));
    return CVY_OK;
}

static cvy_status layer_norm_infer(cvy_node *node)
{
    const cvy_sample_norm_opts *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0);
    int first, end;
    CVY_TRY(check_axes(&o->axes, src));
    axes_of(o, src->ndim, &first, &end);
    const cvy_shape params = cvy_shape_make(end - first, src->dim + first);
    cvy_shape stats = {0};
    for (int d = 0; d < src->ndim; d++)
        if (d < first || d >= end)
            stats.dim[stats.ndim++] = src->dim[d];
    stats.dim[stats.ndim++] = 2;
    return cvy_sample_norm_infer(node, &params, &stats);
}

/* An axis may be split if it is not normalised over. */
static unsigned layer_norm_splits(const cvy_node *node)
{
    int first, end;
    axes_of(node->options, cvy_node_src(node, 0)->ndim, &first, &end);
    return first > 1 ? CVY_SPLIT_CHANNELS : end == 2 ? CVY_SPLIT_SPACE : 0;
}

static const cvy_sample layer_norm_samples[] = {
    {.src = "4x5x7"},
    {.src = "3x19", .options = "eps: 0.01"},
    {.src = "2x6x48", .options = "scale_shift: false"},
    {.src = "3x7x4x5", .options = "axes: 1"},
    {.src = "2x32x3x9", .options = "axes: 1"},
    {.src = "2x40x17", .options = "axes: 1, scale_shift: false"},
    {.src = "3x20x1x1", .options = "axes: 1"},
    {.src = "2x3x4x5", .options = "axes: [1, -1, 2]"},
    {.src = "2x3x2x2x3", .options = "axes: [2, 3]"},
    {.src = "16x196x384", .flags = CVY_SAMPLE_TIMING},
    {.src = "16x96x56x56", .options = "axes: 1", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(layer_norm) = {
    .name = "layer_norm",
    .summary = "normalisation over axes of each sample, with learned scale and shift",
    .options = cvy_layer_norm_rows,
    .options_size = sizeof(cvy_sample_norm_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 2,
    .nsaved = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = layer_norm_splits,
    .family = &cvy_layer_norm_family,
    .infer = layer_norm_infer,
    .grad = cvy_sample_norm_grad,
    .cost = cvy_sample_norm_cost,
    .reference = cvy_sample_norm_reference,
    .summands = cvy_sample_norm_summands,
    .samples = layer_norm_samples,
};

/* layer_norm_grad is tested with the samples of layer_norm, through its gradient. */
CVY_OP_DEFINE(layer_norm_grad) = {
    .name = "layer_norm_grad",
    .summary = "gradient of layer_norm",
    .options = cvy_layer_norm_rows,
    .options_size = sizeof(cvy_sample_norm_opts),
    .nsrc_min = 3,
    .nsrc_max = 4,
    .ndst = 3,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = layer_norm_splits,
    .family = &cvy_layer_norm_family,
    .infer = cvy_sample_norm_grad_infer,
    .grad = cvy_sample_norm_second,
    .cost = cvy_sample_norm_grad_cost,
    .reference = cvy_sample_norm_grad_reference,
    .summands = cvy_sample_norm_summands,
};
