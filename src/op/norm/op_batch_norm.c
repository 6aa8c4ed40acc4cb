/*
 * batch_norm: the layer, which is several nodes in training and one node (op_bn_infer.c) elsewhere, and the geometry of
 * its groups. Networks have it between convolution and ReLU. Statistics run over groups of a fixed number of samples,
 * so results depend neither on the number of ranks nor on the number of micro-batches. Source: Ioffe and Szegedy 2015;
 * groups: Hoffer, Hubara and Soudry 2017 ("ghost batches").
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "op/norm/op_batch_norm.h"

const cvy_option cvy_batch_norm_rows[] = {
    {"momentum", CVY_TYPE_REAL, CVY_FIELD(cvy_batch_norm_opts, momentum), "0.1", "0..1", "",
     "weight of a step's statistics in the running ones"},
    {"eps", CVY_TYPE_REAL, CVY_FIELD(cvy_batch_norm_opts, eps), "1e-5", ">0", "", "added to the variance"},
    {"scale_shift", CVY_TYPE_BOOL, CVY_FIELD(cvy_batch_norm_opts, scale_shift), "true", "", "",
     "learn a scale and a shift for each channel"},
    {"frozen", CVY_TYPE_BOOL, CVY_FIELD(cvy_batch_norm_opts, frozen), "false", "", "",
     "normalise by the running statistics in training too, and do not change them"},
    {"relu", CVY_TYPE_BOOL, CVY_FIELD(cvy_batch_norm_opts, relu), "false", "", "",
     "rectify the result; set if the relu that follows is fused in"},
    {"share", CVY_TYPE_REAL, CVY_FIELD(cvy_batch_norm_opts, share), "1", ">0", "",
     "share of the positions that this rank has; set if ranks share a sample"},
    {0},
};

/* Whether the boundary between any two ranks is inside a group. */
static int some_group_spans(const cvy_batch *batch, int64_t size)
{
    for (int r = 1; r < batch->nranks; r++)
        if (cvy_batch_share(batch->global_n, r, batch->nranks).first % size != 0)
            return 1;
    return 0;
}

cvy_bn_groups cvy_bn_groups_make(const cvy_graph *g)
{
    const cvy_batch *batch = &g->batch;
    cvy_bn_groups b = {.local_begin = batch->first, .local_end = batch->first + batch->local_n};
    if (g->bn_group < 0) {
        b.size = CVY_MAX(batch->local_n, 1);
        b.begin = b.local_begin;
        b.end = b.local_end;
    } else {
        const int64_t whole = CVY_MAX(batch->global_n, 1);
        b.size = g->bn_group == 0 ? whole : CVY_MIN(g->bn_group, whole);
        b.spans = some_group_spans(batch, b.size);
        b.begin = b.spans ? 0 : b.local_begin;
        b.end = b.spans ? batch->global_n : b.local_end;
    }
    b.count = (b.end - b.begin + b.size - 1) / b.size;
    return b;
}

cvy_bn_groups cvy_bn_groups_of(const cvy_node *node)
{
    cvy_bn_groups b = cvy_bn_groups_make(node->graph);
    const cvy_batch batch = cvy_node_batch(node);
    b.local_begin = batch.first;
    b.local_end = batch.first + batch.local_n;
    return b;
}

int64_t cvy_bn_positions(const cvy_shape *src)
{
    const cvy_shape positions = cvy_shape_make(src->ndim - 2, src->dim + 2);
    return cvy_shape_elems(&positions);
}

void cvy_bn_moments(const cvy_span *stats, int64_t g, int64_t c, int64_t n, double *mean_out, double *variance_out)
{
    const int64_t C = stats->dim[2];
    const double mean = cvy_get(stats, 2 * g * C + c) / (double)n;
    *mean_out = mean;
    *variance_out = fmax(cvy_get(stats, (2 * g + 1) * C + c) / (double)n - mean * mean, 0);
}

cvy_status cvy_bn_scale_shift_params(cvy_node *node, int64_t channels)
{
    const cvy_batch_norm_opts *o = node->options;
    const cvy_shape shape = {.ndim = 1, .dim = {channels}};
    const cvy_init one = {"constant", "value: 1", 1, 1}, zero = {"constant", "value: 0", 1, 1};
    if (!o->scale_shift)
        return CVY_OK;
    CVY_TRY(cvy_node_param(node, "scale", &shape, &one, 0));
    return cvy_node_param(node, "shift", &shape, &zero, 0);
}

cvy_status cvy_bn_running_params(cvy_node *node, int64_t channels)
{
    const cvy_shape shape = {.ndim = 1, .dim = {channels}};
    const cvy_init zero = {"constant", "value: 0", 1, 1}, one = {"constant", "value: 1", 1, 1};
    CVY_TRY(cvy_node_statistic(node, "running_mean", &shape, &zero));
    return cvy_node_statistic(node, "running_var", &shape, &one);
}

static cvy_status add_node(cvy_graph *g, const char *op, const char *layer, const char *suffix, const void *options,
                           cvy_value *const *src, int nsrc, cvy_phase phase, cvy_value **dst_out)
{
    char name[160];
    snprintf(name, sizeof name, "%s%s", layer, suffix);
    cvy_node *node = NULL;
    CVY_TRY(cvy_graph_add_parsed(g, cvy_op_find(op), name, layer, options, src, nsrc, phase, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* Adds the step's statistics to the running ones. A layer that is applied several times has one node for all, which
 * takes them in the order of the applications. */
static cvy_status follow(cvy_graph *g, const char *name, const cvy_batch_norm_opts *o, cvy_value *sums)
{
    cvy_value *assigned = NULL;
    char node_name[160];
    snprintf(node_name, sizeof node_name, "%s.running", name);
    const int again = cvy_index_find(&g->node_names, node_name) >= 0; /* else no node need be looked at */
    for (int i = 0; again && i < g->nnode; i++) {
        cvy_node *node = g->node[i];
        if (strcmp(node->op->name, "bn_running") != 0 || strcmp(node->layer, name) != 0)
            continue;
        CVY_CHECK(node->nsrc < CVY_NODE_SRC_MAX, CVY_E_UNSUPPORTED, "layer %s is applied more than %d times", name,
                  CVY_NODE_SRC_MAX - 2);
        node->src[node->nsrc++] = sums;
        cvy_graph_move_node(g, node, g->nnode - 1);
        return CVY_OK;
    }
    return add_node(g, "bn_running", name, ".running", o, &sums, 1, CVY_PHASE_UPDATE, &assigned);
}

static cvy_status build_training(cvy_graph *g, const char *name, const cvy_batch_norm_opts *o, cvy_value *src,
                                 cvy_value **dst_out)
{
    const cvy_bn_groups groups = cvy_bn_groups_make(g);
    const cvy_bn_group_stats_opts group_opts = {cvy_bn_positions(&src->shape)};
    cvy_value *stats = NULL, *sums = NULL;
    CVY_TRY(add_node(g, "bn_stats", name, ".stats", NULL, &src, 1, CVY_PHASE_MICRO, &stats));
    if (groups.spans)
        CVY_TRY(add_node(g, "allreduce", name, ".stats_sum", NULL, &stats, 1, CVY_PHASE_MICRO, &stats));
    cvy_value *const apply_src[] = {src, stats};
    CVY_TRY(add_node(g, "bn_apply", name, "", o, apply_src, 2, CVY_PHASE_MICRO, dst_out));
    CVY_TRY(add_node(g, "bn_group_stats", name, ".group_stats", &group_opts, &stats, 1, CVY_PHASE_MICRO, &sums));
    return follow(g, name, o, sums);
}

/* Whether a pattern of the graph, "block1_*, conv1_bn", matches the layer. */
static int is_frozen(const cvy_graph *g, const char *layer)
{
    char pattern[128];
    for (const char *at = g->bn_frozen ? g->bn_frozen : ""; *(at += strspn(at, ", "));) {
        const size_t n = strcspn(at, ", ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, at);
        if (fnmatch(pattern, layer, 0) == 0)
            return 1;
        at += n;
    }
    return 0;
}

static cvy_status batch_norm_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                                   cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    cvy_batch_norm_opts o;
    CVY_CHECK(nsrc == 1, CVY_E_SHAPE, "batch_norm takes one source, got %d", nsrc);
    CVY_CHECK(src[0]->shape.ndim >= 2, CVY_E_SHAPE, "batch_norm needs a source [N, C, positions...], got %s",
              cvy_shape_text(&src[0]->shape));
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return g->training && !o.frozen && !is_frozen(g, name)
               ? build_training(g, name, &o, src[0], dst_out)
               : add_node(g, "bn_infer", name, "", &o, src, 1, CVY_PHASE_MICRO, dst_out);
}

static const cvy_sample batch_norm_samples[] = {
    {.src = "6x3x4x5"},
    {.src = "9x2", .options = "eps: 0.01"},
    {.src = "2x16x3x3", .options = "scale_shift: false"},
    {.src = "5x32x2x2"},
    {.src = "4x3x2x2", .options = "relu: true"},
    {.src = "3x2x7"},
    {.src = "4x2x2x3x2", .options = "momentum: 0.5"},
    {.src = "6x3x4x5", .options = "frozen: true"},
    {.src = "5x35x2x3", .options = "frozen: true, relu: true, eps: 0.01"},
    {.src = "7x2", .options = "frozen: true, scale_shift: false"},
    {.src = "64x128x28x28", .flags = CVY_SAMPLE_TIMING},
    {.src = "64x128x28x28", .options = "frozen: true", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(batch_norm) = {
    .name = "batch_norm",
    .summary = "batch normalisation over groups of samples, with learned scale and shift",
    .options = cvy_batch_norm_rows,
    .options_size = sizeof(cvy_batch_norm_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .build = batch_norm_build,
    .samples = batch_norm_samples,
};
