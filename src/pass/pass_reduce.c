/*
 * pass_reduce.c: adds gradient communication as nodes. Gradients are placed in one arena in the order in which backward
 * makes them, and a bucket is a range of it. The all-reduce of a bucket starts as soon as its last gradient is ready,
 * while backward continues.
 *
 * Source: Li et al. 2020, PyTorch Distributed, section 3.2 (bucketing, overlap).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "comm/comm_allreduce.h"
#include "op/comm/op_reduce.h"
#include "pass/pass.h"

enum { GRADIENTS = 1, OTHERS = 2 }; /* a bit set: which accumulators are searched */

/* The accumulators of one kind of bucket. */
struct kind {
    cvy_dtype dtype;
    int what;
    unsigned over; /* the axes of the grid over which they are summed, besides the data axis */
};

static int is_reduced(const cvy_value *v, const struct kind *kind)
{
    return v && kind->what & (v->variable ? GRADIENTS : OTHERS) && v->dtype == kind->dtype && v->over == kind->over &&
           v->kind == CVY_VALUE_ACCUMULATOR && v->reduced && v->producer->phase == CVY_PHASE_MICRO;
}

/* The next reduced accumulator of this kind in the order of production. *node_at and *dst_at are the position of the
 * search; it starts at 0, 0. */
static cvy_value *next_reduced(const cvy_graph *g, const struct kind *kind, int *node_at, int *dst_at)
{
    for (; *node_at < g->nnode; (*node_at)++, *dst_at = 0) {
        cvy_node *node = g->node[*node_at];
        while (!node->removed && *dst_at < node->ndst) {
            cvy_value *v = node->dst[(*dst_at)++];
            if (is_reduced(v, kind))
                return v;
        }
    }
    return NULL;
}

/* The largest set of axes over which something is summed. */
static unsigned largest_over(const cvy_graph *g)
{
    unsigned largest = 0;
    for (int i = 0; i < g->nvalue; i++)
        largest = CVY_MAX(largest, g->value[i]->over);
    return largest;
}

static size_t bucket_size(const cvy_graph *g, const cvy_reduce_opts *opts)
{
    static const cvy_dtype dtypes[] = {CVY_DTYPE_F32, CVY_DTYPE_F64};
    const unsigned largest = largest_over(g);
    size_t total = 0;
    for (int d = 0; d < CVY_COUNT(dtypes); d++)
        for (unsigned over = 0; over <= largest; over++) {
            const struct kind kind = {dtypes[d], GRADIENTS | OTHERS, over};
            int node_at = 0, dst_at = 0;
            for (const cvy_value *v; (v = next_reduced(g, &kind, &node_at, &dst_at)) != NULL;)
                total += (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype);
        }
    return cvy_allreduce_bucket_bytes(total, opts->bucket_bytes, &opts->cost);
}

/* Assigns the accumulators of one kind to buckets. */
static void assign_kind(cvy_graph *g, const struct kind *kind, size_t bucket_bytes, cvy_value **last, int *nbucket)
{
    size_t bytes = 0;
    int node_at = 0, dst_at = 0, open = 0;
    for (cvy_value *v; (v = next_reduced(g, kind, &node_at, &dst_at)) != NULL;) {
        *nbucket += !open;
        last[*nbucket - 1] = v;
        v->bucket = *nbucket - 1;
        bytes = (open ? bytes : 0) + (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(kind->dtype);
        open = bytes < bucket_bytes;
    }
}

/* Assigns buckets; each holds one dtype, and is summed over one set of axes. last[b] becomes the value of bucket b that
 * is made last. */
static int assign_buckets(cvy_graph *g, size_t bucket_bytes, int apart, cvy_value **last)
{
    static const cvy_dtype dtypes[] = {CVY_DTYPE_F32, CVY_DTYPE_F64};
    static const int together[] = {GRADIENTS | OTHERS}, alone[] = {GRADIENTS, OTHERS};
    const int *what = apart ? alone : together, nwhat = apart ? CVY_COUNT(alone) : CVY_COUNT(together);
    const unsigned largest = largest_over(g);
    int nbucket = 0;
    for (unsigned over = 0; over <= largest; over++)
        for (int w = 0; w < nwhat; w++)
            for (int d = 0; d < CVY_COUNT(dtypes); d++) {
                const struct kind kind = {dtypes[d], what[w], over};
                assign_kind(g, &kind, bucket_bytes, last, &nbucket);
            }
    return nbucket;
}

static cvy_status add_start(cvy_graph *g, int b, cvy_value *last, int position, cvy_value **token_out)
{
    char name[32], options[32];
    snprintf(name, sizeof name, "reduce%d.start", b);
    snprintf(options, sizeof options, "bucket: %d", b);
    cvy_node *start = NULL;
    CVY_TRY(cvy_graph_add(g, "reduce_start", name, name, options, &last, 1, &start));
    start->backward = 1;
    start->chunk = last->producer->chunk;
    *token_out = start->dst[0];
    cvy_graph_move_node(g, start, position);
    return CVY_OK;
}

static cvy_status add_wait(cvy_graph *g, int b, cvy_value *token)
{
    char name[32];
    snprintf(name, sizeof name, "reduce%d.wait", b);
    const struct cvy_reduce_options options = {.bucket = b};
    cvy_node *wait = NULL;
    return cvy_graph_add_parsed(g, cvy_op_find("reduce_wait"), name, name, &options, &token, 1, CVY_PHASE_UPDATE,
                                &wait);
}

/* Update nodes that are already in the graph (running statistics) move after the waits, because they read reduced
 * values. */
static cvy_status move_updates_back(cvy_graph *g)
{
    const cvy_op_def *wait = cvy_op_find("reduce_wait");
    cvy_node **update = NULL;
    int kept = 0, moved = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *update * (size_t)(g->nnode + 1), &update));
    for (int n = 0; n < g->nnode; n++)
        if (g->node[n]->phase == CVY_PHASE_UPDATE && g->node[n]->op != wait)
            update[moved++] = g->node[n];
        else
            g->node[kept++] = g->node[n];
    for (int i = 0; i < moved; i++)
        g->node[kept + i] = update[i];
    for (int n = 0; n < g->nnode; n++)
        g->node[n]->index = n;
    cvy_mem_free(&update);
    return CVY_OK;
}

cvy_status cvy_pass_reduce(cvy_graph *g, const cvy_reduce_opts *opts, int *nbucket_out)
{
    cvy_value **last = NULL, **token = NULL;
    CVY_TRY(cvy_pool_alloc(g->pool, sizeof *last * ((size_t)g->nvalue + 1), &last));
    const int nbucket = assign_buckets(g, bucket_size(g, opts), opts->apart, last);
    CVY_TRY(cvy_pool_alloc(g->pool, sizeof *token * ((size_t)nbucket + 1), &token));
    *nbucket_out = nbucket;
    for (int b = 0; b < nbucket; b++)
        if (opts->nranks > 1 || last[b]->over)
            CVY_TRY(add_start(g, b, last[b], opts->overlap ? last[b]->producer->index + 1 : g->nnode, &token[b]));
    for (int b = 0; b < nbucket; b++)
        if (token[b])
            CVY_TRY(add_wait(g, b, token[b]));
    CVY_TRY(move_updates_back(g));
    return cvy_graph_verify(g);
}

static int reads_bucket(const cvy_node *node, int bucket)
{
    int reads = 0;
    for (int i = 0; i < node->nsrc; i++)
        reads |= node->src[i] && node->src[i]->kind == CVY_VALUE_ACCUMULATOR && node->src[i]->bucket == bucket;
    return reads;
}

cvy_status cvy_pass_defer_waits(cvy_graph *g)
{
    const cvy_op_def *wait = cvy_op_find("reduce_wait");
    for (int n = g->nnode - 1; n >= 0; n--) {
        cvy_node *node = g->node[n];
        const struct cvy_reduce_options *options = node->options;
        int reader = n + 1;
        if (node->op != wait)
            continue;
        while (reader < g->nnode && !reads_bucket(g->node[reader], options->bucket))
            reader++;
        cvy_graph_move_node(g, node, reader - 1);
    }
    return cvy_graph_verify(g);
}

/* ---- the passes ---- */

static cvy_status run_reduce(cvy_pass_run *r)
{
    int nbucket = 0;
    cvy_reduce_opts opts = r->reduce;
    opts.overlap = cvy_pass_is_on(r->off, "overlap");
    return cvy_pass_reduce(r->graph, &opts, &nbucket);
}

static cvy_status run_defer_waits(cvy_pass_run *r)
{
    return cvy_pass_defer_waits(r->graph);
}

CVY_PASS_DEFINE(reduce) = {.name = "reduce",
                           .help = "puts gradients into buckets and adds their reductions over ranks",
                           .order = 20,
                           .training = 1,
                           .run = run_reduce};
CVY_PASS_DEFINE(overlap) = {
    .name = "overlap", .help = "reductions start as soon as a bucket is complete", .can_be_off = 1, .training = 1};
CVY_PASS_DEFINE(defer_waits) = {.name = "defer-waits",
                                .help = "moves each wait to the first node that reads what it waits for",
                                .order = 40,
                                .training = 1,
                                .run = run_defer_waits};
