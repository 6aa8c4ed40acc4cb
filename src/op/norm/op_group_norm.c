/*
 * group_norm: normalises groups of channels of each sample, over all their positions. Networks have it in place of
 * batch norm if the batch is small. Source: Wu and He 2018. op_sample_norm.h has the formulas.
 *
 * instance_norm is a layer of this operator, with one channel in each group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/norm/op_sample_norm.h"

const cvy_option cvy_group_norm_rows[] = {
    {"groups", CVY_TYPE_INT, CVY_FIELD(cvy_sample_norm_opts, groups), "32", "1..", "",
     "number of groups of channels; it must divide the number of channels"},
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_sample_norm_opts, eps), "1e-5", ">0", "", "added to the variance"},
    {"scale_shift", CVY_TYPE_BOOL, CVY_FIELD(cvy_sample_norm_opts, scale_shift), "true", "", "",
     "learn a scale and a shift for each channel"},
    {"relu", CVY_TYPE_BOOL, CVY_FIELD(cvy_sample_norm_opts, relu), "false", "", "",
     "rectify the result; set if the relu that follows is fused in"},
    {0},
};

static int64_t groups_of(const cvy_sample_norm_opts *o, const cvy_shape *src)
{
    return o->groups ? o->groups : src->dim[1];
}

static cvy_sample_sets group_sets(const cvy_sample_norm_opts *o, const cvy_shape *src)
{
    const cvy_shape positions = cvy_shape_make(src->ndim - 2, src->dim + 2);
    const int64_t groups = groups_of(o, src), repeat = cvy_shape_elems(&positions);
    return (cvy_sample_sets){.outer = src->dim[0] * groups,
                             .size = src->dim[1] / groups * repeat,
                             .inner = 1,
                             .params = src->dim[1],
                             .repeat = repeat};
}

const cvy_sample_norm_def cvy_group_norm_family = {"group_norm_grad", "group_norm_second", group_sets};

static cvy_status group_norm_infer(cvy_node *node)
{
    const cvy_sample_norm_opts *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0);
    CVY_CHECK(src->ndim >= 2, CVY_E_SHAPE, "group_norm needs a source [N, C, positions...], got %s",
              cvy_shape_text(src));
    CVY_CHECK(src->dim[1] % groups_of(o, src) == 0, CVY_E_SHAPE,
              "group_norm: `groups` %lld must divide the %lld channels of source %s", (long long)o->groups,
              (long long)src->dim[1], cvy_shape_text(src));
    const cvy_shape channels = {.ndim = 1, .dim = {src->dim[1]}},
                    stats = {.ndim = 3, .dim = {src->dim[0], groups_of(o, src), 2}};
    return cvy_sample_norm_infer(node, &channels, &stats);
}

/* With one channel in each group, channels do not depend on each other. */
static unsigned group_norm_splits(const cvy_node *node)
{
    return ((const cvy_sample_norm_opts *)node->options)->groups == 0 ? CVY_SPLIT_CHANNELS : 0;
}

static const cvy_sample group_norm_samples[] = {
    {.src = "6x4x4x5", .options = "groups: 2"},
    {.src = "3x12", .options = "groups: 3, eps: 0.01"},
    {.src = "2x32x3x3"},
    {.src = "2x40x7", .options = "groups: 8, scale_shift: false"},
    {.src = "3x48x3x5", .options = "groups: 2, relu: true"},
    {.src = "2x6x2x3x2", .options = "groups: 1"},
    {.src = "3x16x3x5", .options = "groups: 4, relu: true, scale_shift: false"},
    {.src = "2x20x5x5", .options = "groups: 4, relu: true"},
    {.src = "1x64x4x4", .options = "groups: 16"},
    {.src = "3x20x1x1", .options = "groups: 4"},
    {.src = "16x64x56x56", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(group_norm) = {
    .name = "group_norm",
    .summary = "normalisation of groups of channels of each sample, with learned scale and shift",
    .options = cvy_group_norm_rows,
    .options_size = sizeof(cvy_sample_norm_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 2,
    .nsaved = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = group_norm_splits,
    .family = &cvy_group_norm_family,
    .infer = group_norm_infer,
    .grad = cvy_sample_norm_grad,
    .cost = cvy_sample_norm_cost,
    .reference = cvy_sample_norm_reference,
    .summands = cvy_sample_norm_summands,
    .samples = group_norm_samples,
};

/* group_norm_grad is tested with the samples of group_norm, through its gradient. */
CVY_OP_DEFINE(group_norm_grad) = {
    .name = "group_norm_grad",
    .summary = "gradient of group_norm",
    .options = cvy_group_norm_rows,
    .options_size = sizeof(cvy_sample_norm_opts),
    .nsrc_min = 3,
    .nsrc_max = 5,
    .ndst = 3,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = group_norm_splits,
    .family = &cvy_group_norm_family,
    .infer = cvy_sample_norm_grad_infer,
    .grad = cvy_sample_norm_second,
    .cost = cvy_sample_norm_grad_cost,
    .reference = cvy_sample_norm_grad_reference,
    .summands = cvy_sample_norm_summands,
};
