/*
 * program_partition.c: runs the partitioning passes of the user's extensions (convoy/partition.h), which place layers
 * on the stages of a pipeline, and choose the layers that are split over a tensor axis.
 *
 * `run` is called before the layers are cut into stages, on the whole graph of the largest share of the first task;
 * `split`, before the first graph is split, on its forward graph.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "program/program_impl.h"

typedef struct view {
    cvy_program *program;
    const cvy_graph *graph;
    cvy_pool *pool; /* of the lists of sources */
    cvy_index at;   /* layers by name */
    cvy_partition_layer *layer;
    int nlayer, placed;
    int splits;        /* 1: `split` is called, 0: `run` */
    cvy_status status; /* the first fault of set_stage or split_channels */
} view;

/* ---- the layers ---- */

static int layer_of(const view *v, const cvy_node *node)
{
    return node ? cvy_index_find(&v->at, node->layer) : -1;
}

/* The same layers as plan_cut.c has: those that were fused into others are listed, too. */
static int is_listed(const cvy_node *node)
{
    return !node->backward && strcmp(node->layer, "update") != 0 && !(node->op->flags & CVY_OP_OPTIMIZER);
}

static cvy_status list_layers(view *v)
{
    const cvy_graph *g = v->graph;
    CVY_TRY(cvy_pool_alloc(v->pool, sizeof *v->layer * ((size_t)g->nnode + 1), &v->layer));
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        if (!is_listed(node) || layer_of(v, node) >= 0)
            continue;
        CVY_TRY(cvy_index_add(&v->at, node->layer, v->nlayer));
        v->layer[v->nlayer++] = (cvy_partition_layer){.name = node->layer, .op = node->op->name};
    }
    return CVY_OK;
}

static int has_source(const cvy_partition_layer *layer, int from)
{
    for (int i = 0; i < layer->nsrc; i++)
        if (layer->src[i] == from)
            return 1;
    return 0;
}

/* The result of a layer of several nodes is that of its last one. */
static void describe_result(cvy_partition_layer *layer, const cvy_value *result)
{
    layer->result = result->shape;
    layer->result_bytes = cvy_shape_elems(&result->shape) * (int64_t)cvy_dtype_bytes(result->dtype);
}

/* Gives each layer room for the list of its sources. */
static cvy_status make_rooms(view *v)
{
    int *room = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *room * ((size_t)v->nlayer + 1), &room));
    for (int n = 0; n < v->graph->nnode; n++)
        if (is_listed(v->graph->node[n]))
            room[layer_of(v, v->graph->node[n])] += v->graph->node[n]->nsrc;
    for (int k = 0; k < v->nlayer && status == CVY_OK; k++)
        status = cvy_pool_alloc(v->pool, sizeof(int) * ((size_t)room[k] + 1), &v->layer[k].src);
    cvy_mem_free(&room);
    return status;
}

static cvy_status describe_layers(view *v)
{
    CVY_TRY(make_rooms(v));
    for (int n = 0; n < v->graph->nnode; n++) {
        const cvy_node *node = v->graph->node[n];
        const int k = layer_of(v, node);
        if (k < 0)
            continue;
        cvy_partition_layer *layer = &v->layer[k];
        layer->flop += node->phase == CVY_PHASE_MICRO && !node->removed ? cvy_node_cost(node).flop : 0;
        if (!is_listed(node))
            continue;
        for (int i = 0; i < node->nsrc; i++) {
            const int from = layer_of(v, node->src[i]->producer);
            if (from >= 0 && from < k && !has_source(layer, from))
                ((int *)(uintptr_t)layer->src)[layer->nsrc++] = from;
        }
        layer->can_split |= v->splits && cvy_program_can_split(node);
        if (node->ndst > 0 && node->dst[0])
            describe_result(layer, node->dst[0]);
    }
    return CVY_OK;
}

/* A weight that several layers read belongs to the first one. */
static cvy_status add_weights(view *v)
{
    unsigned char *seen = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)v->graph->vars->count + 1, &seen));
    for (int n = 0; n < v->graph->nnode; n++) {
        const cvy_node *node = v->graph->node[n];
        for (int i = 0; is_listed(node) && i < node->nsrc; i++) {
            const cvy_variable *w = node->src[i]->kind == CVY_VALUE_VARIABLE ? node->src[i]->variable : NULL;
            if (!w || w->role != CVY_ROLE_WEIGHT || seen[w->index])
                continue;
            seen[w->index] = 1;
            v->layer[layer_of(v, node)].weight_bytes += cvy_shape_elems(&w->shape) * (int64_t)cvy_dtype_bytes(w->dtype);
        }
    }
    cvy_mem_free(&seen);
    return CVY_OK;
}

/* ---- running ---- */

static cvy_status place(view *v, int layer, int stage)
{
    CVY_CHECK(layer >= 0 && layer < v->nlayer, CVY_E_CONFIG, "there is no layer %d, expected 0 to %d", layer,
              v->nlayer - 1);
    CVY_CHECK(!v->splits, CVY_E_CONFIG, "only `run` places layers on stages, not `split`");
    return cvy_program_set_stage(v->program, v->layer[layer].name, stage);
}

static cvy_status split(view *v, int layer)
{
    int number = 0;
    CVY_CHECK(layer >= 0 && layer < v->nlayer, CVY_E_CONFIG, "there is no layer %d, expected 0 to %d", layer,
              v->nlayer - 1);
    CVY_CHECK(v->splits, CVY_E_CONFIG, "only `split` splits layers, not `run`");
    CVY_CHECK(v->layer[layer].can_split, CVY_E_CONFIG,
              "layer %s has no weights that can be split by channels: look at can_split", v->layer[layer].name);
    return cvy_keys_add(&v->program->ways.tensor_layer, v->layer[layer].name, &number);
}

/* Tells the pass how a call has ended. */
static int answer(view *v, cvy_partition_graph *graph, cvy_status status)
{
    v->placed += status == CVY_OK;
    if (status == CVY_OK)
        return 0;
    v->status = status;
    snprintf(graph->message, sizeof graph->message, "%s", cvy_error_text());
    return 1;
}

static int set_stage(cvy_partition_graph *graph, int layer, int stage)
{
    return answer(graph->owned, graph, place(graph->owned, layer, stage));
}

static int split_channels(cvy_partition_graph *graph, int layer)
{
    return answer(graph->owned, graph, split(graph->owned, layer));
}

static cvy_status run_pass(view *v, const cvy_extension_file *file, const cvy_partition *pass)
{
    const cvy_grid *grid = &v->program->grid;
    cvy_partition_graph graph = {.size = sizeof graph,
                                 .nstages = v->program->pipeline.nstages,
                                 .nmicro = v->program->task[0]->nmicro,
                                 .nparts = grid->length[CVY_AXIS_TENSOR],
                                 .ndata = grid->ndata,
                                 .nlayer = v->nlayer,
                                 .layer = v->layer,
                                 .set_stage = set_stage,
                                 .split_channels = split_channels,
                                 .owned = v};
    int (*const call)(cvy_partition_graph *) = v->splits ? pass->split : pass->run;
    if (!call)
        return CVY_OK;
    v->placed = 0;
    v->status = CVY_OK;
    const int failed = call(&graph) != 0 || v->status != CVY_OK;
    graph.message[sizeof graph.message - 1] = 0;
    CVY_CHECK(!failed, v->status < 0 ? v->status : CVY_E_CONFIG, "library %s, pass %s: %s", file->path, pass->name,
              *graph.message ? graph.message : "it failed and gave no reason");
    cvy_log(v->program->context, CVY_LOG_INFO, "library %s: the pass %s has %s %d of %d layers", file->path, pass->name,
            v->splits ? "split" : "placed", v->placed, v->nlayer);
    return CVY_OK;
}

static cvy_status run_all(view *v)
{
    const cvy_extensions *x = &v->program->context->extensions;
    CVY_TRY(list_layers(v));
    CVY_TRY(describe_layers(v));
    CVY_TRY(add_weights(v));
    for (int i = 0; i < x->nfile; i++)
        for (int k = 0; k < x->file[i]->npartition; k++)
            CVY_TRY(run_pass(v, x->file[i], &x->file[i]->partition[k]));
    return CVY_OK;
}

static cvy_status run_passes(cvy_program *p, const cvy_graph *graph, int splits, int *npass_out)
{
    const cvy_extensions *x = &p->context->extensions;
    view v = {.program = p, .graph = graph, .splits = splits};
    *npass_out = 0;
    for (int i = 0; i < x->nfile; i++)
        for (int k = 0; k < x->file[i]->npartition; k++)
            *npass_out += (splits ? x->file[i]->partition[k].split : x->file[i]->partition[k].run) != NULL;
    if (*npass_out == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_create(&v.pool));
    const cvy_status status = run_all(&v);
    cvy_index_free(&v.at);
    cvy_pool_destroy(&v.pool);
    return status;
}

cvy_status cvy_program_run_partitions(cvy_program *p, const cvy_graph *graph)
{
    int npass;
    return run_passes(p, graph, 0, &npass);
}

cvy_status cvy_program_run_splits(cvy_program *p, const cvy_graph *graph)
{
    int npass = 0;
    CVY_TRY(run_passes(p, graph, 1, &npass));
    p->ways.are_named = npass > 0;
    return CVY_OK;
}
