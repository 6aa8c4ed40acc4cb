/*
 * gradient_penalty: keeps the slope of a critic near a target: the mean over samples of (|g| - target)^2, where g is
 * the gradient of the critic's score of a sample with respect to this sample. Sources: Gulrajani et al. 2017 (target 1,
 * on mixtures of real and generated samples), Mescheder, Geiger and Nowozin 2018 (target 0, on real samples).
 *
 *     g[n]     = gradient of the sum of score[n] with respect to input[n]
 *     loss     = loss_weight / norm * sum over samples n of (|g[n]| - target)^2
 *     dg[n]    = 2 (|g[n]| - target) g[n] / |g[n]|, times loss_weight * dloss / norm; 0 if g[n] is 0
 *
 * The layer adds the nodes of g to the forward graph, by the gradients of the operators between input and score. The
 * loss is then differentiated like any other, so each of these gradient operators needs a gradient of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "graph/graph_grad.h"
#include "op/loss/op_loss.h"

static const cvy_option gradient_penalty_opts[] = {
    {"target", CVY_TYPE_REAL, CVY_FIELD(cvy_gradient_penalty, target), "1", "0..", "",
     "norm of the gradient that is wanted"},
    CVY_LOSS_WEIGHT_ROW(cvy_gradient_penalty),
    {0},
};

/* Ones in the shape of the score, with which its gradient begins. */
static cvy_status add_ones(cvy_graph *g, const char *name, const cvy_shape *score, cvy_value **out)
{
    char node_name[160], options[64 + 24 * CVY_NDIM_MAX]; /* a dimension has up to 21 characters with its comma */
    cvy_value *id = NULL;
    cvy_node *node = NULL;
    int n = snprintf(options, sizeof options, "value: 1, shape: [");
    for (int d = 1; d < score->ndim; d++)
        n += snprintf(options + n, sizeof options - (size_t)n, "%s%lld", d > 1 ? ", " : "", (long long)score->dim[d]);
    snprintf(options + n, sizeof options - (size_t)n, "]");
    snprintf(node_name, sizeof node_name, "%s.ones", name);
    CVY_TRY(cvy_graph_sample_id(g, &id));
    CVY_TRY(cvy_graph_add(g, "constant", node_name, name, options, &id, 1, &node));
    *out = node->dst[0];
    return CVY_OK;
}

static cvy_status gradient_penalty_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                         cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct cvy_gradient_penalty o;
    cvy_value *ones = NULL, *from[2] = {NULL, NULL};
    cvy_node *node = NULL;
    CVY_CHECK(nsrc == 2, CVY_E_SHAPE, "gradient_penalty takes the score and the input of a critic, got %d sources",
              nsrc);
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    CVY_TRY(add_ones(g, name, &src[0]->shape, &ones));
    CVY_TRY(cvy_graph_gradient(g, src[0], ones, src[1], &from[0]));
    CVY_CHECK(from[0], CVY_E_CONFIG, "the score %s does not depend on %s", src[0]->name, src[1]->name);
    CVY_TRY(cvy_graph_norm(g, &from[1]));
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, &o, from, 2, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* Checks gradient [N, ...] and normaliser, which are the sources from `first` on. */
static cvy_status check_sources(const cvy_node *node, int first)
{
    const cvy_value *norm = node->src[first + 1];
    CVY_CHECK(cvy_node_src(node, first)->ndim >= 1, CVY_E_SHAPE, "the gradient must be [N, ...], got a scalar");
    CVY_CHECK(norm->dtype == CVY_DTYPE_F64 && norm->shape.ndim == 0, CVY_E_SHAPE,
              "the normaliser must be f64 scalar, got %s %s", cvy_dtype_text(norm->dtype),
              cvy_shape_text(&norm->shape));
    return CVY_OK;
}

static cvy_status gradient_penalty_infer(cvy_node *node)
{
    CVY_TRY(check_sources(node, 0));
    return cvy_loss_set_dst(node);
}

static cvy_status gradient_penalty_backward(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *dloss = cvy_grad_of(g, fwd->dst[0]), *dst = NULL;
    if (!dloss || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {dloss, fwd->src[0], fwd->src[1]};
    CVY_TRY(cvy_grad_emit(g, fwd, "gradient_penalty_grad", fwd->options, from, 3, &dst, 1));
    return cvy_grad_add(g, fwd->src[0], dst);
}

static double norm_of(const cvy_span *x, int64_t n, int64_t each)
{
    double squares = 0;
    for (int64_t i = n * each; i < (n + 1) * each; i++)
        squares += cvy_get(x, i) * cvy_get(x, i);
    return sqrt(squares);
}

static cvy_status gradient_penalty_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_gradient_penalty *o = node->options;
    const cvy_loss_weights w = cvy_loss_weights_of(node, src, 1);
    const int64_t N = src->dim[0], each = cvy_span_prod(src, 1, src->ndim);
    double loss = 0;
    for (int64_t n = 0; n < N; n++) {
        const double off = norm_of(&src[0], n, each) - o->target;
        loss += cvy_loss_factor(&w, n, 0) * off * off;
    }
    cvy_set(dst, 0, o->loss_weight * loss);
    return CVY_OK;
}

static const cvy_sample gradient_penalty_samples[] = {
    {.src = "3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "5x7,scalar:f64", .options = "target: 0, loss_weight: 10", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(gradient_penalty) = {
    .name = "gradient_penalty",
    .summary = "squared distance of a critic's slope from a target; its sources are the score and what is judged",
    .options = gradient_penalty_opts,
    .options_size = sizeof(struct cvy_gradient_penalty),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = gradient_penalty_infer,
    .grad = gradient_penalty_backward,
    .build = gradient_penalty_build,
    .cost = cvy_loss_each_cost,
    .reference = gradient_penalty_reference,
    .summands = cvy_loss_summands,
    .samples = gradient_penalty_samples,
};

/* gradient_penalty_grad: dloss, gradient, norm -> gradient of the gradient. */
static cvy_status gradient_penalty_grad_infer(cvy_node *node)
{
    CVY_TRY(check_sources(node, 1));
    return cvy_node_set_dst(node, 0, node->src[1]->dtype, cvy_node_src(node, 1));
}

static cvy_status gradient_penalty_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_gradient_penalty *o = node->options;
    const cvy_loss_weights w = cvy_loss_weights_of(node, src, 2);
    const int64_t N = src[1].dim[0], each = cvy_span_prod(&src[1], 1, src[1].ndim);
    for (int64_t n = 0; n < N; n++) {
        const double norm = norm_of(&src[1], n, each), factor = norm > 0 ? 2 * (norm - o->target) / norm *
                                                                               o->loss_weight * cvy_get(&src[0], 0) *
                                                                               cvy_loss_factor(&w, n, 0)
                                                                         : 0;
        for (int64_t i = n * each; i < (n + 1) * each; i++)
            cvy_set(dst, i, factor * cvy_get(&src[1], i));
    }
    return CVY_OK;
}

static const cvy_sample gradient_penalty_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,5x7,scalar:f64", .options = "target: 0, loss_weight: 10", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(gradient_penalty_grad) = {
    .name = "gradient_penalty_grad",
    .summary = "gradient of gradient_penalty",
    .options = gradient_penalty_opts,
    .options_size = sizeof(struct cvy_gradient_penalty),
    .nsrc_min = 3,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = gradient_penalty_grad_infer,
    .cost = cvy_loss_each_grad_cost,
    .reference = gradient_penalty_grad_reference,
    .samples = gradient_penalty_grad_samples,
};
