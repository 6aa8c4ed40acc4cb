/*
 * op_label_loss.c: code that the losses on labels share: see op_label_loss.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_label_loss.h"

#include <math.h>

/* ---- building and checking ---- */

cvy_status cvy_label_loss_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    const cvy_label_loss_def *def = op->family;
    struct cvy_label_loss *o = NULL;
    CVY_TRY(cvy_pool_alloc(g->pool, op->options_size, &o));
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, o, op->options_size));
    if (def->build_real && nsrc > 1 && cvy_dtype_is_real(src[1]->dtype))
        return def->build_real(g, name, o, src, nsrc, dst_out);
    return cvy_loss_build(g, op, name, o, &o->labels, src, nsrc, dst_out);
}

cvy_status cvy_label_loss_check(const cvy_node *node, int first)
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

cvy_status cvy_label_loss_infer(cvy_node *node)
{
    CVY_TRY(cvy_label_loss_check(node, 0));
    return cvy_loss_set_dst(node);
}

cvy_status cvy_label_loss_grad_infer(cvy_node *node)
{
    CVY_TRY(cvy_label_loss_check(node, 1));
    return cvy_node_set_dst(node, 0, node->src[1]->dtype, cvy_node_src(node, 1));
}

cvy_status cvy_label_loss_grad(cvy_grad *g, const cvy_node *fwd)
{
    return cvy_loss_emit(g, fwd, ((const cvy_label_loss_def *)fwd->op->family)->grad, 0);
}

/* The target has no axis of channels. */
cvy_status cvy_label_loss_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    return cvy_loss_part(node, part, 1, &((struct cvy_label_loss *)options)->loss_weight);
}

void cvy_label_loss_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 13 * n, .read_elems = n, .write_elems = 1};
}

void cvy_label_loss_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 1));
    *cost_out = (cvy_cost){.flop = 14 * n, .read_elems = n, .write_elems = n};
}

/* ---- computing ---- */

double cvy_log_sum_exp(const cvy_logits *z)
{
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < z->K; k++)
        top = fmax(top, cvy_logit(z, k));
    for (int64_t k = 0; k < z->K; k++)
        sum += exp(cvy_logit(z, k) - top);
    return top + log(sum);
}

/* The outputs of position p of sample n. */
static cvy_logits logits_of(const cvy_span *x, int64_t n, int64_t p)
{
    const int64_t K = x->dim[1], P = cvy_span_prod(x, 2, x->ndim);
    return (cvy_logits){.x = x, .at = n * K * P + p, .K = K, .stride = P};
}

cvy_status cvy_label_loss_check_range(const cvy_node *node, const cvy_span *src, int first)
{
    const struct cvy_label_loss *o = node->options;
    const cvy_span *target = &src[first + 1];
    const cvy_loss_weights w = cvy_loss_weights_of(node, src, first + 2);
    const int64_t P = cvy_span_prod(target, 1, target->ndim), K = src[first].dim[1];
    for (int64_t i = 0; i < target->elems; i++) {
        const int64_t label = (int64_t)cvy_get(target, i);
        if ((label < 0 || label >= K) && !cvy_label_ignored(&o->labels, label) &&
            cvy_loss_weight(&w, i / P, i % P) != 0)
            return cvy_label_error(node, i / P, label, K);
    }
    return CVY_OK;
}

cvy_status cvy_label_loss_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_label_loss_def *def = node->op->family;
    const struct cvy_label_loss *o = node->options;
    const cvy_span *x = &src[0], *target = &src[1];
    const cvy_loss_weights w = cvy_loss_weights_of(node, src, 2);
    const int64_t N = x->dim[0], P = cvy_span_prod(x, 2, x->ndim);
    double loss = 0;
    CVY_TRY(cvy_label_loss_check_range(node, src, 0));
    for (int64_t n = 0; n < N; n++) {
        double sum = 0;
        for (int64_t p = 0; p < P; p++) {
            const int64_t label = (int64_t)cvy_get(target, n * P + p);
            const double factor = cvy_label_ignored(&o->labels, label) ? 0 : cvy_loss_factor(&w, n, p);
            const cvy_logits z = logits_of(x, n, p);
            if (factor != 0)
                sum += factor * def->term(o, &z, label);
        }
        loss += sum / (double)P;
    }
    cvy_set(dst, 0, o->loss_weight * loss);
    return CVY_OK;
}

cvy_status cvy_label_loss_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_label_loss_def *def = node->op->family;
    const struct cvy_label_loss *o = node->options;
    const cvy_span *x = &src[1], *target = &src[2];
    const cvy_loss_weights w = cvy_loss_weights_of(node, src, 3);
    const int64_t N = x->dim[0], P = cvy_span_prod(x, 2, x->ndim);
    const double dloss = o->loss_weight * cvy_get(&src[0], 0) / (double)P;
    CVY_TRY(cvy_label_loss_check_range(node, src, 1));
    for (int64_t i = 0; i < N * P; i++) {
        const int64_t label = (int64_t)cvy_get(target, i);
        const double factor = cvy_label_ignored(&o->labels, label) ? 0 : cvy_loss_factor(&w, i / P, i % P);
        const cvy_logits z = logits_of(x, i / P, i % P);
        if (factor != 0)
            def->slope(o, &z, label, dloss * factor, dst);
        for (int64_t k = 0; factor == 0 && k < z.K; k++)
            cvy_set(dst, z.at + k * z.stride, 0);
    }
    return CVY_OK;
}
