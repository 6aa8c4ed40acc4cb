/*
 * graph.c: builds a graph: feeds, values that read variables, nodes with inferred destinations.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "graph/graph_op.h"

cvy_status cvy_graph_create(cvy_vars *vars, const cvy_graph_opts *opts, cvy_graph **out)
{
    cvy_pool *pool = NULL;
    cvy_graph *g = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_pool_alloc(pool, sizeof *g, &g));
    *g = (cvy_graph){.pool = pool,
                     .vars = vars,
                     .batch = opts->batch,
                     .training = opts->training,
                     .dropout = opts->dropout,
                     .dtype = opts->dtype,
                     .bn_group = opts->bn_group,
                     .bn_unit = opts->bn_unit,
                     .bn_frozen = opts->bn_frozen,
                     .precise = opts->precise,
                     .seed = opts->seed};
    CVY_TRY_OUT(cvy_pool_strdup(pool, opts->name ? opts->name : "graph", &g->name));
    *out = g;
    return CVY_OK;
out:
    cvy_pool_destroy(&pool);
    return status;
}

void cvy_graph_destroy(cvy_graph **graph)
{
    if (!*graph)
        return;
    cvy_pool *pool = (*graph)->pool;
    cvy_graph_destroy(&(*graph)->whole);
    if ((*graph)->owns_vars)
        cvy_vars_destroy(&(*graph)->vars);
    cvy_mem_free(&(*graph)->node);
    cvy_mem_free(&(*graph)->value);
    cvy_mem_free(&(*graph)->read);
    cvy_index_free(&(*graph)->node_names);
    cvy_index_free(&(*graph)->value_place);
    cvy_pool_destroy(&pool);
    *graph = NULL;
}

cvy_status cvy_graph_new_value(cvy_graph *g, const char *name, cvy_dtype dtype, const cvy_shape *shape, cvy_value **out)
{
    CVY_CHECK(cvy_shape_fits(shape), CVY_E_MEMORY, "%s would be %s, more elements than any memory can hold", name,
              cvy_shape_text(shape));
    CVY_TRY(cvy_mem_reserve(&g->value, &g->value_room, g->nvalue, sizeof *g->value));
    cvy_value *v = NULL;
    CVY_TRY(cvy_pool_alloc(g->pool, sizeof *v, &v));
    CVY_TRY(cvy_pool_strdup(g->pool, name, &v->name));
    v->index = g->nvalue;
    v->dtype = dtype;
    v->shape = *shape;
    v->bucket = -1;
    CVY_TRY(cvy_index_add(&g->value_place, v->name, g->nvalue));
    g->value[g->nvalue++] = v;
    *out = v;
    return CVY_OK;
}

cvy_value *cvy_graph_find(const cvy_graph *g, const char *value_name)
{
    const int at = cvy_index_find(&g->value_place, value_name);
    return at >= 0 ? g->value[at] : NULL;
}

cvy_status cvy_graph_feed(cvy_graph *g, const char *name, cvy_dtype dtype, const cvy_shape *sample_shape, int per_step,
                          cvy_value **out)
{
    cvy_shape shape = *sample_shape;
    if (!per_step) {
        CVY_CHECK(sample_shape->ndim < CVY_NDIM_MAX, CVY_E_SHAPE,
                  "input %s has %d dimensions a sample, at most %d are possible", name, sample_shape->ndim,
                  CVY_NDIM_MAX - 1);
        shape.ndim = sample_shape->ndim + 1;
        shape.dim[0] = g->batch.local_n;
        for (int i = 0; i < sample_shape->ndim; i++)
            shape.dim[i + 1] = sample_shape->dim[i];
    }
    cvy_value *v = cvy_graph_find(g, name);
    if (v) {
        CVY_CHECK(v->kind == CVY_VALUE_FEED && v->dtype == dtype && cvy_shape_equal(&v->shape, &shape), CVY_E_SHAPE,
                  "input %s is %s %s already, and is now asked for as %s %s", name, cvy_dtype_text(v->dtype),
                  cvy_shape_text(&v->shape), cvy_dtype_text(dtype), cvy_shape_text(&shape));
        *out = v;
        return CVY_OK;
    }
    CVY_TRY(cvy_graph_new_value(g, name, dtype, &shape, &v));
    v->kind = CVY_VALUE_FEED;
    v->per_step = per_step;
    *out = v;
    return CVY_OK;
}

cvy_dtype cvy_graph_weight_dtype(const cvy_graph *g)
{
    return g->dtype == CVY_DTYPE_BF16 ? CVY_DTYPE_F32 : g->dtype;
}

cvy_status cvy_graph_sample_id(cvy_graph *g, cvy_value **out)
{
    return cvy_graph_feed(g, "sample_id", CVY_DTYPE_I64, &(cvy_shape){0}, 0, out);
}

/* The parentheses keep the names of layers free: one may be called `step` or `norm`. */
cvy_status cvy_graph_step_number(cvy_graph *g, cvy_value **out)
{
    return cvy_graph_feed(g, "(step)", CVY_DTYPE_I64, &(cvy_shape){0}, 1, out);
}

cvy_status cvy_graph_norm(cvy_graph *g, cvy_value **out)
{
    return cvy_graph_feed(g, "(norm)", CVY_DTYPE_F64, &(cvy_shape){0}, 1, out);
}

cvy_status cvy_graph_read_variable(cvy_graph *g, cvy_variable *variable, cvy_value **out)
{
    cvy_value *v = NULL;
    for (; g->nread <= variable->index; g->nread++) /* reserve sets new entries to zero */
        CVY_TRY(cvy_mem_reserve(&g->read, &g->read_room, g->nread, sizeof *g->read));
    if (g->read[variable->index]) {
        *out = g->read[variable->index];
        return CVY_OK;
    }
    CVY_TRY(cvy_graph_new_value(g, variable->name, variable->dtype, &variable->shape, &v));
    v->kind = CVY_VALUE_VARIABLE;
    v->variable = variable;
    *out = g->read[variable->index] = v;
    return CVY_OK;
}

void cvy_graph_move_node(cvy_graph *g, cvy_node *node, int index)
{
    const int step = index < node->index ? -1 : 1;
    for (int i = node->index; i != index; i += step) {
        g->node[i] = g->node[i + step];
        g->node[i]->index = i;
    }
    g->node[index] = node;
    node->index = index;
}

static cvy_status append_node(cvy_graph *g, cvy_node *node)
{
    CVY_TRY(cvy_mem_reserve(&g->node, &g->node_room, g->nnode, sizeof *g->node));
    CVY_TRY(cvy_index_add(&g->node_names, node->name, g->nnode));
    node->index = g->nnode;
    g->node[g->nnode++] = node;
    return CVY_OK;
}

/* A layer may be applied again, as "name.2", "name.3", .., in a deep network some thousand times: a name that is free
 * after one that is not is found by halving. */
static cvy_status free_node_name(cvy_graph *g, const char *name, char **out)
{
    int taken = 1, free = 1;
    char *text = NULL;
    CVY_TRY(cvy_pool_strdup(g->pool, name, out));
    if (cvy_index_find(&g->node_names, name) < 0)
        return CVY_OK;
    do {
        taken = free;
        free *= 2;
        CVY_TRY(cvy_pool_printf(g->pool, out, "%s.%d", name, free));
    } while (cvy_index_find(&g->node_names, *out) >= 0);
    while (free - taken > 1) {
        const int middle = taken + (free - taken) / 2;
        CVY_TRY(cvy_pool_printf(g->pool, &text, "%s.%d", name, middle));
        const int is_taken = cvy_index_find(&g->node_names, text) >= 0;
        *(is_taken ? &taken : &free) = middle;
        *out = is_taken ? *out : text;
    }
    return CVY_OK;
}

static cvy_status new_node(cvy_graph *g, const cvy_op_def *op, const char *name, const char *layer,
                           cvy_value *const *src, int nsrc, cvy_phase phase, cvy_node **out)
{
    CVY_CHECK(nsrc >= op->nsrc_min && nsrc <= op->nsrc_max && nsrc <= CVY_NODE_SRC_MAX, CVY_E_SHAPE,
              "%s: %s takes %d%s%.0d sources, got %d", name, op->name, op->nsrc_min,
              op->nsrc_max > op->nsrc_min ? " or more, at most " : "", op->nsrc_max > op->nsrc_min ? op->nsrc_max : 0,
              nsrc);
    cvy_node *node = NULL;
    CVY_TRY(cvy_pool_alloc(g->pool, sizeof *node, &node));
    CVY_TRY(free_node_name(g, name, &node->name));
    char *layer_copy = NULL;
    CVY_TRY(cvy_pool_strdup(g->pool, layer ? layer : name, &layer_copy));
    node->layer = layer_copy;
    node->op = op;
    node->graph = g;
    node->phase = phase;
    node->nsrc = nsrc;
    node->ndst = op->ndst;
    for (int i = 0; i < nsrc; i++)
        node->src[i] = src[i];
    if (op->options_size)
        CVY_TRY(cvy_pool_alloc(g->pool, op->options_size, &node->options));
    *out = node;
    return CVY_OK;
}

/* Prefixes the message by the layer, unless a node of the same layer has done so already. */
static cvy_status name_layer(cvy_status status, const char *layer, const char *op_name)
{
    const size_t n = strlen(layer);
    const char *text = cvy_error_text();
    const int named = strncmp(text, "layer ", 6) == 0 && strncmp(text + 6, layer, n) == 0 && text[6 + n] == ' ';
    return status == CVY_OK || named ? status : cvy_error_prefix(status, "layer %s (%s)", layer, op_name);
}

static cvy_status infer_and_append(cvy_node *node, cvy_node **out)
{
    CVY_TRY(name_layer(node->op->infer(node), node->layer, node->op->name));
    CVY_TRY(append_node(node->graph, node));
    *out = node;
    return CVY_OK;
}

cvy_status cvy_graph_add(cvy_graph *g, const char *op_name, const char *name, const char *layer, const char *options,
                         cvy_value *const *src, int nsrc, cvy_node **out)
{
    const cvy_op_def *op = cvy_op_find(op_name);
    CVY_CHECK(op, CVY_E_ARGUMENT, "%s: there is no operator '%s'", name, op_name);
    return cvy_graph_add_op(g, op, name, layer, options, src, nsrc, out);
}

cvy_status cvy_graph_add_op(cvy_graph *g, const cvy_op_def *op, const char *name, const char *layer,
                            const char *options, cvy_value *const *src, int nsrc, cvy_node **out)
{
    cvy_node *node = NULL;
    CVY_TRY(new_node(g, op, name, layer, src, nsrc, CVY_PHASE_MICRO, &node));
    if (op->options)
        CVY_TRY(cvy_options_parse_text(g->pool, name, op->options, options, node->options, op->options_size));
    return infer_and_append(node, out);
}

cvy_status cvy_graph_add_parsed(cvy_graph *g, const cvy_op_def *op, const char *name, const char *layer,
                                const void *options, cvy_value *const *src, int nsrc, cvy_phase phase, cvy_node **out)
{
    cvy_node *node = NULL;
    CVY_TRY(new_node(g, op, name, layer, src, nsrc, phase, &node));
    if (op->options_size && options)
        memcpy(node->options, options, op->options_size);
    else if (op->options)
        CVY_TRY(cvy_options_parse_text(g->pool, name, op->options, NULL, node->options, op->options_size));
    return infer_and_append(node, out);
}

/* Results of nodes that work on a part of the samples have this part, unless the operator or pass knows better. */
static int any_shares_samples(const cvy_node *node)
{
    int any = 0;
    for (int i = 0; i < node->nsrc; i++)
        any |= node->src[i] && node->src[i]->shares_samples;
    return any;
}

cvy_batch cvy_node_batch(const cvy_node *node)
{
    const cvy_graph *g = node->graph;
    cvy_batch batch = g->batch;
    if (!any_shares_samples(node))
        return batch;
    batch.first += cvy_share_first(g->batch.local_n, g->sample_part, g->sample_parts);
    batch.local_n = cvy_share_first(g->batch.local_n, g->sample_part + 1, g->sample_parts) -
                    cvy_share_first(g->batch.local_n, g->sample_part, g->sample_parts);
    batch.nranks *= g->sample_parts;
    batch.rank = batch.rank * g->sample_parts + g->sample_part;
    return batch;
}

/* A layer may have a variable with its own name, which is the name of a value already. */
static cvy_status make_dst(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape)
{
    CVY_EXPECT(i < node->ndst && i < CVY_NODE_DST_MAX);
    char name[160];
    if (i == 0 && !cvy_graph_find(node->graph, node->name))
        snprintf(name, sizeof name, "%s", node->name);
    else
        snprintf(name, sizeof name, "%s:%d", node->name, i);
    CVY_TRY(cvy_graph_new_value(node->graph, name, dtype, shape, &node->dst[i]));
    node->dst[i]->producer = node;
    node->dst[i]->per_step = node->phase == CVY_PHASE_UPDATE;
    node->dst[i]->shares_samples = any_shares_samples(node);
    return CVY_OK;
}

cvy_status cvy_graph_add_copy(cvy_graph *g, const cvy_node *node, const char *suffix, cvy_value *const *src,
                              cvy_node **out)
{
    cvy_node *copy = NULL;
    CVY_TRY(cvy_pool_alloc(g->pool, sizeof *copy, &copy));
    *copy = *node;
    copy->copy_of = node;
    CVY_TRY(cvy_pool_printf(g->pool, &copy->name, "%s.%s", node->name, suffix));
    memset(copy->dst, 0, sizeof copy->dst);
    for (int i = 0; i < node->nsrc; i++)
        copy->src[i] = src[i];
    for (int i = 0; i < node->op->ndst - node->op->nsaved; i++)
        if (node->dst[i])
            CVY_TRY(make_dst(copy, i, node->dst[i]->dtype, &node->dst[i]->shape));
    CVY_TRY(append_node(g, copy));
    *out = copy;
    return CVY_OK;
}

cvy_status cvy_graph_layer(cvy_graph *g, const char *op_name, const char *name, const cvy_tree *options,
                           cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    const cvy_op_def *op = cvy_op_find(op_name);
    CVY_CHECK(op, CVY_E_ARGUMENT, "%s: there is no operator '%s'", name, op_name);
    return cvy_graph_layer_op(g, op, name, options, src, nsrc, dst_out);
}

cvy_status cvy_graph_layer_op(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    if (!op->options) /* then there are no known keys */
        CVY_TRY(cvy_options_parse(g->pool, name, NULL, options, NULL, NULL, 0));
    if (op->build)
        return name_layer(op->build(g, op, name, options, src, nsrc, dst_out), name, op->name);
    cvy_node *node = NULL;
    CVY_TRY(new_node(g, op, name, name, src, nsrc, CVY_PHASE_MICRO, &node));
    if (op->options)
        CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, node->options, op->options_size));
    CVY_TRY(infer_and_append(node, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* ---- for infer ---- */

cvy_status cvy_node_set_dst(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape)
{
    for (int d = 0; d < shape->ndim; d++)
        CVY_CHECK(shape->dim[d] > 0 || (d == 0 && (node->op->comm || cvy_node_batch(node).local_n == 0)), CVY_E_SHAPE,
                  "the result would be %s: the source %s is too small for this layer", cvy_shape_text(shape),
                  node->nsrc ? cvy_shape_text(&node->src[0]->shape) : "");
    return make_dst(node, i, dtype, shape);
}

cvy_status cvy_node_set_saved(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape)
{
    CVY_EXPECT(i >= node->ndst - node->op->nsaved && i < node->ndst);
    if (!node->saved)
        CVY_TRY(cvy_pool_alloc(node->graph->pool, sizeof *node->saved * (size_t)node->ndst, &node->saved));
    node->saved[i] = (struct cvy_saved_dst){dtype, *shape};
    return CVY_OK;
}

cvy_status cvy_node_set_accumulator(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape, int reduced)
{
    CVY_TRY(make_dst(node, i, dtype, shape));
    node->dst[i]->kind = CVY_VALUE_ACCUMULATOR;
    node->dst[i]->reduced = reduced;
    return CVY_OK;
}

static cvy_status append_variable(cvy_node *node, const char *suffix, cvy_role role, const cvy_shape *shape,
                                  const cvy_init *init, int decay)
{
    CVY_EXPECT(node->nsrc < CVY_NODE_SRC_MAX);
    char name[160];
    snprintf(name, sizeof name, "%s%s%s", node->layer, *suffix ? "." : "", suffix);
    cvy_variable *v = NULL;
    const int known = cvy_vars_find(node->graph->vars, name) != NULL;
    CVY_TRY(cvy_vars_declare(node->graph->vars, name, role, cvy_graph_weight_dtype(node->graph), shape, init, &v));
    if (!known)
        v->decay = decay;
    CVY_TRY(cvy_graph_read_variable(node->graph, v, &node->src[node->nsrc]));
    node->nsrc++;
    return CVY_OK;
}

cvy_status cvy_node_param(cvy_node *node, const char *suffix, const cvy_shape *shape, const cvy_init *init, int decay)
{
    return append_variable(node, suffix, CVY_ROLE_WEIGHT, shape, init, decay);
}

cvy_status cvy_node_statistic(cvy_node *node, const char *suffix, const cvy_shape *shape, const cvy_init *init)
{
    return append_variable(node, suffix, CVY_ROLE_STATISTIC, shape, init, 0);
}

cvy_status cvy_node_assign(cvy_node *node, int i, int j)
{
    cvy_value *read = node->src[j];
    CVY_EXPECT(read->kind == CVY_VALUE_VARIABLE);
    CVY_TRY(make_dst(node, i, read->dtype, &read->shape));
    node->dst[i]->kind = CVY_VALUE_VARIABLE;
    node->dst[i]->variable = read->variable;
    return CVY_OK;
}
