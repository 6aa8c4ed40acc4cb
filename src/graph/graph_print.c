/*
 * graph_print.c: prints a graph as text (a line for each node) and as Graphviz dot, for users and for debugging passes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/text/base_text.h"
#include "graph/graph_op.h"

static const char *phase_text(cvy_phase phase)
{
    return phase == CVY_PHASE_PREPARE ? "prepare" : phase == CVY_PHASE_MICRO ? "micro" : "update";
}

static cvy_status finish(cvy_text *t, char **text_out)
{
    if (t->status != CVY_OK) {
        cvy_text_free(t);
        return t->status;
    }
    *text_out = t->data;
    return CVY_OK;
}

cvy_status cvy_graph_print(const cvy_graph *g, char **text_out)
{
    cvy_text t = {0};
    cvy_text_add(&t, "graph %s: samples %lld of %lld\n", g->name, (long long)g->batch.local_n,
                 (long long)g->batch.global_n);
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        if (node->removed)
            continue;
        cvy_text_add(&t, "%4d %-7s %-28s %s(", n, phase_text(node->phase), node->name, node->op->name);
        for (int i = 0; i < node->nsrc; i++)
            cvy_text_add(&t, "%s%s", i ? ", " : "", node->src[i]->name);
        cvy_text_add(&t, ") ->");
        for (int i = 0; i < node->ndst; i++)
            if (node->dst[i])
                cvy_text_add(&t, " %s %s", cvy_dtype_text(node->dst[i]->dtype), cvy_shape_text(&node->dst[i]->shape));
        cvy_text_add(&t, "\n");
    }
    return finish(&t, text_out);
}

cvy_status cvy_graph_print_dot(const cvy_graph *g, char **text_out)
{
    cvy_text t = {0};
    cvy_text_add(&t, "digraph \"%s\" {\n  node [shape=box, fontname=sans];\n", g->name);
    for (int v = 0; v < g->nvalue; v++)
        if (!g->value[v]->producer)
            cvy_text_add(&t, "  v%d [label=\"%s\\n%s\", shape=%s];\n", v, g->value[v]->name,
                         cvy_shape_text(&g->value[v]->shape),
                         g->value[v]->kind == CVY_VALUE_VARIABLE ? "cylinder" : "ellipse");
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        if (node->removed)
            continue;
        cvy_text_add(&t, "  n%d [label=\"%s\\n%s\"%s];\n", n, node->name, node->op->name,
                     node->backward ? ", style=dashed" : "");
        for (int i = 0; i < node->nsrc; i++) {
            const cvy_value *src = node->src[i];
            cvy_text_add(&t, "  %c%d -> n%d [label=\"%s\"];\n", src->producer ? 'n' : 'v',
                         src->producer ? src->producer->index : src->index, n,
                         src->producer ? cvy_shape_text(&src->shape) : "");
        }
    }
    cvy_text_add(&t, "}\n");
    return finish(&t, text_out);
}
