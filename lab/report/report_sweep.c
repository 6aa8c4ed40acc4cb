/*
 * report_sweep.c: cvy_report_sweep(): the page of a search, sweep.html, and the pages of its trials.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "report/report_sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "base/number/base_moments.h"
#include "report/report_svg.h"

enum {
    LEVELS_MAX = 10,
    ROWS_MAX = 500,
    ERRORS_MAX = 20,
    LONG = 32
}; /* LONG: bytes of a value that may be broken into lines */

/* ---- columns ---- */

static int compare_levels(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    double u = 0, v = 0;
    if (cvy_text_real(x, &u) == CVY_OK && cvy_text_real(y, &v) == CVY_OK && u != v)
        return u < v ? -1 : 1;
    return strcmp(x, y);
}

static int find_level(const cvy_sweep_column *c, const char *value)
{
    for (int i = 0; i < c->nlevels; i++)
        if (strcmp(c->level[i], value) == 0)
            return i;
    return -1;
}

/* The different values of a key, in order. */
static cvy_status fill_levels(const cvy_sweep_page *p, int key, cvy_sweep_column *c)
{
    const cvy_sweep_summary *s = &p->sweep;
    int n = 0;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *c->level * (size_t)CVY_MAX(s->nrows, 1), &c->level));
    for (int i = 0; i < s->nrows; i++)
        c->level[i] = s->row[i].value[key];
    qsort(c->level, (size_t)s->nrows, sizeof *c->level, compare_levels);
    for (int i = 0; i < s->nrows; i++)
        if (i == 0 || strcmp(c->level[i], c->level[n - 1]) != 0)
            c->level[n++] = c->level[i];
    c->nlevels = n;
    return CVY_OK;
}

/* Whether listed numbers are more evenly spread in their logarithm, as 0.001, 0.01, 0.1 are. They are in order. */
static int is_geometric(const cvy_sweep_column *c)
{
    double step[2] = {INFINITY, 0}, ratio[2] = {INFINITY, 0}; /* smallest, largest */
    for (int i = 1; i < c->nlevels; i++) {
        double a = 0, b = 0;
        if (cvy_text_real(c->level[i - 1], &a) != CVY_OK || cvy_text_real(c->level[i], &b) != CVY_OK || a <= 0)
            return 0;
        step[0] = fmin(step[0], b - a), step[1] = fmax(step[1], b - a);
        ratio[0] = fmin(ratio[0], log(b / a)), ratio[1] = fmax(ratio[1], log(b / a));
    }
    return c->nlevels == 2 ? ratio[0] >= log(10) : c->nlevels > 2 && ratio[1] * step[0] < ratio[0] * step[1];
}

static cvy_status fill_column(const cvy_sweep_page *p, int key, cvy_sweep_column *c)
{
    const cvy_sweep_summary *s = &p->sweep;
    double low = INFINITY;
    *c = (cvy_sweep_column){.is_number = 1};
    CVY_TRY(fill_levels(p, key, c));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *c->value * (size_t)CVY_MAX(s->nrows, 1), &c->value));
    for (int i = 0; i < s->nrows; i++)
        if (cvy_text_real(s->row[i].value[key], &c->value[i]) != CVY_OK)
            c->is_number = 0;
        else
            low = fmin(low, c->value[i]);
    c->is_log = c->is_number && low > 0 && (s->is_log[key] || (s->is_list[key] && is_geometric(c)));
    if (c->is_number && (c->nlevels > LEVELS_MAX || !s->is_list[key]))
        c->nlevels = 0;
    for (int i = 0; i < s->nrows && c->nlevels; i++)
        c->value[i] = find_level(c, s->row[i].value[key]);
    return CVY_OK;
}

cvy_status cvy_sweep_columns(cvy_sweep_page *p)
{
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *p->column * (size_t)CVY_MAX(p->sweep.nkey, 1), &p->column));
    for (int k = 0; k < p->sweep.nkey; k++)
        CVY_TRY(fill_column(p, k, &p->column[k]));
    return CVY_OK;
}

/* ---- importance ---- */

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The group of each ranked trial: its level, or one of up to four groups of about equal size. */
static cvy_status make_groups(const cvy_sweep_page *p, const cvy_sweep_column *c, int *group, int *ngroups_out)
{
    const int n = p->sweep.nranked, most = CVY_MAX(CVY_MIN(4, n / 4), 2);
    double *sorted = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *sorted * (size_t)n, &sorted));
    memcpy(sorted, c->value, sizeof *sorted * (size_t)n);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_reals);
    *ngroups_out = c->nlevels ? c->nlevels : most;
    for (int i = 0; i < n; i++) {
        group[i] = c->nlevels ? (int)c->value[i] : 0;
        for (int g = 1; g < most && !c->nlevels; g++)
            group[i] += c->value[i] >= sorted[g * n / most];
    }
    return CVY_OK;
}

/* One-way analysis of variance of the ranks: epsilon squared (Kelley 1935), the share of the variance between groups,
 * less the share that groups without any effect would have on average. Rows are in the order of ranks. */
cvy_status cvy_sweep_importance(const cvy_sweep_page *p, int key, double *share_out)
{
    const int n = p->sweep.nranked;
    int *group = NULL, ngroups = 0, used = 0;
    double total = 0, within = 0;
    *share_out = NAN;
    if (n < 4)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *group * (size_t)n, &group));
    CVY_TRY(make_groups(p, &p->column[key], group, &ngroups));
    for (int g = 0; g < ngroups; g++) {
        cvy_moments of = {0};
        for (int i = 0; i < n; i++)
            if (group[i] == g)
                cvy_moments_add(&of, i);
        within += of.m2;
        used += of.n > 0;
    }
    total = (double)n * ((double)n * n - 1) / 12; /* of the numbers 0 .. n - 1 around their mean */
    if (n - used >= 2 && used >= 2)
        *share_out = fmax(1 - within / total * (n - 1) / (n - used), 0);
    return CVY_OK;
}

static cvy_status importance(cvy_sweep_page *p)
{
    const cvy_sweep_summary *s = &p->sweep;
    cvy_text_add(
        &p->html,
        "<section><h2>Importance of the keys</h2>\n<p class=\"soft\">How much of the variance of the ranks each "
        "key explains by itself. Trials are put into groups by their value of the key; a range of many values "
        "is cut into up to four groups of equal size. The share is the variance between the groups, less what "
        "chance alone gives (epsilon squared). Effects of two keys together are not seen. The shares of a grid "
        "add up to 100 %% at most, and the rest is interaction and noise. With few trials the shares are "
        "rough.</p>\n<div class=\"wide\"><table class=\"layers\"><tbody>\n");
    for (int k = 0; k < s->nkey; k++) {
        double share = NAN;
        CVY_TRY(cvy_sweep_importance(p, k, &share));
        cvy_html_add(&p->html, "<tr><th>%s", s->key[k]);
        if (isfinite(share))
            cvy_text_add(&p->html, "</th><td>%s</td><td class=\"share\"><i style=\"width:%.1f%%\"></i></td></tr>\n",
                         cvy_number_percent(share).at, 100 * share);
        else
            cvy_text_add(&p->html, "</th><td>too few trials</td><td class=\"share\"></td></tr>\n");
    }
    cvy_text_add(&p->html, "</tbody></table></div></section>\n");
    return CVY_OK;
}

/* ---- charts ---- */

/* The score over each key that is a number. */
static cvy_status charts(cvy_sweep_page *p)
{
    const cvy_sweep_summary *s = &p->sweep;
    cvy_text_add(&p->html, "<section><h2>Scores by key</h2>\n<div class=\"charts\">\n");
    for (int k = 0; k < s->nkey; k++) {
        double *x = NULL, *y = NULL, low = INFINITY, high = 0;
        int is_whole = 1;
        CVY_TRY(cvy_pool_alloc(p->pool, sizeof *x * (size_t)CVY_MAX(s->nranked, 1), &x));
        CVY_TRY(cvy_pool_alloc(p->pool, sizeof *y * (size_t)CVY_MAX(s->nranked, 1), &y));
        for (int i = 0; i < s->nranked; i++) {
            (void)cvy_text_real(s->row[i].value[k], &x[i]);
            y[i] = s->row[i].score;
            low = fmin(low, y[i]);
            high = fmax(high, y[i]);
            is_whole &= x[i] == floor(x[i]);
        }
        cvy_chart chart = {.title = s->key[k],
                           .x_label = s->key[k],
                           .y_label = s->metric,
                           .x_what = s->key[k],
                           .log_x = p->column[k].is_log,
                           .whole_x = is_whole,
                           .log_y = low > 0 && high > 40 * low,
                           .small = 1};
        cvy_chart_add(&chart,
                      &(cvy_series){.name = s->metric, .draw = CVY_DRAW_POINTS, .x = x, .y = y, .n = s->nranked}, 2);
        if (p->column[k].is_number)
            cvy_chart_write(&p->html, &chart);
    }
    cvy_text_add(&p->html, "</div></section>\n");
    return CVY_OK;
}

/* ---- the ranking ---- */

void cvy_sweep_add_cells(cvy_sweep_page *p, const char *const *text)
{
    for (int k = 0; k < p->sweep.nkey; k++) {
        cvy_text_add(&p->html, strlen(text[k]) > LONG ? "<td class=\"long\">" : "<td>");
        cvy_html_add(&p->html, "%s</td>", text[k]);
    }
}

static void add_row(cvy_sweep_page *p, const cvy_sweep_row *row)
{
    char path[CVY_SWEEP_PATH + 16];
    cvy_text_add(&p->html, "<tr><td>");
    if (row->rank)
        cvy_text_add(&p->html, "%d", row->rank);
    snprintf(path, sizeof path, "%.500s/trial-%04d/report.html", p->folder, row->trial);
    if (cvy_file_exists(path))
        cvy_text_add(&p->html, "</td><td><a href=\"trial-%04d/report.html\">%d</a></td><td>", row->trial, row->trial);
    else
        cvy_text_add(&p->html, "</td><td>%d</td><td>", row->trial);
    if (row->rank)
        cvy_text_add(&p->html, "%s", cvy_number_text(row->score, 5).at);
    else
        cvy_text_add(&p->html, "%s", row->state);
    cvy_text_add(&p->html, "</td><td>%.4g</td><td>%s</td>", row->epochs, cvy_number_seconds(row->seconds).at);
    cvy_sweep_add_cells(p, row->value);
    cvy_text_add(&p->html, "</tr>\n");
}

static void ranking(cvy_sweep_page *p)
{
    const cvy_sweep_summary *s = &p->sweep;
    cvy_html_add(&p->html,
                 "<section><h2>Ranking</h2>\n<div class=\"wide\"><table "
                 "class=\"runs\"><thead><tr><td>rank</td><td>trial</td><td>%s</td><td>epochs</td><td>time</td>",
                 s->metric);
    cvy_sweep_add_cells(p, s->key);
    cvy_text_add(&p->html, "</tr></thead><tbody>\n");
    for (int i = 0; i < CVY_MIN(s->nrows, ROWS_MAX); i++)
        add_row(p, &s->row[i]);
    cvy_text_add(&p->html, "</tbody></table></div>\n");
    if (s->nrows > ROWS_MAX)
        cvy_text_add(&p->html, "<p class=\"soft\">%d more trials are in " CVY_SWEEP_STATE ".</p>\n",
                     s->nrows - ROWS_MAX);
    cvy_text_add(&p->html, "</section>\n");
}

/* ---- the head ---- */

static void verdict(cvy_sweep_page *p)
{
    const cvy_sweep_summary *s = &p->sweep;
    cvy_text_add(&p->html, "<p class=\"verdict\">");
    if (!s->nranked) {
        cvy_text_add(&p->html, "No trial has a score.</p>\n");
        return;
    }
    cvy_html_add(&p->html, "The best of %d trials is trial %d with %s %s: ", s->nrows, s->row[0].trial, s->metric,
                 cvy_number_text(s->row[0].score, 5).at);
    for (int k = 0; k < s->nkey; k++) {
        cvy_text_add(&p->html, "%s", k ? ", " : "");
        cvy_html_add(&p->html, "%s <b>%s</b>", s->key[k], s->row[0].value[k]);
    }
    cvy_text_add(&p->html, ".</p>\n");
}

static void edges(cvy_sweep_page *p)
{
    cvy_text line = {0};
    int n = 0;
    for (int k = 0; k < p->sweep.nkey; k++) {
        cvy_sweep_add_edge(&p->sweep, k, &line);
        if (line.bytes == 0)
            continue;
        cvy_text_add(&p->html, "%s<li>", n++ ? "" : "<ul class=\"notes\">");
        cvy_html_add(&p->html, "%s</li>\n", line.data);
        cvy_text_free(&line);
        line = (cvy_text){0};
    }
    cvy_text_add(&p->html, "%s", n ? "</ul>\n" : "");
    if (line.status != CVY_OK)
        p->html.status = line.status;
    cvy_text_free(&line);
}

static void errors(cvy_sweep_page *p)
{
    const cvy_sweep_summary *s = &p->sweep;
    int n = 0, left = 0;
    for (int i = 0; i < s->nrows; i++) {
        if (!s->row[i].error || n == ERRORS_MAX) {
            left += s->row[i].error != NULL;
            continue;
        }
        const int is_failed = strcmp(s->row[i].state, "failed") == 0;
        cvy_text_add(&p->html, "%s<li>trial %d %s: ", n++ ? "" : "<ul class=\"notes\">", s->row[i].trial,
                     is_failed ? "failed" : "failed and then became a copy of another one");
        cvy_html_add(&p->html, "%s</li>\n", s->row[i].error);
    }
    if (left)
        cvy_text_add(&p->html, "<li>%d more are in " CVY_SWEEP_STATE "</li>\n", left);
    cvy_text_add(&p->html, "%s", n ? "</ul>\n" : "");
}

static void head(cvy_sweep_page *p)
{
    const cvy_sweep_summary *s = &p->sweep;
    cvy_html_add(&p->html, "<header><p class=\"over\">convoy sweep</p><h1>%s</h1>\n", s->name);
    verdict(p);
    cvy_html_add(&p->html, "<p class=\"facts\">search <b>%s</b>, score of the <b>%s", s->search[0] ? s->search : "grid",
                 s->score_of);
    cvy_text_add(&p->html, "</b> epoch, a %s score is better, %d trial%s a score, %d failed</p>\n",
                 s->higher ? "higher" : "lower", s->nranked, s->nranked == 1 ? " has" : "s have", s->nfailed);
    edges(p);
    errors(p);
    cvy_text_add(&p->html, "</header>\n");
}

/* ---- the page ---- */

static cvy_status write_page(cvy_sweep_page *p)
{
    char path[CVY_SWEEP_PATH], time[32];
    cvy_clock_text(time);
    cvy_page_begin(&p->html, p->sweep.name);
    head(p);
    CVY_TRY(cvy_sweep_lineage(p));
    if (p->sweep.nranked >= 2)
        cvy_sweep_parallel(p);
    if (p->sweep.nranked >= 2 && !p->sweep.row[0].nline) { /* copies are not independent of their parents */
        CVY_TRY(importance(p));
        CVY_TRY(charts(p));
    }
    ranking(p);
    cvy_text_add(&p->html, "<footer>Written %s by convoy %s.</footer>\n", time, cvy_version());
    cvy_page_end(&p->html);
    CVY_TRY(p->html.status);
    snprintf(path, sizeof path, "%.500s/sweep.html", p->folder);
    return cvy_file_replace(path, p->html.data, p->html.bytes);
}

/* The pages of the trials come first: the ranking links those that exist. */
static cvy_status write_trials(const cvy_sweep_page *p)
{
    for (int i = 0; i < p->sweep.nrows; i++) {
        char run[CVY_SWEEP_PATH];
        cvy_sweep_trial_path(p->folder, p->sweep.row[i].trial - 1, run);
        if (cvy_file_is_folder(run))
            CVY_TRY(cvy_report_write(run));
    }
    return CVY_OK;
}

static cvy_status write_all(cvy_sweep_page *p)
{
    CVY_TRY(cvy_pool_create(&p->pool));
    CVY_TRY(cvy_sweep_summary_read(p->pool, p->folder, &p->sweep));
    CVY_TRY(write_trials(p));
    CVY_TRY(cvy_sweep_columns(p));
    return write_page(p);
}

cvy_status cvy_report_sweep(const char *folder)
{
    CVY_ENTRY();
    cvy_sweep_page page = {.folder = folder};
    CVY_CHECK(folder && *folder, CVY_E_ARGUMENT, "cvy_report_sweep() needs the folder of a search");
    CVY_CHECK(strlen(folder) < CVY_SWEEP_OUT_MAX, CVY_E_ARGUMENT,
              "cvy_report_sweep(): the name of the folder has %zu characters, expected fewer than %d", strlen(folder),
              CVY_SWEEP_OUT_MAX);
    const cvy_status status = write_all(&page);
    cvy_text_free(&page.html);
    cvy_pool_destroy(&page.pool);
    return status;
}
