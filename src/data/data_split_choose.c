/*
 * data_split_choose.c: chooses whole groups of samples, so that those chosen have a given share of all samples and of
 * each class, as nearly as the sizes of the groups allow.
 *
 * Groups are taken in a random order while they bring the sums nearer to the share; then single groups move to the
 * other side, and pairs change sides, while that helps. The number of pairs that are tried is limited, so that a
 * million groups take seconds; then each is small, and nothing is left to improve.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/data_split.h"

enum { TRIALS_MAX = 4000000, ALL_WEIGHT = 8, STARTS = 32, STARTS_GROUPS = 2000 };

struct part { /* of a group: its samples of one class */
    int32_t group, label;
    int64_t n;
};

struct keyed { /* a group, to be sorted */
    uint64_t key;
    int64_t group;
};

struct choice {
    int64_t ngroup, npart;
    struct part *part;
    int64_t *first; /* [ngroup + 1]: the parts of each group */
    int64_t *order; /* [ngroup]: groups in their random order */
    double *over;   /* [nclasses]: how many samples too many are chosen */
    double over_all;
    uint8_t *in;
    struct keyed *keyed; /* [ngroup]: working memory */
};

static int by_group_and_label(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->label < y->label ? -1 : x->label > y->label;
}

static void join_parts(struct choice *c, int64_t n)
{
    int64_t at = 0;
    qsort(c->part, (size_t)n, sizeof *c->part, by_group_and_label);
    for (int64_t i = 0; i < n; i++) {
        if (at > 0 && by_group_and_label(&c->part[at - 1], &c->part[i]) == 0)
            c->part[at - 1].n++;
        else
            c->part[at++] = c->part[i];
    }
    c->npart = at;
    for (int64_t i = at; i-- > 0;)
        c->first[c->part[i].group] = i;
    c->first[c->ngroup] = at;
}

/* How much worse it gets if this group is chosen (by 1) or is not any more (by -1). The sum over all classes has the
 * larger weight. */
static double cost(const struct choice *c, int64_t group, int by)
{
    double sum = 0, all = 0;
    for (int64_t i = c->first[group]; i < c->first[group + 1]; i++) {
        const double before = c->over[c->part[i].label], n = by * (double)c->part[i].n;
        sum += fabs(before + n) - fabs(before);
        all += n;
    }
    return sum + ALL_WEIGHT * (fabs(c->over_all + all) - fabs(c->over_all));
}

static void move(struct choice *c, int64_t group, int by)
{
    for (int64_t i = c->first[group]; i < c->first[group + 1]; i++) {
        c->over[c->part[i].label] += by * (double)c->part[i].n;
        c->over_all += by * (double)c->part[i].n;
    }
    c->in[group] = by > 0;
}

static const double HELPS = -1e-6;

/* Moves single groups. first: groups are only taken. Returns whether something moved. */
static int move_single(struct choice *c, int first)
{
    int moved = 0;
    for (int64_t i = 0; i < c->ngroup; i++) {
        const int64_t g = c->order[i];
        const int by = c->in[g] ? -1 : 1;
        if ((first && by < 0) || cost(c, g, by) >= HELPS)
            continue;
        move(c, g, by);
        moved = 1;
    }
    return moved;
}

/* Lets a chosen group and another one change sides. */
static int swap_pair(struct choice *c, int64_t *ntrial)
{
    for (int64_t i = 0; i < c->ngroup; i++) {
        const int64_t out = c->order[i];
        if (!c->in[out])
            continue;
        const double without = cost(c, out, -1);
        move(c, out, -1);
        for (int64_t k = 0; k < c->ngroup; k++) {
            const int64_t in = c->order[k];
            if (c->in[in] || in == out)
                continue;
            if (++*ntrial > TRIALS_MAX) {
                move(c, out, 1);
                return 0;
            }
            if (without + cost(c, in, 1) < HELPS) {
                move(c, in, 1);
                return 1;
            }
        }
        move(c, out, 1);
    }
    return 0;
}

/* The group whose move costs least; only groups on this side. */
static int64_t cheapest(const struct choice *c, int in)
{
    int64_t best = -1;
    double least = INFINITY;
    for (int64_t i = 0; i < c->ngroup; i++) {
        const int64_t g = c->order[i];
        const double now = c->in[g] == in ? cost(c, g, in ? -1 : 1) : INFINITY;
        if (now < least) {
            least = now;
            best = g;
        }
    }
    return best;
}

static void improve(struct choice *c, int64_t trials)
{
    int64_t ntrial = TRIALS_MAX - trials, nin = 0;
    move_single(c, 1);
    while (move_single(c, 0) || swap_pair(c, &ntrial))
        ;
    for (int64_t g = 0; g < c->ngroup; g++)
        nin += c->in[g];
    if (nin == 0)
        move(c, cheapest(c, 0), 1);
    else if (nin == c->ngroup)
        move(c, cheapest(c, 1), -1);
}

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->group < y->group ? -1 : x->group > y->group;
}

/* A random order; the first start is that of the keys. */
static void order_groups(struct choice *c, const uint64_t *key, uint64_t start)
{
    for (int64_t g = 0; g < c->ngroup; g++) {
        const uint64_t mixed = (key[g] ^ start) * UINT64_C(0x9E3779B97F4A7C15);
        c->keyed[g] = (struct keyed){start ? mixed ^ mixed >> 32 : key[g], g};
    }
    qsort(c->keyed, (size_t)c->ngroup, sizeof *c->keyed, by_key);
    for (int64_t g = 0; g < c->ngroup; g++)
        c->order[g] = c->keyed[g].group;
}

/* No group is chosen. */
static void begin(struct choice *c, const int32_t *label, int64_t n, int64_t nclasses, double share)
{
    memset(c->in, 0, (size_t)c->ngroup);
    memset(c->over, 0, (size_t)nclasses * sizeof *c->over);
    for (int64_t i = 0; i < n; i++)
        c->over[label[i]] -= share;
    c->over_all = -share * (double)n;
}

static double sum_cost(const struct choice *c, int64_t nclasses)
{
    double sum = ALL_WEIGHT * fabs(c->over_all);
    for (int64_t k = 0; k < nclasses; k++)
        sum += fabs(c->over[k]);
    return sum;
}

cvy_status cvy_split_choose(const int32_t *group, const int32_t *label, int64_t n, int64_t ngroup, int64_t nclasses,
                            const uint64_t *key, double share, uint8_t *in_out)
{
    const int nstart = ngroup > STARTS_GROUPS ? 1 : STARTS;
    struct choice c = {.ngroup = ngroup};
    double least = INFINITY;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)n * sizeof *c.part, &c.part));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)(ngroup + 1) * sizeof *c.first, &c.first));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)ngroup * sizeof *c.order, &c.order));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)ngroup * sizeof *c.keyed, &c.keyed));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)nclasses * sizeof *c.over, &c.over));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)ngroup, &c.in));
    for (int64_t i = 0; i < n; i++)
        c.part[i] = (struct part){group[i], label[i], 1};
    join_parts(&c, n);
    for (int i = 0; i < nstart && least >= 1; i++) {
        begin(&c, label, n, nclasses, share);
        order_groups(&c, key, (uint64_t)i);
        improve(&c, TRIALS_MAX / nstart);
        const double now = sum_cost(&c, nclasses);
        if (now < least - 1e-6) {
            least = now;
            memcpy(in_out, c.in, (size_t)ngroup);
        }
    }
out:
    cvy_mem_free(&c.part);
    cvy_mem_free(&c.first);
    cvy_mem_free(&c.order);
    cvy_mem_free(&c.keyed);
    cvy_mem_free(&c.over);
    cvy_mem_free(&c.in);
    return status;
}
