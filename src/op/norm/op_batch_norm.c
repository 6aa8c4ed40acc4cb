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

/* As few groups of at most `size` samples as n samples need; a remainder is spread over all groups. No group has a
 * single sample, which has no variance, unless all have. */
static int64_t count_groups(int64_t n, int64_t size)
{
    const int64_t fewest = n / size + (n % size > 0);
    return CVY_MAX(size > 1 && n < 2 * fewest ? n / size : fewest, 1);
}

/* The first group that begins at this sample or later. */
static int64_t group_from(const cvy_bn_groups *b, int64_t sample)
{
    const int64_t n = CVY_MAX(b->samples, 1);
    return (int64_t)(((cvy_bn_product)sample * b->total + n - 1) / n);
}

/* Whether the boundary between any two ranks is inside a group. */
static int some_group_spans(const cvy_batch *batch, const cvy_bn_groups *b)
{
    for (int r = 1; r < batch->nranks; r++) {
        const int64_t at = cvy_batch_share(batch->global_n, r, batch->nranks).first;
        if ((cvy_bn_product)b->samples * group_from(b, at) / b->total != at)
            return 1;
    }
    return 0;
}

static cvy_bn_groups make_groups(const cvy_batch *batch, int64_t bn_group)
{
    cvy_bn_groups b = {
        .total = 1, .local_begin = batch->first, .local_end = batch->first + batch->local_n, .begin = batch->first};
    if (bn_group < 0) {
        b.samples = batch->local_n;
        b.count = batch->local_n > 0;
        return b;
    }
    b.begin = 0;
    b.samples = batch->global_n;
    b.total = bn_group == 0 ? 1 : count_groups(batch->global_n, bn_group);
    b.spans = some_group_spans(batch, &b);
    b.first = b.spans ? 0 : group_from(&b, b.local_begin);
    b.count = (b.spans ? b.total : group_from(&b, b.local_end)) - b.first;
    return b;
}

cvy_bn_groups cvy_bn_groups_make(const cvy_graph *g)
{
    return make_groups(&g->batch, g->bn_group);
}

int64_t cvy_bn_largest(const cvy_batch *batch, int64_t bn_group)
{
    const cvy_bn_groups b = make_groups(batch, bn_group);
    return CVY_MAX(b.samples / b.total + (b.samples % b.total > 0), 1);
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

cvy_shape cvy_bn_stats_shape(const cvy_node *node)
{
    return (cvy_shape){
        .ndim = 3, .dim = {cvy_bn_groups_of(node).count, 2 + cvy_bn_has_counted(node), cvy_node_src(node, 0)->dim[1]}};
}

double cvy_bn_values(const cvy_span *stats, const cvy_bn_groups *groups, int64_t g, int64_t c, int64_t positions)
{
    if (stats->dim[1] == 2)
        return (double)(cvy_bn_group_samples(groups, g) * positions);
    return cvy_get(stats, (3 * g + 2) * stats->dim[2] + c);
}

void cvy_bn_set_stats(const cvy_span *stats, int64_t g, int64_t c, double sum, double squares, double values)
{
    const double entry[] = {sum, squares, values};
    for (int64_t k = 0; k < stats->dim[1]; k++)
        cvy_set(stats, (stats->dim[1] * g + k) * stats->dim[2] + c, entry[k]);
}

void cvy_bn_moments(const cvy_span *stats, int64_t g, int64_t c, double n, double *mean_out, double *variance_out)
{
    const int64_t C = stats->dim[2], at = stats->dim[1] * g * C + c;
    const double mean = n > 0 ? cvy_get(stats, at) / n : 0;
    *mean_out = mean;
    *variance_out = n > 0 ? fmax(cvy_get(stats, at + C) / n - mean * mean, 0) : 0;
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
                                 cvy_value *const *weight, int nweight, cvy_value **dst_out)
{
    const cvy_bn_groups groups = cvy_bn_groups_make(g);
    const cvy_bn_group_stats_opts group_opts = {.positions = cvy_bn_positions(&src->shape),
                                                .unit =
                                                    g->bn_unit ? g->bn_unit : cvy_bn_largest(&g->batch, g->bn_group)};
    cvy_value *stats = NULL, *sums = NULL, *counted = NULL;
    if (nweight > 0)
        CVY_TRY(add_node(g, "counted_samples", name, ".counted", NULL, weight, nweight, CVY_PHASE_MICRO, &counted));
    cvy_value *const stats_src[] = {src, counted};
    CVY_TRY(add_node(g, "bn_stats", name, ".stats", NULL, stats_src, counted ? 2 : 1, CVY_PHASE_MICRO, &stats));
    if (groups.spans)
        CVY_TRY(add_node(g, "allreduce", name, ".stats_sum", NULL, &stats, 1, CVY_PHASE_MICRO, &stats));
    cvy_value *const apply_src[] = {src, stats, counted};
    CVY_TRY(add_node(g, "bn_apply", name, "", o, apply_src, counted ? 3 : 2, CVY_PHASE_MICRO, dst_out));
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
    for (int i = 1; i < nsrc; i++)
        CVY_CHECK(!src[i]->producer, CVY_E_SHAPE, "batch_norm takes one source, and %s is another one", src[i]->name);
    CVY_CHECK(src[0]->shape.ndim >= 2, CVY_E_SHAPE, "batch_norm needs a source [N, C, positions...], got %s",
              cvy_shape_text(&src[0]->shape));
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    return g->training && !o.frozen && !is_frozen(g, name)
               ? build_training(g, name, &o, src[0], src + 1, nsrc - 1, dst_out)
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
    {.src = "9x3x4x5,9:i32"},
    {.src = "11x5,11:i32", .options = "scale_shift: false, eps: 0.1", .int_bound = 5},
    {.src = "6x32x3x3,6:i32", .options = "relu: true"},
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
    .nsrc_max = CVY_NODE_SRC_MAX,
    .ndst = 1,
    .flags = CVY_OP_SAMPLE_WEIGHTS,
    .build = batch_norm_build,
    .samples = batch_norm_samples,
};
