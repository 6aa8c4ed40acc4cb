/*
 * data_collider_roc.c: ROC curves of scores, and paired bootstrap errors of two classifiers.
 *
 * After training: shows by how much a network beats the classic baselines, with errors. A resample is a weight for each
 * event (how often it was drawn); both classifiers see the same weights, so the error of their difference is that of a
 * pair. Source: Efron and Tibshirani 1993, "An introduction to the bootstrap".
 */
#include "data/generated/data_collider_roc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number/base_rng.h"

void cvy_curve_free(cvy_curve *c)
{
    cvy_mem_free(&c->fpr);
    cvy_mem_free(&c->tpr);
    *c = (cvy_curve){0};
}

double cvy_curve_at(const cvy_curve *c, double fpr)
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

/* ---- a classifier by scores: its events from the highest score on ---- */

struct ranked {
    float score;
    int32_t event;
};

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score ? 1 : x->event < y->event ? -1 : 1;
}

cvy_status roc_order(const float *score, int64_t n, struct roc_order *out)
{
    struct roc_order o = {.n = n};
    struct ranked *r = NULL;
    cvy_status status = CVY_OK;
    CVY_CHECK(n > 0 && n < INT32_MAX, CVY_E_ARGUMENT, "a ROC curve of %lld events", (long long)n);
    CVY_TRY_OUT(cvy_mem_alloc((size_t)n * sizeof *r, &r));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)n * sizeof *o.event, &o.event));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)n, &o.last_of_tie));
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(score[i]))
            CVY_FAIL_OUT(CVY_E_NUMERIC, "the score of event %lld is not finite", (long long)i);
        r[i] = (struct ranked){score[i], (int32_t)i};
    }
    qsort(r, (size_t)n, sizeof *r, by_score);
    for (int64_t i = 0; i < n; i++) {
        o.event[i] = r[i].event;
        o.last_of_tie[i] = i + 1 == n || r[i + 1].score != r[i].score;
    }
    *out = o;
    o = (struct roc_order){0};
out:
    cvy_mem_free(&r);
    roc_order_free(&o);
    return status;
}

void roc_order_free(struct roc_order *o)
{
    cvy_mem_free(&o->event);
    cvy_mem_free(&o->last_of_tie);
}

struct roc_totals roc_totals(const int32_t *label, const uint16_t *weight, int64_t n)
{
    struct roc_totals t = {0};
    for (int64_t i = 0; i < n; i++) {
        const double w = weight ? weight[i] : 1;
        if (label[i] == 1)
            t.signal += w;
        else
            t.background += w;
    }
    return t;
}

/* Walks down the scores; a tie is one straight piece of the curve. curve may be NULL. */
struct roc_result roc_walk(const struct roc_order *o, const int32_t *label, const uint16_t *weight, double fpr,
                           cvy_curve *curve)
{
    const struct roc_totals all = roc_totals(label, weight, o->n);
    struct roc_result r = {0};
    double s = 0, b = 0, s0 = 0, b0 = 0;
    int found = 0;
    for (int64_t i = 0; i < o->n; i++) {
        const int32_t e = o->event[i];
        const double w = weight ? weight[e] : 1;
        if (label[e] == 1)
            s += w;
        else
            b += w;
        if (!o->last_of_tie[i])
            continue;
        r.area += (b - b0) * (s + s0) / 2;
        if (!found && b > fpr * all.background) {
            r.efficiency = (s0 + (s - s0) * (fpr * all.background - b0) / (b - b0)) / all.signal;
            found = 1;
        }
        if (curve) {
            curve->fpr[curve->n] = b / all.background;
            curve->tpr[curve->n++] = s / all.signal;
        }
        s0 = s;
        b0 = b;
    }
    r.area /= all.signal * all.background;
    r.efficiency = found ? r.efficiency : 1;
    return r;
}

cvy_status cvy_curve_of_scores(const float *score, const int32_t *label, int64_t n, cvy_curve *out)
{
    cvy_curve c = {.n = 1}; /* (0, 0) */
    struct roc_order order = {0};
    cvy_status status = CVY_OK;
    const struct roc_totals all = roc_totals(label, NULL, n);
    CVY_CHECK(all.signal > 0 && all.background > 0, CVY_E_ARGUMENT,
              "a ROC curve needs events of both classes, got %.0f of signal and %.0f of background", all.signal,
              all.background);
    CVY_TRY_OUT(roc_order(score, n, &order));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)(n + 1) * sizeof *c.fpr, &c.fpr));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)(n + 1) * sizeof *c.tpr, &c.tpr));
    c.area = roc_walk(&order, label, NULL, 0, &c).area;
    *out = c;
    c = (cvy_curve){0};
out:
    roc_order_free(&order);
    cvy_curve_free(&c);
    return status;
}

/* ---- bootstrap ---- */

void roc_resample(int64_t n, uint64_t seed, int replica, uint16_t *weight)
{
    const cvy_rng rng = cvy_rng_make(seed, "bootstrap", 0, (uint64_t)replica);
    uint32_t word[4];
    memset(weight, 0, (size_t)n * sizeof *weight);
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            cvy_rng_block(&rng, (uint64_t)(i / 4), word);
        weight[(uint64_t)word[i % 4] * (uint64_t)n >> 32]++;
    }
}

/* Mean and spread of what the replicas gave. */
struct spread {
    double sum, squares;
};

static void spread_add(struct spread *s, double x)
{
    s->sum += x;
    s->squares += x * x;
}

static double spread_sd(const struct spread *s, int n)
{
    const double mean = s->sum / n;
    return n > 1 ? sqrt(fmax(s->squares - n * mean * mean, 0) / (n - 1)) : 0;
}

cvy_status roc_compare(roc_judge_fn a, const void *user_a, roc_judge_fn b, const void *user_b, const int32_t *label,
                       int64_t n, int replicas, uint64_t seed, double fpr, cvy_comparison *out)
{
    uint16_t *weight = NULL;
    struct spread area[3] = {{0}}, eff[3] = {{0}};
    cvy_status status = CVY_OK;
    const struct roc_totals all = roc_totals(label, NULL, n);
    CVY_CHECK(replicas >= 2 && replicas <= 1000000, CVY_E_ARGUMENT, "%d bootstrap replicas, expected 2 .. 1000000",
              replicas);
    CVY_CHECK(fpr > 0 && fpr < 1, CVY_E_ARGUMENT, "a false-positive rate of %g, expected between 0 and 1", fpr);
    CVY_CHECK(all.signal > 0 && all.background > 0, CVY_E_ARGUMENT,
              "a comparison needs events of both classes, got %.0f of signal and %.0f of background", all.signal,
              all.background);
    CVY_TRY_OUT(cvy_mem_alloc((size_t)n * sizeof *weight, &weight));
    for (int r = 0; r < replicas; r++) {
        roc_resample(n, seed, r, weight);
        const struct roc_totals drawn = roc_totals(label, weight, n);
        if (drawn.signal == 0 || drawn.background == 0)
            CVY_FAIL_OUT(CVY_E_ARGUMENT, "too few events for a bootstrap: a resample had one class only");
        const struct roc_result x = a(user_a, weight, fpr), y = b(user_b, weight, fpr);
        spread_add(&area[0], x.area);
        spread_add(&area[1], y.area);
        spread_add(&area[2], x.area - y.area);
        spread_add(&eff[0], x.efficiency);
        spread_add(&eff[1], y.efficiency);
        spread_add(&eff[2], x.efficiency - y.efficiency);
    }
    const struct roc_result x = a(user_a, NULL, fpr), y = b(user_b, NULL, fpr);
    *out = (cvy_comparison){
        .area = {{x.area, spread_sd(&area[0], replicas)}, {y.area, spread_sd(&area[1], replicas)}},
        .area_difference = {x.area - y.area, spread_sd(&area[2], replicas)},
        .efficiency = {{x.efficiency, spread_sd(&eff[0], replicas)}, {y.efficiency, spread_sd(&eff[1], replicas)}},
        .efficiency_difference = {x.efficiency - y.efficiency, spread_sd(&eff[2], replicas)},
    };
out:
    cvy_mem_free(&weight);
    return status;
}

struct roc_result roc_judge_scores(const void *user, const uint16_t *weight, double fpr)
{
    const struct roc_scores *s = user;
    return roc_walk(&s->order, s->label, weight, fpr, NULL);
}

cvy_status cvy_paired_bootstrap(const float *score_a, const float *score_b, const int32_t *label, int64_t n,
                                int replicas, uint64_t seed, double fpr, cvy_comparison *out)
{
    struct roc_scores a = {.label = label}, b = {.label = label};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(roc_order(score_a, n, &a.order));
    CVY_TRY_OUT(roc_order(score_b, n, &b.order));
    CVY_TRY_OUT(roc_compare(roc_judge_scores, &a, roc_judge_scores, &b, label, n, replicas, seed, fpr, out));
out:
    roc_order_free(&a.order);
    roc_order_free(&b.order);
    return status;
}
