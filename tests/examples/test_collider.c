/* rows: clang asan */
/*
 * test_collider.c: the analysis in examples/collider.
 *
 * The features find jets where the test put them. The baselines are in their range. ROC and bootstrap are compared with
 * known answers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collider.h"
#include "test_util.h"

/* Two blobs of 100 and 60 GeV and nothing else. One of them crosses the seam of phi. */
static void features_find_jets(void)
{
    static float image[3 * 64 * 64], work[64 * 64];
    float f[FEATURES], *em = image, *had = image + 64 * 64, *tracks = had + 64 * 64;
    em[30 * 64 + 0] = 50;
    em[30 * 64 + 63] = 20;
    had[31 * 64 + 0] = 30;
    had[20 * 64 + 32] = 60;
    tracks[20 * 64 + 32] = 4;
    features_of(image, 64, 64, work, f);
    EXPECT(fabs(f[FEATURE_HT] - 160) < 0.01 && f[FEATURE_NJET] == 2 && f[FEATURE_NTRACK] == 4);
    EXPECT(fabs(f[FEATURE_LEAD] - 100) < 0.1 && fabs(f[FEATURE_SECOND] - 60) < 0.1 && f[FEATURE_FOURTH] == 0);
    EXPECT(fabs(f[FEATURE_MET] - 40) < 1 && fabs(f[FEATURE_EM_SHARE] - 70.0 / 160) < 1e-5);
    EXPECT(fabs(f[FEATURE_DETA] - 1.0) < 0.01 && f[FEATURE_SPHERICITY] < 0.02);
}

static double mean_of(const events *e, int feature, int label, double *error)
{
    double sum = 0, squares = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < e->n; i++) {
        if (e->label[i] != label)
            continue;
        const double x = e->feature[i * FEATURES + feature];
        sum += x;
        squares += x * x;
        n++;
    }
    *error = sqrt((squares / (double)n - sum * sum / (double)n / (double)n) / (double)n);
    return sum / (double)n;
}

/* The curve of a baseline on the test events, and its comparison with scores that nearly tell the truth. */
static double check_baseline(const classifier *b, const events *test)
{
    float *score = allocate(test->n, sizeof *score);
    curve c = {0};
    const quality q = b->rate(b, NULL, 0.01, &c);
    EXPECT(q.area > 0.75 && q.area < 0.95);
    EXPECT(c.fpr[0] == 0 && c.tpr[0] == 0 && c.fpr[c.n - 1] == 1 && c.tpr[c.n - 1] == 1);
    for (int64_t k = 1; k < c.n; k++)
        EXPECT(c.fpr[k] >= c.fpr[k - 1] && c.tpr[k] >= c.tpr[k - 1]);
    for (int64_t k = 0; k < test->n; k++)
        score[k] = (float)test->label[k] * 3 + (float)(k % 97) / 40;
    classifier oracle = classifier_by_score("oracle", "", score, test->label, test->n);
    const comparison with = compare(&oracle, b, test->label, test->n, 50, 1, 0.01);
    EXPECT(fabs(with.area[1].value - q.area) < 1e-9 && with.area_gain.value > 10 * with.area_gain.error);
    EXPECT(fabs(with.efficiency[1].value - curve_at(&c, 0.01)) < 1e-6);
    EXPECT(with.area[1].error > 0.002 && with.area[1].error < 0.02);
    classifier_free(&oracle);
    curve_free(&c);
    free(score);
    return q.area;
}

static void baselines_are_in_their_range(void)
{
    static const int three[] = {FEATURE_HT, FEATURE_NJET, FEATURE_LEAD};
    int ten[FEATURES];
    double error[2];
    cvy_context *context = NULL;
    for (int k = 0; k < FEATURES; k++)
        ten[k] = k;
    EXPECT_OK(cvy_context_create(NULL, &context));
    events train = events_read(context, "{format: collider, events: 3000}"),
           test = events_read(context, "{format: collider, events: 2000, first: 50000}");
    /* Both classes have the same energy, but not the same number of jets. */
    const double ht = mean_of(&train, FEATURE_HT, 1, &error[1]) - mean_of(&train, FEATURE_HT, 0, &error[0]);
    EXPECT(fabs(ht) < 4 * hypot(error[0], error[1]));
    EXPECT(mean_of(&train, FEATURE_NJET, 1, &error[1]) > mean_of(&train, FEATURE_NJET, 0, &error[0]) + 1);
    classifier cuts = cuts_fit(&train, &test), linear = linear_fit("linear", "", &train, &test, three, COUNT(three)),
               all = linear_fit("linear-10", "", &train, &test, ten, COUNT(ten));
    const double area = check_baseline(&cuts, &test);
    check_baseline(&linear, &test);
    EXPECT(check_baseline(&all, &test) > area);
    classifier_free(&cuts);
    classifier_free(&linear);
    classifier_free(&all);
    events_free(&train);
    events_free(&test);
    cvy_context_destroy(&context);
}

static void roc_by_hand(void)
{
    static const float score[] = {4, 3, 3, 2, 1};
    static const int32_t label[] = {1, 1, 0, 0, 1};
    curve c = {0};
    classifier k = classifier_by_score("five", "", score, label, 5);
    /* Pairs (signal, background): 4>3, 4>2, 3=3 (half), 3>2, 1<3, 1<2: 3.5 of 6. */
    EXPECT(fabs(k.rate(&k, NULL, 0.01, &c).area - 3.5 / 6) < 1e-12 && c.n == 5);
    EXPECT(fabs(curve_at(&c, 0.25) - 0.5) < 1e-12);
    curve_free(&c);
    classifier_free(&k);
}

/* Uniform numbers of two classes, one shifted by 0.2. The bootstrap's error is compared with that of a proportion. */
static void bootstrap_errors(void)
{
    enum { N = 4000 };
    static float a[N], b[N];
    static int32_t truth[N];
    uint32_t state = 1;
    for (int i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        truth[i] = i % 2;
        a[i] = (float)(state >> 8) / (1 << 24) + 0.2f * (float)truth[i];
        b[i] = a[i] + 1e-6f * (float)i;
    }
    classifier x = classifier_by_score("x", "", a, truth, N), y = classifier_by_score("y", "", b, truth, N);
    const comparison c = compare(&x, &y, truth, N, 200, 1, 0.1);
    /* P(x + 0.2 > y) of uniform numbers is 1 - 0.8^2 / 2. The efficiency at 10 % is 0.1 + 0.2. */
    EXPECT(fabs(c.area[0].value - 0.68) < 4 * c.area[0].error && c.area[0].error > 0.004 && c.area[0].error < 0.016);
    EXPECT(fabs(c.efficiency[0].value - 0.3) < 4 * c.efficiency[0].error);
    EXPECT(c.area_gain.error < 0.1 * c.area[0].error); /* the scores are nearly the same, so the errors cancel */
    classifier_free(&x);
    classifier_free(&y);
}

int main(void)
{
    TEST(features_find_jets);
    TEST(baselines_are_in_their_range);
    TEST(roc_by_hand);
    TEST(bootstrap_errors);
    return test_end();
}
