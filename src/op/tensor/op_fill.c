/*
 * fill: a tensor of one value. It makes the 1 with which the gradient of a loss starts, and constants that nodes need.
 *
 *     dst = value
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_fill.h"

static const cvy_option fill_opts[] = {
    {"value", CVY_TYPE_REAL, CVY_FIELD(cvy_fill_opts, value), "0", "", "", "value of every element"},
    {"shape", CVY_TYPE_INTS, CVY_FIELD(cvy_fill_opts, shape), "", "0..", "", "dimensions, none for a scalar"},
    {"dtype", CVY_TYPE_CHOICE, CVY_FIELD(cvy_fill_opts, dtype), "f32", "f32|f64|i64|i32|u8", "",
     "type of the elements"},
    {0},
};

static cvy_status fill_infer(cvy_node *node)
{
    const cvy_fill_opts *o = node->options;
    CVY_CHECK(o->shape.count <= CVY_NDIM_MAX, CVY_E_SHAPE, "fill has %d dimensions, at most %d are possible",
              o->shape.count, CVY_NDIM_MAX);
    const cvy_shape shape = cvy_shape_make(o->shape.count, o->shape.at);
    return cvy_node_set_dst(node, 0, (cvy_dtype)o->dtype, &shape);
}

static void fill_cost(const cvy_node *node, cvy_cost *cost_out)
{
    *cost_out = (cvy_cost){.write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static cvy_status fill_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_fill_opts *o = node->options;
    (void)src;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, o->value);
    return CVY_OK;
}

CVY_OP_DEFINE(fill) = {
    /* no samples, because it has no sources; the gradients of losses test it */
    .name = "fill",
    .summary = "a tensor of one value",
    .options = fill_opts,
    .options_size = sizeof(cvy_fill_opts),
    .nsrc_min = 0,
    .nsrc_max = 0,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = fill_infer,
    .cost = fill_cost,
    .reference = fill_reference,
};
