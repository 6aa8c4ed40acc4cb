/*
 * collider_roc.c: ROC curves of scores, and paired bootstrap errors of two classifiers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collider.h"

void curve_free(curve *c)
{
    free(c->fpr);
    free(c->tpr);
    *c = (curve){0};
}

double curve_at(const curve *c, double fpr)
{
    int64_t i = 0;
    while (i < c->n && c->fpr[i] <= fpr)
        i++;
    if (i == 0)
        return 0;
    if (i == c->n)
        return c->tpr[c->n - 1];
    const double step = c->fpr[i] - c->fpr[i - 1], part = step > 0 ? (fpr - c->fpr[i - 1]) / step : 0;
    return c->tpr[i - 1] + part * (c->tpr[i] - c->tpr[i - 1]);
}

totals totals_of(const int32_t *label, const uint16_t *weight, int64_t n)
{
    totals t = {0};
    for (int64_t i = 0; i < n; i++) {
        const double w = weight ? weight[i] : 1;
        if (label[i] == 1)
            t.signal += w;
        else
            t.background += w;
    }
    return t;
}

/* ---- a classifier by scores ---- */

struct ranking { /* the events, highest score first */
    int64_t n;
    const int32_t *label;
    int32_t *event;
    uint8_t *last_of_tie; /* 1: the next event has another score */
};

struct ranked {
    float score;
    int32_t event;
};

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score ? 1 : x->event < y->event ? -1 : 1;
}

static struct ranking *rank_events(const float *score, const int32_t *label, int64_t n)
{
    struct ranking *k = allocate(1, sizeof *k);
    struct ranked *r = allocate(n, sizeof *r);
    *k = (struct ranking){n, label, allocate(n, sizeof *k->event), allocate(n, 1)};
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(score[i]))
            fail("the score of event %lld is not finite", (long long)i);
        r[i] = (struct ranked){score[i], (int32_t)i};
    }
    qsort(r, (size_t)n, sizeof *r, by_score);
    for (int64_t i = 0; i < n; i++) {
        k->event[i] = r[i].event;
        k->last_of_tie[i] = i + 1 == n || r[i + 1].score != r[i].score;
    }
    free(r);
    return k;
}

/* Walks down the scores. Events of equal score are one straight piece of the curve. */
static quality rate_by_score(const classifier *c, const uint16_t *weight, double fpr, curve *out)
{
    const struct ranking *k = c->ranking;
    const totals all = totals_of(k->label, weight, k->n);
    quality q = {.efficiency = 1};
    double s = 0, b = 0, s0 = 0, b0 = 0;
    int found = 0;
    if (out)
        *out = (curve){1, allocate(k->n + 1, sizeof *out->fpr), allocate(k->n + 1, sizeof *out->tpr)};
    for (int64_t i = 0; i < k->n; i++) {
        const int32_t e = k->event[i];
        *(k->label[e] == 1 ? &s : &b) += weight ? weight[e] : 1;
        if (!k->last_of_tie[i])
            continue;
        q.area += (b - b0) * (s + s0) / 2;
        if (!found && b > fpr * all.background) {
            q.efficiency = (s0 + (s - s0) * (fpr * all.background - b0) / (b - b0)) / all.signal;
            found = 1;
        }
        if (out) {
            out->fpr[out->n] = b / all.background;
            out->tpr[out->n++] = s / all.signal;
        }
        s0 = s;
        b0 = b;
    }
    q.area /= all.signal * all.background;
    return q;
}

classifier classifier_by_score(const char *name, const char *text, const float *score, const int32_t *label, int64_t n)
{
    return (classifier){.name = name, .text = text, .rate = rate_by_score, .ranking = rank_events(score, label, n)};
}

void classifier_free(classifier *c)
{
    if (c->ranking) {
        free(c->ranking->event);
        free(c->ranking->last_of_tie);
    }
    free(c->ranking);
    free(c->cuts);
    *c = (classifier){0};
}

/* ---- the bootstrap ---- */

/* A random number that depends on seed and place alone (splitmix64). Source: Steele, Lea and Flood 2014. */
static uint64_t random_at(uint64_t seed, uint64_t place)
{
    uint64_t z = seed + (place + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Draws n events with replacement: weight[i] is how often event i came. */
static void draw(int64_t n, uint64_t seed, int replica, uint16_t *weight)
{
    memset(weight, 0, (size_t)n * sizeof *weight);
    for (int64_t i = 0; i < n; i++)
        weight[(random_at(seed, (uint64_t)(replica * n + i)) >> 32) * (uint64_t)n >> 32]++;
}

/* What the replicas gave: their number, mean and sum of squared deviations from it (Welford 1962). */
struct spread {
    double n, mean, m2;
};

static void spread_add(struct spread *s, double x)
{
    const double before = x - s->mean;
    s->mean += before / ++s->n;
    s->m2 += before * (x - s->mean);
}

static measure measure_of(double value, const struct spread *s)
{
    return (measure){value, sqrt(s->m2 / (s->n - 1))};
}

comparison compare(const classifier *a, const classifier *b, const int32_t *label, int64_t n, int replicas,
                   uint64_t seed, double fpr)
{
    struct spread area[3] = {{0}}, efficiency[3] = {{0}};
    uint16_t *weight = allocate(n, sizeof *weight);
    for (int r = 0; r < replicas; r++) {
        draw(n, seed, r, weight);
        const totals drawn = totals_of(label, weight, n);
        if (drawn.signal == 0 || drawn.background == 0)
            fail("%lld test events are too few: a resample has events of one class only", (long long)n);
        const quality x = a->rate(a, weight, fpr, NULL), y = b->rate(b, weight, fpr, NULL);
        spread_add(&area[0], x.area);
        spread_add(&area[1], y.area);
        spread_add(&area[2], x.area - y.area);
        spread_add(&efficiency[0], x.efficiency);
        spread_add(&efficiency[1], y.efficiency);
        spread_add(&efficiency[2], x.efficiency - y.efficiency);
    }
    free(weight);
    const quality x = a->rate(a, NULL, fpr, NULL), y = b->rate(b, NULL, fpr, NULL);
    return (comparison){
        .area = {measure_of(x.area, &area[0]), measure_of(y.area, &area[1])},
        .area_gain = measure_of(x.area - y.area, &area[2]),
        .efficiency = {measure_of(x.efficiency, &efficiency[0]), measure_of(y.efficiency, &efficiency[1])},
        .efficiency_gain = measure_of(x.efficiency - y.efficiency, &efficiency[2]),
    };
}
