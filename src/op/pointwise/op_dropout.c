/*
 * dropout: sets each element to zero with probability p and scales the others by 1 / (1 - p). Networks have it before
 * large fully connected layers. It is active in training; in evaluation the result is the source itself, unless the
 * graph keeps dropout to sample the uncertainty of predictions (Gal and Ghahramani 2016). Source: Srivastava et al.
 * 2014; "inverted" scaling as in all frameworks.
 *
 *     dst  = src * keep / (1 - p)
 *     dsrc = ddst * keep / (1 - p)
 *
 * keep is a pure function of (seed, layer, step, sample id, element), see op_activation.h. The gradient computes it
 * again, so it is not stored. It does not depend on rank, layout, thread or micro-batch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "graph/graph_grad.h"
#include "op/pointwise/op_activation.h"

static const cvy_option dropout_opts[] = {
    {"p", CVY_TYPE_REAL, CVY_FIELD(cvy_dropout, p), "0.5", "0..1", "", "probability that an element becomes zero"},
    {0},
};

static cvy_status dropout_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct cvy_dropout o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    CVY_CHECK(nsrc == 1, CVY_E_SHAPE, "dropout takes one source, got %d", nsrc);
    if (!(g->training || g->dropout) || o.p == 0) {
        *dst_out = src[0];
        return CVY_OK;
    }
    cvy_value *from[] = {src[0], NULL, NULL};
    cvy_node *node = NULL;
    CVY_TRY(cvy_graph_sample_id(g, &from[1]));
    CVY_TRY(cvy_graph_step_number(g, &from[2]));
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, &o, from, 3, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* src [N, ...], sample id i64 [N], step i64 scalar -> dst, same shape as src. */
static cvy_status dropout_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    CVY_CHECK(node->nsrc == 3, CVY_E_SHAPE, "dropout needs a source, sample ids and the step's number, got %d sources",
              node->nsrc);
    CVY_CHECK(src->ndim >= 1, CVY_E_SHAPE, "dropout needs [N, ...], got a scalar");
    CVY_CHECK(node->src[1]->dtype == CVY_DTYPE_I64 && node->src[2]->dtype == CVY_DTYPE_I64, CVY_E_SHAPE,
              "dropout needs sample ids and step as i64, got %s and %s", cvy_dtype_text(node->src[1]->dtype),
              cvy_dtype_text(node->src[2]->dtype));
    CVY_CHECK(cvy_node_src(node, 1)->ndim == 1 && cvy_node_src(node, 1)->dim[0] == src->dim[0], CVY_E_SHAPE,
              "dropout needs one sample id per row: ids are %s, the source is %s",
              cvy_shape_text(cvy_node_src(node, 1)), cvy_shape_text(src));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, src);
}

static cvy_status dropout_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, fwd->src[1], fwd->src[2]};
    CVY_TRY(cvy_grad_emit(g, fwd, "dropout_grad", fwd->options, from, 3, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

/* The generator needs about ten operations per element. */
static void dropout_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 12 * n, .read_elems = n, .write_elems = n};
}

/* Forward and gradient are the same computation: they apply the same mask and scale to src or ddst. */
static cvy_status dropout_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_dropout *o = node->options;
    const uint64_t layer = cvy_rng_name(node->layer), threshold = cvy_dropout_threshold(o->p);
    const double scale = cvy_dropout_scale(o->p);
    const int64_t N = src->dim[0], each = cvy_span_prod(src, 1, src->ndim), step = ((const int64_t *)src[2].data)[0];
    const cvy_shape sample = cvy_shape_make(src->ndim - 1, src->dim + 1);
    for (int64_t n = 0; n < N; n++) {
        const cvy_rng stream = cvy_dropout_stream(node->graph->seed, layer, step, ((const int64_t *)src[1].data)[n]);
        for (int64_t i = 0; i < each; i++)
            cvy_set(dst, n * each + i,
                    cvy_rng_u32(&stream, (uint64_t)cvy_dropout_index(o, &sample, i)) < threshold
                        ? 0
                        : cvy_get(src, n * each + i) * scale);
    }
    return CVY_OK;
}

/* A part has the mask of its place in the whole sample. */
static cvy_status dropout_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    struct cvy_dropout *o = options;
    const cvy_shape *src = cvy_node_src(node, 0);
    if (part->split == CVY_SPLIT_SAMPLES)
        return CVY_OK;
    if (part->dim < 1 || part->dim >= src->ndim)
        return CVY_NOT_APPLICABLE;
    if (o->place.whole.ndim == 0)
        o->place.whole = cvy_shape_make(src->ndim - 1, src->dim + 1);
    o->place.first[part->dim - 1] += part->first;
    return CVY_OK;
}

static const cvy_sample dropout_samples[] = {
    {.src = "2x7x3x5,2:i64,scalar:i64", .int_bound = 1000},
    {.src = "5x3,5:i64,scalar:i64", .options = "p: 0.9", .int_bound = 1000},
    {.src = "3x33x2x3,3:i64,scalar:i64", .options = "p: 0.25", .int_bound = 1000},
    {.src = "2x4,2:i64,scalar:i64", .options = "p: 1"},
    {0},
};

CVY_OP_DEFINE(dropout) = {
    .name = "dropout",
    .summary = "sets random elements to zero in training",
    .options = dropout_opts,
    .options_size = sizeof(struct cvy_dropout),
    .nsrc_min = 1,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_RANDOM,
    .splits = CVY_SPLIT_SAMPLES,
    .part_splits = CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .part = dropout_part,
    .infer = dropout_infer,
    .grad = dropout_grad,
    .build = dropout_build,
    .cost = dropout_cost,
    .reference = dropout_reference,
    .samples = dropout_samples,
};

/* dropout_grad: ddst, sample id, step -> dsrc. */
CVY_OP_DEFINE(dropout_grad) = {
    .name = "dropout_grad",
    .summary = "gradient of dropout",
    .options = dropout_opts,
    .options_size = sizeof(struct cvy_dropout),
    .nsrc_min = 3,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_RANDOM | CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = dropout_infer,
    .cost = dropout_cost,
    .reference = dropout_reference,
    .samples = dropout_samples,
};
