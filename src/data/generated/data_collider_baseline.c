/*
 * data_collider_baseline.c: the classic answers to "signal or background?": a selection by cuts, and linear
 * classifiers.
 *
 * After training, on the test set, beside the network. The cuts are scanned over a grid (HT at least, jets at least,
 * leading jet at most); on the training events the selections are found that no other beats (more signal at no more
 * background), and their envelope on the test events is the ROC curve. The linear classifiers are logistic regressions
 * (Newton's method, a trace of ridge) on the three features of the cuts, and on all ten.
 */
#include "data/generated/data_collider_roc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- cuts ---- */

enum { HT_CUTS = 24, NJET_CUTS = 16, LEAD_CUTS = 24, GRID = HT_CUTS * NJET_CUTS * LEAD_CUTS };

struct cvy_cuts {
    float ht[HT_CUTS], lead[LEAD_CUTS]; /* rising; ht[0] and the last lead pass everything */
    int32_t chosen[GRID];               /* selections that none beats on the training events */
    int nchosen;
    int64_t n;
    int32_t *place; /* [n] of the test events: the tightest cut of each kind that they pass, as a grid index */
    const int32_t *label;
};

/* A selection is (ht cut a, njet cut b, lead cut c): a rises to tighter, b too, c falls to tighter. */
static int32_t grid_index(int a, int b, int c)
{
    return (a * NJET_CUTS + b) * LEAD_CUTS + c;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Cuts at even quantiles of a feature. */
static cvy_status quantiles(const cvy_collider_table *t, int feature, int count, int upper, float *cut)
{
    float *value = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)t->n * sizeof *value, &value));
    for (int64_t i = 0; i < t->n; i++)
        value[i] = t->feature[i * COLLIDER_FEATURES + feature];
    qsort(value, (size_t)t->n, sizeof *value, by_value);
    for (int k = 0; k < count; k++)
        cut[k] = value[(upper ? k + 1 : k) * (t->n - 1) / count];
    if (upper)
        cut[count - 1] = INFINITY;
    else
        cut[0] = -INFINITY;
    cvy_mem_free(&value);
    return CVY_OK;
}

static cvy_status place_events(const struct cvy_cuts *k, const cvy_collider_table *t, int32_t **out)
{
    int32_t *place = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)t->n * sizeof *place, &place));
    for (int64_t i = 0; i < t->n; i++) {
        const float *f = t->feature + i * COLLIDER_FEATURES;
        int a = HT_CUTS - 1, c = 0;
        while (f[COLLIDER_HT] < k->ht[a])
            a--;
        while (f[COLLIDER_LEAD] > k->lead[c])
            c++;
        place[i] = grid_index(a, CVY_MIN((int)f[COLLIDER_NJET], NJET_CUTS - 1), c);
    }
    *out = place;
    return CVY_OK;
}

struct passed {
    double signal[GRID], background[GRID];
};

/* What passes each selection: sums over events that are at least as tight in all three. */
static void count_passed(const int32_t *place, const int32_t *label, const uint16_t *weight, int64_t n,
                         struct passed *p)
{
    memset(p, 0, sizeof *p);
    for (int64_t i = 0; i < n; i++)
        (label[i] == 1 ? p->signal : p->background)[place[i]] += weight ? weight[i] : 1;
    for (int plane = 0; plane < 2; plane++) {
        double *x = plane ? p->background : p->signal;
        for (int a = HT_CUTS - 1; a >= 0; a--)
            for (int b = NJET_CUTS - 1; b >= 0; b--)
                for (int c = 0; c < LEAD_CUTS; c++) {
                    const int A = a + 1 < HT_CUTS, B = b + 1 < NJET_CUTS, C = c > 0;
                    double sum = x[grid_index(a, b, c)];
                    sum += (A ? x[grid_index(a + 1, b, c)] : 0) + (B ? x[grid_index(a, b + 1, c)] : 0) +
                           (C ? x[grid_index(a, b, c - 1)] : 0);
                    sum -= (A && B ? x[grid_index(a + 1, b + 1, c)] : 0) +
                           (A && C ? x[grid_index(a + 1, b, c - 1)] : 0) +
                           (B && C ? x[grid_index(a, b + 1, c - 1)] : 0);
                    x[grid_index(a, b, c)] = sum + (A && B && C ? x[grid_index(a + 1, b + 1, c - 1)] : 0);
                }
    }
}

struct point {
    double fpr, tpr;
    int32_t selection;
};

static int by_fpr(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    return x->fpr != y->fpr   ? (x->fpr < y->fpr ? -1 : 1)
           : x->tpr != y->tpr ? (x->tpr > y->tpr ? -1 : 1)
                              : x->selection - y->selection;
}

/* Keeps of the points, sorted by false positives, those with more signal than all before. */
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

/* The envelope of the chosen selections (all, where nchosen is 0) under weights. point: GRID of them. */
static int cuts_points(const struct cvy_cuts *k, const int32_t *place, const int32_t *label, const uint16_t *weight,
                       int64_t n, struct passed *passed, struct point *point)
{
    const int count = k->nchosen > 0 ? k->nchosen : GRID;
    const struct roc_totals all = roc_totals(label, weight, n);
    count_passed(place, label, weight, n, passed);
    for (int i = 0; i < count; i++) {
        const int32_t s = k->nchosen > 0 ? k->chosen[i] : i;
        point[i] = (struct point){passed->background[s] / all.background, passed->signal[s] / all.signal, s};
    }
    return envelope(point, count);
}

/* From (0, 0) over the points to (1, 1): two neighbours can be mixed at random, so straight lines join them. */
static void cuts_curve(const struct point *point, int n, cvy_curve *c)
{
    c->n = 1;
    c->area = 0;
    for (int i = 0; i <= n; i++) {
        c->fpr[c->n] = i < n ? point[i].fpr : 1;
        c->tpr[c->n] = i < n ? point[i].tpr : 1;
        c->area += (c->fpr[c->n] - c->fpr[c->n - 1]) * (c->tpr[c->n] + c->tpr[c->n - 1]) / 2;
        c->n++;
    }
}

struct cuts_judge {
    const struct cvy_cuts *cuts;
    struct passed *passed;
    struct point *point;
    cvy_curve curve;
};

static cvy_status judge_begin(const struct cvy_cuts *k, struct cuts_judge *j)
{
    j->cuts = k;
    CVY_TRY(cvy_mem_alloc(sizeof *j->passed, &j->passed));
    CVY_TRY(cvy_mem_alloc(GRID * sizeof *j->point, &j->point));
    CVY_TRY(cvy_mem_alloc((GRID + 2) * sizeof *j->curve.fpr, &j->curve.fpr));
    return cvy_mem_alloc((GRID + 2) * sizeof *j->curve.tpr, &j->curve.tpr);
}

static void judge_end(struct cuts_judge *j)
{
    cvy_mem_free(&j->passed);
    cvy_mem_free(&j->point);
    cvy_curve_free(&j->curve);
}

static struct roc_result judge_cuts(const void *user, const uint16_t *weight, double fpr)
{
    struct cuts_judge *j = *(struct cuts_judge *const *)user;
    const int n = cuts_points(j->cuts, j->cuts->place, j->cuts->label, weight, j->cuts->n, j->passed, j->point);
    cuts_curve(j->point, n, &j->curve);
    return (struct roc_result){j->curve.area, cvy_curve_at(&j->curve, fpr)};
}

/* Which selections to keep, by the training events. */
static cvy_status choose_cuts(struct cvy_cuts *k, const cvy_collider_table *train, struct cuts_judge *j)
{
    int32_t *place = NULL;
    CVY_TRY(quantiles(train, COLLIDER_HT, HT_CUTS, 0, k->ht));
    CVY_TRY(quantiles(train, COLLIDER_LEAD, LEAD_CUTS, 1, k->lead));
    CVY_TRY(place_events(k, train, &place));
    const int n = cuts_points(k, place, train->label, NULL, train->n, j->passed, j->point);
    for (int i = 0; i < n; i++)
        k->chosen[i] = j->point[i].selection;
    k->nchosen = n;
    cvy_mem_free(&place);
    return CVY_OK;
}

static cvy_status make_cuts(const cvy_collider_table *train, const cvy_collider_table *test, cvy_collider_baselines *b)
{
    struct cuts_judge j = {0}, *at = &j;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *b->cuts, &b->cuts));
    CVY_TRY_OUT(judge_begin(b->cuts, &j));
    CVY_TRY_OUT(choose_cuts(b->cuts, train, &j));
    CVY_TRY_OUT(place_events(b->cuts, test, &b->cuts->place));
    b->cuts->n = test->n;
    b->cuts->label = b->label;
    judge_cuts(&at, NULL, 0.01);
    b->at[COLLIDER_CUTS].curve = j.curve;
    j.curve = (cvy_curve){0};
out:
    judge_end(&j);
    return status;
}

/* ---- linear classifiers ---- */

enum { TERMS_MAX = COLLIDER_FEATURES + 1 };

struct linear {
    int n; /* features used */
    int feature[COLLIDER_FEATURES];
    double mean[COLLIDER_FEATURES], sd[COLLIDER_FEATURES];
    double weight[TERMS_MAX]; /* the last is the offset */
};

static void standardise(struct linear *l, const cvy_collider_table *t)
{
    for (int k = 0; k < l->n; k++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < t->n; i++) {
            const double x = t->feature[i * COLLIDER_FEATURES + l->feature[k]];
            sum += x;
            squares += x * x;
        }
        l->mean[k] = sum / (double)t->n;
        const double var = squares / (double)t->n - l->mean[k] * l->mean[k];
        l->sd[k] = var > 1e-12 ? sqrt(var) : 1;
    }
}

static double logit(const struct linear *l, const float *feature, double *term)
{
    double sum = l->weight[l->n];
    term[l->n] = 1;
    for (int k = 0; k < l->n; k++) {
        term[k] = (feature[l->feature[k]] - l->mean[k]) / l->sd[k];
        sum += l->weight[k] * term[k];
    }
    return sum;
}

/* Solves H x = g in place by Cholesky; H is symmetric and, with the ridge, positive. */
static void solve(double H[TERMS_MAX][TERMS_MAX], double *g, int n)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = H[i][j];
            for (int k = 0; k < j; k++)
                sum -= H[i][k] * H[j][k];
            H[i][j] = i == j ? sqrt(fmax(sum, 1e-30)) : sum / H[j][j];
        }
        for (int k = 0; k < i; k++)
            g[i] -= H[i][k] * g[k];
        g[i] /= H[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            g[i] -= H[k][i] * g[k];
        g[i] /= H[i][i];
    }
}

static void fit(struct linear *l, const cvy_collider_table *t)
{
    standardise(l, t);
    for (int round = 0; round < 25; round++) {
        double H[TERMS_MAX][TERMS_MAX] = {{0}}, g[TERMS_MAX] = {0}, term[TERMS_MAX], largest = 0;
        const int n = l->n + 1;
        for (int64_t i = 0; i < t->n; i++) {
            const double p = 1 / (1 + exp(-logit(l, t->feature + i * COLLIDER_FEATURES, term)));
            for (int a = 0; a < n; a++) {
                g[a] += ((t->label[i] == 1) - p) * term[a];
                for (int b = 0; b <= a; b++)
                    H[a][b] += p * (1 - p) * term[a] * term[b];
            }
        }
        for (int a = 0; a < n; a++) {
            H[a][a] += 1e-6 * (double)t->n;
            g[a] -= 1e-6 * (double)t->n * l->weight[a];
        }
        solve(H, g, n);
        for (int a = 0; a < n; a++) {
            l->weight[a] += g[a];
            largest = fmax(largest, fabs(g[a]));
        }
        if (largest < 1e-8)
            break;
    }
}

static cvy_status make_linear(const cvy_collider_table *train, const cvy_collider_table *test, const int *feature,
                              int n, cvy_collider_baseline *out)
{
    struct linear l = {.n = n};
    double term[TERMS_MAX];
    memcpy(l.feature, feature, (size_t)n * sizeof *feature);
    fit(&l, train);
    CVY_TRY(cvy_mem_alloc((size_t)test->n * sizeof *out->score, &out->score));
    for (int64_t i = 0; i < test->n; i++)
        out->score[i] = (float)logit(&l, test->feature + i * COLLIDER_FEATURES, term);
    return cvy_curve_of_scores(out->score, test->label, test->n, &out->curve);
}

/* ---- all of them ---- */

static cvy_status check_table(const cvy_collider_table *t, const char *which)
{
    const struct roc_totals all = roc_totals(t->label, NULL, t->n);
    CVY_CHECK(all.signal > 0 && all.background > 0, CVY_E_ARGUMENT,
              "the %s events of the baselines need both classes, got %.0f of signal and %.0f of background", which,
              all.signal, all.background);
    return CVY_OK;
}

static cvy_status make_all(const cvy_collider_table *train, const cvy_collider_table *test, cvy_collider_baselines *b)
{
    static const int three[] = {COLLIDER_HT, COLLIDER_NJET, COLLIDER_LEAD};
    int ten[COLLIDER_FEATURES];
    for (int k = 0; k < COLLIDER_FEATURES; k++)
        ten[k] = k;
    CVY_TRY(check_table(train, "training"));
    CVY_TRY(check_table(test, "test"));
    b->at[COLLIDER_CUTS].name = "cuts";
    b->at[COLLIDER_CUTS].text = "selection by HT, number of jets and leading jet; envelope of the scanned grid";
    b->at[COLLIDER_LINEAR3].name = "linear";
    b->at[COLLIDER_LINEAR3].text = "logistic regression on HT, number of jets and leading jet";
    b->at[COLLIDER_LINEAR10].name = "linear-10";
    b->at[COLLIDER_LINEAR10].text = "logistic regression on all ten features";
    b->ntest = test->n;
    CVY_TRY(cvy_mem_alloc((size_t)test->n * sizeof *b->label, &b->label));
    memcpy(b->label, test->label, (size_t)test->n * sizeof *b->label);
    CVY_TRY(make_cuts(train, test, b));
    CVY_TRY(make_linear(train, test, three, 3, &b->at[COLLIDER_LINEAR3]));
    return make_linear(train, test, ten, COLLIDER_FEATURES, &b->at[COLLIDER_LINEAR10]);
}

cvy_status cvy_collider_baselines_make(const cvy_collider_table *train, const cvy_collider_table *test,
                                       cvy_collider_baselines *out)
{
    cvy_collider_baselines b = {0};
    const cvy_status status = make_all(train, test, &b);
    if (status != CVY_OK)
        cvy_collider_baselines_free(&b);
    else
        *out = b;
    return status;
}

void cvy_collider_baselines_free(cvy_collider_baselines *b)
{
    for (int i = 0; i < COLLIDER_BASELINES; i++) {
        cvy_curve_free(&b->at[i].curve);
        cvy_mem_free(&b->at[i].score);
    }
    if (b->cuts)
        cvy_mem_free(&b->cuts->place);
    cvy_mem_free(&b->cuts);
    cvy_mem_free(&b->label);
}

cvy_status cvy_collider_compare(const cvy_collider_baselines *b, int baseline, const float *network_score, int replicas,
                                uint64_t seed, double fpr, cvy_comparison *out)
{
    struct roc_scores network = {.label = b->label};
    struct cuts_judge j = {0}, *at = &j;
    cvy_status status = CVY_OK;
    CVY_CHECK(baseline >= 0 && baseline < COLLIDER_BASELINES, CVY_E_ARGUMENT, "baseline %d of %d", baseline,
              COLLIDER_BASELINES);
    if (baseline != COLLIDER_CUTS)
        return cvy_paired_bootstrap(network_score, b->at[baseline].score, b->label, b->ntest, replicas, seed, fpr, out);
    CVY_TRY_OUT(roc_order(network_score, b->ntest, &network.order));
    CVY_TRY_OUT(judge_begin(b->cuts, &j));
    CVY_TRY_OUT(roc_compare(roc_judge_scores, &network, judge_cuts, &at, b->label, b->ntest, replicas, seed, fpr, out));
out:
    roc_order_free(&network.order);
    judge_end(&j);
    return status;
}
