/*
 * pad, crop: pad adds zeros around the positions of each channel, and crop removes positions; each is the other's
 * gradient. They are for networks with unequal padding, and for shortcuts that crop.
 *
 *     pad    dst = 0, but dst[x + before] = src[x]            crop   dst[x] = src[x + before]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_pad.h"
#include "graph/graph_grad.h"

static const cvy_option pad_rows[] = {
    {"before", CVY_TYPE_INTS, CVY_FIELD(cvy_pad_opts, before), "0", "0..", "",
     "positions at the low end, one number or one for each dimension"},
    {"after", CVY_TYPE_INTS, CVY_FIELD(cvy_pad_opts, after), "0", "0..", "",
     "positions at the high end, one number or one for each dimension"},
    {0},
};

/* The shape of src, with each spatial dimension longer (sign 1) or shorter (sign -1). */
static cvy_status resized(const cvy_node *node, int sign, cvy_shape *dst_out)
{
    const cvy_pad_opts *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0);
    const int nspace = src->ndim - 2;
    CVY_CHECK(nspace >= 1, CVY_E_SHAPE, "%s needs a source [N, C, positions...], got %s", node->op->name,
              cvy_shape_text(src));
    CVY_CHECK((o->before.count <= 1 || o->before.count == nspace) && (o->after.count <= 1 || o->after.count == nspace),
              CVY_E_SHAPE,
              "%s: `before` and `after` have %d and %d entries, but source %s has %d spatial dimensions; give one "
              "entry for all or one for each",
              node->op->name, o->before.count, o->after.count, cvy_shape_text(src), nspace);
    *dst_out = *src;
    for (int d = 0; d < nspace; d++) {
        dst_out->dim[2 + d] += sign * (cvy_ints_at(&o->before, d, 0) + cvy_ints_at(&o->after, d, 0));
        CVY_CHECK(dst_out->dim[2 + d] >= 1, CVY_E_SHAPE, "%s: nothing is left of spatial dimension %d of source %s",
                  node->op->name, d, cvy_shape_text(src));
    }
    return CVY_OK;
}

static cvy_status emit(cvy_grad *g, const cvy_node *fwd, const char *op)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    CVY_TRY(cvy_grad_emit(g, fwd, op, fwd->options, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

/* Copies every element of `small` to or from its place in `large`. */
static void copy_inside(const cvy_pad_opts *o, const cvy_span *small, const cvy_span *large, int into_large)
{
    for (int64_t i = 0; i < small->elems; i++) {
        int64_t rest = i, offset = 0, step = 1;
        for (int d = small->ndim - 1; d >= 0; d--) {
            offset += (rest % small->dim[d] + (d >= 2 ? cvy_ints_at(&o->before, d - 2, 0) : 0)) * step;
            rest /= small->dim[d];
            step *= large->dim[d];
        }
        if (into_large)
            cvy_set(large, offset, cvy_get(small, i));
        else
            cvy_set(small, i, cvy_get(large, offset));
    }
}

static void copy_cost(const cvy_node *node, cvy_cost *cost_out)
{
    *cost_out = (cvy_cost){.read_elems = cvy_shape_elems(cvy_node_src(node, 0)),
                           .write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static int64_t copy_summands(const cvy_node *node)
{
    (void)node;
    return 1;
}

static cvy_status pad_infer(cvy_node *node)
{
    cvy_shape dst;
    CVY_TRY(resized(node, 1, &dst));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status pad_grad(cvy_grad *g, const cvy_node *fwd)
{
    return emit(g, fwd, "crop");
}

static cvy_status pad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, 0);
    copy_inside(node->options, src, dst, 1);
    return CVY_OK;
}

static const cvy_sample pad_samples[] = {
    {.src = "2x3x4x5", .options = "before: 1, after: [0, 2]"},
    {.src = "2x16x3x3", .options = "before: 1, after: 1"},
    {.src = "1x2x3", .options = "after: 3"},
    {.src = "1x2x3x2x2", .options = "before: [0, 1, 2]"},
    {0},
};

CVY_OP_DEFINE(pad) = {
    .name = "pad",
    .summary = "pads each channel with zeros",
    .options = pad_rows,
    .options_size = sizeof(cvy_pad_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = pad_infer,
    .grad = pad_grad,
    .cost = copy_cost,
    .reference = pad_reference,
    .summands = copy_summands,
    .samples = pad_samples,
};

/* crop */
static cvy_status crop_infer(cvy_node *node)
{
    cvy_shape dst;
    CVY_TRY(resized(node, -1, &dst));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status crop_grad(cvy_grad *g, const cvy_node *fwd)
{
    return emit(g, fwd, "pad");
}

static cvy_status crop_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    copy_inside(node->options, dst, src, 0);
    return CVY_OK;
}

static const cvy_sample crop_samples[] = {
    {.src = "2x3x4x5", .options = "before: 1, after: [0, 2]"},
    {.src = "2x16x5x5", .options = "before: 1, after: 1"},
    {.src = "1x2x4", .options = "after: 3"},
    {0},
};

CVY_OP_DEFINE(crop) = {
    .name = "crop",
    .summary = "keeps the inner positions of each channel",
    .options = pad_rows,
    .options_size = sizeof(cvy_pad_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = crop_infer,
    .grad = crop_grad,
    .cost = copy_cost,
    .reference = crop_reference,
    .summands = copy_summands,
    .samples = crop_samples,
};
