/*
 * score_baseline.c: classic methods to compare the network with, for collider events: see score_baseline.h and
 * docs/guide/collider.md.
 *
 * The baselines use the same training events as the network. They also use its validation events, because they select
 * nothing on them. All are scored on the same test events, so the error of a difference is that of paired samples.
 */
#include "score/score_baseline.h"

#include <math.h>
#include <string.h>

#include "data/generated/data_collider.h"

enum { REPLICAS = 400, BINS = 40, CURVE_POINTS = 400 };
static const double fpr_shown = 0.01;

struct scored { /* what the functions below read */
    cvy_collider_table train, test;
    cvy_collider_baselines baselines;
    float *score; /* the network's log odds of the signal */
};

static void add_measure(cvy_json *json, const char *key, const char *error_key, const cvy_measure *m)
{
    cvy_json_real(json, key, m->value);
    cvy_json_real(json, error_key, m->se);
}

static void add_curve_side(cvy_json *json, const char *key, const double *x, int64_t n)
{
    const int64_t stride = CVY_MAX(1, n / CURVE_POINTS);
    cvy_json_open(json, key, '[');
    for (int64_t i = 0; i < n; i += i + stride < n || i == n - 1 ? stride : n - 1 - i)
        cvy_json_real(json, NULL, x[i]);
    cvy_json_close(json, ']');
}

/* Adds "network" once, from the first comparison, and each baseline with the gain of the network. */
static cvy_status add_comparisons(const struct scored *s, cvy_json *json)
{
    cvy_comparison c[COLLIDER_BASELINES];
    for (int b = 0; b < COLLIDER_BASELINES; b++)
        CVY_TRY(cvy_collider_compare(&s->baselines, b, s->score, REPLICAS, 1, fpr_shown, &c[b]));
    cvy_json_open(json, "network", '{');
    add_measure(json, "area", "area_error", &c[0].area[0]);
    cvy_json_real(json, "at_fpr", fpr_shown);
    add_measure(json, "efficiency", "efficiency_error", &c[0].efficiency[0]);
    cvy_json_close(json, '}');
    cvy_json_open(json, "baselines", '[');
    for (int b = 0; b < COLLIDER_BASELINES; b++) {
        const cvy_collider_baseline *baseline = &s->baselines.at[b];
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "name", baseline->name);
        cvy_json_string(json, "text", baseline->text);
        add_curve_side(json, "fpr", baseline->curve.fpr, baseline->curve.n);
        add_curve_side(json, "tpr", baseline->curve.tpr, baseline->curve.n);
        add_measure(json, "area", "area_error", &c[b].area[1]);
        cvy_json_real(json, "at_fpr", fpr_shown);
        add_measure(json, "efficiency", "efficiency_error", &c[b].efficiency[1]);
        add_measure(json, "area_gain", "area_gain_error", &c[b].area_difference);
        add_measure(json, "efficiency_gain", "efficiency_gain_error", &c[b].efficiency_difference);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
    return CVY_OK;
}

/* Adds a histogram of one feature of the test events, by class. It covers at most mean +- 4 standard deviations, so
 * that a few extreme events do not decide its range. */
static void add_histogram(const struct scored *s, int feature, cvy_json *json)
{
    static const char *const class_name[] = {"background", "signal"};
    double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
    int64_t count[2][BINS] = {{0}};
    for (int64_t i = 0; i < s->test.n; i++) {
        const double x = s->test.feature[i * COLLIDER_FEATURES + feature];
        sum += x;
        squares += x * x;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    const double mean = sum / (double)s->test.n, spread = sqrt(fmax(0, squares / (double)s->test.n - mean * mean));
    const double low = fmax(least, mean - 4 * spread), high = fmax(fmin(most, mean + 4 * spread), low + 1e-9);
    for (int64_t i = 0; i < s->test.n; i++) {
        const double at = (s->test.feature[i * COLLIDER_FEATURES + feature] - low) / (high - low) * BINS;
        if (at >= 0 && at <= BINS)
            count[s->test.label[i] == 1][CVY_MIN((int)at, BINS - 1)]++;
    }
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "name", cvy_collider_feature_name[feature]);
    cvy_json_open(json, "edges", '[');
    for (int b = 0; b <= BINS; b++)
        cvy_json_real(json, NULL, low + (high - low) * b / BINS);
    cvy_json_close(json, ']');
    cvy_json_open(json, "classes", '[');
    for (int k = 0; k < 2; k++) {
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "name", class_name[k]);
        cvy_json_open(json, "counts", '[');
        for (int b = 0; b < BINS; b++)
            cvy_json_int(json, NULL, count[k][b]);
        cvy_json_close(json, ']');
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
    cvy_json_close(json, '}');
}

static cvy_status open_tables(const cvy_scoring *s, struct scored *out)
{
    const cvy_job *job = s->session.job;
    cvy_dataset *train = NULL;
    cvy_status status = cvy_dataset_open(job->data.train, job->data.augment, 0, (uint64_t)job->train.seed, &train);
    if (status == CVY_OK)
        status = cvy_collider_table_make(train, 0, s->session.context->cores, &out->train);
    if (status == CVY_OK)
        status = cvy_collider_table_make(s->session.test, 0, s->session.context->cores, &out->test);
    cvy_dataset_destroy(&train);
    return status;
}

static cvy_status make(const cvy_scoring *s, const float *rows, int64_t n, int64_t row_elems, struct scored *out,
                       cvy_json *json)
{
    CVY_TRY(open_tables(s, out));
    CVY_CHECK(out->test.n == n, CVY_E_INTERNAL, "%lld scores of %lld test events", (long long)n,
              (long long)out->test.n);
    CVY_TRY(cvy_mem_alloc(sizeof *out->score * (size_t)n, &out->score));
    for (int64_t i = 0; i < n; i++)
        out->score[i] = rows[i * row_elems + 1] - rows[i * row_elems];
    CVY_TRY(cvy_collider_baselines_make(&out->train, &out->test, &out->baselines));
    CVY_TRY(add_comparisons(out, json));
    cvy_json_open(json, "histograms", '[');
    for (int f = 0; f < COLLIDER_FEATURES; f++)
        add_histogram(out, f, json);
    cvy_json_close(json, ']');
    return CVY_OK;
}

cvy_status cvy_baselines_add(const cvy_scoring *s, const float *rows, int64_t n, int64_t row_elems, cvy_json *json)
{
    struct scored scored = {.score = NULL};
    if (!cvy_collider_is(s->session.test) || row_elems != 3)
        return CVY_OK;
    const cvy_status status = make(s, rows, n, row_elems, &scored, json);
    cvy_collider_baselines_free(&scored.baselines);
    cvy_collider_table_free(&scored.train);
    cvy_collider_table_free(&scored.test);
    cvy_mem_free(&scored.score);
    return status;
}
