/*
 * op_sample_norm.h: what group_norm, instance_norm and layer_norm have in common. Each normalises sets of elements of
 * one sample, so no result depends on other samples, and training and evaluation are the same.
 *
 *     xhat = (src - mean) * inv_std                  mean and variance of the set; inv_std = 1 / sqrt(variance + eps)
 *     dst  = xhat * scale + shift
 *     dsrc = inv_std * (d - mean(d) - xhat * mean(d * xhat))     d = ddst * scale; the means run over the set
 *     dscale = sum(ddst * xhat)     dshift = sum(ddst)           over all elements with this number of scale and shift
 *
 * The nodes, with stats [..., 2] = mean and inv_std of each set in the dtype of weights:
 *
 *     group_norm, layer_norm             src, scale, shift -> dst, stats (saved)
 *     group_norm_grad, layer_norm_grad   src, ddst, stats, scale, shift (with relu) -> dsrc, dscale, dshift
 *
 * Without scale_shift there are no scale, shift, dscale and dshift. With relu dst is rectified, and ddst counts only
 * where dst is positive; the gradient finds that from src, so dst is not read again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_SAMPLE_NORM_H
#define CVY_OP_SAMPLE_NORM_H

#include "graph/graph_grad.h"

typedef struct cvy_sample_norm_opts {
    int64_t groups; /* of group_norm; 0: each channel is a group */
    cvy_ints axes;  /* of layer_norm */
    double eps;
    int scale_shift;
    int relu; /* of group_norm */
} cvy_sample_norm_opts;

/* The sets, and the numbers of scale and shift. Element i of set s is (s / inner * size + i) * inner + s % inner in
 * row-major order. Element e has number e / repeat % params of scale and shift. */
typedef struct cvy_sample_sets {
    int64_t outer, size, inner; /* outer * inner sets of `size` elements */
    int64_t params, repeat;
} cvy_sample_sets;

/* What tells the operators of the family apart; `family` of a forward operator and of its gradients. */
typedef struct cvy_sample_norm_def {
    const char *grad, *second; /* operators of the gradient and of the gradient's gradient */
    cvy_sample_sets (*sets)(const cvy_sample_norm_opts *o, const cvy_shape *src);
} cvy_sample_norm_def;
extern const cvy_sample_norm_def cvy_layer_norm_family, cvy_group_norm_family;
extern const cvy_option cvy_layer_norm_rows[], cvy_group_norm_rows[];

static inline cvy_sample_sets cvy_sample_sets_of(const cvy_node *node)
{
    const cvy_sample_norm_def *family = node->op->family;
    return family->sets(node->options, &node->src[0]->shape);
}

/* ---- functions of the operators ---- */

/* Appends scale and shift of this shape, if the options want them, and sets the destinations. stats: shape of the
 * saved statistics. */
cvy_status cvy_sample_norm_infer(cvy_node *node, const cvy_shape *params, const cvy_shape *stats);
cvy_status cvy_sample_norm_grad(cvy_grad *g, const cvy_node *fwd);
void cvy_sample_norm_cost(const cvy_node *node, cvy_cost *cost_out);
int64_t cvy_sample_norm_summands(const cvy_node *node);
cvy_status cvy_sample_norm_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);

cvy_status cvy_sample_norm_grad_infer(cvy_node *node);
void cvy_sample_norm_grad_cost(const cvy_node *node, cvy_cost *cost_out);
cvy_status cvy_sample_norm_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);
/* op_sample_norm_second.c: the `grad` of a gradient. */
cvy_status cvy_sample_norm_second(cvy_grad *g, const cvy_node *fwd);

#endif
