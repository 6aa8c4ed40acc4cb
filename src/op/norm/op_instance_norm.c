/*
 * instance_norm: normalises each channel of each sample over its positions. Networks that transfer styles have it.
 * Source: Ulyanov, Vedaldi and Lempitsky 2016. As in PyTorch, scale and shift are not learned by default, and there are
 * no running statistics. The layer is a node group_norm with one channel in each group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/norm/op_sample_norm.h"

static const cvy_option instance_norm_rows[] = {
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_sample_norm_opts, eps), "1e-5", ">0", "", "added to the variance"},
    {"scale_shift", CVY_TYPE_BOOL, CVY_FIELD(cvy_sample_norm_opts, scale_shift), "false", "", "",
     "learn a scale and a shift for each channel"},
    {0},
};

static cvy_status instance_norm_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                      cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    cvy_sample_norm_opts o;
    cvy_node *node = NULL;
    CVY_CHECK(nsrc == 1, CVY_E_SHAPE, "instance_norm takes one source, got %d", nsrc);
    CVY_CHECK(src[0]->shape.ndim >= 3, CVY_E_SHAPE, "instance_norm needs a source [N, C, positions...], got %s",
              cvy_shape_text(&src[0]->shape));
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    CVY_TRY(cvy_graph_add_parsed(g, cvy_op_find("group_norm"), name, name, &o, src, 1, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

static const cvy_sample instance_norm_samples[] = {
    {.src = "3x4x4x5"},
    {.src = "2x19x3x3", .options = "scale_shift: true"},
    {.src = "2x32x9", .options = "scale_shift: true, eps: 0.01"},
    {.src = "2x3x2x3x2", .options = "scale_shift: true"},
    {.src = "16x64x56x56", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(instance_norm) = {
    .name = "instance_norm",
    .summary = "normalisation of each channel of each sample",
    .options = instance_norm_rows,
    .options_size = sizeof(cvy_sample_norm_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .build = instance_norm_build,
    .samples = instance_norm_samples,
};
