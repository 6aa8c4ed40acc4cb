/*
 * program_ways.c: how the ranks of a tensor axis divide the layers with weights. A layer is split by its channels, or
 * the ranks share its samples as on a data axis. Layers without weights follow the layers before them.
 *
 *   all    every layer is split by channels; also if no pass of the user's extensions chooses
 *   names  these layers are split by channels, all others share samples
 *   auto   the layers from one of them on are split by channels, those before it share samples: convolutions have many
 *          activations and few weights, fully connected layers at the end have many weights and few activations. The
 *          first layer is the one for which ranks exchange the fewest bytes in a step
 *
 * Sources: Krizhevsky 2014, One weird trick for parallelizing convolutional neural networks (samples, then channels);
 * Shoeybi et al. 2019, Megatron-LM, section 3 (outputs, then inputs).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/text/base_table.h"
#include "program/program_impl.h"

/* What the ranks of the axis have of a value. */
enum { WHOLE, CHANNELS, SAMPLES };

struct walk {
    const cvy_program *p;
    const cvy_graph *graph;
    int parts;
    double ndata, nmicro;
    double samples;        /* of a micro-batch, on one place of the data axis */
    int first_tensor;      /* without names: the number of the first layer that is split by channels */
    int may_share;         /* 1: ranks share the samples of layers that are not split by channels */
    cvy_index *of_layer;   /* gets the way of each layer with weights; NULL: only bytes are counted */
    unsigned char *has;    /* by value of the graph */
    double bytes;          /* that a rank sends in a step along the tensor axis, and for the gradients of the weights */
    int ntensor, nsamples; /* layers of each way */
};

/* ---- layers ---- */

static unsigned ways_of(const cvy_node *node)
{
    return node->removed || node->nsrc == 0 ? 0 : cvy_node_splits(node) & (CVY_SPLIT_OUTPUTS | CVY_SPLIT_INPUTS);
}

int cvy_program_can_split(const cvy_node *node)
{
    return ways_of(node) != 0;
}

/* A node that reads variables alone makes a weight of another one. Ranks compute it whole. */
static int makes_weight(const cvy_node *node)
{
    int all = node->nsrc > 0;
    for (int i = 0; i < node->nsrc; i++)
        all = all && node->src[i] && node->src[i]->kind == CVY_VALUE_VARIABLE;
    return all;
}

static int is_weight(const cvy_value *v)
{
    return v->kind == CVY_VALUE_VARIABLE || (v->producer && makes_weight(v->producer));
}

static int source_has(const struct walk *w, const cvy_node *node, int has)
{
    int any = 0;
    for (int i = 0; i < node->nsrc; i++)
        any |= node->src[i] && w->has[node->src[i]->index] == has;
    return any;
}

static int is_tensor_layer(const struct walk *w, const cvy_node *node, int number)
{
    const cvy_keys *named = &w->p->ways.tensor_layer;
    return w->p->ways.are_named ? cvy_keys_find(named, node->layer) >= 0 : number >= w->first_tensor;
}

/* A layer whose source is whole on all ranks is split by its outputs, the next one by its inputs: then the pair needs
 * one sum over ranks forward and one backward. The variables of all graphs are split alike, so a layer is split as in
 * the first graph that has it. Graphs differ: without dropout, a layer of a forward task would have another source. */
static unsigned way_of(const struct walk *w, const cvy_node *node, int number)
{
    const unsigned can = ways_of(node);
    const int by_channels = source_has(w, node, CHANNELS),
              before = can ? cvy_index_find(&w->p->ways.of_layer, node->layer) : 0;
    if (before >= 0)
        return (unsigned)before;
    if (!is_tensor_layer(w, node, number))
        return CVY_SPLIT_SAMPLES;
    if (can & CVY_SPLIT_INPUTS && by_channels && cvy_node_src(node, 0)->ndim > 1)
        return CVY_SPLIT_INPUTS;
    if (can & CVY_SPLIT_OUTPUTS && !by_channels && cvy_node_dst(node, 0)->dim[1] >= w->parts)
        return CVY_SPLIT_OUTPUTS;
    return w->may_share ? CVY_SPLIT_SAMPLES : 0;
}

/* What a node needs of its sources. */
static int needs(const struct walk *w, const cvy_node *node, unsigned way)
{
    const unsigned can = cvy_node_splits(node) | node->op->part_splits;
    switch (way) {
    case CVY_SPLIT_SAMPLES: return SAMPLES;
    case CVY_SPLIT_INPUTS: return CHANNELS;
    case CVY_SPLIT_OUTPUTS: return WHOLE;
    default:
        return can & CVY_SPLIT_SAMPLES && source_has(w, node, SAMPLES)     ? SAMPLES
               : can & CVY_SPLIT_CHANNELS && source_has(w, node, CHANNELS) ? CHANNELS
                                                                           : WHOLE;
    }
}

/* ---- bytes ---- */

/* The graph may be that of a rank with fewer samples than others. All ranks have to count alike. */
static double activation_bytes(const struct walk *w, const cvy_value *v)
{
    double bytes = w->samples * (double)cvy_dtype_bytes(v->dtype);
    for (int d = 1; d < v->shape.ndim; d++)
        bytes *= (double)v->shape.dim[d];
    return bytes;
}

/* A ring sends this share of a tensor of which all ranks gather the parts, and twice as much to sum it. */
static double ring(double nranks)
{
    return 1 - 1 / nranks;
}

/* Forward and backward of one source: changing what ranks have of it, and its gradient back. */
static double source_bytes(const struct walk *w, const cvy_value *v, int need, unsigned way)
{
    const int has = w->has[v->index], is_feed = v->kind == CVY_VALUE_FEED;
    const double once = activation_bytes(w, v) * ring(w->parts);
    double times = has != WHOLE && has != need ? 1 : 0;
    if (way == CVY_SPLIT_OUTPUTS && !is_feed)
        times += 2; /* the gradient is a partial sum */
    else if (need != WHOLE && has != need && !is_feed)
        times += 1; /* the shares of the gradient are gathered */
    return times * once;
}

static double weight_bytes(const struct walk *w, const cvy_value *v, unsigned way)
{
    const double bytes = (double)(cvy_shape_elems(&v->shape) * (int64_t)cvy_dtype_bytes(v->dtype));
    switch (way) {
    case CVY_SPLIT_SAMPLES: return 2 * bytes * ring(w->ndata * w->parts);
    case 0: return 2 * bytes * ring(w->ndata);
    default: return 2 * bytes / w->parts * ring(w->ndata);
    }
}

static void count_bytes(struct walk *w, const cvy_node *node, int need, unsigned way)
{
    for (int i = 0; i < node->nsrc; i++) {
        const cvy_value *v = node->src[i];
        if (is_weight(v))
            w->bytes += ways_of(node) ? weight_bytes(w, v, way) : 0;
        else if (node->phase == CVY_PHASE_MICRO && v->shape.ndim > 0 && !v->per_step)
            w->bytes += w->nmicro * source_bytes(w, v, need, way);
    }
    if (way == CVY_SPLIT_INPUTS)
        w->bytes += w->nmicro * 2 * activation_bytes(w, node->dst[0]) * ring(w->parts);
}

/* ---- the walk ---- */

static cvy_status walk(struct walk *w)
{
    const cvy_graph *g = w->graph;
    memset(w->has, WHOLE, (size_t)g->nvalue);
    w->bytes = w->ntensor = w->nsamples = 0;
    for (int n = 0, number = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        const unsigned way = way_of(w, node, number);
        const int need = needs(w, node, way);
        number += ways_of(node) != 0;
        if (way && w->of_layer)
            CVY_TRY(cvy_index_add(w->of_layer, node->layer, (int)way));
        w->nsamples += way == CVY_SPLIT_SAMPLES;
        w->ntensor += way == CVY_SPLIT_INPUTS || way == CVY_SPLIT_OUTPUTS;
        count_bytes(w, node, need, way);
        for (int i = 0; i < node->ndst; i++)
            if (node->dst[i])
                w->has[node->dst[i]->index] = (unsigned char)(way == CVY_SPLIT_OUTPUTS  ? CHANNELS
                                                              : way == CVY_SPLIT_INPUTS ? WHOLE
                                                                                        : need);
    }
    return CVY_OK;
}

/* ---- which layers ---- */

static cvy_status list_layers(const cvy_graph *g, cvy_keys *out)
{
    int number = 0;
    for (int n = 0; n < g->nnode; n++)
        if (ways_of(g->node[n]))
            CVY_TRY(cvy_keys_add(out, g->node[n]->layer, &number));
    return CVY_OK;
}

static cvy_status name_layers(cvy_program *p, const cvy_keys *layers)
{
    for (const char *at = p->opts.tensor_layers; *(at += strspn(at, ", \t\n"));) {
        const size_t n = strcspn(at, ", \t\n");
        char name[160];
        int number = 0;
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        CVY_CHECK(cvy_keys_find(layers, name) >= 0, CVY_E_CONFIG,
                  "opts.tensor_layers names '%s', and the model has no layer of this name with weights that can be "
                  "split%s",
                  name, cvy_hint_name('\'', name, (const char *const *)layers->text, layers->count).text);
        CVY_TRY(cvy_keys_add(&p->ways.tensor_layer, name, &number));
        at += n;
    }
    return CVY_OK;
}

/* All ranks count alike, so they choose the same layers. */
static cvy_status take_fewest_bytes(struct walk *w, const cvy_keys *layers, cvy_keys *out)
{
    int best = 0, number = 0;
    double least = 0;
    w->may_share = 1;
    for (w->first_tensor = 0; w->first_tensor <= layers->count; w->first_tensor++) {
        CVY_TRY(walk(w));
        if (w->first_tensor == 0 || w->bytes < least) {
            least = w->bytes;
            best = w->first_tensor;
        }
    }
    for (int i = best; i < layers->count; i++)
        CVY_TRY(cvy_keys_add(out, layers->text[i], &number));
    return CVY_OK;
}

/* Chooses once, with the first graph, so that the variables of all tasks are split alike. */
static cvy_status choose(cvy_program *p, struct walk *w)
{
    const char *text = p->opts.tensor_layers;
    cvy_keys layers = {0};
    if (p->ways.are_named || (text && strcmp(text, "all") == 0))
        return CVY_OK;
    if (!text || !*text)
        return cvy_program_run_splits(p, w->graph);
    cvy_status status = list_layers(w->graph, &layers);
    if (status == CVY_OK)
        status =
            strcmp(text, "auto") == 0 ? take_fewest_bytes(w, &layers, &p->ways.tensor_layer) : name_layers(p, &layers);
    p->ways.are_named = status == CVY_OK;
    cvy_keys_free(&layers);
    return status;
}

static cvy_status keep_ways(cvy_program *p, const cvy_graph *g, const cvy_index *of_layer)
{
    for (int n = 0; n < g->nnode; n++) {
        const char *layer = g->node[n]->layer;
        char *name = NULL;
        if (!ways_of(g->node[n]) || cvy_index_find(&p->ways.of_layer, layer) >= 0)
            continue;
        CVY_TRY(cvy_pool_strdup(p->pool, layer, &name));
        CVY_TRY(cvy_index_add(&p->ways.of_layer, name, CVY_MAX(cvy_index_find(of_layer, layer), 0)));
    }
    return CVY_OK;
}

cvy_status cvy_program_choose_ways(cvy_program *p, const cvy_program_task *s, const cvy_graph *g, cvy_index *of_layer)
{
    struct walk w = {.p = p,
                     .graph = g,
                     .parts = p->grid.length[CVY_AXIS_TENSOR],
                     .ndata = g->batch.nranks,
                     .nmicro = s->nmicro,
                     .samples = (double)g->batch.global_n / g->batch.nranks};
    CVY_TRY(cvy_mem_alloc((size_t)g->nvalue + 1, &w.has));
    cvy_status status = choose(p, &w);
    w.of_layer = of_layer;
    w.first_tensor = 0;
    w.may_share = p->ways.are_named;
    if (status == CVY_OK)
        status = walk(&w);
    if (status == CVY_OK)
        status = keep_ways(p, g, of_layer);
    p->ways.ntensor = w.ntensor;
    p->ways.nsamples = w.nsamples;
    cvy_mem_free(&w.has);
    return status;
}

void cvy_program_describe_ways(const cvy_program *p, cvy_text *out)
{
    const int parts = p->grid.length[CVY_AXIS_TENSOR];
    if (parts == 1)
        return;
    cvy_text_add(out, "tensor: %d ranks split %d layer%s with weights by channels", parts, p->ways.ntensor,
                 p->ways.ntensor == 1 ? "" : "s");
    for (int i = 0; i < p->ways.tensor_layer.count; i++)
        cvy_text_add(out, "%s%s", i ? ", " : " (", p->ways.tensor_layer.text[i]);
    cvy_text_add(out, "%s", p->ways.tensor_layer.count ? ")" : "");
    if (p->ways.nsamples > 0)
        cvy_text_add(out, ", and share the samples of %d", p->ways.nsamples);
    cvy_text_add(out, "\n");
}
