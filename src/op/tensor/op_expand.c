/*
 * expand: repeats each sample along its axes of length 1, as NumPy's broadcast_to. Operators on several tensors of
 * different shapes are built with it (op_combine.c).
 *
 *     dst  = src, repeated               the axes are aligned at the last one
 *     dsrc = sum of ddst over the repeated axes
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_expand.h"

#include "graph/graph_grad.h"
#include "op/tensor/op_walk.h"

struct expand_grad {
    cvy_shape src; /* of the source of expand */
};

static const cvy_option expand_rows[] = {
    {"shape", CVY_TYPE_INTS, CVY_FIELD(cvy_expand_opts, shape), NULL, "1..", "",
     "dimensions of one sample of the result; where it differs from the source, the source has length 1 or no axis"},
    {0},
};

/* The length of the source along axis d of the result, which has more axes or as many. */
static int64_t src_dim(const cvy_shape *src, int ndim, int d)
{
    const int at = d - (ndim - src->ndim);
    return d == 0 ? src->dim[0] : at >= 1 ? src->dim[at] : 1;
}

static cvy_status expand_infer(cvy_node *node)
{
    const cvy_ints *shape = &((const cvy_expand_opts *)node->options)->shape;
    const cvy_shape *src = cvy_node_src(node, 0);
    cvy_shape dst = {.ndim = shape->count + 1, .dim = {src->ndim > 0 ? src->dim[0] : 0}};
    CVY_CHECK(src->ndim >= 1 && dst.ndim >= src->ndim && dst.ndim <= CVY_NDIM_MAX, CVY_E_SHAPE,
              "expand: `shape` has %d axes, expected those of a sample of %s or more, and at most %d", shape->count,
              cvy_shape_text(src), CVY_NDIM_MAX - 1);
    for (int d = 1; d < dst.ndim; d++) {
        const int64_t from = src_dim(src, dst.ndim, d);
        dst.dim[d] = shape->at[d - 1];
        CVY_CHECK(from == 1 || from == dst.dim[d], CVY_E_SHAPE,
                  "expand: entry %d of `shape` is %lld, but the source %s has length %lld there, and only a length of "
                  "1 can be repeated",
                  d - 1, (long long)dst.dim[d], cvy_shape_text(src), (long long)from);
    }
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status expand_backward(cvy_grad *g, const cvy_node *fwd)
{
    const struct expand_grad opts = {*cvy_node_src(fwd, 0)};
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    CVY_TRY(cvy_grad_emit(g, fwd, "expand_grad", &opts, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void expand_cost(const cvy_node *node, cvy_cost *cost_out)
{
    *cost_out = (cvy_cost){.read_elems = cvy_shape_elems(cvy_node_src(node, 0)),
                           .write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static int64_t expand_summands(const cvy_node *node)
{
    (void)node;
    return 1;
}

static cvy_status expand_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_shape *from = cvy_node_src(node, 0);
    cvy_walk w = {.ndim = dst->ndim};
    int64_t step = 1;
    for (int d = dst->ndim - 1; d >= 0; d--) {
        const int64_t n = src_dim(from, dst->ndim, d);
        w.dim[d] = dst->dim[d];
        w.stride[d] = n == 1 ? 0 : step;
        step *= n;
    }
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(src, cvy_walk_at(&w, i)));
    return CVY_OK;
}

static const cvy_sample expand_samples[] = {
    {.src = "2x3x1x1", .options = "shape: [3, 4, 5]"},
    {.src = "2x1x4", .options = "shape: [7, 4]"},
    {.src = "3x5", .options = "shape: [2, 3, 5]"},
    {.src = "2x1x3x1x2", .options = "shape: [4, 3, 5, 2]"},
    {.src = "3", .options = "shape: [4]"},
    {.src = "1x16x1x3", .options = "shape: [16, 5, 3]"},
    {.src = "2x3x4", .options = "shape: [3, 4]"},
    {0},
};

CVY_OP_DEFINE(expand) = {
    .name = "expand",
    .summary = "repeats each sample along axes of length 1",
    .options = expand_rows,
    .options_size = sizeof(cvy_expand_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = expand_infer,
    .grad = expand_backward,
    .cost = expand_cost,
    .reference = expand_reference,
    .summands = expand_summands,
    .samples = expand_samples,
};

/* expand_grad: ddst -> dsrc. It is tested with the samples of expand, through its gradient. */
static cvy_status expand_grad_infer(cvy_node *node)
{
    cvy_shape src = ((const struct expand_grad *)node->options)->src;
    src.dim[0] = cvy_node_src(node, 0)->dim[0]; /* a part has fewer samples than the whole */
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &src);
}

static void expand_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = n, .write_elems = cvy_shape_elems(cvy_node_dst(node, 0))};
}

static int64_t expand_grad_summands(const cvy_node *node)
{
    return cvy_shape_elems(cvy_node_src(node, 0)) / CVY_MAX(cvy_shape_elems(cvy_node_dst(node, 0)), 1) + 1;
}

static cvy_status expand_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_shape *to = cvy_node_dst(node, 0);
    unsigned repeated = 0;
    cvy_walk along, others;
    for (int d = 1; d < src->ndim; d++)
        repeated |= (unsigned)(src_dim(to, src->ndim, d) != src->dim[d]) << d;
    cvy_walk_split(cvy_node_src(node, 0), repeated, &along, &others);
    for (int64_t k = 0; k < dst->elems; k++) {
        const int64_t at = cvy_walk_at(&others, k);
        double sum = 0;
        for (int64_t r = 0; r < cvy_walk_count(&along); r++)
            sum += cvy_get(src, at + cvy_walk_at(&along, r));
        cvy_set(dst, k, sum);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(expand_grad) = {
    .name = "expand_grad",
    .summary = "gradient of expand",
    .options_size = sizeof(struct expand_grad),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = expand_grad_infer,
    .cost = expand_grad_cost,
    .reference = expand_grad_reference,
    .summands = expand_grad_summands,
};
