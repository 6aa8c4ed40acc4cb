/*
 * pass_fuse_relu.c: a ReLU behind a convolution, fully connected layer or batch norm becomes part of that node, where its operator has the
 * option `relu`. Legal in training because ReLU's gradient is taken from its destination.
 */
#include <string.h>

#include "pass/pass.h"

static int *relu_option(const cvy_node *node)
{
    for (const cvy_option *row = node->op->options; row && row->name; row++)
        if (strcmp(row->name, "relu") == 0 && row->type == CVY_TYPE_BOOL)
            return (int *)((char *)node->options + row->offset);
    return NULL;
}

static int count_readers(const cvy_graph *g, const cvy_value *v)
{
    int readers = 0;
    for (int n = 0; n < g->nnode; n++)
        for (int i = 0; !g->node[n]->removed && i < g->node[n]->nsrc; i++)
            readers += g->node[n]->src[i] == v;
    return readers;
}

cvy_status cvy_pass_fuse_relu(cvy_graph *g)
{
    for (int n = 0; n < g->nnode; n++) {
        cvy_node *relu = g->node[n];
        if (relu->removed || strcmp(relu->op->name, "relu") != 0)
            continue;
        cvy_value *between = relu->src[0];
        cvy_node *before = between->producer;
        int *option = before && before->dst[0] == between ? relu_option(before) : NULL;
        if (!option || *option || between->is_output || between->kind != CVY_VALUE_TEMP || count_readers(g, between) != 1)
            continue;
        *option = 1;
        before->dst[0] = relu->dst[0];
        before->dst[0]->producer = before;
        relu->removed = 1;
        relu->dst[0] = NULL;
    }
    return cvy_graph_verify(g);
}
