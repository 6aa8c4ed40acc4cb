/*
 * sample_eval.c: runs a graph with the reference kernels of its operators; the loss and the random values with which
 * samples of operators are tested.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sample/sample_eval.h"

#include <string.h>

#include "base/text/base_tree.h"

void cvy_eval_destroy(cvy_eval *e)
{
    for (int i = 0; e->at && i < e->graph->nvalue; i++)
        cvy_mem_free(&e->at[i].data);
    cvy_mem_free(&e->at);
}

cvy_status cvy_eval_create(cvy_graph *g, cvy_eval *out)
{
    *out = (cvy_eval){.graph = g};
    CVY_TRY(cvy_mem_alloc(sizeof *out->at * (size_t)(g->nvalue + 1), &out->at));
    for (int i = 0; i < g->nvalue; i++) {
        const cvy_value *v = g->value[i];
        cvy_span *s = &out->at[i];
        *s = (cvy_span){.dtype = v->dtype, .ndim = v->shape.ndim, .elems = cvy_shape_elems(&v->shape)};
        memcpy(s->dim, v->shape.dim, sizeof s->dim);
        CVY_TRY(cvy_mem_alloc((size_t)s->elems * cvy_dtype_bytes(v->dtype), &s->data));
    }
    return CVY_OK;
}

cvy_status cvy_eval_node(const cvy_eval *e, const cvy_node *node)
{
    cvy_span src[CVY_NODE_SRC_MAX] = {{0}}, dst[CVY_NODE_DST_MAX] = {{0}};
    for (int i = 0; i < node->nsrc; i++)
        src[i] = *cvy_eval_of(e, node->src[i]);
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            dst[i] = *cvy_eval_of(e, node->dst[i]);
    if (node->op->reference)
        return node->op->reference(node, src, dst);
    memcpy(dst[0].data, src[0].data,
           (size_t)dst[0].elems * cvy_dtype_bytes(dst[0].dtype)); /* a view, or one rank's part of a sum */
    return CVY_OK;
}

void cvy_eval_sum_ranks(cvy_eval *ranks, int nranks, int value)
{
    for (int64_t i = 0; i < ranks[0].at[value].elems; i++) {
        double sum = 0;
        for (int r = 0; r < nranks; r++)
            sum += cvy_get(&ranks[r].at[value], i);
        for (int r = 0; r < nranks; r++)
            cvy_set(&ranks[r].at[value], i, sum);
    }
}

cvy_status cvy_eval_phase(cvy_eval *ranks, int nranks, cvy_phase phase)
{
    const cvy_graph *g = ranks[0].graph;
    for (int n = 0; n < g->nnode; n++) {
        if (g->node[n]->removed || g->node[n]->phase != phase)
            continue;
        for (int r = 0; r < nranks; r++)
            CVY_TRY(cvy_eval_node(&ranks[r], ranks[r].graph->node[n]));
        const cvy_op_comm *comm = g->node[n]->op->comm;
        if (comm && comm->exchange == CVY_EXCHANGE_SUM)
            cvy_eval_sum_ranks(ranks, nranks, g->node[n]->dst[0]->index);
    }
    return CVY_OK;
}

cvy_status cvy_eval_run(cvy_eval *ranks, int nranks)
{
    CVY_TRY(cvy_eval_phase(ranks, nranks, CVY_PHASE_PREPARE));
    CVY_TRY(cvy_eval_phase(ranks, nranks, CVY_PHASE_MICRO));
    for (int i = 0; i < ranks[0].graph->nvalue; i++)
        if (ranks[0].graph->value[i]->kind == CVY_VALUE_ACCUMULATOR && ranks[0].graph->value[i]->reduced)
            cvy_eval_sum_ranks(ranks, nranks, i);
    return cvy_eval_phase(ranks, nranks, CVY_PHASE_UPDATE);
}

/* ---- the loss ---- */

static cvy_status weighted_sum_infer(cvy_node *node)
{
    return cvy_node_set_accumulator(node, 0, CVY_DTYPE_F64, &(cvy_shape){0}, 1);
}

static cvy_status weighted_sum_grad(cvy_grad *g, const cvy_node *fwd)
{
    return cvy_grad_add(g, fwd->src[0], fwd->src[1]);
}

static cvy_status weighted_sum_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    double sum = 0;
    (void)node;
    for (int64_t i = 0; i < src->elems; i++)
        sum += cvy_get(&src[0], i) * cvy_get(&src[1], i);
    cvy_set(dst, 0, sum);
    return CVY_OK;
}

const cvy_op_def cvy_weighted_sum_op = {
    .name = "weighted_sum",
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_LOSS,
    .infer = weighted_sum_infer,
    .grad = weighted_sum_grad,
    .reference = weighted_sum_reference,
};

/* ---- options and values ---- */

cvy_status cvy_sample_options(cvy_pool *pool, const char *text, cvy_tree **out)
{
    char *map = NULL;
    CVY_TRY(cvy_pool_printf(pool, &map, "{%s}", text ? text : ""));
    return cvy_tree_parse_text(pool, "options", map, strlen(map), out);
}

uint64_t cvy_sample_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void cvy_sample_fill(cvy_span *s, double low, int64_t bound, uint64_t *state)
{
    const int64_t n = s->elems;
    const int real = cvy_dtype_is_real(s->dtype);
    for (int64_t i = 0; i < n; i++)
        cvy_set(s, i,
                real ? low + (1 - low) * ((double)i + 0.5) / (double)n + (n % 2 ? 0.25 / (double)n : 0)
                     : (double)(cvy_sample_random(state) % (uint64_t)bound));
    for (int64_t i = n - 1; real && i > 0; i--) {
        const int64_t j = (int64_t)(cvy_sample_random(state) % (uint64_t)(i + 1));
        const double swap = cvy_get(s, i);
        cvy_set(s, i, cvy_get(s, j));
        cvy_set(s, j, swap);
    }
}
