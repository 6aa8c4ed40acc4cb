/*
 * hinge: the hinge loss of a classifier, one class against all others, or of a critic, whose scores of real and of
 * generated samples it keeps apart. It is the end of forward. Sources: as Caffe's HingeLoss, whose L1 norm is Cortes
 * and Vapnik 1995 for each class; critics: Lim and Ye 2017, Miyato et al. 2018.
 *
 *     m[n,k]         = max(0, 1 - s output[n,k]), with s = 1 for the class k = target[n], else -1
 *     term[n]        = sum over k of m[n,k] (norm l1) or of m[n,k]^2 (norm l2); 0 if the target is ignored
 *     loss           = loss_weight / norm * sum over samples n of weight[n] * term[n], see op_loss.h
 *     doutput[n,k]   = -s [m > 0] or -2 s m, times loss_weight * dloss * weight[n] / norm
 *
 * With a real target, which is 1 where the output is to be above 1 and -1 where it is to be below -1, the operator
 * hinge_each computes the mean over all elements:
 *
 *     term  = max(0, 1 - target * output), or its square
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_loss.h"

enum { L1, L2 };

struct hinge {
    struct cvy_weight_sum labels;
    int norm;
    double loss_weight;
};

static const cvy_option hinge_opts[] = {
    {"norm", CVY_TYPE_CHOICE, CVY_FIELD(hinge, norm), "l1", "l1|l2", "",
     "whether margins count as they are or squared"},
    {"ignore_label", CVY_TYPE_INTS, CVY_FIELD(hinge, labels.ignore_label), "", "", "", "labels that are ignored"},
    CVY_LOSS_WEIGHT_ROW(hinge),
    {0},
};

static cvy_status hinge_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct hinge o;
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    if (nsrc > 1 && cvy_dtype_is_real(src[1]->dtype)) {
        const struct cvy_loss_each each = {.loss_weight = o.loss_weight, .parameter = o.norm == L2};
        CVY_CHECK(o.labels.ignore_label.count == 0, CVY_E_CONFIG,
                  "ignore_label is for a target of labels, and %s has real numbers", src[1]->name);
        return cvy_loss_build(g, cvy_op_find("hinge_each"), name, &each, NULL, src, nsrc, dst_out);
    }
    return cvy_loss_build(g, op, name, &o, &o.labels, src, nsrc, dst_out);
}

/* Checks output [N, K] and integer target [N], which are the sources from `first` on. */
static cvy_status check_labels(const cvy_node *node, int first)
{
    const cvy_shape *output = cvy_node_src(node, first);
    CVY_TRY(cvy_loss_check_norm(node, first + 2));
    CVY_CHECK(output->ndim == 2, CVY_E_SHAPE, "the output must be [N, K], got %s", cvy_shape_text(output));
    CVY_CHECK(!cvy_dtype_is_real(node->src[first + 1]->dtype), CVY_E_SHAPE,
              "the target must be integer labels, %s is %s", node->src[first + 1]->name,
              cvy_dtype_text(node->src[first + 1]->dtype));
    return cvy_loss_check_same(&(cvy_shape){1, {output->dim[0]}}, cvy_node_src(node, first + 1));
}

static cvy_status hinge_infer(cvy_node *node)
{
    CVY_TRY(check_labels(node, 0));
    return cvy_loss_set_dst(node);
}

static cvy_status hinge_backward(cvy_grad *g, const cvy_node *fwd)
{
    return cvy_loss_emit(g, fwd, "hinge_grad", 0);
}

/* The label of a sample; CVY_NOT_APPLICABLE: it is ignored. */
static cvy_status label_of(const cvy_node *node, const cvy_span *target, int64_t n, int64_t K, int64_t *out)
{
    const int64_t label = (int64_t)cvy_get(target, n);
    if (cvy_label_ignored(&((const struct hinge *)node->options)->labels, label))
        return CVY_NOT_APPLICABLE;
    if (label < 0 || label >= K)
        return cvy_label_error(node, n, label, K);
    *out = label;
    return CVY_OK;
}

/* The margin that class k lacks; NaN if the output is NaN. */
static double lacking(double x, int is_target)
{
    const double m = 1 - (is_target ? x : -x);
    return m > 0 || m != m ? m : 0;
}

static cvy_status hinge_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct hinge *o = node->options;
    const cvy_span *x = &src[0], *weight = node->nsrc > 3 ? &src[3] : NULL;
    const int64_t N = x->dim[0], K = x->dim[1];
    double loss = 0;
    for (int64_t n = 0; n < N; n++) {
        int64_t label = 0;
        double sum = 0;
        const cvy_status found = label_of(node, &src[1], n, K, &label);
        if (found < 0)
            return found;
        for (int64_t k = 0; found == CVY_OK && k < K; k++) {
            const double m = lacking(cvy_get(x, n * K + k), k == label);
            sum += o->norm == L1 ? m : m * m;
        }
        loss += cvy_loss_factor(&src[2], weight, n) * sum;
    }
    cvy_set(dst, 0, o->loss_weight * loss);
    return CVY_OK;
}

static const cvy_sample hinge_samples[] = {
    {.src = "5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "4x7,4:i32,scalar:f64,4", .options = "norm: l2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 7},
    {.src = "6x3,6:i32,scalar:f64",
     .options = "norm: l2, ignore_label: 1, loss_weight: 0.5",
     .flags = CVY_SAMPLE_POSITIVE,
     .int_bound = 3},
    {0},
};

CVY_OP_DEFINE(hinge) = {
    .name = "hinge",
    .summary = "hinge loss of one class against all others, or of a critic with targets 1 and -1",
    .options = hinge_opts,
    .options_size = sizeof(struct hinge),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = hinge_infer,
    .grad = hinge_backward,
    .build = hinge_build,
    .cost = cvy_loss_each_cost,
    .reference = hinge_reference,
    .summands = cvy_loss_summands,
    .samples = hinge_samples,
};

/* hinge_grad: dloss, output, target, norm, [weight] -> doutput. */
static cvy_status hinge_grad_infer(cvy_node *node)
{
    CVY_TRY(check_labels(node, 1));
    return cvy_node_set_dst(node, 0, node->src[1]->dtype, cvy_node_src(node, 1));
}

static cvy_status hinge_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct hinge *o = node->options;
    const cvy_span *x = &src[1], *weight = node->nsrc > 4 ? &src[4] : NULL;
    const int64_t N = x->dim[0], K = x->dim[1];
    for (int64_t n = 0; n < N; n++) {
        int64_t label = 0;
        const cvy_status found = label_of(node, &src[2], n, K, &label);
        if (found < 0)
            return found;
        const double factor =
            found == CVY_OK ? o->loss_weight * cvy_get(&src[0], 0) * cvy_loss_factor(&src[3], weight, n) : 0;
        for (int64_t k = 0; k < K; k++) {
            const double m = lacking(cvy_get(x, n * K + k), k == label), sign = k == label ? -1 : 1;
            cvy_set(dst, n * K + k, factor * sign * (o->norm == L1 ? (m > 0 ? 1 : m) : 2 * m));
        }
    }
    return CVY_OK;
}

static const cvy_sample hinge_grad_samples[] = {
    {.src = "scalar:f64,5x3,5:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 3},
    {.src = "scalar:f64,4x7,4:i32,scalar:f64,4", .options = "norm: l2", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 7},
    {0},
};

CVY_OP_DEFINE(hinge_grad) = {
    .name = "hinge_grad",
    .summary = "gradient of hinge",
    .options = hinge_opts,
    .options_size = sizeof(struct hinge),
    .nsrc_min = 4,
    .nsrc_max = 5,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = hinge_grad_infer,
    .cost = cvy_loss_each_grad_cost,
    .reference = hinge_grad_reference,
    .samples = hinge_grad_samples,
};

/* ---- of a critic ---- */

static const cvy_option hinge_each_opts[] = {
    {"squared", CVY_TYPE_REAL, CVY_FIELD(cvy_loss_each, parameter), "0", "0..1", "", "1: margins are squared"},
    CVY_LOSS_WEIGHT_ROW(cvy_loss_each),
    {0},
};

static double hinge_each_term(double squared, double x, double t)
{
    const double m = lacking(t * x, 1);
    return squared > 0 ? m * m : m;
}

static double hinge_each_slope(double squared, double x, double t)
{
    const double m = lacking(t * x, 1);
    return -t * (squared > 0 ? 2 * m : m > 0 ? 1 : m);
}

static const cvy_loss_each_def hinge_each = {
    .grad = "hinge_each_grad", .term = hinge_each_term, .slope = hinge_each_slope, .symmetric = 1};

static const cvy_sample hinge_each_samples[] = {
    {.src = "3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "3x7,3x7,scalar:f64,3", .options = "squared: 1, loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(hinge_each) = {
    .name = "hinge_each",
    .summary = "hinge loss of a critic",
    .options = hinge_each_opts,
    .options_size = sizeof(struct cvy_loss_each),
    .nsrc_min = 2,
    .nsrc_max = 4,
    .ndst = 1,
    .flags = CVY_OP_LOSS | CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .part_splits = CVY_SPLIT_SPACE,
    .part = cvy_loss_each_part,
    .infer = cvy_loss_each_infer,
    .grad = cvy_loss_each_grad,
    .cost = cvy_loss_each_cost,
    .reference = cvy_loss_each_reference,
    .summands = cvy_loss_summands,
    .family = &hinge_each,
    .samples = hinge_each_samples,
};

static const cvy_sample hinge_each_grad_samples[] = {
    {.src = "scalar:f64,3x2x4,3x2x4,scalar:f64", .flags = CVY_SAMPLE_POSITIVE},
    {.src = "scalar:f64,3x7,3x7,scalar:f64,3", .options = "squared: 1, loss_weight: 0.5", .flags = CVY_SAMPLE_POSITIVE},
    {0},
};

CVY_OP_DEFINE(hinge_each_grad) = {
    .name = "hinge_each_grad",
    .summary = "gradient of hinge_each",
    .options = hinge_each_opts,
    .family = &hinge_each,
    CVY_LOSS_EACH_GRAD_FIELDS,
    .samples = hinge_each_grad_samples,
};
