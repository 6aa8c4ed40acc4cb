/*
 * report_generated.c: the samples of a generator beside true ones: maps, power spectra, histograms of pixels, moments.
 * The metrics power_spectrum and pixel_histogram write the numbers into test.json.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "report/report_page.h"
#include "report/report_svg.h"

enum { OUTPUT, TARGET, SETS };
enum { ERRORS = 2 }; /* standard errors that the band of a ratio shows */

struct comparison { /* numbers of both sets; n 0: none */
    double *mean[SETS], *std[SETS], *error, *ks;
    double *low[SETS], *high[SETS]; /* mean less and plus one standard deviation */
    double *ratio, *below, *above;  /* output to target, and its band */
    int64_t n;
};

static cvy_status read_list(cvy_report *r, const cvy_tree *tree, const char *key, int64_t *n, double **out)
{
    int64_t count = 0;
    CVY_TRY(cvy_tree_reals(r->pool, cvy_tree_at(tree, key), out, &count));
    *n = *n < 0 ? count : CVY_MIN(*n, count);
    return CVY_OK;
}

static cvy_status add_bands(cvy_report *r, struct comparison *c)
{
    double **const band[] = {&c->low[0], &c->high[0], &c->low[1], &c->high[1], &c->ratio, &c->below, &c->above};
    for (int i = 0; i < CVY_COUNT(band); i++)
        CVY_TRY(cvy_pool_alloc(r->pool, sizeof **band[i] * (size_t)c->n, band[i]));
    for (int64_t i = 0; i < c->n; i++) {
        for (int set = 0; set < SETS; set++) {
            c->low[set][i] = CVY_MAX(c->mean[set][i] - c->std[set][i], 0.05 * c->mean[set][i]); /* for logarithms */
            c->high[set][i] = c->mean[set][i] + c->std[set][i];
        }
        const double target = c->mean[TARGET][i];
        c->ratio[i] = target != 0 ? c->mean[OUTPUT][i] / target : NAN;
        c->below[i] = target != 0 ? 1 - ERRORS * c->error[i] / target : NAN;
        c->above[i] = target != 0 ? 1 + ERRORS * c->error[i] / target : NAN;
    }
    return CVY_OK;
}

static void read_comparison(cvy_report *r, const cvy_tree *tree, struct comparison *c)
{
    static const char *const mean[] = {"output.mean", "target.mean"}, *const std[] = {"output.std", "target.std"};
    cvy_status status = CVY_OK;
    c->n = -1;
    for (int set = 0; set < SETS && status == CVY_OK; set++) {
        status = read_list(r, tree, mean[set], &c->n, &c->mean[set]);
        if (status == CVY_OK)
            status = read_list(r, tree, std[set], &c->n, &c->std[set]);
    }
    if (status == CVY_OK)
        status = read_list(r, tree, "error", &c->n, &c->error);
    if (status == CVY_OK)
        status = read_list(r, tree, "ks", &c->n, &c->ks);
    if (status != CVY_OK || c->n < 1 || add_bands(r, c) != CVY_OK)
        c->n = 0;
}

/* How many means agree within the band of the ratio. */
static int64_t agreeing(const struct comparison *c)
{
    int64_t n = 0;
    for (int64_t i = 0; i < c->n; i++)
        n += fabs(c->mean[OUTPUT][i] - c->mean[TARGET][i]) <= ERRORS * c->error[i];
    return n;
}

/* Both means with the spread of the samples, over x. */
static void draw_means(cvy_report *r, const struct comparison *c, const double *x, cvy_chart chart)
{
    static const char *const name[] = {"generated", "true"};
    for (int set = 0; set < SETS; set++)
        cvy_chart_add(
            &chart,
            &(cvy_series){.name = name[set], .draw = CVY_DRAW_LINE, .color = set, .x = x, .y = c->mean[set], .n = c->n},
            2);
    for (int set = 0; set < SETS; set++)
        cvy_chart_add(&chart,
                      &(cvy_series){.draw = CVY_DRAW_AREA,
                                    .color = set,
                                    .faint = 1,
                                    .x = x,
                                    .y = c->high[set],
                                    .y_low = c->low[set],
                                    .n = c->n},
                      2);
    cvy_chart_write(&r->html, &chart);
}

/* The ratio of the means, and the band in which it would be if both sets had one distribution. */
static void draw_ratio(cvy_report *r, const struct comparison *c, const double *x, const char *what, cvy_chart chart)
{
    char note[160];
    const double ends_x[] = {x[0], x[c->n - 1]}, ends_y[] = {1, 1};
    snprintf(note, sizeof note, "band: %d standard errors; %lld of %lld %s lie in it", ERRORS, (long long)agreeing(c),
             (long long)c->n, what);
    chart.note = note;
    cvy_chart_add(
        &chart,
        &(cvy_series){
            .name = "generated to true", .draw = CVY_DRAW_LINE, .color = OUTPUT, .x = x, .y = c->ratio, .n = c->n},
        2);
    cvy_chart_add(
        &chart,
        &(cvy_series){
            .draw = CVY_DRAW_AREA, .color = TARGET, .faint = 1, .x = x, .y = c->above, .y_low = c->below, .n = c->n},
        2);
    cvy_chart_add(&chart, &(cvy_series){.draw = CVY_DRAW_DASHED, .color = -1, .x = ends_x, .y = ends_y, .n = 2}, 2);
    cvy_chart_write(&r->html, &chart);
}

static void spectrum(cvy_report *r)
{
    const cvy_tree *tree = cvy_tree_at(r->test, "power_spectrum");
    struct comparison c = {0};
    double *wave = NULL;
    if (!tree)
        return;
    read_comparison(r, tree, &c);
    if (c.n < 2 || read_list(r, tree, "wave", &c.n, &wave) != CVY_OK || c.n < 2)
        return;
    draw_means(r, &c, wave,
               (cvy_chart){.title = "Power spectrum",
                           .note = "mean over the maps; band: one standard deviation between maps",
                           .x_label = "wave number (waves along the shorter side)",
                           .y_label = "power of a wave",
                           .x_what = "wave number",
                           .log_x = 1,
                           .log_y = 1});
    draw_ratio(r, &c, wave, "wave numbers",
               (cvy_chart){.title = "Power spectrum, generated to true",
                           .x_label = "wave number (waves along the shorter side)",
                           .y_label = "ratio of the means",
                           .x_what = "wave number",
                           .log_x = 1,
                           .log_y = 1});
    cvy_chart chart = {.title = "Distance of the distributions of power",
                       .note = "Kolmogorov and Smirnov, between maps; 0: equal, 1: no overlap",
                       .x_label = "wave number (waves along the shorter side)",
                       .y_label = "distance",
                       .x_what = "wave number",
                       .log_x = 1,
                       .y_max = 1};
    cvy_chart_add(&chart, &(cvy_series){.draw = CVY_DRAW_LINE, .color = OUTPUT, .x = wave, .y = c.ks, .n = c.n}, 2);
    cvy_chart_write(&r->html, &chart);
}

static void histogram(cvy_report *r)
{
    const cvy_tree *tree = cvy_tree_at(r->test, "pixel_histogram");
    struct comparison c = {0};
    double *from = NULL, *to = NULL, *middle = NULL;
    if (!tree)
        return;
    read_comparison(r, tree, &c);
    if (c.n < 2 || read_list(r, tree, "from", &c.n, &from) != CVY_OK || read_list(r, tree, "to", &c.n, &to) != CVY_OK ||
        c.n < 2 || cvy_pool_alloc(r->pool, sizeof *middle * (size_t)c.n, &middle) != CVY_OK)
        return;
    const int log_x = from[0] > 0;
    for (int64_t i = 0; i < c.n; i++)
        middle[i] = log_x ? sqrt(from[i] * to[i]) : (from[i] + to[i]) / 2;
    draw_means(
        r, &c, middle,
        (cvy_chart){.title = "Histogram of pixels",
                    .note = "share of the pixels of a map in each bin; band: one standard deviation between maps",
                    .x_label = "value",
                    .y_label = "share of the pixels",
                    .x_what = "value",
                    .log_x = log_x,
                    .log_y = 1});
    draw_ratio(r, &c, middle, "bins",
               (cvy_chart){.title = "Histogram of pixels, generated to true",
                           .x_label = "value",
                           .y_label = "ratio of the means",
                           .x_what = "value",
                           .log_x = log_x,
                           .log_y = 1});
}

static void moments(cvy_report *r)
{
    const cvy_tree *tree = cvy_tree_at(r->test, "moments"), *name = cvy_tree_at(tree, "name");
    struct comparison c = {0};
    if (!tree || !name || name->kind != CVY_TREE_LIST)
        return;
    read_comparison(r, tree, &c);
    c.n = CVY_MIN(c.n, name->count);
    if (c.n < 1)
        return;
    cvy_text_add(&r->html, "<figure class=\"half\"><figcaption><b>Moments of the pixels</b><span>mean over the maps ± "
                           "standard deviation between them; difference in standard errors of the means"
                           "</span></figcaption><table class=\"compare\"><thead><tr><th></th><td>generated</td>"
                           "<td>true</td><td>difference</td></tr></thead><tbody>\n");
    for (int64_t i = 0; i < c.n; i++) {
        cvy_html_add(&r->html, "<tr><th>%s</th>", name->child[i]->text ? name->child[i]->text : "");
        for (int set = 0; set < SETS; set++)
            cvy_text_add(&r->html, "<td>%s ± %s</td>", cvy_number_text(c.mean[set][i], 3).at,
                         cvy_number_text(c.std[set][i], 2).at);
        cvy_text_add(&r->html, "<td>%s</td></tr>\n",
                     cvy_number_text((c.mean[OUTPUT][i] - c.mean[TARGET][i]) / c.error[i], 2).at);
    }
    cvy_text_add(&r->html, "</tbody></table></figure>\n");
}

static void maps(cvy_report *r)
{
    static const char *const key[] = {"output", "target"}, *const title[] = {"Generated", "True"};
    const cvy_tree *list = cvy_tree_at(r->test, "generated.maps");
    if (!list || list->kind != CVY_TREE_LIST || list->count == 0)
        return;
    for (int set = TARGET; set >= OUTPUT; set--) {
        cvy_text_add(&r->html, "<figure class=\"half\"><figcaption><b>%s</b></figcaption>\n<div class=\"pictures\">\n",
                     title[set]);
        for (int i = 0; i < list->count; i++)
            cvy_html_picture(&r->html, cvy_tree_text_at(list->child[i], key[set]), title[set]);
        cvy_text_add(&r->html,
                     "</div><div class=\"ramp values\"><i></i><span>%s</span><span>%s</span></div></figure>\n",
                     cvy_number_text(cvy_tree_real_at(r->test, "generated.low"), 3).at,
                     cvy_number_text(cvy_tree_real_at(r->test, "generated.high"), 3).at);
    }
}

void cvy_report_generated(cvy_report *r)
{
    if (!cvy_tree_at(r->test, "power_spectrum") && !cvy_tree_at(r->test, "pixel_histogram"))
        return;
    cvy_text_add(&r->html, "<h3>Generated samples beside true ones</h3>\n<div class=\"charts\">\n");
    maps(r);
    spectrum(r);
    histogram(r);
    moments(r);
    cvy_text_add(&r->html, "</div>\n");
}
