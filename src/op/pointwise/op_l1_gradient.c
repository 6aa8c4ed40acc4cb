/*
 * l1_gradient: adds the gradient of an L1 norm of a weight to the gradient of the loss. It runs in the update phase,
 * between clipping and the update of the weight, if the job has train.l1. Source: Tibshirani 1996; as Caffe's
 * regularization_type L1.
 *
 *     dst = scale * gradient + by * sign(weight),  sign(0) = 0
 *
 * Its sources are gradient, weight and scale (f64 scalar), the factor of clipping: the norm is not clipped.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_op.h"
#include "op/pointwise/op_clip.h"

static const cvy_option l1_opts[] = {
    {"by", CVY_TYPE_REAL, CVY_FIELD(cvy_l1_gradient, by), NULL, "0..", "", "factor of the norm"},
    {0},
};

static cvy_status l1_infer(cvy_node *node)
{
    CVY_CHECK(cvy_shape_equal(cvy_node_src(node, 0), cvy_node_src(node, 1)) &&
                  node->src[0]->dtype == node->src[1]->dtype,
              CVY_E_INTERNAL, "l1_gradient got a gradient %s and a weight %s", cvy_shape_text(cvy_node_src(node, 0)),
              cvy_shape_text(cvy_node_src(node, 1)));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

/* It uses comparisons, so that a weight that is NaN adds nothing: the update makes the result NaN anyway. */
static cvy_status l1_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const double by = ((const struct cvy_l1_gradient *)node->options)->by, scale = cvy_get(&src[2], 0);
    for (int64_t i = 0; i < dst->elems; i++) {
        const double w = cvy_get(&src[1], i);
        cvy_set(dst, i, scale * cvy_get(&src[0], i) + by * ((w > 0) - (w < 0)));
    }
    return CVY_OK;
}

static const cvy_sample l1_samples[] = {
    {.src = "2x7x3x5,2x7x3x5,scalar:f64", .options = "by: 0.5"}, {.src = "3,3,scalar:f64", .options = "by: 2"}, {0}};

CVY_OP_DEFINE(l1_gradient) = {
    .name = "l1_gradient",
    .summary = "gradient with that of an L1 norm of the weight added",
    .options = l1_opts,
    .options_size = sizeof(struct cvy_l1_gradient),
    .nsrc_min = 3,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = l1_infer,
    .reference = l1_reference,
    .samples = l1_samples,
};
