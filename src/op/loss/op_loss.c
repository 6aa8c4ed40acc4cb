/*
 * op_loss.c: code that all losses share, see op_loss.h, and weight_sum, the sum of weights that divides a mean loss.
 * weight_sum runs for every micro-batch before the first forward, and an allreduce adds it over ranks. The losses are
 * the end of each forward.
 *
 *     weight_sum = sum over samples n of (mean over n's elements e of |weight[n,e]| * w[n,e])
 *     w          = class_weights[target], or 0 if target is ignored; 1 for a target without labels
 *
 * This is the divisor of PyTorch's reduction 'mean' with class weights, divided by the number of positions; the sum of
 * terms is divided by it too. With counts_samples it is the number of samples that have an element whose weight is not
 * 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_loss.h"

#include "graph/graph_grad.h"
#include "op/comm/op_redistribute.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the nodes of a loss ---- */

int64_t cvy_loss_weight_elems(const cvy_shape *weight)
{
    int64_t elems = 1;
    for (int i = 1; i < weight->ndim; i++)
        elems *= weight->dim[i];
    return elems;
}

static int counts_labels(const struct cvy_weight_sum *labels)
{
    return labels && (labels->class_weights.count || labels->ignore_label.count);
}

/* A mask needs no target, unless labels count differently; and a target that a layer makes is not there yet. */
static cvy_status add_weight_sum(cvy_graph *g, const char *name, const struct cvy_weight_sum *labels,
                                 cvy_value *const *src, int nsrc, cvy_value **norm_out)
{
    char text[160];
    const int is_mask = nsrc > 2 && cvy_loss_weight_elems(&src[2]->shape) > 1,
              of_weights = nsrc > 2 && (is_mask || src[1]->producer) && !counts_labels(labels);
    struct cvy_weight_sum o = labels ? *labels : (struct cvy_weight_sum){0};
    cvy_node *sum = NULL, *norm = NULL;
    cvy_value *const *from = src + (of_weights ? 2 : 1);
    const int nfrom = of_weights ? 1 : nsrc - 1;
    o.of_weights = of_weights;
    o.counts_samples = is_mask && o.counts_samples;
    for (int i = 0; i < nfrom; i++)
        CVY_CHECK(!from[i]->producer, CVY_E_ARGUMENT,
                  "weights are added up before the forward pass, so %s must be an input of the network; it is made by "
                  "layer %s",
                  from[i]->name, from[i]->producer->layer);
    snprintf(text, sizeof text, "%s.weight_sum", name);
    CVY_TRY(cvy_graph_add_parsed(g, cvy_op_find("weight_sum"), text, name, &o, from, nfrom, CVY_PHASE_PREPARE, &sum));
    snprintf(text, sizeof text, "%s.norm", name);
    CVY_TRY(
        cvy_graph_add_parsed(g, cvy_op_find("allreduce"), text, name, NULL, &sum->dst[0], 1, CVY_PHASE_PREPARE, &norm));
    *norm_out = norm->dst[0];
    return CVY_OK;
}

cvy_status cvy_loss_build(cvy_graph *g, const cvy_op_def *op, const char *name, const void *options,
                          const struct cvy_weight_sum *labels, cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    CVY_CHECK(nsrc == 2 || nsrc == 3, CVY_E_SHAPE, "%s takes output, target and perhaps a weight, got %d sources",
              op->name, nsrc);
    cvy_value *from[] = {src[0], src[1], NULL, nsrc == 3 ? src[2] : NULL};
    cvy_node *node = NULL;
    if (nsrc == 3 || counts_labels(labels))
        CVY_TRY(add_weight_sum(g, name, labels, src, nsrc, &from[2]));
    else
        CVY_TRY(cvy_graph_norm(g, &from[2]));
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, options, from, nsrc + 1, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* ---- checks ---- */

/* Writes the dimensions of a sample that are not 1, but not those of axis `without`, and returns their number. */
static int sample_dims(const cvy_shape *s, int without, int64_t *dim)
{
    int n = 0;
    for (int i = 1; i < s->ndim; i++)
        if (s->dim[i] != 1 && i != without)
            dim[n++] = s->dim[i];
    return n;
}

static int has_dims(const cvy_shape *s, int without, const int64_t *dim, int n)
{
    int64_t own[CVY_NDIM_MAX];
    return sample_dims(s, without, own) == n && memcmp(own, dim, sizeof *dim * (size_t)n) == 0;
}

/* Labels have no axis of channels that a weight could lack. */
static cvy_status check_weight(const cvy_value *weight, const cvy_shape *output, const cvy_shape *target)
{
    const cvy_shape *w = &weight->shape;
    int64_t dim[CVY_NDIM_MAX];
    const int n = w->ndim > 0 ? sample_dims(w, 0, dim) : 0, may_lack = target->ndim == output->ndim;
    CVY_CHECK(w->ndim > 0 && w->dim[0] == output->dim[0] &&
                  (n == 0 || has_dims(target, 0, dim, n) || (may_lack && has_dims(target, 1, dim, n))),
              CVY_E_SHAPE,
              "weight %s is %s, expected one for each of the %lld samples, or for each %s of the target, %s",
              weight->name, cvy_shape_text(w), (long long)output->dim[0], may_lack ? "element or position" : "position",
              cvy_shape_text(target));
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
    return node->nsrc == first + 2 ? check_weight(node->src[first + 1], output, cvy_node_src(node, first - 1)) : CVY_OK;
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

cvy_status cvy_loss_set_dst(cvy_node *node)
{
    return cvy_node_set_accumulator(node, 0, CVY_DTYPE_F64, &(cvy_shape){0}, 1);
}

int64_t cvy_loss_summands(const cvy_node *node)
{
    return cvy_shape_elems(cvy_node_src(node, 0)) + 4;
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

/* ---- parts along a spatial axis ---- */

/* Whether a source has the positions of the output, after so many axes less. */
static int has_positions(const cvy_shape *output, const cvy_shape *of, int lacks)
{
    int same = (lacks == 0 || lacks == 1) && of->ndim == output->ndim - lacks;
    for (int d = 2; same && d < output->ndim; d++)
        same = of->dim[d - lacks] == output->dim[d];
    return same;
}

cvy_status cvy_loss_part(const cvy_node *node, cvy_node_part *part, int lacks, double *loss_weight)
{
    const cvy_shape *output = cvy_node_src(node, 0);
    if (part->split == CVY_SPLIT_SAMPLES)
        return CVY_OK;
    if (part->dim >= output->ndim || !has_positions(output, cvy_node_src(node, 1), lacks))
        return CVY_NOT_APPLICABLE;
    part->lacks_channels = lacks ? 1u << 1 : 0;
    if (node->nsrc > 3 && cvy_loss_weight_elems(cvy_node_src(node, 3)) > 1) {
        const int w = output->ndim - cvy_node_src(node, 3)->ndim;
        if (!has_positions(output, cvy_node_src(node, 3), w))
            return CVY_NOT_APPLICABLE;
        *(w ? &part->lacks_channels : &part->has_axis) |= 1u << 3;
    }
    const int64_t n = output->dim[part->dim];
    *loss_weight *= cvy_part_fraction(part, n);
    return n >= part->parts ? CVY_OK : CVY_NOT_APPLICABLE;
}

/* ---- gradients ---- */

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

cvy_loss_weights cvy_loss_weights_of(const cvy_node *node, const cvy_span *src, int first)
{
    cvy_loss_weights w = {.norm = *(const double *)src[first].data, .each = 1};
    if (node->nsrc > first + 1) {
        w.at = &src[first + 1];
        w.each = cvy_span_prod(w.at, 1, w.at->ndim);
    }
    return w;
}

/* ---- elementwise losses ---- */

cvy_status cvy_loss_each_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                               cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    const cvy_loss_each_def *def = op->family;
    struct cvy_loss_each o = {0};
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    if (!def->no_target)
        return cvy_loss_build(g, op, name, &o, NULL, src, nsrc, dst_out);
    CVY_CHECK(nsrc == 1 || nsrc == 2, CVY_E_SHAPE, "%s takes an output and perhaps a weight, got %d sources", op->name,
              nsrc);
    cvy_value *const from[] = {src[0], src[0], nsrc == 2 ? src[1] : NULL};
    return cvy_loss_build(g, op, name, &o, NULL, from, nsrc + 1, dst_out);
}

int cvy_loss_weight_source(const cvy_op_def *loss)
{
    const cvy_loss_each_def *each = loss->build == cvy_loss_each_build ? loss->family : NULL;
    return each && each->no_target ? 1 : 2;
}

cvy_status cvy_loss_each_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_loss_each_def *def = fwd->op->family;
    CVY_TRY(cvy_loss_emit(g, fwd, def->grad, 0));
    return def->symmetric ? cvy_loss_emit(g, fwd, def->grad, 1) : CVY_OK;
}

cvy_status cvy_loss_each_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    return cvy_loss_part(node, part, 0, &((struct cvy_loss_each *)options)->loss_weight);
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
static cvy_status check_targets(const cvy_node *node, const cvy_loss_each_def *def, const cvy_loss_weights *w,
                                const cvy_span *src)
{
    const int64_t each = cvy_span_prod(src, 1, src->ndim);
    for (int64_t i = 0; def->target_min < def->target_max && i < src[1].elems; i++) {
        const double t = cvy_get(&src[1], i);
        CVY_CHECK((t >= def->target_min && t <= def->target_max) || cvy_loss_weight(w, i / each, i % each) == 0,
                  CVY_E_FORMAT, "layer %s (%s): row %lld of this rank's share has target %g, expected %g .. %g",
                  node->layer, node->op->name, (long long)(i / each), t, def->target_min, def->target_max);
    }
    return CVY_OK;
}

cvy_status cvy_loss_each_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_loss_each_def *def = node->op->family;
    const struct cvy_loss_each *o = node->options;
    const cvy_span *x = &src[0], *t = &src[1];
    const cvy_loss_weights w = cvy_loss_weights_of(node, src, 2);
    const int64_t N = x->dim[0], each = cvy_span_prod(x, 1, x->ndim);
    double loss = 0;
    CVY_TRY(check_targets(node, def, &w, src));
    for (int64_t n = 0; n < N; n++) {
        const double of_sample = cvy_loss_factor(&w, n, 0);
        double sum = 0;
        for (int64_t e = 0; e < each; e++) {
            const double factor = w.each == 1 ? of_sample : cvy_loss_factor(&w, n, e);
            if (factor != 0)
                sum += factor * def->term(o->parameter, cvy_get(x, n * each + e), cvy_get(t, n * each + e));
        }
        loss += sum / (double)each;
    }
    cvy_set(dst, 0, o->loss_weight * loss);
    return CVY_OK;
}

cvy_status cvy_loss_each_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_loss_each_def *def = node->op->family;
    const struct cvy_loss_each *o = node->options;
    const cvy_span *x = &src[1], *t = &src[2];
    const cvy_loss_weights w = cvy_loss_weights_of(node, src, 3);
    const int64_t N = x->dim[0], each = cvy_span_prod(x, 1, x->ndim);
    const double dloss = o->loss_weight * cvy_get(&src[0], 0) / (double)each;
    for (int64_t n = 0; n < N; n++) {
        const double of_sample = cvy_loss_factor(&w, n, 0);
        for (int64_t e = 0; e < each; e++) {
            const double factor = w.each == 1 ? of_sample : cvy_loss_factor(&w, n, e);
            const int64_t i = n * each + e;
            cvy_set(dst, i, factor == 0 ? 0 : dloss * factor * def->slope(o->parameter, cvy_get(x, i), cvy_get(t, i)));
        }
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

/* ---- weight_sum: target or weight, [weight] -> f64 scalar accumulator ---- */

static const cvy_option weight_sum_opts[] = {
    {"class_weights", CVY_TYPE_REALS, CVY_FIELD(cvy_weight_sum, class_weights), "", "0..", "",
     "a factor for each class, all 1 if empty"},
    {"ignore_label", CVY_TYPE_INTS, CVY_FIELD(cvy_weight_sum, ignore_label), "", "", "", "labels that are ignored"},
    {0},
};

static cvy_status weight_sum_infer(cvy_node *node)
{
    const cvy_shape *target = cvy_node_src(node, 0), *weight = node->nsrc == 2 ? cvy_node_src(node, 1) : NULL;
    CVY_CHECK(target->ndim >= 1, CVY_E_SHAPE, "a target of [N, ...] is needed, got a scalar");
    CVY_CHECK(!weight || (weight->ndim >= 1 && weight->dim[0] == target->dim[0] &&
                          cvy_loss_weight_elems(target) % CVY_MAX(cvy_loss_weight_elems(weight), 1) == 0),
              CVY_E_SHAPE, "weight %s is %s, expected one for each sample, or for each position of the target, %s",
              node->src[node->nsrc - 1]->name, cvy_shape_text(cvy_node_src(node, node->nsrc - 1)),
              cvy_shape_text(target));
    return cvy_loss_set_dst(node);
}

/* Sets *weight_out to the weight of element e of sample n, by its label too. A label that weighs nothing may be any. */
static cvy_status element_weight(const cvy_node *node, const cvy_span *src, const cvy_loss_weights *w, int64_t n,
                                 int64_t e, int64_t each, double *weight_out)
{
    const struct cvy_weight_sum *o = node->options;
    const int64_t nclasses = o->class_weights.count;
    double weight = cvy_loss_weight(w, n, e);
    if (o->of_weights)
        weight = cvy_get(src, n * each + e);
    else if (weight != 0 && counts_labels(o)) {
        const int64_t label = (int64_t)cvy_get(src, n * each + e);
        const int is_ignored = cvy_label_ignored(o, label);
        if (nclasses && !is_ignored && (label < 0 || label >= nclasses))
            return cvy_label_error(node, n, label, nclasses);
        weight *= is_ignored ? 0 : nclasses ? o->class_weights.at[label] : 1;
    }
    *weight_out = weight;
    return CVY_OK;
}

static cvy_status weight_sum_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_weight_sum *o = node->options;
    const cvy_loss_weights w = {.at = node->nsrc > 1 ? &src[1] : NULL,
                                .each = node->nsrc > 1 ? cvy_span_prod(&src[1], 1, src[1].ndim) : 1};
    /* without labels or a mask all elements of a sample have one weight */
    const int64_t N = src->dim[0], elems = cvy_span_prod(src, 1, src->ndim),
                  each = o->of_weights || w.each > 1 || counts_labels(o) ? elems : 1;
    double total = 0;
    for (int64_t n = 0; n < N; n++) {
        double sum = 0, weight = 0;
        int any = 0;
        for (int64_t e = 0; e < each; e++) {
            CVY_TRY(element_weight(node, src, &w, n, e, each, &weight));
            sum += fabs(weight);
            any |= weight != 0;
        }
        total += o->counts_samples ? any : sum / (double)each;
    }
    cvy_set(dst, 0, o->share > 0 ? o->share * total : total);
    return CVY_OK;
}

/* A part of a target that is split, because it is an input with spatial dimensions. Masks are not split. */
static cvy_status weight_sum_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    struct cvy_weight_sum *o = options;
    const cvy_shape *target = cvy_node_src(node, 0);
    const int64_t n = part->dim < target->ndim ? target->dim[part->dim] : 0;
    if (part->split == CVY_SPLIT_SAMPLES)
        return CVY_OK;
    if (n < part->parts || o->of_weights || (node->nsrc > 1 && cvy_loss_weight_elems(cvy_node_src(node, 1)) > 1))
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
    {.src = "4x3x2:i32,4x3x2", .options = "ignore_label: 1", .int_bound = 3},
    {0},
};

CVY_OP_DEFINE(weight_sum) = {
    .name = "weight_sum",
    .summary = "sum of the magnitudes of the samples' weights: the normaliser of a weighted loss",
    .options = weight_sum_opts,
    .options_size = sizeof(struct cvy_weight_sum),
    .nsrc_min = 1,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN | CVY_OP_COUNTS_WEIGHTS,
    .splits = CVY_SPLIT_SAMPLES,
    .part_splits = CVY_SPLIT_SPACE,
    .part = weight_sum_part,
    .infer = weight_sum_infer,
    .cost = weight_sum_cost,
    .reference = weight_sum_reference,
    .summands = cvy_loss_summands,
    .samples = weight_sum_samples,
};
