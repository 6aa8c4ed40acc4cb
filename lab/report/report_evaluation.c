/*
 * report_evaluation.c: the results on the test set: scores, ROC with baselines, confusion matrix, truth against
 * prediction, histograms of features.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"
#include "report/report_page.h"
#include "report/report_svg.h"

#define CURVES_MAX 6
#define POINTS_MAX 3000 /* of a scatter plot; more points are thinned evenly */
#define CLASSES_MAX 100
#define MISTAKES 6

struct curve {
    char *name;
    double *x, *y;
    int64_t n;
};

static cvy_status read_curve(cvy_report *r, const char *name, double area, const cvy_tree *tree, struct curve *c)
{
    int64_t nx = 0, ny = 0;
    CVY_TRY(cvy_tree_reals(r->pool, cvy_tree_at(tree, "fpr"), &c->x, &nx));
    CVY_TRY(cvy_tree_reals(r->pool, cvy_tree_at(tree, "tpr"), &c->y, &ny));
    c->n = CVY_MIN(nx, ny);
    if (isfinite(area))
        return cvy_pool_printf(r->pool, &c->name, "%.34s%s, area %.4f", name, strlen(name) > 34 ? "…" : "", area);
    return cvy_pool_strdup(r->pool, name, &c->name);
}

/* What the scores are of: an ensemble has members, and no model of its own. */
static const char *own_name(const cvy_report *r)
{
    const char *model = cvy_report_model(r);
    return model ? model : cvy_tree_at(r->test, "members") ? "ensemble" : "network";
}

static int read_curves(cvy_report *r, struct curve *curve)
{
    const cvy_tree *roc = cvy_tree_at(r->test, "roc"), *baselines = cvy_tree_at(r->analysis, "baselines");
    int n = 0;
    if (!roc || read_curve(r, own_name(r), cvy_report_area(r), roc, &curve[n]) != CVY_OK || curve[n++].n < 2)
        return 0;
    for (int i = 0; baselines && baselines->kind == CVY_TREE_LIST && i < baselines->count && n < CURVES_MAX; i++) {
        const char *name = cvy_tree_text_at(baselines->child[i], "name");
        if (read_curve(r, name ? name : "baseline", cvy_tree_real_at(baselines->child[i], "area"), baselines->child[i],
                       &curve[n]) == CVY_OK &&
            curve[n].n >= 2)
            n++;
    }
    return n;
}

static void add_curves(cvy_chart *chart, const struct curve *curve, int n)
{
    for (int i = 0; i < n; i++)
        cvy_chart_add(chart,
                      &(cvy_series){.name = curve[i].name,
                                    .draw = CVY_DRAW_LINE,
                                    .color = i,
                                    .x = curve[i].x,
                                    .y = curve[i].y,
                                    .n = curve[i].n},
                      2);
}

/* The smallest false positive rate above zero, as a power of ten between 1e-5 and 1e-2, for the logarithmic axis. */
static double least_rate(const struct curve *c)
{
    double low = 1e-2;
    for (int64_t i = 0; i < c->n; i++)
        if (c->x[i] > 0 && c->y[i] > 0)
            low = CVY_MIN(low, c->x[i]);
    return pow(10, floor(log10(CVY_MAX(low, 1e-5)) + 1e-9));
}

static void roc(cvy_report *r)
{
    struct curve curve[CURVES_MAX];
    static const double unit[] = {0, 1};
    const int n = read_curves(r, curve);
    const char *positive = cvy_tree_text_at(r->test, "positive");
    char y_label[120] = "true positive rate", note[240] = "";
    const double at = cvy_tree_real_at(r->analysis, "network.at_fpr"),
                 efficiency = cvy_tree_real_at(r->analysis, "network.efficiency"),
                 error = cvy_tree_real_at(r->analysis, "network.efficiency_error");
    if (n == 0)
        return;
    if (positive)
        snprintf(y_label, sizeof y_label, "%.60s accepted (true positive rate)", positive);
    cvy_chart chart = {.title = "ROC",
                       .note = "all thresholds of the network's output",
                       .x_label = "false positive rate",
                       .y_label = y_label,
                       .square = 1,
                       .x_max = 1,
                       .y_max = 1};
    add_curves(&chart, curve, n);
    cvy_chart_add(&chart, &(cvy_series){.draw = CVY_DRAW_DASHED, .color = -1, .x = unit, .y = unit, .n = 2}, 2);
    cvy_chart_write(&r->html, &chart);

    if (isfinite(at) && isfinite(error))
        snprintf(note, sizeof note, "at a false positive rate of %s: true positive rate %s ± %s",
                 cvy_number_percent(at).at, cvy_number_percent(efficiency).at, cvy_number_percent(error).at);
    else if (isfinite(at))
        snprintf(note, sizeof note, "at a false positive rate of %s: true positive rate %s", cvy_number_percent(at).at,
                 cvy_number_percent(efficiency).at);
    cvy_chart strict = {.title = "ROC at small false positive rates",
                        .note = note,
                        .x_label = "false positive rate (logarithmic)",
                        .y_label = y_label,
                        .square = 1,
                        .log_x = 1,
                        .x_min = least_rate(&curve[0]),
                        .x_max = 1,
                        .y_max = 1};
    const double guide_x[] = {at, at};
    add_curves(&strict, curve, n);
    if (isfinite(at))
        cvy_chart_add(&strict, &(cvy_series){.draw = CVY_DRAW_DASHED, .color = -1, .x = guide_x, .y = unit, .n = 2}, 2);
    cvy_chart_write(&r->html, &strict);
}

/* ---- confusion ---- */

struct confusion {
    int n;                 /* classes; 0: no matrix */
    double *value, *share; /* n x n; share: of the row's sum */
    char **name;
};

static cvy_status read_confusion(cvy_report *r, const cvy_tree *counts, const cvy_tree *labels, struct confusion *m)
{
    const int n = counts->count;
    CVY_TRY(cvy_pool_alloc(r->pool, sizeof *m->value * (size_t)(n * n), &m->value));
    CVY_TRY(cvy_pool_alloc(r->pool, sizeof *m->share * (size_t)(n * n), &m->share));
    CVY_TRY(cvy_pool_alloc(r->pool, sizeof *m->name * (size_t)n, &m->name));
    for (int i = 0; i < n; i++) {
        double *row = NULL, sum = 0;
        int64_t count = 0;
        const cvy_tree *label = labels && labels->kind == CVY_TREE_LIST && i < labels->count ? labels->child[i] : NULL;
        if (label && label->text)
            CVY_TRY(cvy_pool_printf(r->pool, &m->name[i], "%.40s", label->text));
        else
            CVY_TRY(cvy_pool_printf(r->pool, &m->name[i], "%d", i));
        CVY_TRY(cvy_tree_reals(r->pool, counts->child[i], &row, &count));
        for (int k = 0; k < n && k < count; k++)
            sum += m->value[i * n + k] = isfinite(row[k]) ? row[k] : 0;
        for (int k = 0; k < n; k++)
            m->share[i * n + k] = sum > 0 ? m->value[i * n + k] / sum : 0;
    }
    m->n = n;
    return CVY_OK;
}

static void confusion(cvy_report *r, struct confusion *m)
{
    const cvy_tree *counts = cvy_tree_at(r->test, "confusion");
    if (!counts || counts->kind != CVY_TREE_LIST || counts->count == 0 || counts->count > CLASSES_MAX ||
        read_confusion(r, counts, cvy_tree_at(r->test, "classes"), m) != CVY_OK)
        return;
    const char *const *name = (const char *const *)m->name;
    cvy_heatmap_write(&r->html,
                      &(cvy_heatmap){.title = "Confusion matrix",
                                     .note = "rows: true class, columns: predicted class, shade: share of the row",
                                     .x_label = "answer",
                                     .y_label = "truth",
                                     .rows = m->n,
                                     .columns = m->n,
                                     .value = m->value,
                                     .shade = m->share,
                                     .row_name = name,
                                     .column_name = name});
}

/* Lists the largest cells off the diagonal. It sets each listed cell of the matrix to zero. */
static void mistakes(cvy_report *r, struct confusion *m)
{
    if (m->n < 3)
        return;
    cvy_text_add(&r->html, "<h3>Most frequent mistakes</h3>\n<table class=\"scores\"><tbody>\n");
    for (int k = 0; k < MISTAKES; k++) {
        int most = 1;
        for (int i = 0; i < m->n * m->n; i++)
            if (i % (m->n + 1) != 0 && m->value[i] > m->value[most])
                most = i;
        if (m->value[most] <= 0)
            break;
        cvy_html_add(&r->html, "<tr><th>%s taken for %s</th><td>%s (%s)</td></tr>\n", m->name[most / m->n],
                     m->name[most % m->n], cvy_number_count(m->value[most]).at, cvy_number_percent(m->share[most]).at);
        m->value[most] = 0;
    }
    cvy_text_add(&r->html, "</tbody></table>\n");
}

/* ---- pictures with the largest loss ---- */

static void worst_pictures(cvy_report *r)
{
    const cvy_tree *list = cvy_tree_at(r->test, "mistakes");
    if (!list || list->kind != CVY_TREE_LIST || list->count == 0)
        return;
    cvy_text_add(&r->html, "<h3>Worst-classified pictures</h3>\n<p class=\"note\">most confident wrong answers "
                           "first</p>\n<div class=\"pictures\">\n");
    for (int i = 0; i < list->count; i++) {
        const cvy_tree *m = list->child[i];
        const char *picture = cvy_tree_text_at(m, "picture"), *truth = cvy_tree_text_at(m, "truth"),
                   *answer = cvy_tree_text_at(m, "answer");
        if (!truth || !answer)
            continue;
        cvy_text_add(&r->html, "<figure>");
        cvy_html_picture(&r->html, picture, "");
        cvy_html_add(&r->html, "<figcaption>%s taken for %s, %s", truth, answer,
                     cvy_number_percent(cvy_tree_real_at(m, "share")).at);
        cvy_html_sample(&r->html, m);
        cvy_text_add(&r->html, "</figcaption></figure>\n");
    }
    cvy_text_add(&r->html, "</div>\n");
}

/* ---- regression ---- */

static void scatter(cvy_report *r, const cvy_tree *tree)
{
    double *truth = NULL, *prediction = NULL, low = INFINITY, high = -INFINITY;
    int64_t n = 0, m = 0, kept = 0;
    const char *name = cvy_tree_text_at(tree, "name"), *unit = cvy_tree_text_at(tree, "unit");
    char title[100], x_label[100], y_label[100], note[160] = "";
    if (cvy_tree_reals(r->pool, cvy_tree_at(tree, "truth"), &truth, &n) != CVY_OK ||
        cvy_tree_reals(r->pool, cvy_tree_at(tree, "prediction"), &prediction, &m) != CVY_OK)
        return;
    n = CVY_MIN(n, m);
    const int64_t stride = n / POINTS_MAX + 1;
    for (int64_t i = 0; i < n; i += stride) {
        truth[kept] = truth[i];
        prediction[kept++] = prediction[i];
        if (isfinite(truth[i]) && isfinite(prediction[i])) {
            low = CVY_MIN(low, CVY_MIN(truth[i], prediction[i]));
            high = CVY_MAX(high, CVY_MAX(truth[i], prediction[i]));
        }
    }
    const double pad = high > low ? 0.04 * (high - low) : 0.5, ends[] = {low - pad, high + pad};
    const double rmse = cvy_tree_real_at(tree, "rmse"), r2 = cvy_tree_real_at(tree, "r2");
    snprintf(title, sizeof title, "%.60s: prediction against truth", name ? name : "target");
    snprintf(x_label, sizeof x_label, "truth%s%.40s", unit ? ", " : "", unit ? unit : "");
    snprintf(y_label, sizeof y_label, "prediction%s%.40s", unit ? ", " : "", unit ? unit : "");
    if (isfinite(rmse) && isfinite(r2))
        snprintf(note, sizeof note, "root mean square error %s, R² %.4f", cvy_number_text(rmse, 4).at, r2);
    cvy_chart chart = {.title = title,
                       .note = note,
                       .x_label = x_label,
                       .y_label = y_label,
                       .square = 1,
                       .x_min = ends[0],
                       .x_max = ends[1],
                       .y_min = ends[0],
                       .y_max = ends[1]};
    cvy_chart_add(&chart, &(cvy_series){.draw = CVY_DRAW_DASHED, .color = -1, .x = ends, .y = ends, .n = 2},
                  2); /* drawn above the points */
    cvy_chart_add(&chart, &(cvy_series){.draw = CVY_DRAW_POINTS, .color = 0, .x = truth, .y = prediction, .n = kept},
                  1);
    if (chart.nseries == 2)
        cvy_chart_write(&r->html, &chart);
}

/* ---- histograms ---- */

/* Each class is divided by its own sum, so that rare and frequent classes can be compared. */
static cvy_status histogram(cvy_report *r, const cvy_tree *tree)
{
    double *edges = NULL;
    int64_t nedge = 0;
    const cvy_tree *classes = cvy_tree_at(tree, "classes");
    const char *name = cvy_tree_text_at(tree, "name"), *unit = cvy_tree_text_at(tree, "unit");
    char x_label[80];
    snprintf(x_label, sizeof x_label, "%.40s%s%.20s", name ? name : "value", unit ? ", " : "", unit ? unit : "");
    cvy_chart chart = {.title = name ? name : "feature", .x_label = x_label, .small = 1, .from_zero = 1};
    CVY_TRY(cvy_tree_reals(r->pool, cvy_tree_at(tree, "edges"), &edges, &nedge));
    for (int i = 0; classes && classes->kind == CVY_TREE_LIST && i < classes->count; i++) {
        double *counts = NULL, sum = 0;
        int64_t n = 0;
        CVY_TRY(cvy_tree_reals(r->pool, cvy_tree_at(classes->child[i], "counts"), &counts, &n));
        for (int64_t k = 0; k < n; k++)
            sum += isfinite(counts[k]) ? counts[k] : 0;
        for (int64_t k = 0; k < n && sum > 0; k++)
            counts[k] /= sum;
        if (n > 0 && n + 1 == nedge)
            cvy_chart_add(&chart,
                          &(cvy_series){.name = cvy_tree_text_at(classes->child[i], "name"),
                                        .draw = CVY_DRAW_STEP,
                                        .color = i,
                                        .x = edges,
                                        .y = counts,
                                        .n = n},
                          1);
    }
    cvy_chart_write(&r->html, &chart);
    return CVY_OK;
}

/* ---- scores ---- */

static void score_row(cvy_report *r, const char *name, double value, int as_share)
{
    if (!isfinite(value))
        return;
    cvy_html_add(&r->html, "<tr><th>%s", name);
    cvy_text_add(&r->html, "</th><td>%s</td></tr>\n",
                 as_share ? cvy_number_percent(value).at : cvy_number_text(value, 4).at);
}

static int is_share(const char *name)
{
    return strstr(name, "accuracy") || strstr(name, "top") || strstr(name, "efficiency");
}

static void what_was_tested(cvy_report *r)
{
    const char *data = cvy_tree_text_at(r->test, "data"), *checkpoint = cvy_tree_text_at(r->test, "checkpoint");
    cvy_text_add(&r->html, "<p class=\"soft\">");
    if (isfinite(cvy_tree_real_at(r->test, "samples")))
        cvy_text_add(&r->html, "%s samples", cvy_number_count(cvy_tree_real_at(r->test, "samples")).at);
    if (data) {
        cvy_html_add(&r->html, " of %s", data);
    }
    if (checkpoint) {
        cvy_html_add(&r->html, ", with the weights of %s", checkpoint);
    }
    if (cvy_tree_text_at(r->test, "role"))
        cvy_text_add(&r->html, ". <b>This is no test</b>: these samples %s",
                     strcmp(cvy_tree_text_at(r->test, "role"), "chose") == 0
                         ? "chose the checkpoint or the end of the training"
                         : "are those of the training");
    cvy_text_add(&r->html, "</p>\n");
}

static void scores(cvy_report *r, struct confusion *m)
{
    const cvy_tree *metrics = cvy_tree_at(r->test, "metrics");
    if (!metrics || metrics->kind != CVY_TREE_MAP || metrics->count == 0)
        return;
    cvy_text_add(&r->html, "<figure class=\"half\"><figcaption><b>Scores</b><span>each sample "
                           "once</span></figcaption><table class=\"scores\"><tbody>\n");
    score_row(r, "loss", cvy_tree_real_at(r->test, "loss"), 0);
    const char *mean_of = cvy_tree_text_at(r->test, "r2_mean_of");
    for (int i = 0; i < metrics->count; i++)
        score_row(r, mean_of && strcmp(metrics->key[i], "r2") == 0 ? "r2, mean of positions" : metrics->key[i],
                  cvy_tree_real_at(metrics, metrics->key[i]), is_share(metrics->key[i]));
    cvy_text_add(&r->html, "</tbody></table>\n");
    mistakes(r, m);
    cvy_text_add(&r->html, "</figure>\n");
}

static void with_error(cvy_text *html, const cvy_tree *tree, const char *key, int as_share)
{
    char error_key[64];
    snprintf(error_key, sizeof error_key, "%s_error", key);
    const double value = cvy_tree_real_at(tree, key), error = cvy_tree_real_at(tree, error_key);
    cvy_text_add(html, "<td>");
    if (isfinite(value) && as_share)
        cvy_text_add(html, "%.2f %%", 100 * value);
    else if (isfinite(value))
        cvy_text_add(html, "%.4f", value);
    if (isfinite(value) && isfinite(error))
        cvy_text_add(html, as_share ? " ± %.2f" : " ± %.4f", as_share ? 100 * error : error);
    cvy_text_add(html, "</td>");
}

static void comparison_row(cvy_report *r, const char *name, const cvy_tree *tree)
{
    const double gain = cvy_tree_real_at(tree, "area_gain"), error = cvy_tree_real_at(tree, "area_gain_error");
    cvy_html_add(&r->html, "<tr><th>%s</th>", name);
    with_error(&r->html, tree, "area", 0);
    with_error(&r->html, tree, "efficiency", 1);
    with_error(&r->html, tree, "area_gain", 0);
    with_error(&r->html, tree, "efficiency_gain", 1);
    if (error > 0 && isfinite(gain))
        cvy_text_add(&r->html, "<td>%.1f</td></tr>\n", gain / error);
    else
        cvy_text_add(&r->html, "<td></td></tr>\n");
}

/* One table of the network and the baselines, with paired gains. */
static void comparison(cvy_report *r)
{
    const cvy_tree *baselines = cvy_tree_at(r->analysis, "baselines"), *network = cvy_tree_at(r->analysis, "network");
    if (!network || !baselines || baselines->kind != CVY_TREE_LIST || baselines->count == 0)
        return;
    const double at = cvy_tree_real_at(network, "at_fpr");
    cvy_text_add(&r->html,
                 "<table class=\"compare\"><thead><tr><th></th><td>area under ROC</td><td>true positive rate at a "
                 "false positive rate of %s</td><td>network's gain in area</td><td>network's gain in true positive "
                 "rate</td><td>area gain in standard errors</td></tr></thead><tbody>\n",
                 isfinite(at) ? cvy_number_percent(at).at : "few");
    comparison_row(r, cvy_report_model(r) ? cvy_report_model(r) : "network", network);
    for (int i = 0; i < baselines->count; i++) {
        const char *name = cvy_tree_text_at(baselines->child[i], "name");
        comparison_row(r, name ? name : "baseline", baselines->child[i]);
    }
    cvy_text_add(&r->html, "</tbody></table>\n");
}

void cvy_report_ensemble_charts(cvy_report *r)
{
    struct confusion matrix = {0};
    cvy_text_add(&r->html, "<section><h2>Answers of the ensemble</h2>\n<div class=\"charts\">\n");
    roc(r);
    confusion(r, &matrix);
    cvy_report_reliability(r);
    cvy_text_add(&r->html, "</div>\n");
    mistakes(r, &matrix);
    cvy_text_add(&r->html, "</section>\n");
}

void cvy_report_test(cvy_report *r)
{
    const cvy_tree *regression = cvy_tree_at(r->test, "regression"),
                   *histograms = cvy_tree_at(r->analysis, "histograms");
    struct confusion matrix = {0};
    if (!r->test)
        return;
    cvy_text_add(&r->html, "<section><h2>Test</h2>\n");
    what_was_tested(r);
    comparison(r);
    cvy_text_add(&r->html, "<div class=\"charts\">\n");
    roc(r);
    confusion(r, &matrix);
    cvy_report_reliability(r);
    for (int i = 0; regression && regression->kind == CVY_TREE_LIST && i < regression->count && i < 12; i++)
        scatter(r, regression->child[i]);
    scores(r, &matrix);
    cvy_text_add(&r->html, "</div>\n");
    worst_pictures(r);
    cvy_report_fields(r);
    cvy_report_spectrum(r);
    cvy_report_generated(r);
    if (histograms && histograms->kind == CVY_TREE_LIST && histograms->count > 0) {
        cvy_text_add(&r->html,
                     "<h3>Features of the test events, each class by its own sum</h3>\n<div class=\"charts\">\n");
        for (int i = 0; i < histograms->count && i < 60; i++)
            if (histogram(r, histograms->child[i]) != CVY_OK)
                break;
        cvy_text_add(&r->html, "</div>\n");
    }
    cvy_text_add(&r->html, "</section>\n");
}
