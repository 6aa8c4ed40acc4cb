/*
 * pass_recompute_choose.c: chooses the values that stay in memory from the forward to the backward pass.
 *
 * Each value that backward reads is either kept, which costs its bytes for the whole step, or recomputed once, which
 * costs the work of its node. Least work within a given memory is an integer program. Its Lagrangian relaxation has a
 * price of memory, in flop per byte: values whose work costs more are kept, the others are not. The caller raises the
 * price until the plan fits. Layers of equal shape have equal prices, so it then finds a share of them that is enough.
 *
 * That alone would recompute long chains, all of whose values are in memory at once. So the forward order is cut into
 * segments. At a cut, all values are kept that later nodes read. Then a segment is recomputed from kept values only,
 * just before its own backward pass. The step needs the memory of the segment that needs most: what is kept up to its
 * end, since later segments are done by then, and what is recomputed in it. For a limit of this sum, dynamic
 * programming over the cuts finds those that keep fewest bytes; bisection finds the least limit. With one value at each
 * cut this is the method of Chen et al. 2016, Training deep nets with sublinear memory cost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/pass_recompute_choose.h"

#include <math.h>

/* Flop that take as long as moving one byte: 100 to 250 GFLOP/s over 10 to 30 GB/s. */
static const double flop_per_byte = 10;
/* The least limit is found to this part of it. */
static const double precision = 0.005;

/* A value that the forward pass makes at a place of its order, counted in nodes, and reads until another. */
struct made {
    const cvy_value *value;
    int at, last;
    double bytes;
    double work; /* of its recomputation, in flop */
};

struct choice {
    const cvy_graph *g;
    unsigned char *kept;      /* by value */
    unsigned char *read_back; /* by value: backward reads it */
    struct made *made;        /* in forward order; views are not among them */
    int *place;               /* by value: 1 + its index in `made`; of a view, that of what it views; 0: none */
    int nmade, nplaces;
    double *kept_bytes, *dropped_bytes; /* by place: of the values that are made up to it */
    struct {
        double forced; /* bytes that the cuts up to this one keep; INFINITY: not possible */
        int before;    /* the cut before; -1: the start */
    } * cut;           /* by place: the cut after it */
    int *alive;        /* for search(): indices in `made` */
};

static int is_forward(const cvy_node *node)
{
    return !node->removed && !node->backward && node->phase == CVY_PHASE_MICRO;
}

/* Whether the node may run again. */
static int is_pure(const cvy_node *node)
{
    return !(node->op->flags & (CVY_OP_COMM | CVY_OP_ASSIGNS | CVY_OP_LOSS | CVY_OP_ONCE | CVY_OP_STATEFUL));
}

static double bytes_of(const cvy_value *v)
{
    return (double)cvy_shape_elems(&v->shape) * (double)cvy_dtype_bytes(v->dtype);
}

static double work_of(const cvy_node *node)
{
    const cvy_cost cost = cvy_node_cost(node);
    double bytes = (double)(cost.read_elems + cost.write_elems) * (double)cvy_dtype_bytes(node->dst[0]->dtype);
    for (int i = 0; !node->op->cost && i < node->nsrc; i++)
        bytes += bytes_of(node->src[i]);
    for (int i = 0; !node->op->cost && i < node->ndst; i++)
        bytes += node->dst[i] ? bytes_of(node->dst[i]) : 0;
    return (double)cost.flop + flop_per_byte * bytes;
}

static void note_made(struct choice *c, const cvy_node *node, int at)
{
    for (int i = 0; i < node->ndst; i++) {
        const cvy_value *v = node->dst[i];
        if (!v || v->kind != CVY_VALUE_TEMP)
            continue;
        if (node->op->flags & CVY_OP_VIEW) {
            c->place[v->index] = c->place[node->src[0]->index];
            continue;
        }
        c->made[c->nmade] = (struct made){v, at, at, bytes_of(v), 0};
        c->place[v->index] = ++c->nmade;
        c->kept[v->index] = i > 0 || v->is_output || !is_pure(node);
    }
}

static void note_read(struct choice *c, const cvy_node *node, int at)
{
    for (int i = 0; i < node->nsrc; i++) {
        const int k = c->place[node->src[i]->index] - 1;
        if (k < 0)
            continue;
        const int v = c->made[k].value->index;
        if (is_forward(node))
            c->made[k].last = at;
        else if (node->phase == CVY_PHASE_MICRO)
            c->read_back[v] = 1;
        else
            c->kept[v] = 1; /* an update reads it */
    }
}

/* The work of a value includes that of its sources which nothing keeps, because backward does not read them: that of a
 * convolution, if a pooling follows it. */
static void find_work(struct choice *c)
{
    for (int k = 0; k < c->nmade; k++) {
        const cvy_node *node = c->made[k].value->producer;
        if (c->kept[c->made[k].value->index])
            continue;
        c->made[k].work = work_of(node);
        for (int i = 0; i < node->nsrc; i++) {
            const int from = c->place[node->src[i]->index] - 1, v = from < 0 ? -1 : c->made[from].value->index;
            if (from >= 0 && !c->kept[v] && !c->read_back[v])
                c->made[k].work += c->made[from].work;
        }
    }
}

/* Whether the value costs more than the price. *between: bytes of those before it that cost neither more nor less. */
static int is_worth(const struct made *m, const cvy_memory_price *price, double all_between, double *between)
{
    if (m->work > price->high * m->bytes)
        return 1;
    if (m->work <= price->low * m->bytes)
        return 0;
    *between += m->bytes;
    return *between > price->share * all_between;
}

static void keep_by_price(struct choice *c, const cvy_memory_price *price)
{
    double bytes[2] = {0}; /* between low and high: of all; of those that were passed */
    find_work(c);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < c->nmade; k++) {
            const int v = c->made[k].value->index;
            if (c->read_back[v] && !c->kept[v] && is_worth(&c->made[k], price, bytes[0], &bytes[i]) && i)
                c->kept[v] = 1;
        }
}

static void find_values(struct choice *c)
{
    for (int n = 0; n < c->g->nnode; n++) {
        const cvy_node *node = c->g->node[n];
        if (node->removed)
            continue;
        note_read(c, node, c->nplaces);
        if (is_forward(node))
            note_made(c, node, c->nplaces++);
    }
}

static void sum_bytes(struct choice *c)
{
    for (int k = 0; k < c->nmade; k++) {
        const struct made *m = &c->made[k];
        if (c->read_back[m->value->index])
            (c->kept[m->value->index] ? c->kept_bytes : c->dropped_bytes)[m->at] += m->bytes;
    }
    for (int p = 1; p < c->nplaces; p++) {
        c->kept_bytes[p] += c->kept_bytes[p - 1];
        c->dropped_bytes[p] += c->dropped_bytes[p - 1];
    }
}

/* The best cut before the cut after `at`, within the limit. alive: the values that a cut here would keep, in the order
 * in which they are made. */
static void find_cut_before(struct choice *c, int at, int nalive, double limit)
{
    double added = 0; /* bytes of the values that this cut keeps and the one before does not */
    int a = nalive;
    c->cut[at].forced = INFINITY;
    for (int i = at - 1; i >= -1; i--) {
        const double forced = i < 0 ? 0 : c->cut[i].forced,
                     dropped = c->dropped_bytes[at] - (i < 0 ? 0 : c->dropped_bytes[i]);
        if (c->kept_bytes[at] + dropped > limit)
            return; /* longer segments do not fit either */
        for (; a > 0 && c->made[c->alive[a - 1]].at > i; a--)
            added += c->made[c->alive[a - 1]].bytes;
        if (c->kept_bytes[at] + forced + dropped <= limit && forced + added < c->cut[at].forced) {
            c->cut[at].forced = forced + added;
            c->cut[at].before = i;
        }
    }
}

/* Finds the cuts with which each segment needs at most `limit` bytes. Returns whether there are any. */
static int search(struct choice *c, double limit)
{
    int next = 0, nalive = 0;
    for (int at = 0; at < c->nplaces; at++) {
        int n = 0;
        for (; next < c->nmade && c->made[next].at <= at; next++)
            c->alive[nalive++] = next;
        for (int i = 0; i < nalive; i++) {
            const struct made *m = &c->made[c->alive[i]];
            if (m->last > at && !c->kept[m->value->index])
                c->alive[n++] = c->alive[i];
        }
        nalive = n;
        find_cut_before(c, at, nalive, limit);
    }
    return c->nplaces == 0 || isfinite(c->cut[c->nplaces - 1].forced);
}

static double least_limit(struct choice *c)
{
    const int last = c->nplaces - 1;
    double low = 0, high = c->kept_bytes[last] + c->dropped_bytes[last]; /* without cuts */
    while (high - low > precision * high) {
        const double middle = (low + high) / 2;
        *(search(c, middle) ? &high : &low) = middle;
    }
    return high;
}

/* Keeps the values that the cuts keep. What the last segment would recompute is kept too, if its backward pass comes
 * next: that needs no more memory. */
static void keep_at_cuts(struct choice *c, int follows)
{
    const int last = c->cut[c->nplaces - 1].before;
    for (int k = 0; k < c->nmade; k++) {
        const struct made *m = &c->made[k];
        if (follows && m->at > last)
            c->kept[m->value->index] = 1;
        for (int i = last; i >= m->at; i = c->cut[i].before)
            if (m->last > i)
                c->kept[m->value->index] = 1;
    }
}

static void choose(struct choice *c, const cvy_memory_price *price, int follows)
{
    find_values(c);
    keep_by_price(c, price);
    if (c->nplaces > 0) {
        sum_bytes(c);
        search(c, least_limit(c));
        keep_at_cuts(c, follows);
    }
    for (int v = 0; v < c->g->nvalue; v++) /* views, and what the forward pass does not make */
        c->kept[v] = c->place[v] ? c->kept[c->made[c->place[v] - 1].value->index] : 1;
}

cvy_status cvy_recompute_choose(const cvy_graph *g, const cvy_memory_price *price, int follows, unsigned char *kept)
{
    struct choice c = {.g = g, .kept = kept};
    cvy_status status = CVY_OK;
    const size_t nvalue = (size_t)g->nvalue + 1, nplaces = (size_t)g->nnode + 1;
    CVY_TRY_OUT(cvy_mem_alloc(nvalue, &c.read_back));
    CVY_TRY_OUT(cvy_mem_alloc(nvalue * sizeof *c.made, &c.made));
    CVY_TRY_OUT(cvy_mem_alloc(nvalue * sizeof *c.place, &c.place));
    CVY_TRY_OUT(cvy_mem_alloc(nvalue * sizeof *c.alive, &c.alive));
    CVY_TRY_OUT(cvy_mem_alloc(nplaces * sizeof *c.kept_bytes, &c.kept_bytes));
    CVY_TRY_OUT(cvy_mem_alloc(nplaces * sizeof *c.dropped_bytes, &c.dropped_bytes));
    CVY_TRY_OUT(cvy_mem_alloc(nplaces * sizeof *c.cut, &c.cut));
    choose(&c, price, follows);
out:
    cvy_mem_free(&c.read_back);
    cvy_mem_free(&c.made);
    cvy_mem_free(&c.place);
    cvy_mem_free(&c.alive);
    cvy_mem_free(&c.kept_bytes);
    cvy_mem_free(&c.dropped_bytes);
    cvy_mem_free(&c.cut);
    return status;
}
