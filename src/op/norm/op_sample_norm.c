/*
 * op_sample_norm.c: shapes, gradient, cost and reference kernels of group_norm and layer_norm (see op_sample_norm.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/norm/op_sample_norm.h"

#include <math.h>

cvy_status cvy_sample_norm_infer(cvy_node *node, const cvy_shape *params, const cvy_shape *stats)
{
    const cvy_sample_norm_opts *o = node->options;
    const cvy_init one = {"constant", "value: 1", 1, 1}, zero = {"constant", "value: 0", 1, 1};
    if (o->scale_shift) {
        CVY_TRY(cvy_node_param(node, "scale", params, &one, 0));
        CVY_TRY(cvy_node_param(node, "shift", params, &zero, 0));
    }
    CVY_TRY(cvy_node_set_saved(node, 1, cvy_graph_weight_dtype(node->graph), stats));
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0));
}

cvy_status cvy_sample_norm_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_sample_norm_opts *o = fwd->options;
    const cvy_sample_norm_def *family = fwd->op->family;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *stats = NULL, *d[3] = {NULL, NULL, NULL};
    if (!ddst)
        return CVY_OK;
    CVY_TRY(cvy_grad_saved(g, fwd, 1, &stats));
    cvy_value *const from[] = {fwd->src[0], ddst, stats, fwd->src[1], fwd->src[2]};
    const int nfrom = !o->scale_shift ? 3 : o->relu ? 5 : 4;
    CVY_TRY(cvy_grad_emit(g, fwd, family->grad, o, from, nfrom, d, o->scale_shift ? 3 : 1));
    for (int i = 0; i < (o->scale_shift ? 3 : 1); i++)
        CVY_TRY(cvy_grad_add(g, fwd->src[i], d[i]));
    return CVY_OK;
}

void cvy_sample_norm_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 8 * n, .read_elems = n, .write_elems = n};
}

void cvy_sample_norm_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_src(node, 0));
    *cost_out = (cvy_cost){.flop = 12 * n, .read_elems = 2 * n, .write_elems = n};
}

/* Sums over a set, and for dscale and dshift over all elements with one number of them. */
int64_t cvy_sample_norm_summands(const cvy_node *node)
{
    const cvy_sample_sets sets = cvy_sample_sets_of(node);
    return CVY_MAX(sets.size, sets.outer * sets.size * sets.inner / sets.params);
}

/* Element i of set s. */
static int64_t element(const cvy_sample_sets *sets, int64_t s, int64_t i)
{
    return (s / sets->inner * sets->size + i) * sets->inner + s % sets->inner;
}

cvy_status cvy_sample_norm_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_sample_norm_opts *o = node->options;
    const cvy_sample_sets sets = cvy_sample_sets_of(node);
    const double size = (double)sets.size;
    for (int64_t s = 0; s < sets.outer * sets.inner; s++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < sets.size; i++)
            mean += cvy_get(src, element(&sets, s, i)) / size;
        for (int64_t i = 0; i < sets.size; i++) {
            const double x = cvy_get(src, element(&sets, s, i)) - mean;
            variance += x * x / size;
        }
        const double inv_std = 1 / sqrt(variance + o->eps);
        for (int64_t i = 0; i < sets.size; i++) {
            const int64_t e = element(&sets, s, i), k = e / sets.repeat % sets.params;
            double y = (cvy_get(src, e) - mean) * inv_std;
            if (o->scale_shift)
                y = y * cvy_get(&src[1], k) + cvy_get(&src[2], k);
            cvy_set(dst, e, o->relu && y < 0 ? 0 : y);
        }
        if (dst[1].data) {
            cvy_set(&dst[1], 2 * s, mean);
            cvy_set(&dst[1], 2 * s + 1, inv_std);
        }
    }
    return CVY_OK;
}

/* ---- gradient ---- */

cvy_status cvy_sample_norm_grad_infer(cvy_node *node)
{
    const cvy_sample_norm_opts *o = node->options;
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, cvy_node_src(node, 0)));
    for (int i = 1; i < 3 && o->scale_shift; i++)
        CVY_TRY(cvy_node_set_dst(node, i, cvy_graph_weight_dtype(node->graph), cvy_node_src(node, 3)));
    return CVY_OK;
}

/* One call of the reference kernel of a gradient. */
struct grad_call {
    cvy_sample_sets sets;
    const cvy_span *src; /* the sources: src, ddst, stats, scale, shift */
    int scale_shift, relu;
};

static double xhat_at(const struct grad_call *c, int64_t e)
{
    const cvy_sample_sets *sets = &c->sets;
    const int64_t s = e / (sets->size * sets->inner) * sets->inner + e % sets->inner;
    return (cvy_get(&c->src[0], e) - cvy_get(&c->src[2], 2 * s)) * cvy_get(&c->src[2], 2 * s + 1);
}

static double scale_at(const struct grad_call *c, int64_t e)
{
    return c->scale_shift ? cvy_get(&c->src[3], e / c->sets.repeat % c->sets.params) : 1;
}

/* ddst at element e, or 0 if the ReLU was not active there. */
static double passed(const struct grad_call *c, int64_t e)
{
    const double shift = c->relu && c->scale_shift ? cvy_get(&c->src[4], e / c->sets.repeat % c->sets.params) : 0;
    return !c->relu || xhat_at(c, e) * scale_at(c, e) + shift > 0 ? cvy_get(&c->src[1], e) : 0;
}

static void grad_of_source(const struct grad_call *c, const cvy_span *dsrc)
{
    const cvy_sample_sets *sets = &c->sets;
    for (int64_t s = 0; s < sets->outer * sets->inner; s++) {
        const double inv_std = cvy_get(&c->src[2], 2 * s + 1);
        double mean_d = 0, mean_dx = 0;
        for (int64_t i = 0; i < sets->size; i++) {
            const int64_t e = element(sets, s, i);
            const double d = passed(c, e) * scale_at(c, e) / (double)sets->size;
            mean_d += d;
            mean_dx += d * xhat_at(c, e);
        }
        for (int64_t i = 0; i < sets->size; i++) {
            const int64_t e = element(sets, s, i);
            cvy_set(dsrc, e, inv_std * (passed(c, e) * scale_at(c, e) - mean_d - xhat_at(c, e) * mean_dx));
        }
    }
}

/* Number k of dscale and dshift sums over the elements (a * params + k) * repeat + b. */
static void grad_of_params(const struct grad_call *c, const cvy_span *dscale, const cvy_span *dshift)
{
    const int64_t params = c->sets.params, repeat = c->sets.repeat, repeats = c->src->elems / (params * repeat);
    for (int64_t k = 0; k < params; k++) {
        double product = 0, sum = 0;
        for (int64_t a = 0; a < repeats; a++)
            for (int64_t b = 0; b < repeat; b++) {
                const int64_t e = (a * params + k) * repeat + b;
                product += passed(c, e) * xhat_at(c, e);
                sum += passed(c, e);
            }
        cvy_set(dscale, k, product);
        cvy_set(dshift, k, sum);
    }
}

cvy_status cvy_sample_norm_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_sample_norm_opts *o = node->options;
    const struct grad_call c = {cvy_sample_sets_of(node), src, o->scale_shift, o->relu};
    grad_of_source(&c, dst);
    if (o->scale_shift)
        grad_of_params(&c, &dst[1], &dst[2]);
    return CVY_OK;
}
