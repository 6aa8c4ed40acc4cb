/*
 * dice: one minus the soft Dice coefficient of each class, averaged over classes, for segmentation. It measures the
 * overlap of a class in each sample, so small objects count as much as large ones. It is the end of forward. The layer
 * takes raw outputs (logits) and adds a softmax, whose probabilities p are the source of the node.
 * Source: Milletari, Navab and Ahmadi 2016, V-Net, section 3, with sums of probabilities in place of their squares;
 * classes with weights: Sudre et al. 2017.
 *
 *     overlap[n,k]   = sum over positions x with target[n,x] = k of p[n,k,x]
 *     total[n,k]     = sum over x of p[n,k,x], plus the number of x with target[n,x] = k
 *     D[n,k]         = (2 overlap + smooth) / (total + smooth)
 *     loss           = loss_weight / norm * sum over samples n of weight[n] * (1 - sum over k of c[k] D[n,k] / sum c)
 *     dp[n,k,x]      = loss_weight * dloss * weight[n] / norm * c[k] / sum c * (D[n,k] - 2 [target = k]) / (total +
 *                      smooth)
 *
 * c = class_weights. Positions with ignored labels are left out of all sums. norm is the number of samples or, if they
 * have weights, the sum of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_loss.h"

#include "graph/graph_grad.h"

static const cvy_option dice_opts[] = {
    {"smooth", CVY_TYPE_REAL, CVY_FIELD(cvy_dice, smooth), "1", ">0", "positions",
     "added to both sides of each quotient: a class that is not in a sample gives 1 if it is not predicted"},
    CVY_LABEL_LOSS_ROWS(cvy_dice, loss),
    {0},
};

static cvy_status dice_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                             cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct cvy_dice o;
    char *text = NULL;
    cvy_node *softmax = NULL;
    cvy_value *from[CVY_NODE_SRC_MAX] = {NULL};
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    CVY_CHECK(nsrc == 2 || nsrc == 3, CVY_E_SHAPE,
              "dice takes output, target and perhaps a weight for each sample, got %d sources", nsrc);
    CVY_CHECK(src[0]->shape.ndim >= 2 && src[0]->shape.dim[1] >= 2, CVY_E_SHAPE,
              "dice needs an output for each of two classes or more, [N, K, positions...], got %s",
              cvy_shape_text(&src[0]->shape));
    CVY_TRY(cvy_pool_printf(g->pool, &text, "%s_softmax", name));
    CVY_TRY(cvy_graph_add(g, "softmax", text, name, NULL, src, 1, &softmax));
    for (int i = 0; i < nsrc; i++)
        from[i] = i == 0 ? softmax->dst[0] : src[i];
    return cvy_loss_build(g, op, name, &o, NULL, from, nsrc, dst_out);
}

static cvy_status check_sources(const cvy_node *node, int first)
{
    const struct cvy_dice *o = node->options;
    const cvy_reals *weights = &o->loss.labels.class_weights;
    double sum = 0;
    CVY_TRY(cvy_loss_check_labels(node, first));
    for (int k = 0; k < weights->count; k++)
        sum += weights->at[k];
    CVY_CHECK(weights->count == 0 || sum > 0, CVY_E_CONFIG, "dice: all class_weights are 0");
    return CVY_OK;
}

static cvy_status dice_infer(cvy_node *node)
{
    CVY_TRY(check_sources(node, 0));
    return cvy_loss_set_dst(node);
}

static cvy_status dice_backward(cvy_grad *g, const cvy_node *fwd)
{
    return cvy_loss_emit(g, fwd, "dice_grad", 0);
}

static void dice_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 2 * n, .read_elems = n, .write_elems = 1};
}

/* Sets D and total + smooth of class k of sample n. */
static void coefficient(const struct cvy_dice *o, const cvy_span *p, const cvy_span *target, int64_t n, int64_t k,
                        double *dice_out, double *total_out)
{
    const int64_t K = p->dim[1], P = cvy_span_prod(p, 2, p->ndim);
    double overlap = 0, total = 0;
    for (int64_t x = 0; x < P; x++) {
        const int64_t label = (int64_t)cvy_get(target, n * P + x);
        if (cvy_label_ignored(&o->loss.labels, label))
            continue;
        const double value = cvy_get(p, (n * K + k) * P + x);
        overlap += label == k ? value : 0;
        total += value + (label == k);
    }
    *total_out = total + o->smooth;
    *dice_out = (2 * overlap + o->smooth) / *total_out;
}

static double sum_of_weights(const struct cvy_dice *o, int64_t K)
{
    double sum = 0;
    for (int64_t k = 0; k < K; k++)
        sum += cvy_class_weight(&o->loss.labels, k);
    return sum;
}

static cvy_status check_range(const cvy_node *node, const cvy_span *target, int64_t K)
{
    const struct cvy_dice *o = node->options;
    const int64_t each = cvy_span_prod(target, 1, target->ndim);
    for (int64_t i = 0; i < target->elems; i++) {
        const int64_t label = (int64_t)cvy_get(target, i);
        if ((label < 0 || label >= K) && !cvy_label_ignored(&o->loss.labels, label))
            return cvy_label_error(node, i / each, label, K);
    }
    return CVY_OK;
}

static cvy_status dice_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_dice *o = node->options;
    const cvy_span *p = &src[0], *target = &src[1], *norm = &src[2], *weight = node->nsrc > 3 ? &src[3] : NULL;
    const int64_t N = p->dim[0], K = p->dim[1];
    const double all = sum_of_weights(o, K);
    double loss = 0;
    CVY_TRY(check_range(node, target, K));
    for (int64_t n = 0; n < N; n++) {
        double sum = 0, d = 0, total = 0;
        for (int64_t k = 0; k < K; k++) {
            coefficient(o, p, target, n, k, &d, &total);
            sum += cvy_class_weight(&o->loss.labels, k) * (1 - d);
        }
        loss += cvy_loss_factor(norm, weight, n) * sum / all;
    }
    cvy_set(dst, 0, o->loss.loss_weight * loss);
    return CVY_OK;
}

static const cvy_sample dice_samples[] = {
    {.src = "5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "2x2x7,2x7:i32,scalar:f64,2", .options = "smooth: 1e-3", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 2},
    {.src = "3x3x4x5,3x4x5:i32,scalar:f64",
     .options = "class_weights: [0.5, 0, 3], ignore_label: 1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "2x4x3x5x2,2x3x5x2:i32,scalar:f64,2",
     .options = "loss_weight: 0.5, ignore_label: 0",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 4},
    {.src = "2x3x300,2x300:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {0},
};

CVY_OP_DEFINE(dice) = {
    .name = "dice",
    .summary = "one minus the soft Dice coefficient of softmax, for segmentation",
    .options = dice_opts,
    .options_size = sizeof(struct cvy_dice),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = dice_infer,
    .grad = dice_backward,
    .build = dice_build,
    .cost = dice_cost,
    .reference = dice_reference,
    .summands = cvy_loss_summands,
    .samples = dice_samples,
};

/* dice_grad: dloss, p, target, norm, [weight] -> dp. */
static cvy_status dice_grad_infer(cvy_node *node)
{
    CVY_TRY(check_sources(node, 1));
    return cvy_node_set_dst(node, 0, node->src[1]->dtype, cvy_node_src(node, 1));
}

static void dice_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 1));
    *cost_out = (cvy_cost){.flop = 3 * n, .read_elems = n, .write_elems = n};
}

static int64_t dice_grad_summands(const cvy_node *node)
{
    const cvy_shape *p = cvy_node_src(node, 1);
    return cvy_shape_elems(p) / p->dim[1] + 8;
}

static cvy_status dice_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_dice *o = node->options;
    const cvy_span *p = &src[1], *target = &src[2], *norm = &src[3], *weight = node->nsrc > 4 ? &src[4] : NULL;
    const int64_t N = p->dim[0], K = p->dim[1], P = cvy_span_prod(p, 2, p->ndim);
    const double dloss = o->loss.loss_weight * cvy_get(&src[0], 0) / sum_of_weights(o, K);
    CVY_TRY(check_range(node, target, K));
    for (int64_t n = 0; n < N; n++)
        for (int64_t k = 0; k < K; k++) {
            double d = 0, total = 0;
            coefficient(o, p, target, n, k, &d, &total);
            const double factor =
                dloss * cvy_loss_factor(norm, weight, n) * cvy_class_weight(&o->loss.labels, k) / total;
            for (int64_t x = 0; x < P; x++) {
                const int64_t label = (int64_t)cvy_get(target, n * P + x);
                const int counts = !cvy_label_ignored(&o->loss.labels, label);
                cvy_set(dst, (n * K + k) * P + x, counts ? factor * (d - 2 * (label == k)) : 0);
            }
        }
    return CVY_OK;
}

static const cvy_sample dice_grad_samples[] = {
    {.src = "scalar:f64,5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "scalar:f64,2x2x7,2x7:i32,scalar:f64,2",
     .options = "smooth: 1e-3",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 2},
    {.src = "scalar:f64,3x3x4x5,3x4x5:i32,scalar:f64",
     .options = "class_weights: [0.5, 0, 3], ignore_label: 1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {.src = "scalar:f64,2x4x3x5x2,2x3x5x2:i32,scalar:f64,2",
     .options = "loss_weight: 0.5, ignore_label: 0",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 4},
    {.src = "scalar:f64,2x3x300,2x300:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {0},
};

CVY_OP_DEFINE(dice_grad) = {
    .name = "dice_grad",
    .summary = "gradient of dice",
    .options = dice_opts,
    .options_size = sizeof(struct cvy_dice),
    .nsrc_min = 4,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = dice_grad_infer,
    .cost = dice_grad_cost,
    .reference = dice_grad_reference,
    .summands = dice_grad_summands,
    .samples = dice_grad_samples,
};
