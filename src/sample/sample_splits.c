/*
 * sample_splits.c: cuts a sample of an operator along the axes that its nodes declare, and compares the parts with the
 * whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sample/sample_splits.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 2, NOT_A_PART = -2, WHOLE = -1 };

/* The ways to cut a sample, and the axis along which its result is then cut. */
static const struct split {
    unsigned bit;
    const char *name;
    int src_axis; /* axis of the sources; WHOLE: the option "channels" is cut instead */
    int dst_axis;
} splits[] = {
    {CVY_SPLIT_SAMPLES, "samples", 0, 0},     {CVY_SPLIT_CHANNELS, "channels", 1, 1},
    {CVY_SPLIT_OUTPUTS, "outputs", WHOLE, 1}, {CVY_SPLIT_INPUTS, "inputs", 1, WHOLE},
    {CVY_SPLIT_SPACE, "space, axis 2", 2, 2}, {CVY_SPLIT_SPACE, "space, axis 3", 3, 3},
    {CVY_SPLIT_SPACE, "space, axis 4", 4, 4},
};

/* The state of the current trial. */
struct trial {
    const cvy_op_def *op;
    const cvy_sample *sample;
    const struct split *split;
    cvy_split_report *report;
    cvy_sample_graph whole, part[PARTS];
};

static void fail(const struct trial *t, const char *name, const char *what)
{
    char text[400];
    snprintf(text, sizeof text, "%s cut along %s: %s", name, t->split->name, what);
    t->report->wrong++;
    t->report->complain(t->report->user, t->op, t->sample, text);
}

/* ---- cutting a sample ---- */

/* The share of part `number`, as cvy_batch_share computes it. */
static int64_t part_of(int64_t n, int number)
{
    return n * (number + 1) / PARTS - n * number / PARTS;
}

/* Cuts one source, such as "4x6:i32" or "scalar:f64". Returns how many axes were cut, or -1 if the axis is too
 * short. */
static int cut_source(const char *src, int axis, int number, char *out, size_t room)
{
    int cuts = 0;
    size_t n = 0;
    for (int at = 0; *src >= '0' && *src <= '9'; at++) {
        char *end = NULL;
        const int64_t dim = strtoll(src, &end, 10);
        if (at == axis && dim < PARTS)
            return -1;
        cuts += at == axis;
        n += (size_t)snprintf(out + n, room - n, "%lld%s", (long long)(at == axis ? part_of(dim, number) : dim),
                              *end == 'x' ? "x" : "");
        src = *end == 'x' ? end + 1 : end;
    }
    snprintf(out + n, room - n, "%s", src);
    return cuts;
}

/* Cuts all sources that have the axis. Returns 0 if there is nothing to cut. */
static int cut_sources(const char *src, int axis, int number, char *out, size_t room)
{
    int cuts = 0;
    size_t n = 0;
    for (const char *at = src; *at;) {
        char text[64];
        const size_t length = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        const int cut = cut_source(text, axis, number, out + n, room - n);
        if (cut < 0)
            return 0;
        cuts += cut;
        n += strlen(out + n);
        if (at[length] == ',')
            n += (size_t)snprintf(out + n, room - n, ",");
        at += length + (at[length] == ',');
    }
    return cuts > 0;
}

/* Cuts the option "channels: n". Returns 0 if there is nothing to cut. */
static int cut_options(const char *options, int number, char *out, size_t room)
{
    const char *key = "channels: ", *at = options ? strstr(options, key) : NULL;
    if (!at)
        return 0;
    char *end = NULL;
    const int64_t n = strtoll(at + strlen(key), &end, 10);
    snprintf(out, room, "%.*s%s%lld%s", (int)(at - options), options, key, (long long)part_of(n, number), end);
    return n >= PARTS;
}

static int cut_sample(const cvy_sample *whole, const struct split *split, int number, char *text, size_t room,
                      cvy_sample *out)
{
    *out = *whole;
    if (split->src_axis == WHOLE) {
        out->options = text;
        return cut_options(whole->options, number, text, room);
    }
    out->src = text;
    return cut_sources(whole->src, split->src_axis, number, text, room);
}

/* ---- comparing parts with the whole ---- */

/* Returns the axis along which a tensor is cut: there the parts are shorter than the whole and together as long. */
static int cut_axis(const cvy_shape *whole, const cvy_shape *const *part)
{
    int axis = WHOLE;
    if (whole->ndim != part[0]->ndim || whole->ndim != part[1]->ndim)
        return NOT_A_PART;
    for (int d = 0; d < whole->ndim; d++) {
        const int64_t n = whole->dim[d], first = part[0]->dim[d], second = part[1]->dim[d];
        if (first != n || second != n)
            axis = axis == WHOLE && first + second == n ? d : NOT_A_PART;
    }
    return axis;
}

/* Returns the index in the whole tensor of element i of a part. */
static int64_t whole_index(const cvy_shape *whole, const cvy_shape *part, int axis, int number, int64_t i)
{
    int64_t index = 0, stride = 1;
    for (int d = whole->ndim - 1; d >= 0; d--) {
        const int64_t first = d == axis && number > 0 ? whole->dim[d] - part->dim[d] : 0;
        index += (i % part->dim[d] + first) * stride;
        i /= part->dim[d];
        stride *= whole->dim[d];
    }
    return index;
}

/* Copies to the parts their share of one source. */
static const char *set_source(const struct trial *t, const cvy_node *w, const cvy_node *const *p, int i, int *cuts_out)
{
    const cvy_shape *from = &w->src[i]->shape, *const to[PARTS] = {&p[0]->src[i]->shape, &p[1]->src[i]->shape};
    const int axis = cut_axis(from, to);
    const cvy_span *x = cvy_eval_of(&t->whole.e, w->src[i]);
    const int is_bias = t->split->bit == CVY_SPLIT_INPUTS && w->src[i]->kind == CVY_VALUE_VARIABLE && axis == WHOLE;
    if (axis == NOT_A_PART)
        return "a source is no part of the whole one";
    *cuts_out += axis != WHOLE;
    for (int number = 0; number < PARTS; number++) {
        cvy_span *y = cvy_eval_of(&t->part[number].e, p[number]->src[i]);
        for (int64_t k = 0; k < y->elems; k++)
            cvy_set(y, k, is_bias && number > 0 ? 0 : cvy_get(x, whole_index(from, to[number], axis, number, k)));
    }
    return NULL;
}

static int same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static const char *check_parts(const struct trial *t, const cvy_value *w, const cvy_value *const *p, int axis)
{
    const cvy_span *x = cvy_eval_of(&t->whole.e, w);
    for (int number = 0; number < PARTS; number++) {
        const cvy_span *y = cvy_eval_of(&t->part[number].e, p[number]);
        for (int64_t k = 0; k < y->elems; k++)
            if (!same(cvy_get(y, k), cvy_get(x, whole_index(&w->shape, &p[number]->shape, axis, number, k))))
                return "a part of a destination is not that part of the whole one";
    }
    return NULL;
}

static const char *check_sum(const struct trial *t, const cvy_node *node, const cvy_value *w, const cvy_value *const *p)
{
    const cvy_span *x = cvy_eval_of(&t->whole.e, w);
    double scale = 1;
    for (int64_t k = 0; k < x->elems; k++)
        scale = fmax(scale, fabs(cvy_get(x, k)));
    const double summands = (double)(node->op->summands ? node->op->summands(node) : 4) + PARTS;
    for (int64_t k = 0; k < x->elems; k++) {
        double sum = 0;
        for (int number = 0; number < PARTS; number++)
            sum += cvy_get(cvy_eval_of(&t->part[number].e, p[number]), k);
        if (!(fabs(sum - cvy_get(x, k)) <= DBL_EPSILON * summands * scale))
            return "partial sums do not add up to the whole destination";
    }
    return NULL;
}

static const char *check_destination(const struct trial *t, const cvy_node *w, const cvy_node *const *p, int i)
{
    const cvy_value *const value[PARTS] = {p[0]->dst[i], p[1]->dst[i]};
    if (!value[0] || !value[1])
        return "a part lacks a destination";
    const cvy_shape *const to[PARTS] = {&value[0]->shape, &value[1]->shape};
    const int axis = cut_axis(&w->dst[i]->shape, to);
    if (axis == NOT_A_PART)
        return "a destination is no part of the whole one";
    if (w->op == t->op && !(w->op->flags & (CVY_OP_HIDDEN | CVY_OP_LOSS)) && i == 0 && axis != t->split->dst_axis)
        return "the result is not cut along that axis";
    return axis == WHOLE ? check_sum(t, w, w->dst[i], value) : check_parts(t, w->dst[i], value, axis);
}

/* Checks that the two parts of a node make up the whole. Returns NULL if they do or if nothing of the node is cut, else
 * what is wrong. */
static const char *check_node(struct trial *t, const cvy_node *w, const cvy_node *const *p, int *cuts_out)
{
    if (p[0]->nsrc != w->nsrc || p[1]->nsrc != w->nsrc)
        return "a part has another number of sources";
    for (int i = 0; i < w->nsrc; i++) {
        const char *why = set_source(t, w, p, i, cuts_out);
        if (why)
            return why;
    }
    for (int number = 0; number < PARTS && *cuts_out; number++)
        if (cvy_eval_node(&t->part[number].e, p[number]) != CVY_OK)
            return cvy_error_text();
    for (int i = 0; i < w->ndst && *cuts_out; i++) {
        const char *why = w->dst[i] ? check_destination(t, w, p, i) : NULL;
        if (why)
            return why;
    }
    return NULL;
}

/* ---- the driver ---- */

/* Returns the nth node that computes. Ranks that share a batch also have nodes for communication, which are skipped. */
static const cvy_node *nth_node(const cvy_graph *g, int n)
{
    for (int i = 0; i < g->nnode; i++)
        if (!(g->node[i]->op->flags & CVY_OP_COMM) && n-- == 0)
            return g->node[i];
    return NULL;
}

static void try_nodes(struct trial *t)
{
    const cvy_node *w;
    for (int n = 0; (w = nth_node(t->whole.graph, n)) != NULL; n++) {
        const cvy_node *const p[PARTS] = {nth_node(t->part[0].graph, n), nth_node(t->part[1].graph, n)};
        if (!(cvy_node_splits(w) & t->split->bit) || w->phase == CVY_PHASE_UPDATE)
            continue;
        t->report->checks++;
        int cuts = 0;
        const int same_graph = p[0] && p[1] && p[0]->op == w->op && p[1]->op == w->op;
        const char *why = same_graph ? check_node(t, w, p, &cuts) : "the parts' graphs have other nodes";
        if (why)
            fail(t, w->op->name, why);
        if (cuts && t->report->tried)
            t->report->tried(t->report->user, w->op, t->split->bit);
    }
}

/* Returns whether the layer of the sample declares this cut. If it has several nodes, they declare it. */
static int layer_declares(const struct trial *t)
{
    int any = 0;
    for (int n = 0; n < t->whole.graph->nnode; n++) {
        const cvy_node *node = t->whole.graph->node[n];
        const int declares = (cvy_node_splits(node) & t->split->bit) != 0;
        if (node->op == t->op)
            return declares;
        any |= declares;
    }
    return any;
}

static void try_split(struct trial *t, int training)
{
    int opened = 0;
    cvy_sample cut[PARTS];
    char text[PARTS][256];
    if (!layer_declares(t))
        return;
    while (opened < PARTS && cut_sample(t->sample, t->split, opened, text[opened], sizeof text[opened], &cut[opened])) {
        const int64_t n = cvy_sample_count(t->sample->src);
        const int by_samples = t->split->bit == CVY_SPLIT_SAMPLES;
        const cvy_batch batch = by_samples ? cvy_batch_share(n, opened, PARTS) : cvy_batch_share(n, 0, 1);
        const cvy_status status =
            cvy_sample_open_part(t->op, &cut[opened], batch, CVY_DTYPE_F64, training, &t->part[opened]);
        opened++;
        if (status != CVY_OK) {
            fail(t, "a node of it", cvy_error_text());
            break;
        }
        if (opened == PARTS)
            try_nodes(t);
    }
    while (opened > 0)
        cvy_sample_close(&t->part[--opened]);
}

cvy_status cvy_sample_check_splits(const cvy_op_def *op, const cvy_sample *sample, int training,
                                   cvy_split_report *report)
{
    struct trial t = {.op = op, .sample = sample, .report = report};
    const cvy_status status = cvy_sample_open(op, sample, CVY_DTYPE_F64, training, &t.whole);
    for (int s = 0; s < CVY_COUNT(splits) && status == CVY_OK; s++) {
        t.split = &splits[s];
        try_split(&t, training);
    }
    cvy_sample_close(&t.whole);
    return status;
}
