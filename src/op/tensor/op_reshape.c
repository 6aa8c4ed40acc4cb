/*
 * reshape, flatten: the same elements, in row-major order of the logical sample, with another shape. dim[0], the batch,
 * stays the same. If the source has plain layout, this needs no instruction.
 *
 *     dst  = src                        dsrc = ddst, reshaped back
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_reshape.h"

#include "graph/graph_grad.h"

static const cvy_option reshape_rows[] = {
    {"shape", CVY_TYPE_INTS, CVY_FIELD(cvy_reshape_opts, shape), NULL, "-1..", "",
     "dimensions of one sample; one of them may be -1: it follows from the others"},
    {0},
};

/* The elements of one sample. It never reads dim[0], because the batch may be empty on this rank. */
static int64_t sample_elems(const cvy_shape *src)
{
    const cvy_shape sample = cvy_shape_make(src->ndim - 1, src->dim + 1);
    return cvy_shape_elems(&sample);
}

static cvy_status reshape_infer(cvy_node *node)
{
    const cvy_ints *shape = &((const cvy_reshape_opts *)node->options)->shape;
    const cvy_shape *src = cvy_node_src(node, 0);
    CVY_CHECK(src->ndim >= 1, CVY_E_SHAPE, "reshape needs a source [N, ...], got a scalar");
    CVY_CHECK(shape->count < CVY_NDIM_MAX, CVY_E_SHAPE,
              "reshape: `shape` has %d dimensions per sample, expected at most %d", shape->count, CVY_NDIM_MAX - 1);
    const int64_t elems = sample_elems(src);
    cvy_shape dst = {.ndim = shape->count + 1, .dim = {src->dim[0]}};
    int64_t known = 1;
    int open = 0;
    for (int i = 0; i < shape->count; i++) {
        CVY_CHECK(shape->at[i] == -1 || shape->at[i] > 0, CVY_E_SHAPE,
                  "reshape: entry %d of `shape` is %lld, expected a positive number or -1", i, (long long)shape->at[i]);
        if (shape->at[i] > 0)
            known *= shape->at[i];
        else
            CVY_CHECK(open == 0, CVY_E_SHAPE,
                      "reshape: `shape` has two entries -1; only one can be computed from the others");
        dst.dim[i + 1] = shape->at[i];
        open = shape->at[i] > 0 ? open : i + 1;
    }
    CVY_CHECK(open ? elems % known == 0 : elems == known, CVY_E_SHAPE,
              "reshape: a sample of %s has %lld elements, `shape` asks for %s%lld", cvy_shape_text(src),
              (long long)elems, open ? "a multiple of " : "", (long long)known);
    if (open)
        dst.dim[open] = elems / known;
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status reshape_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_shape *src = cvy_node_src(fwd, 0);
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_reshape_opts back = {.shape.count = src->ndim - 1};
    for (int i = 1; i < src->ndim; i++)
        back.shape.at[i - 1] = src->dim[i];
    CVY_TRY(cvy_grad_emit(g, fwd, "reshape", &back, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void view_cost(const cvy_node *node, cvy_cost *cost_out)
{
    (void)node;
    *cost_out = (cvy_cost){0};
}

static const cvy_sample reshape_samples[] = {
    {.src = "2x6x4", .options = "shape: [3, 2, -1]"},
    {.src = "2x6", .options = "shape: [6, 1, 1]"},
    {.src = "3x1", .options = "shape: []"},
    {.src = "2x2x3x2x2", .options = "shape: 24"},
    {0},
};

CVY_OP_DEFINE(reshape) = {
    .name = "reshape",
    .summary = "changes the shape of each sample",
    .options = reshape_rows,
    .options_size = sizeof(cvy_reshape_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_VIEW,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = reshape_infer,
    .grad = reshape_grad,
    .cost = view_cost,
    .samples = reshape_samples,
};

/* flatten: [N, ...] -> [N, elements of a sample]. */
static cvy_status flatten_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    CVY_CHECK(src->ndim >= 1, CVY_E_SHAPE, "flatten needs a source [N, ...], got a scalar");
    const cvy_shape dst = {.ndim = 2, .dim = {src->dim[0], sample_elems(src)}};
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static const cvy_sample flatten_samples[] = {{.src = "2x3x4x5"}, {.src = "3"}, {.src = "2x7"}, {0}};

CVY_OP_DEFINE(flatten) = {
    .name = "flatten",
    .summary = "flattens each sample into a row",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_VIEW,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = flatten_infer,
    .grad = reshape_grad,
    .cost = view_cost,
    .samples = flatten_samples,
};
