/*
 * pass_fuse_relu.c: a ReLU behind a convolution, fully connected layer or batch norm becomes part of that node, where its operator has the
 * option `relu`. Legal in training because ReLU's gradient is taken from its destination.
 *
 * Max pooling with that option keeps no winner where its maximum is not above zero, so its gradient is that of a ReLU before it or behind it as
 * well: that ReLU's own gradient goes, and with it the need to keep the ReLU's result, often the largest tensor of the network, until backward.
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

/* Of each value, by its index: how many sources of nodes it is, and the node that was seen last among them. */
struct reader { int count; cvy_node *last; };
struct fusion { cvy_graph *g; struct reader *reader; };

static void count_readers(struct fusion *f, cvy_node *node, int by)
{
    for (int i = 0; !node->removed && i < node->nsrc; i++) {
        f->reader[node->src[i]->index].count += by;
        f->reader[node->src[i]->index].last = node;
    }
}

static int is_op(const cvy_node *node, const char *name)
{
    return node && !node->removed && strcmp(node->op->name, name) == 0;
}

static int is_between(const struct fusion *f, const cvy_value *v)
{
    return v->kind == CVY_VALUE_TEMP && !v->is_output && f->reader[v->index].count == 1;
}

static cvy_node *only_reader(const struct fusion *f, const cvy_value *v)
{
    cvy_node *node = is_between(f, v) ? f->reader[v->index].last : NULL;
    for (int i = 0; node && !node->removed && i < node->nsrc; i++)
        if (node->src[i] == v)
            return node;
    return NULL;
}

static void remove_node(struct fusion *f, cvy_node *node)
{
    count_readers(f, node, -1);
    node->removed = 1;
    node->dst[0] = NULL;
}

/* The pooling whose winners a max_pool_grad goes by. */
static cvy_node *pool_of(const cvy_node *pool_grad)
{
    cvy_node *pool = pool_grad->src[1]->producer;
    return is_op(pool, "max_pool") ? pool : NULL;
}

/* y = relu(..), pool(y): the ReLU's gradient follows the pooling's. */
static void drop_behind_pool_grad(struct fusion *f, cvy_node *relu_grad)
{
    cvy_value *between = relu_grad->src[0];
    cvy_node *pool_grad = between->producer, *pool = is_op(pool_grad, "max_pool_grad") ? pool_of(pool_grad) : NULL;
    if (!pool || pool->src[0] != relu_grad->src[1] || !is_between(f, between))
        return;
    *relu_option(pool) = 1;
    pool_grad->dst[0] = relu_grad->dst[0];
    pool_grad->dst[0]->producer = pool_grad;
    remove_node(f, relu_grad);
}

/* y = pool(x) with the ReLU in it: the ReLU's gradient comes before the pooling's. */
static void drop_before_pool_grad(struct fusion *f, cvy_node *relu_grad)
{
    cvy_node *pool_grad = only_reader(f, relu_grad->dst[0]), *pool = is_op(pool_grad, "max_pool_grad") ? pool_of(pool_grad) : NULL;
    if (!pool || pool->dst[0] != relu_grad->src[1] || !*relu_option(pool) || pool_grad->src[0] != relu_grad->dst[0])
        return;
    count_readers(f, pool_grad, -1);
    pool_grad->src[0] = relu_grad->src[0];
    remove_node(f, relu_grad);
    count_readers(f, pool_grad, 1);
}

static void drop_relu_grads(struct fusion *f)
{
    for (int n = 0; n < f->g->nnode; n++) {
        if (is_op(f->g->node[n], "relu_grad"))
            drop_behind_pool_grad(f, f->g->node[n]);
        if (is_op(f->g->node[n], "relu_grad"))
            drop_before_pool_grad(f, f->g->node[n]);
    }
}

static void fuse_relus(struct fusion *f)
{
    for (int n = 0; n < f->g->nnode; n++) {
        cvy_node *relu = f->g->node[n];
        if (!is_op(relu, "relu"))
            continue;
        cvy_value *between = relu->src[0];
        cvy_node *before = between->producer;
        int *option = before && before->dst[0] == between ? relu_option(before) : NULL;
        if (!option || *option || !is_between(f, between))
            continue;
        *option = 1;
        before->dst[0] = relu->dst[0];
        before->dst[0]->producer = before;
        remove_node(f, relu);
    }
}

cvy_status cvy_pass_fuse_relu(cvy_graph *g)
{
    struct fusion f = {.g = g};
    CVY_TRY(cvy_mem_alloc(sizeof *f.reader * (size_t)(g->nvalue + 1), &f.reader));
    for (int n = 0; n < g->nnode; n++)
        count_readers(&f, g->node[n], 1);
    fuse_relus(&f);
    drop_relu_grads(&f);
    cvy_mem_free(&f.reader);
    return cvy_graph_verify(g);
}
