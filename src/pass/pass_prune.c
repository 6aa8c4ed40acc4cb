/*
 * pass_prune.c: removes nodes that nothing depends on, such as a forward part that no loss and no output uses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/pass.h"

cvy_status cvy_pass_prune(cvy_graph *g)
{
    unsigned char *needed = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)g->nvalue + 1, &needed));
    for (int n = g->nnode - 1; n >= 0; n--) {
        cvy_node *node = g->node[n];
        int keep = (node->op->flags & (CVY_OP_COMM | CVY_OP_ASSIGNS)) != 0;
        for (int i = 0; i < node->ndst && !keep; i++)
            keep = node->dst[i] && (needed[node->dst[i]->index] || node->dst[i]->is_output ||
                                    node->dst[i]->kind == CVY_VALUE_ACCUMULATOR);
        node->removed |= !keep;
        for (int i = 0; i < node->nsrc && !node->removed; i++)
            needed[node->src[i]->index] = 1;
    }
    cvy_mem_free(&needed);
    return cvy_graph_verify(g);
}

static cvy_status run(cvy_pass_run *r)
{
    return cvy_pass_prune(r->graph);
}

CVY_PASS_DEFINE(prune) = {
    .name = "prune", .help = "removes nodes whose results nothing reads", .order = 50, .run = run};
