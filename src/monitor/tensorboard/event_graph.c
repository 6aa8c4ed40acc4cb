/*
 * event_graph.c: writes a graph as a GraphDef: a node for each layer, with its options and the shapes of its values,
 * and one for each input and weight.
 *
 * TensorBoard draws nodes whose names share what is before a slash as a group. So weights have a slash before the last
 * part of their names, "conv1/weight", and nodes one behind the name of their layer. Source: graph.proto,
 * node_def.proto and attr_value.proto of TensorFlow.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "graph/graph_op.h"
#include "monitor/tensorboard/event.h"

enum { GRAPH_PRODUCER = 27 }; /* a version of GraphDef that all readers accept */

typedef struct drawing {
    cvy_pool *pool;
    const char **name; /* of each value, as sources call it; NULL: its node is not written yet */
    Cvy__Tb__GraphDef def;
} drawing;

/* ---- attributes ---- */

static cvy_status add_attribute(drawing *d, Cvy__Tb__NodeDef *node, const char *key, Cvy__Tb__AttrValue **out)
{
    Cvy__Tb__AttrEntry *entry = NULL;
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *entry, &entry));
    cvy__tb__attr_entry__init(entry);
    CVY_TRY(cvy_pool_strdup(d->pool, key, &entry->key));
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof **out, out));
    cvy__tb__attr_value__init(*out);
    entry->value = *out;
    node->attr[node->n_attr++] = entry;
    return CVY_OK;
}

static cvy_status add_text(drawing *d, Cvy__Tb__NodeDef *node, const char *key, const char *text)
{
    Cvy__Tb__AttrValue *value = NULL;
    char *copy = NULL;
    CVY_TRY(add_attribute(d, node, key, &value));
    CVY_TRY(cvy_pool_strdup(d->pool, text, &copy));
    value->value_case = CVY__TB__ATTR_VALUE__VALUE_S;
    value->s = (ProtobufCBinaryData){strlen(copy), (uint8_t *)copy};
    return CVY_OK;
}

static cvy_status make_shape(drawing *d, const cvy_value *v, Cvy__Tb__TensorShapeProto **out)
{
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof **out, out));
    cvy__tb__tensor_shape_proto__init(*out);
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof(Cvy__Tb__Dim *) * (CVY_NDIM_MAX + 1), &(*out)->dim));
    for (int i = 0; i < v->shape.ndim; i++) {
        Cvy__Tb__Dim *dim = NULL;
        CVY_TRY(cvy_pool_alloc(d->pool, sizeof *dim, &dim));
        cvy__tb__dim__init(dim);
        dim->size = i == 0 && v->kind != CVY_VALUE_VARIABLE && !v->per_step ? -1 : v->shape.dim[i];
        (*out)->dim[(*out)->n_dim++] = dim;
    }
    return CVY_OK;
}

static cvy_status add_shapes(drawing *d, Cvy__Tb__NodeDef *node, cvy_value *const *v, int n)
{
    Cvy__Tb__AttrValue *value = NULL;
    CVY_TRY(add_attribute(d, node, "_output_shapes", &value));
    value->value_case = CVY__TB__ATTR_VALUE__VALUE_LIST;
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *value->list, &value->list));
    cvy__tb__attr_list__init(value->list);
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof(Cvy__Tb__TensorShapeProto *) * ((size_t)n + 1), &value->list->shape));
    for (int i = 0; i < n && v[i]; i++)
        CVY_TRY(make_shape(d, v[i], &value->list->shape[value->list->n_shape++]));
    return CVY_OK;
}

/* Each option is an attribute. */
static cvy_status add_options(drawing *d, const cvy_node *from, Cvy__Tb__NodeDef *node)
{
    cvy_tree *map = NULL;
    char *text = NULL;
    cvy_status status = CVY_OK;
    if (!from->op->options || !from->options)
        return CVY_OK;
    CVY_TRY(cvy_options_tree(d->pool, from->op->options, from->options, &map));
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof(Cvy__Tb__AttrEntry *) * ((size_t)map->count + 2), &node->attr));
    for (int i = 0; i < map->count && status == CVY_OK; i++) {
        status = cvy_tree_print_line(map->child[i], &text);
        if (status == CVY_OK)
            status = add_text(d, node, map->key[i], text);
        cvy_mem_free(&text);
    }
    return status;
}

/* ---- nodes ---- */

static cvy_status add_node(drawing *d, const char *name, const char *op, Cvy__Tb__NodeDef **out)
{
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof **out, out));
    cvy__tb__node_def__init(*out);
    CVY_TRY(cvy_pool_strdup(d->pool, name, &(*out)->name));
    CVY_TRY(cvy_pool_strdup(d->pool, op, &(*out)->op));
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof(char *) * CVY_NODE_SRC_MAX, &(*out)->input));
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof(Cvy__Tb__AttrEntry *) * 2, &(*out)->attr));
    d->def.node[d->def.n_node++] = *out;
    return CVY_OK;
}

/* An input or a weight. */
static cvy_status add_leaf(drawing *d, cvy_value *v)
{
    Cvy__Tb__NodeDef *node = NULL;
    const int is_variable = v->kind == CVY_VALUE_VARIABLE;
    char *name = NULL;
    CVY_TRY(cvy_pool_strdup(d->pool, is_variable ? v->variable->name : v->name, &name));
    char *dot = is_variable ? strrchr(name, '.') : NULL;
    if (dot)
        *dot = '/';
    d->name[v->index] = name;
    CVY_TRY(add_node(d, name, is_variable ? "Variable" : "Placeholder", &node));
    return add_shapes(d, node, &v, 1);
}

static cvy_status add_layer(drawing *d, const cvy_node *from)
{
    Cvy__Tb__NodeDef *node = NULL;
    char *name = NULL;
    const size_t layer = from->layer ? strlen(from->layer) : 0;
    for (int i = 0; i < from->nsrc; i++)
        if (!d->name[from->src[i]->index])
            CVY_TRY(add_leaf(d, from->src[i]));
    CVY_TRY(cvy_pool_strdup(d->pool, from->name, &name));
    if (layer && strncmp(name, from->layer, layer) == 0 && name[layer] == '.')
        name[layer] = '/';
    CVY_TRY(add_node(d, name, from->op->name, &node));
    for (int i = 0; i < from->nsrc; i++)
        node->input[node->n_input++] = (char *)(uintptr_t)d->name[from->src[i]->index];
    CVY_TRY(add_options(d, from, node));
    CVY_TRY(add_shapes(d, node, from->dst, from->ndst));
    for (int i = 0; i < from->ndst; i++) {
        char *output = name;
        if (i > 0)
            CVY_TRY(cvy_pool_printf(d->pool, &output, "%s:%d", name, i));
        if (from->dst[i] && !d->name[from->dst[i]->index])
            d->name[from->dst[i]->index] = output;
    }
    return CVY_OK;
}

static cvy_status draw(drawing *d, const cvy_graph *g)
{
    const size_t room = (size_t)g->nvalue + (size_t)g->nnode + 1;
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *d->name * room, &d->name));
    CVY_TRY(cvy_pool_alloc(d->pool, sizeof *d->def.node * room, &d->def.node));
    for (int i = 0; i < g->nnode; i++)
        if (!g->node[i]->removed)
            CVY_TRY(add_layer(d, g->node[i]));
    return CVY_OK;
}

static cvy_status write_def(cvy_events *e, const Cvy__Tb__GraphDef *def)
{
    Cvy__Tb__Event event = CVY__TB__EVENT__INIT;
    uint8_t *data = NULL;
    const size_t bytes = cvy__tb__graph_def__get_packed_size(def);
    CVY_TRY(cvy_mem_alloc(bytes, &data));
    cvy__tb__graph_def__pack(def, data);
    event.what_case = CVY__TB__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = (ProtobufCBinaryData){bytes, data};
    const cvy_status status = cvy_event_write(e, 0, &event);
    cvy_mem_free(&data);
    return status;
}

cvy_status cvy_events_add_graph(cvy_events *e, const cvy_graph *graph)
{
    Cvy__Tb__VersionDef versions = CVY__TB__VERSION_DEF__INIT;
    drawing d = {.def = CVY__TB__GRAPH_DEF__INIT};
    if (!e)
        return CVY_OK;
    CVY_TRY(cvy_pool_create(&d.pool));
    versions.producer = GRAPH_PRODUCER;
    d.def.versions = &versions;
    cvy_status status = draw(&d, graph);
    if (status == CVY_OK)
        status = write_def(e, &d.def);
    cvy_pool_destroy(&d.pool);
    return status;
}
