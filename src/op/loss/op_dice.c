/*
 * dice: one minus the soft Dice coefficient of each class, averaged over classes, for segmentation. It measures the
 * overlap of a class in each sample, so small objects count as much as large ones. It is the end of forward. The layer
 * takes raw outputs (logits) and adds a softmax, whose probabilities p are the source of the node.
 * Source: Milletari, Navab and Ahmadi 2016, V-Net, section 3, with sums of probabilities in place of their squares;
 * classes with weights: Sudre et al. 2017.
 *
 *     overlap[n,k]   = sum over positions x with target[n,x] = k of w[n,x] p[n,k,x]
 *     total[n,k]     = sum over x of w[n,x] p[n,k,x], plus the sum of w[n,x] over x with target[n,x] = k
 *     D[n,k]         = (2 overlap + smooth) / (total + smooth)
 *     loss           = loss_weight / norm * sum over samples n of weight[n] * (1 - sum over k of c[k] D[n,k] / sum c)
 *     dp[n,k,x]      = loss_weight * dloss * weight[n] / norm * c[k] / sum c * w[n,x] * (D[n,k] - 2 [target = k])
 *                      / (total + smooth)
 *
 * c = class_weights. Positions with ignored labels are left out of all sums. The weight is one number for each sample,
 * weight[n], and then w is 1; or it is one for each position, w[n,x], and then weight[n] is 1. norm is the number of
 * samples, the sum of the magnitudes of their weights, or the number of samples of which a position has a weight.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_label_loss.h"

#include "graph/graph_grad.h"

static const cvy_option dice_opts[] = {
    {"smooth", CVY_TYPE_REAL, CVY_FIELD(cvy_dice, smooth), "1", ">0", "positions",
     "added to both sides of each quotient: a class that is not in a sample gives 1 if it is not predicted"},
    CVY_LABEL_LOSS_ROWS(cvy_dice, loss),
    {0},
};

/* Ignored labels do not change how much a sample counts. */
static cvy_status dice_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                             cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    static const struct cvy_weight_sum counted = {.counts_samples = 1};
    struct cvy_dice o;
    char *text = NULL;
    cvy_node *softmax = NULL;
    cvy_value *from[CVY_NODE_SRC_MAX] = {NULL};
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    CVY_CHECK(nsrc > 0 && src[0]->shape.ndim >= 2 && src[0]->shape.dim[1] >= 2, CVY_E_SHAPE,
              "dice needs an output for each of two classes or more, [N, K, positions...], got %s",
              nsrc > 0 ? cvy_shape_text(&src[0]->shape) : "none");
    CVY_TRY(cvy_pool_printf(g->pool, &text, "%s_softmax", name));
    CVY_TRY(cvy_graph_add(g, "softmax", text, name, NULL, src, 1, &softmax));
    for (int i = 0; i < nsrc; i++)
        from[i] = i == 0 ? softmax->dst[0] : src[i];
    return cvy_loss_build(g, op, name, &o, &counted, from, nsrc, dst_out);
}

static cvy_status check_sources(const cvy_node *node, int first)
{
    const struct cvy_dice *o = node->options;
    const cvy_reals *weights = &o->loss.labels.class_weights;
    double sum = 0;
    CVY_TRY(cvy_label_loss_check(node, first));
    for (int k = 0; k < weights->count; k++)
        sum += weights->at[k];
    CVY_CHECK(weights->count == 0 || sum > 0, CVY_E_CONFIG,
              "layer %s (dice): all class_weights are 0, so no class counts: give one of them a weight", node->layer);
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

/* What a call reads. */
struct dice_call {
    const struct cvy_dice *o;
    const cvy_span *p, *target;
    cvy_loss_weights weights;
    int64_t N, K, P;
    double all; /* sum of class weights */
};

static struct dice_call call_of(const cvy_node *node, const cvy_span *src, int first)
{
    const struct cvy_dice *o = node->options;
    struct dice_call c = {.o = o,
                          .p = &src[first],
                          .target = &src[first + 1],
                          .weights = cvy_loss_weights_of(node, src, first + 2),
                          .N = src[first].dim[0],
                          .K = src[first].dim[1],
                          .P = cvy_span_prod(&src[first], 2, src[first].ndim)};
    for (int64_t k = 0; k < c.K; k++)
        c.all += cvy_class_weight(&o->loss.labels, k);
    return c;
}

/* weight[n] / norm. */
static double factor_of(const struct dice_call *c, int64_t n)
{
    if (c->weights.each == 1)
        return cvy_loss_factor(&c->weights, n, 0);
    return c->weights.norm == 0 ? 0 : 1 / c->weights.norm;
}

/* w[n,x]; 0 for an ignored label. */
static double weight_at(const struct dice_call *c, int64_t n, int64_t x, int64_t label)
{
    return cvy_label_ignored(&c->o->loss.labels, label) ? 0
           : c->weights.each == 1                       ? 1
                                                        : cvy_loss_weight(&c->weights, n, x);
}

/* Sets D and total + smooth of class k of sample n. */
static void coefficient(const struct dice_call *c, int64_t n, int64_t k, double *dice_out, double *total_out)
{
    double overlap = 0, total = 0;
    for (int64_t x = 0; x < c->P; x++) {
        const int64_t label = (int64_t)cvy_get(c->target, n * c->P + x);
        const double weight = weight_at(c, n, x, label);
        if (weight == 0)
            continue;
        const double value = cvy_get(c->p, (n * c->K + k) * c->P + x);
        overlap += label == k ? weight * value : 0;
        total += weight * (value + (label == k));
    }
    *total_out = total + c->o->smooth;
    *dice_out = (2 * overlap + c->o->smooth) / *total_out;
}

static cvy_status dice_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct dice_call c = call_of(node, src, 0);
    double loss = 0;
    CVY_TRY(cvy_label_loss_check_range(node, src, 0));
    for (int64_t n = 0; n < c.N; n++) {
        double sum = 0, d = 0, total = 0;
        for (int64_t k = 0; k < c.K; k++) {
            coefficient(&c, n, k, &d, &total);
            sum += cvy_class_weight(&c.o->loss.labels, k) * (1 - d);
        }
        loss += factor_of(&c, n) * sum / c.all;
    }
    cvy_set(dst, 0, c.o->loss.loss_weight * loss);
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
    {.src = "2x3x4x5,2x4x5:i32,scalar:f64,2x4x5",
     .options = "ignore_label: 1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
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
    const struct dice_call c = call_of(node, src, 1);
    const double dloss = c.o->loss.loss_weight * cvy_get(&src[0], 0) / c.all;
    CVY_TRY(cvy_label_loss_check_range(node, src, 1));
    for (int64_t i = 0; i < c.N * c.K; i++) {
        const int64_t n = i / c.K, k = i % c.K;
        double d = 0, total = 0;
        coefficient(&c, n, k, &d, &total);
        const double factor = dloss * factor_of(&c, n) * cvy_class_weight(&c.o->loss.labels, k) / total;
        for (int64_t x = 0; x < c.P; x++) {
            const int64_t label = (int64_t)cvy_get(c.target, n * c.P + x);
            cvy_set(dst, i * c.P + x, factor * weight_at(&c, n, x, label) * (d - 2 * (label == k)));
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
    {.src = "scalar:f64,2x2x5000,2x5000:i32,scalar:f64,2", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,2x3x4x5,2x4x5:i32,scalar:f64,2x4x5",
     .options = "ignore_label: 1",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
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
