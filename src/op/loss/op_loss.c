/*
 * op_loss.c: code that all losses share, see op_loss.h, and weight_sum, the sum of weights that divides a mean loss.
 * weight_sum runs for every micro-batch before the first forward, and an allreduce adds it over ranks. The losses are
 * the end of each forward.
 *
 *     weight_sum = sum over samples n of weight[n] * (mean over n's positions of w)
 *     w          = class_weights[target], or 0 if target is ignored
 *
 * This is the divisor of PyTorch's reduction 'mean' with class weights, divided by the number of positions; the sum of
 * terms is divided by it too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_loss.h"

#include "graph/graph_grad.h"
#include "op/comm/op_redistribute.h"

#include <math.h>
#include <stdio.h>

static cvy_status add_weight_sum(cvy_graph *g, const char *name, const struct cvy_weight_sum *labels,
                                 cvy_value *const *src, int nsrc, cvy_value **norm_out)
{
    char text[160];
    const struct cvy_weight_sum none = {0};
    cvy_node *sum = NULL, *norm = NULL;
    cvy_value *const from[] = {src[1], nsrc > 2 ? src[2] : NULL};
    for (int i = 0; i + 1 < nsrc; i++)
        CVY_CHECK(!from[i]->producer, CVY_E_ARGUMENT,
                  "weights are added up before the forward pass, so %s must be an input of the network; it is made by "
                  "layer %s",
                  from[i]->name, from[i]->producer->layer);
    snprintf(text, sizeof text, "%s.weight_sum", name);
    CVY_TRY(cvy_graph_add_parsed(g, cvy_op_find("weight_sum"), text, name, labels ? labels : &none, from, nsrc - 1,
                                 CVY_PHASE_PREPARE, &sum));
    snprintf(text, sizeof text, "%s.norm", name);
    CVY_TRY(
        cvy_graph_add_parsed(g, cvy_op_find("allreduce"), text, name, NULL, &sum->dst[0], 1, CVY_PHASE_PREPARE, &norm));
    *norm_out = norm->dst[0];
    return CVY_OK;
}

cvy_status cvy_loss_build(cvy_graph *g, const cvy_op_def *op, const char *name, const void *options,
                          const struct cvy_weight_sum *labels, cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    CVY_CHECK(nsrc == 2 || nsrc == 3, CVY_E_SHAPE,
              "%s takes output, target and perhaps a weight for each sample, got %d sources", op->name, nsrc);
    const int weighs = nsrc == 3 || (labels && (labels->class_weights.count || labels->ignore_label.count));
    cvy_value *from[] = {src[0], src[1], NULL, nsrc == 3 ? src[2] : NULL};
    cvy_node *node = NULL;
    if (weighs)
        CVY_TRY(add_weight_sum(g, name, labels, src, nsrc, &from[2]));
    else
        CVY_TRY(cvy_graph_norm(g, &from[2]));
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, options, from, nsrc + 1, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

static cvy_status check_weight(const cvy_value *weight, int64_t n)
{
    CVY_CHECK(weight->shape.ndim == 1 && weight->shape.dim[0] == n, CVY_E_SHAPE,
              "weight %s is %s, expected one per sample: %lld", weight->name, cvy_shape_text(&weight->shape),
              (long long)n);
    return CVY_OK;
}

cvy_status cvy_loss_check_norm(const cvy_node *node, int first)
{
    const cvy_shape *output = cvy_node_src(node, first - 2);
    CVY_CHECK(node->nsrc == first + 1 || node->nsrc == first + 2, CVY_E_SHAPE,
              "%s got %d sources, expected %d, or %d with weights", node->op->name, node->nsrc, first + 1, first + 2);
    CVY_CHECK(output->ndim >= 1, CVY_E_SHAPE, "a loss needs an output of [N, ...], got a scalar");
    CVY_CHECK(node->src[first]->dtype == CVY_DTYPE_F64 && node->src[first]->shape.ndim == 0, CVY_E_SHAPE,
              "the normaliser must be f64 scalar, got %s %s", cvy_dtype_text(node->src[first]->dtype),
              cvy_shape_text(&node->src[first]->shape));
    return node->nsrc == first + 2 ? check_weight(node->src[first + 1], output->dim[0]) : CVY_OK;
}

cvy_status cvy_loss_check_same(const cvy_shape *output, const cvy_shape *target)
{
    int fits = output->ndim >= 1 && target->ndim >= 1 && output->dim[0] == target->dim[0], j = 1;
    for (int i = 1; i < output->ndim; i++) {
        if (output->dim[i] == 1)
            continue;
        while (j < target->ndim && target->dim[j] == 1)
            j++;
        fits = fits && j < target->ndim && target->dim[j++] == output->dim[i];
    }
    for (; j < target->ndim; j++)
        fits = fits && target->dim[j] == 1;
    CVY_CHECK(fits, CVY_E_SHAPE, "output is %s, target is %s: they must have the same elements", cvy_shape_text(output),
              cvy_shape_text(target));
    return CVY_OK;
}

cvy_status cvy_loss_check_labels(const cvy_node *node, int first)
{
    const struct cvy_label_loss *o = node->options;
    const cvy_shape *output = cvy_node_src(node, first), *target = cvy_node_src(node, first + 1);
    const cvy_dtype dtype = node->src[first + 1]->dtype;
    CVY_TRY(cvy_loss_check_norm(node, first + 2));
    CVY_CHECK(output->ndim >= 2, CVY_E_SHAPE, "the output must be [N, K, positions...], got %s",
              cvy_shape_text(output));
    CVY_CHECK(!cvy_dtype_is_real(dtype), CVY_E_SHAPE,
              "the target must be integer labels, %s is %s: is this a regression (mse)?", node->src[first + 1]->name,
              cvy_dtype_text(dtype));
    cvy_shape expected = {.ndim = output->ndim - 1, .dim = {output->dim[0]}};
    for (int i = 1; i < expected.ndim; i++)
        expected.dim[i] = output->dim[i + 1];
    CVY_TRY(cvy_loss_check_same(&expected, target));
    CVY_CHECK(o->labels.class_weights.count == 0 || o->labels.class_weights.count == output->dim[1], CVY_E_SHAPE,
              "class_weights has %d values, the output %s has %lld classes", o->labels.class_weights.count,
              cvy_shape_text(output), (long long)output->dim[1]);
    return CVY_OK;
}

double cvy_log_sum_exp(const cvy_span *x, int64_t at, int64_t K, int64_t P)
{
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < K; k++)
        top = fmax(top, cvy_get(x, at + k * P));
    for (int64_t k = 0; k < K; k++)
        sum += exp(cvy_get(x, at + k * P) - top);
    return top + log(sum);
}

cvy_status cvy_loss_set_dst(cvy_node *node)
{
    return cvy_node_set_accumulator(node, 0, CVY_DTYPE_F64, &(cvy_shape){0}, 1);
}

cvy_status cvy_loss_share(const cvy_node *node, const cvy_node_part *part, int lacks, double *share_out)
{
    const cvy_shape *output = cvy_node_src(node, 0), *target = cvy_node_src(node, 1);
    if (part->dim >= output->ndim || target->ndim != output->ndim - lacks)
        return CVY_NOT_APPLICABLE;
    for (int d = 2; d < output->ndim; d++)
        if (target->dim[d - lacks] != output->dim[d])
            return CVY_NOT_APPLICABLE;
    const int64_t n = output->dim[part->dim];
    *share_out = cvy_part_fraction(part, n);
    return n >= part->parts ? CVY_OK : CVY_NOT_APPLICABLE;
}

cvy_status cvy_label_loss_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    struct cvy_label_loss *o = options;
    double share = 0;
    if (part->split == CVY_SPLIT_SAMPLES)
        return CVY_OK;
    CVY_TRY(cvy_loss_share(node, part, 1, &share));
    o->loss_weight *= share;
    part->other_src = 1;
    part->other_dim = part->dim - 1;
    return CVY_OK;
}

cvy_status cvy_loss_emit(cvy_grad *g, const cvy_node *fwd, const char *grad_op, int swap)
{
    cvy_value *dloss = cvy_grad_of(g, fwd->dst[0]), *dst = NULL;
    if (!dloss || !cvy_grad_wanted(g, fwd->src[swap]))
        return CVY_OK;
    cvy_value *const from[] = {dloss, fwd->src[swap], fwd->src[1 - swap], fwd->src[2],
                               fwd->nsrc > 3 ? fwd->src[3] : NULL};
    CVY_TRY(cvy_grad_emit(g, fwd, grad_op, fwd->options, from, fwd->nsrc + 1, &dst, 1));
    return cvy_grad_add(g, fwd->src[swap], dst);
}

cvy_status cvy_label_error(const cvy_node *node, int64_t row, int64_t label, int64_t nclasses)
{
    return cvy_error_set(CVY_E_FORMAT,
                         "layer %s (%s): row %lld of this rank's share has label %lld, expected 0 .. %lld for %lld "
                         "classes; correct the data or "
                         "the number of outputs, or name the label in ignore_label",
                         node->layer, node->op->name, (long long)row, (long long)label, (long long)(nclasses - 1),
                         (long long)nclasses);
}

/* ---- elementwise losses ---- */

cvy_status cvy_loss_each_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                               cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct cvy_loss_each o = {0};
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_loss_build(g, op, name, &o, NULL, src, nsrc, dst_out);
}

cvy_status cvy_loss_each_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_loss_each_def *def = fwd->op->family;
    CVY_TRY(cvy_loss_emit(g, fwd, def->grad, 0));
    return def->symmetric ? cvy_loss_emit(g, fwd, def->grad, 1) : CVY_OK;
}

cvy_status cvy_loss_each_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    struct cvy_loss_each *o = options;
    double share = 0;
    if (part->split == CVY_SPLIT_SAMPLES)
        return CVY_OK;
    CVY_TRY(cvy_loss_share(node, part, 0, &share));
    o->loss_weight *= share;
    return CVY_OK;
}

cvy_status cvy_loss_each_infer(cvy_node *node)
{
    CVY_TRY(cvy_loss_check_norm(node, 2));
    CVY_TRY(cvy_loss_check_same(cvy_node_src(node, 0), cvy_node_src(node, 1)));
    return cvy_loss_set_dst(node);
}

cvy_status cvy_loss_each_grad_infer(cvy_node *node)
{
    CVY_TRY(cvy_loss_check_norm(node, 3));
    CVY_TRY(cvy_loss_check_same(cvy_node_src(node, 1), cvy_node_src(node, 2)));
    return cvy_node_set_dst(node, 0, node->src[1]->dtype, cvy_node_src(node, 1));
}

/* Forward checks the targets, so the gradient need not. */
static cvy_status check_targets(const cvy_node *node, const cvy_loss_each_def *def, const cvy_span *src)
{
    const int64_t each = cvy_span_prod(src, 1, src->ndim);
    for (int64_t i = 0; def->target_min < def->target_max && i < src[1].elems; i++) {
        const double t = cvy_get(&src[1], i);
        CVY_CHECK(t >= def->target_min && t <= def->target_max, CVY_E_FORMAT,
                  "layer %s (%s): row %lld of this rank's share has target %g, expected %g .. %g", node->layer,
                  node->op->name, (long long)(i / each), t, def->target_min, def->target_max);
    }
    return CVY_OK;
}

cvy_status cvy_loss_each_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_loss_each_def *def = node->op->family;
    const struct cvy_loss_each *o = node->options;
    const cvy_span *x = &src[0], *t = &src[1], *norm = &src[2], *weight = node->nsrc > 3 ? &src[3] : NULL;
    const int64_t N = x->dim[0], each = cvy_span_prod(x, 1, x->ndim);
    double loss = 0;
    CVY_TRY(check_targets(node, def, src));
    for (int64_t n = 0; n < N; n++) {
        double sum = 0;
        for (int64_t i = n * each; i < (n + 1) * each; i++)
            sum += def->term(o->parameter, cvy_get(x, i), cvy_get(t, i));
        loss += cvy_loss_factor(norm, weight, n) * sum / (double)each;
    }
    cvy_set(dst, 0, o->loss_weight * loss);
    return CVY_OK;
}

cvy_status cvy_loss_each_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_loss_each_def *def = node->op->family;
    const struct cvy_loss_each *o = node->options;
    const cvy_span *x = &src[1], *t = &src[2], *norm = &src[3], *weight = node->nsrc > 4 ? &src[4] : NULL;
    const int64_t N = x->dim[0], each = cvy_span_prod(x, 1, x->ndim);
    const double dloss = o->loss_weight * cvy_get(&src[0], 0) / (double)each;
    for (int64_t n = 0; n < N; n++) {
        const double factor = dloss * cvy_loss_factor(norm, weight, n);
        for (int64_t i = n * each; i < (n + 1) * each; i++)
            cvy_set(dst, i, factor * def->slope(o->parameter, cvy_get(x, i), cvy_get(t, i)));
    }
    return CVY_OK;
}

void cvy_loss_each_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 4 * n, .read_elems = 2 * n, .write_elems = 1};
}

void cvy_loss_each_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 1));
    *cost_out = (cvy_cost){.flop = 3 * n, .read_elems = 2 * n, .write_elems = n};
}

int64_t cvy_loss_summands(const cvy_node *node)
{
    return cvy_shape_elems(cvy_node_src(node, 0)) + 4;
}

/* ---- weight_sum: target, [weight] -> f64 scalar accumulator ---- */

static const cvy_option weight_sum_opts[] = {
    {"class_weights", CVY_TYPE_REALS, CVY_FIELD(cvy_weight_sum, class_weights), "", "0..", "",
     "a factor for each class, all 1 if empty"},
    {"ignore_label", CVY_TYPE_INTS, CVY_FIELD(cvy_weight_sum, ignore_label), "", "", "", "labels that are ignored"},
    {0},
};

static cvy_status weight_sum_infer(cvy_node *node)
{
    const cvy_shape *target = cvy_node_src(node, 0);
    CVY_CHECK(target->ndim >= 1, CVY_E_SHAPE, "a target of [N, ...] is needed, got a scalar");
    if (node->nsrc == 2)
        CVY_TRY(check_weight(node->src[1], target->dim[0]));
    return cvy_loss_set_dst(node);
}

/* The mean weight of sample n's labels over its positions. */
static cvy_status mean_label_weight(const cvy_node *node, const cvy_span *target, int64_t n, int64_t each,
                                    double *mean_out)
{
    const struct cvy_weight_sum *o = node->options;
    const int64_t nclasses = o->class_weights.count;
    double sum = 0;
    for (int64_t i = n * each; i < (n + 1) * each; i++) {
        const int64_t label = (int64_t)cvy_get(target, i);
        if (cvy_label_ignored(o, label))
            continue;
        if (nclasses && (label < 0 || label >= nclasses))
            return cvy_label_error(node, n, label, nclasses);
        sum += nclasses ? o->class_weights.at[label] : 1;
    }
    *mean_out = sum / (double)each;
    return CVY_OK;
}

static cvy_status weight_sum_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_weight_sum *o = node->options;
    const int64_t N = src->dim[0], each = cvy_span_prod(src, 1, src->ndim);
    const int by_label = o->class_weights.count || o->ignore_label.count;
    double total = 0;
    for (int64_t n = 0; n < N; n++) {
        double mean = 1;
        if (by_label)
            CVY_TRY(mean_label_weight(node, &src[0], n, each, &mean));
        total += mean * (node->nsrc > 1 ? cvy_get(&src[1], n) : 1);
    }
    cvy_set(dst, 0, o->share > 0 ? o->share * total : total);
    return CVY_OK;
}

/* A part of a target that is split, because it is an input with spatial dimensions. */
static cvy_status weight_sum_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    struct cvy_weight_sum *o = options;
    const cvy_shape *target = cvy_node_src(node, 0);
    const int64_t n = part->dim < target->ndim ? target->dim[part->dim] : 0;
    if (part->split == CVY_SPLIT_SAMPLES)
        return CVY_OK;
    if (n < part->parts)
        return CVY_NOT_APPLICABLE;
    const double share = cvy_part_fraction(part, n);
    o->share = o->share > 0 ? o->share * share : share;
    return CVY_OK;
}

static void weight_sum_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = n, .read_elems = n, .write_elems = 1};
}

static const cvy_sample weight_sum_samples[] = {
    {.src = "5:i32"},
    {.src = "5:i32,5"},
    {.src = "4x3x2:i32,4", .options = "class_weights: [0.5, 1, 3], ignore_label: 1", .int_bound = 3},
    {0},
};

CVY_OP_DEFINE(weight_sum) = {
    .name = "weight_sum",
    .summary = "sum of the samples' weights: the normaliser of a weighted loss",
    .options = weight_sum_opts,
    .options_size = sizeof(struct cvy_weight_sum),
    .nsrc_min = 1,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .part_splits = CVY_SPLIT_SPACE,
    .part = weight_sum_part,
    .infer = weight_sum_infer,
    .cost = weight_sum_cost,
    .reference = weight_sum_reference,
    .summands = cvy_loss_summands,
    .samples = weight_sum_samples,
};
