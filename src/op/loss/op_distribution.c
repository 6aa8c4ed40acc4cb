/*
 * op_distribution.c: code that losses of predicted distributions share: see op_distribution.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/loss/op_distribution.h"

/* ---- building and checking ---- */

const cvy_distribution_def *cvy_distribution_of(const cvy_op_def *op)
{
    return op->build == cvy_distribution_build ? op->family : NULL;
}

cvy_status cvy_distribution_parse(const cvy_op_def *op, const cvy_tree *options, struct cvy_distribution *out)
{
    cvy_pool *pool = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = cvy_options_parse(pool, op->name, op->options, options, NULL, out, sizeof *out);
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_loss_count(const cvy_op_def *op, const cvy_tree *options, int *count_out)
{
    const cvy_distribution_def *def = cvy_distribution_of(op);
    struct cvy_distribution o = {0};
    *count_out = 1;
    if (!def)
        return CVY_OK;
    CVY_TRY(cvy_distribution_parse(op, options, &o));
    *count_out = def->count(&o);
    return CVY_OK;
}

cvy_status cvy_distribution_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                  cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct cvy_distribution o = {0};
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return cvy_loss_build(g, op, name, &o, NULL, src, nsrc, dst_out);
}

static int count_of(const cvy_node *node)
{
    return ((const cvy_distribution_def *)node->op->family)->count(node->options);
}

/* Checks output and target, which are the sources from `first` on. */
static cvy_status check(const cvy_node *node, int first)
{
    const cvy_distribution_def *def = node->op->family;
    const cvy_shape *output = cvy_node_src(node, first), *target = cvy_node_src(node, first + 1);
    const int count = count_of(node);
    CVY_TRY(cvy_loss_check_norm(node, first + 2));
    if (def->check)
        CVY_TRY(def->check(node));
    CVY_CHECK(output->ndim >= 2 && output->dim[1] % count == 0, CVY_E_SHAPE,
              "%s needs %d numbers for each target along axis 1, and the output is %s", node->op->name, count,
              cvy_shape_text(output));
    cvy_shape block = *output;
    block.dim[1] /= count;
    const cvy_status status = cvy_loss_check_same(&block, target);
    return status == CVY_OK ? CVY_OK
                            : cvy_error_set(status,
                                            "%s needs %d numbers for each target along axis 1: the output is %s, the "
                                            "target is %s",
                                            node->op->name, count, cvy_shape_text(output), cvy_shape_text(target));
}

cvy_status cvy_distribution_infer(cvy_node *node)
{
    CVY_TRY(check(node, 0));
    return cvy_loss_set_dst(node);
}

cvy_status cvy_distribution_grad_infer(cvy_node *node)
{
    CVY_TRY(check(node, 1));
    return cvy_node_set_dst(node, 0, node->src[1]->dtype, cvy_node_src(node, 1));
}

cvy_status cvy_distribution_grad(cvy_grad *g, const cvy_node *fwd)
{
    return cvy_loss_emit(g, fwd, ((const cvy_distribution_def *)fwd->op->family)->grad, 0);
}

/* A target that is one number for each position may lack the axis of channels. */
cvy_status cvy_distribution_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    return cvy_loss_part(node, part, cvy_node_src(node, 0)->ndim - cvy_node_src(node, 1)->ndim,
                         &((struct cvy_distribution *)options)->loss_weight);
}

/* ---- computing ---- */

/* Reads the numbers of target e of sample n. */
static void read_numbers(const cvy_span *x, int64_t n, int count, int64_t each, int64_t e, double *number)
{
    for (int b = 0; b < count; b++)
        number[b] = cvy_get(x, (n * count + b) * each + e);
}

cvy_status cvy_distribution_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_distribution_def *def = node->op->family;
    const struct cvy_distribution *o = node->options;
    const cvy_span *x = &src[0], *t = &src[1];
    const cvy_loss_weights w = cvy_loss_weights_of(node, src, 2);
    const int count = count_of(node);
    const int64_t N = x->dim[0], each = cvy_span_prod(x, 1, x->ndim) / count;
    double loss = 0, number[CVY_LIST_MAX];
    for (int64_t n = 0; n < N; n++) {
        double sum = 0;
        for (int64_t e = 0; e < each; e++) {
            const double factor = cvy_loss_factor(&w, n, e);
            if (factor == 0)
                continue;
            read_numbers(x, n, count, each, e, number);
            sum += factor * def->term(o, number, cvy_get(t, n * each + e));
        }
        loss += sum / (double)each;
    }
    cvy_set(dst, 0, o->loss_weight * loss);
    return CVY_OK;
}

cvy_status cvy_distribution_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_distribution_def *def = node->op->family;
    const struct cvy_distribution *o = node->options;
    const cvy_span *x = &src[1], *t = &src[2];
    const cvy_loss_weights w = cvy_loss_weights_of(node, src, 3);
    const int count = count_of(node);
    const int64_t N = x->dim[0], each = cvy_span_prod(x, 1, x->ndim) / count;
    const double dloss = o->loss_weight * cvy_get(&src[0], 0) / (double)each;
    double number[CVY_LIST_MAX], slope[CVY_LIST_MAX];
    for (int64_t i = 0; i < N * each; i++) {
        const int64_t n = i / each, e = i % each;
        const double factor = dloss * cvy_loss_factor(&w, n, e);
        read_numbers(x, n, count, each, e, number);
        def->slope(o, number, cvy_get(t, i), slope);
        for (int b = 0; b < count; b++)
            cvy_set(dst, (n * count + b) * each + e, factor == 0 ? 0 : factor * slope[b]);
    }
    return CVY_OK;
}

void cvy_distribution_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0)), t = cvy_shape_elems(cvy_node_src(node, 1));
    *cost_out = (cvy_cost){.flop = 4 * n, .read_elems = n + t, .write_elems = 1};
}

void cvy_distribution_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 1)), t = cvy_shape_elems(cvy_node_src(node, 2));
    *cost_out = (cvy_cost){.flop = 4 * n, .read_elems = n + t, .write_elems = n};
}
