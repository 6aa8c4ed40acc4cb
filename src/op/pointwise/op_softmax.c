/*
 * softmax, log_softmax: the normalised exponential over one axis of a sample, and its logarithm. They are for the
 * output of a classifier in prediction, mixtures, attention and log-probabilities. Source: Bridle 1990; the maximum is
 * subtracted first, so that no exponential overflows. In the formulas, n stands for all axes before the one that is
 * summed over, and x for those after it.
 *
 *     softmax      dst[n,k,x]  = exp(src[n,k,x]) / sum over j of exp(src[n,j,x])
 *                  dsrc[n,k,x] = dst[n,k,x] * (ddst[n,k,x] - sum over j of ddst[n,j,x] * dst[n,j,x])
 *     log_softmax  dst[n,k,x]  = src[n,k,x] - log(sum over j of exp(src[n,j,x]))
 *                  dsrc[n,k,x] = ddst[n,k,x] - exp(dst[n,k,x]) * sum over j of ddst[n,j,x]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/pointwise/op_softmax.h"

#include <math.h>

#include "graph/graph_grad.h"

static const cvy_option softmax_rows[] = {
    {"axis", CVY_TYPE_INT, CVY_FIELD(cvy_softmax_opts, axis), "1", "", "",
     "axis over which the exponentials add up to 1; 1 is the channels, negative ones count from the end"},
    {0},
};

/* dst has the shape of src. A negative axis becomes its number from the front. */
static cvy_status softmax_infer(cvy_node *node)
{
    const cvy_shape *src = cvy_node_src(node, 0);
    cvy_softmax_opts *o = node->options;
    const int64_t axis = o->axis < 0 ? o->axis + src->ndim : o->axis;
    CVY_CHECK(axis >= 1 && axis < src->ndim, CVY_E_SHAPE,
              "%s: `axis` is %lld, which is not an axis of a sample of %s; axis 0 is the batch", node->op->name,
              (long long)o->axis, cvy_shape_text(src));
    o->axis = axis;
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, src);
}

/* It may be split along any axis but that of the sum. */
static unsigned softmax_splits(const cvy_node *node)
{
    const int64_t axis = ((const cvy_softmax_opts *)node->options)->axis;
    return axis == 1 ? CVY_SPLIT_SPACE : axis > 1 ? CVY_SPLIT_CHANNELS : 0;
}

/* The operator's `family` is the name of the gradient's operator. */
static cvy_status softmax_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, fwd->dst[0]};
    CVY_TRY(cvy_grad_emit(g, fwd, fwd->op->family, fwd->options, from, 2, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static void softmax_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 14 * n, .read_elems = n, .write_elems = n};
}

static int64_t softmax_summands(const cvy_node *node)
{
    return cvy_node_src(node, 0)->dim[((const cvy_softmax_opts *)node->options)->axis] + 4;
}

static cvy_status softmax_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int axis = (int)((const cvy_softmax_opts *)node->options)->axis;
    const int64_t N = cvy_span_prod(src, 0, axis), K = src->dim[axis], P = cvy_span_prod(src, axis + 1, src->ndim);
    for (int64_t n = 0; n < N; n++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t at = n * K * P + p;
            double top = -INFINITY, sum = 0;
            for (int64_t k = 0; k < K; k++)
                top = fmax(top, cvy_get(src, at + k * P));
            for (int64_t k = 0; k < K; k++)
                sum += exp(cvy_get(src, at + k * P) - top);
            for (int64_t k = 0; k < K; k++)
                cvy_set(dst, at + k * P, exp(cvy_get(src, at + k * P) - top) / sum);
        }
    return CVY_OK;
}

static const cvy_sample softmax_samples[] = {{.src = "3x5"},
                                             {.src = "1x1"},
                                             {.src = "4x37"},
                                             {.src = "2x7x3x5"},
                                             {.src = "2x4x19"},
                                             {.src = "2x3x5", .options = "axis: -1"},
                                             {.src = "2x3x5x4", .options = "axis: 2"},
                                             {.src = "3x2x4x37", .options = "axis: 3"},
                                             {.src = "3x70"},
                                             {.src = "2x67x3"},
                                             {0}};

CVY_OP_DEFINE(softmax) = {
    .name = "softmax",
    .summary = "normalised exponential over the channels, or another axis",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .options = softmax_rows,
    .options_size = sizeof(cvy_softmax_opts),
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = softmax_splits,
    .family = "softmax_grad",
    .infer = softmax_infer,
    .grad = softmax_grad,
    .cost = softmax_cost,
    .reference = softmax_reference,
    .summands = softmax_summands,
    .samples = softmax_samples,
};

/* softmax_grad: ddst, dst -> dsrc. */
static cvy_status softmax_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_span *ddst = &src[0], *y = &src[1];
    const int axis = (int)((const cvy_softmax_opts *)node->options)->axis;
    const int64_t N = cvy_span_prod(dst, 0, axis), K = dst->dim[axis], P = cvy_span_prod(dst, axis + 1, dst->ndim);
    for (int64_t n = 0; n < N; n++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t at = n * K * P + p;
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += cvy_get(ddst, at + k * P) * cvy_get(y, at + k * P);
            for (int64_t k = 0; k < K; k++)
                cvy_set(dst, at + k * P, cvy_get(y, at + k * P) * (cvy_get(ddst, at + k * P) - sum));
        }
    return CVY_OK;
}

static void softmax_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 4 * n, .read_elems = 2 * n, .write_elems = n};
}

static const cvy_sample softmax_grad_samples[] = {{.src = "3x5,3x5"},
                                                  {.src = "4x37,4x37"},
                                                  {.src = "2x7x3x5,2x7x3x5"},
                                                  {.src = "2x3x5x4,2x3x5x4", .options = "axis: 2"},
                                                  {.src = "3x300,3x300"},
                                                  {.src = "2x67x3,2x67x3"},
                                                  {0}};

CVY_OP_DEFINE(softmax_grad) = {
    .name = "softmax_grad",
    .summary = "gradient of softmax",
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .options = softmax_rows,
    .options_size = sizeof(cvy_softmax_opts),
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = softmax_splits,
    .infer = softmax_infer,
    .cost = softmax_grad_cost,
    .reference = softmax_grad_reference,
    .summands = softmax_summands,
    .samples = softmax_grad_samples,
};

/* ---- log_softmax ---- */

static cvy_status log_softmax_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const int axis = (int)((const cvy_softmax_opts *)node->options)->axis;
    const int64_t N = cvy_span_prod(src, 0, axis), K = src->dim[axis], P = cvy_span_prod(src, axis + 1, src->ndim);
    for (int64_t n = 0; n < N; n++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t at = n * K * P + p;
            double top = -INFINITY, sum = 0;
            for (int64_t k = 0; k < K; k++)
                top = fmax(top, cvy_get(src, at + k * P));
            for (int64_t k = 0; k < K; k++)
                sum += exp(cvy_get(src, at + k * P) - top);
            for (int64_t k = 0; k < K; k++)
                cvy_set(dst, at + k * P, cvy_get(src, at + k * P) - top - log(sum));
        }
    return CVY_OK;
}

CVY_OP_DEFINE(log_softmax) = {
    .name = "log_softmax",
    .summary = "logarithm of the normalised exponential over the channels, or another axis",
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .options = softmax_rows,
    .options_size = sizeof(cvy_softmax_opts),
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = softmax_splits,
    .family = "log_softmax_grad",
    .infer = softmax_infer,
    .grad = softmax_grad,
    .cost = softmax_cost,
    .reference = log_softmax_reference,
    .summands = softmax_summands,
    .samples = softmax_samples,
};

/* log_softmax_grad: ddst, dst -> dsrc. */
static cvy_status log_softmax_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_span *ddst = &src[0], *y = &src[1];
    const int axis = (int)((const cvy_softmax_opts *)node->options)->axis;
    const int64_t N = cvy_span_prod(dst, 0, axis), K = dst->dim[axis], P = cvy_span_prod(dst, axis + 1, dst->ndim);
    for (int64_t n = 0; n < N; n++)
        for (int64_t p = 0; p < P; p++) {
            const int64_t at = n * K * P + p;
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += cvy_get(ddst, at + k * P);
            for (int64_t k = 0; k < K; k++)
                cvy_set(dst, at + k * P, cvy_get(ddst, at + k * P) - exp(cvy_get(y, at + k * P)) * sum);
        }
    return CVY_OK;
}

static void log_softmax_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 13 * n, .read_elems = 2 * n, .write_elems = n};
}

CVY_OP_DEFINE(log_softmax_grad) = {
    .name = "log_softmax_grad",
    .summary = "gradient of log_softmax",
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .options = softmax_rows,
    .options_size = sizeof(cvy_softmax_opts),
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = softmax_splits,
    .infer = softmax_infer,
    .cost = log_softmax_grad_cost,
    .reference = log_softmax_grad_reference,
    .summands = softmax_summands,
    .samples = softmax_grad_samples,
};
