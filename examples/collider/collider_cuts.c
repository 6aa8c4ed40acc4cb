/*
 * collider_cuts.c: the classic selection: HT at least a, number of jets at least b, leading jet at most c.
 *
 * The cuts are scanned over a grid. On the training events, the selections are found that no other beats, that is, has
 * more signal at no more background. Their envelope on the test events is the ROC curve.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collider.h"

enum { HT_CUTS = 24, NJET_CUTS = 16, LEAD_CUTS = 24, GRID = HT_CUTS * NJET_CUTS * LEAD_CUTS };

struct passed { /* events that pass each selection */
    double signal[GRID], background[GRID];
};

struct point { /* of the plane of the ROC curve */
    double fpr, tpr;
    int32_t selection;
};

struct cuts {
    float ht[HT_CUTS], lead[LEAD_CUTS]; /* rising; ht[0] and the last lead pass everything */
    int nchosen;                        /* 0: all of the grid */
    int32_t chosen[GRID];               /* the selections that none beats on the training events */
    int64_t n;                          /* test events */
    const int32_t *label;
    struct passed passed; /* work */
    struct point point[GRID];
    int32_t cell[]; /* [n]: the tightest cut of each kind that an event passes, as a grid index */
};

/* A selection is (ht cut a, njet cut b, lead cut c). It is tighter with larger a, larger b, smaller c. */
static int32_t grid_index(int a, int b, int c)
{
    return (a * NJET_CUTS + b) * LEAD_CUTS + c;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Sets cuts at even quantiles of a feature. upper: an event passes below the cut. */
static void quantiles(const events *e, int feature, int count, int upper, float *cut)
{
    float *value = allocate(e->n, sizeof *value);
    for (int64_t i = 0; i < e->n; i++)
        value[i] = e->feature[i * FEATURES + feature];
    qsort(value, (size_t)e->n, sizeof *value, by_value);
    for (int k = 0; k < count; k++)
        cut[k] = value[(upper ? k + 1 : k) * (e->n - 1) / count];
    cut[upper ? count - 1 : 0] = upper ? INFINITY : -INFINITY;
    free(value);
}

static void find_cells(const struct cuts *k, const events *e, int32_t *cell)
{
    for (int64_t i = 0; i < e->n; i++) {
        const float *f = e->feature + i * FEATURES;
        const int njet = (int)f[FEATURE_NJET];
        int a = HT_CUTS - 1, c = 0;
        while (f[FEATURE_HT] < k->ht[a])
            a--;
        while (f[FEATURE_LEAD] > k->lead[c])
            c++;
        cell[i] = grid_index(a, njet < NJET_CUTS ? njet : NJET_CUTS - 1, c);
    }
}

/* Turns the number of events in each cell into the number that is at least as tight in all three cuts. */
static void accumulate(double *x)
{
    for (int a = HT_CUTS - 1; a >= 0; a--)
        for (int b = NJET_CUTS - 1; b >= 0; b--)
            for (int c = 0; c < LEAD_CUTS; c++) {
                const int A = a + 1 < HT_CUTS, B = b + 1 < NJET_CUTS, C = c > 0;
                double sum = x[grid_index(a, b, c)];
                sum += (A ? x[grid_index(a + 1, b, c)] : 0) + (B ? x[grid_index(a, b + 1, c)] : 0) +
                       (C ? x[grid_index(a, b, c - 1)] : 0);
                sum -= (A && B ? x[grid_index(a + 1, b + 1, c)] : 0) + (A && C ? x[grid_index(a + 1, b, c - 1)] : 0) +
                       (B && C ? x[grid_index(a, b + 1, c - 1)] : 0);
                x[grid_index(a, b, c)] = sum + (A && B && C ? x[grid_index(a + 1, b + 1, c - 1)] : 0);
            }
}

static void count_passed(struct passed *p, const int32_t *cell, const int32_t *label, const uint16_t *weight, int64_t n)
{
    memset(p, 0, sizeof *p);
    for (int64_t i = 0; i < n; i++)
        (label[i] == 1 ? p->signal : p->background)[cell[i]] += weight ? weight[i] : 1;
    accumulate(p->signal);
    accumulate(p->background);
}

static int by_fpr(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    return x->fpr != y->fpr   ? (x->fpr < y->fpr ? -1 : 1)
           : x->tpr != y->tpr ? (x->tpr > y->tpr ? -1 : 1)
                              : x->selection - y->selection;
}

/* Keeps those points that have more signal than all points with fewer false positives. */
static int envelope(struct point *p, int n)
{
    int kept = 0;
    double best = 0;
    qsort(p, (size_t)n, sizeof *p, by_fpr);
    for (int i = 0; i < n; i++) {
        if (p[i].tpr <= best)
            continue;
        best = p[i].tpr;
        p[kept++] = p[i];
    }
    return kept;
}

/* Fills k->point with the envelope of the chosen selections and gives the number of its points. */
static int find_envelope(struct cuts *k, const int32_t *cell, const int32_t *label, const uint16_t *weight, int64_t n)
{
    const int count = k->nchosen > 0 ? k->nchosen : GRID;
    const totals all = totals_of(label, weight, n);
    count_passed(&k->passed, cell, label, weight, n);
    for (int i = 0; i < count; i++) {
        const int32_t s = k->nchosen > 0 ? k->chosen[i] : i;
        k->point[i] = (struct point){k->passed.background[s] / all.background, k->passed.signal[s] / all.signal, s};
    }
    return envelope(k->point, count);
}

/* The curve goes from (0, 0) over the points to (1, 1). Two neighbours can be mixed at random, so lines join them. */
static quality rate_cuts(const classifier *c, const uint16_t *weight, double fpr, curve *out)
{
    struct cuts *k = c->cuts;
    const int n = find_envelope(k, k->cell, k->label, weight, k->n);
    curve whole = {1, allocate(n + 2, sizeof *whole.fpr), allocate(n + 2, sizeof *whole.tpr)};
    quality q = {0};
    for (int i = 0; i <= n; i++) {
        const int64_t at = whole.n++;
        whole.fpr[at] = i < n ? k->point[i].fpr : 1;
        whole.tpr[at] = i < n ? k->point[i].tpr : 1;
        q.area += (whole.fpr[at] - whole.fpr[at - 1]) * (whole.tpr[at] + whole.tpr[at - 1]) / 2;
    }
    q.efficiency = curve_at(&whole, fpr);
    if (out)
        *out = whole;
    else
        curve_free(&whole);
    return q;
}

/* Finds on the training events which selections to keep. */
static void choose(struct cuts *k, const events *train)
{
    int32_t *cell = allocate(train->n, sizeof *cell);
    find_cells(k, train, cell);
    const int n = find_envelope(k, cell, train->label, NULL, train->n);
    for (int i = 0; i < n; i++)
        k->chosen[i] = k->point[i].selection;
    k->nchosen = n;
    free(cell);
}

classifier cuts_fit(const events *train, const events *test)
{
    struct cuts *k = allocate(1, sizeof *k + (size_t)test->n * sizeof *k->cell);
    k->n = test->n;
    k->label = test->label;
    quantiles(train, FEATURE_HT, HT_CUTS, 0, k->ht);
    quantiles(train, FEATURE_LEAD, LEAD_CUTS, 1, k->lead);
    choose(k, train);
    find_cells(k, test, k->cell);
    return (classifier){.name = "cuts",
                        .text = "selection by HT, number of jets and leading jet; envelope of the scanned grid",
                        .rate = rate_cuts,
                        .cuts = k};
}
