/*
 * offset: addition of a constant, for networks that shift their inputs or build activations from parts.
 *
 *     dst  = src + by
 *     dsrc = ddst
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_grad.h"
#include "op/pointwise/op_activation.h"

static const cvy_option offset_rows[] = {
    {"by", CVY_TYPE_REAL, CVY_FIELD(cvy_offset, by), NULL, "", "", "the summand"},
    {0},
};

static double offset_value(const void *options, double x)
{
    return x + ((const struct cvy_offset *)options)->by;
}

static const cvy_activation_def offset_family = {NULL, offset_value, NULL, .flop = 1};

static cvy_status offset_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]);
    return ddst ? cvy_grad_add(g, fwd->src[0], ddst) : CVY_OK;
}

static const cvy_sample offset_samples[] = {{.src = "2x7x3x5", .options = "by: 3"},
                                            {.src = "1x1", .options = "by: -0.5"},
                                            {.src = "2x33x4", .options = "by: 0.25"},
                                            {.src = "2x16x3x3", .options = "by: 1"},
                                            {0}};

CVY_OP_DEFINE(offset) = {
    /* not CVY_OP_ELEMENTWISE: 0 does not stay 0 in the padding of a blocked layout */
    .name = "offset",
    .summary = "addition of a constant",
    .options = offset_rows,
    .options_size = sizeof(struct cvy_offset),
    .family = &offset_family,
    .samples = offset_samples,
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .infer = cvy_activation_infer,
    .grad = offset_grad,
    .cost = cvy_activation_cost,
    .reference = cvy_activation_reference,
};
