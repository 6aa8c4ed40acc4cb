/*
 * report_ensemble.c: cvy_report_ensemble(): the page of an ensemble, ensemble.html, from ensemble.json: the scores of
 * the members, their mean and spread, and those of the ensemble, with its curves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "monitor/monitor_run_layout.h"
#include "report/report_page.h"

static const cvy_tree *members_of(const cvy_report *r)
{
    const cvy_tree *list = cvy_tree_at(r->test, "members");
    return list && list->kind == CVY_TREE_LIST ? list : NULL;
}

/* ---- the head ---- */

/* "0.7605 ± 0.0022", or the number alone. */
static void add_with_spread(cvy_text *html, double value, double spread)
{
    cvy_text_add(html, "%s", cvy_number_text(value, 4).at);
    if (isfinite(spread))
        cvy_text_add(html, " ± %s", cvy_number_text(spread, 2).at);
}

/* The first score of the members and of the ensemble as a sentence. */
static void verdict(cvy_report *r)
{
    const cvy_tree *mean = cvy_tree_at(r->test, "mean"), *metrics = cvy_tree_at(r->test, "metrics");
    const char *key = mean && mean->kind == CVY_TREE_MAP && mean->count > 0 ? mean->key[0] : NULL;
    const cvy_tree *members = members_of(r);
    if (!key || !members)
        return;
    cvy_html_add(&r->html, "<p class=\"verdict\">The ensemble of %d networks has %s <b>%s</b>; a single network has ",
                 members->count, key, cvy_number_text(cvy_tree_real_at(metrics, key), 4).at);
    add_with_spread(&r->html, cvy_tree_real_at(mean, key), cvy_tree_real_at(cvy_tree_at(r->test, "spread"), key));
    cvy_text_add(&r->html, ".</p>\n");
}

static int count_calibrated(const cvy_tree *members)
{
    int n = 0;
    for (int i = 0; members && i < members->count; i++)
        n += isfinite(cvy_tree_real_at(members->child[i], "temperature"));
    return n;
}

static void head(cvy_report *r)
{
    const cvy_tree *members = members_of(r);
    const char *data = cvy_tree_text_at(r->test, "data"), *used = cvy_tree_text_at(r->test, "calibrated");
    const int calibrated = count_calibrated(members), count = members ? members->count : 0;
    cvy_html_add(&r->html, "<header><p class=\"over\">convoy ensemble</p><h1>%s</h1>\n", r->folder);
    verdict(r);
    cvy_html_add(&r->html, "<p class=\"facts\"><b>%s</b> samples of <b>%s</b>; ",
                 cvy_number_count(cvy_tree_real_at(r->test, "samples")).at, data ? data : "the test data");
    if (used && strcmp(used, "true") != 0)
        cvy_text_add(&r->html, "temperatures are not applied");
    else
        cvy_text_add(&r->html, "%d of %d networks have a temperature, which is applied", calibrated, count);
    cvy_text_add(&r->html, "; ± is the standard deviation over the networks</p></header>\n");
}

/* ---- the table ---- */

/* The run's name, with a link to its page if the run lies in the folder and has one. */
static void add_run(cvy_report *r, const char *run)
{
    const char *name = run ? cvy_file_base_name(run) : "";
    char page[CVY_RUN_PATH], folder[CVY_RUN_PATH];
    cvy_run_path(r->folder, name, folder);
    cvy_run_path(folder, CVY_RUN_REPORT, page);
    const int has_page = *name && cvy_file_exists(page);
    if (has_page) {
        cvy_html_add(&r->html, "<a href=\"%s", name);
        cvy_text_add(&r->html, "/" CVY_RUN_REPORT "\">");
    }
    cvy_html_escape(&r->html, name);
    cvy_text_add(&r->html, "%s", has_page ? "</a>" : "");
}

static void add_cells(cvy_report *r, const cvy_tree *keys, const cvy_tree *value, double temperature,
                      int has_temperature)
{
    if (has_temperature)
        cvy_text_add(&r->html, "<td>%s</td>", isfinite(temperature) ? cvy_number_text(temperature, 4).at : "");
    for (int i = 0; i < keys->count; i++) {
        const double x = cvy_tree_real_at(value, keys->key[i]);
        cvy_text_add(&r->html, "<td>%s</td>", isfinite(x) ? cvy_number_text(x, 4).at : "");
    }
    cvy_text_add(&r->html, "</tr>\n");
}

static void table(cvy_report *r)
{
    static const char *const row[][2] = {
        {"mean", "mean of the networks"}, {"spread", "standard deviation"}, {"metrics", "ensemble"}};
    const cvy_tree *keys = cvy_tree_at(r->test, "metrics"), *members = members_of(r);
    if (!keys || keys->kind != CVY_TREE_MAP || !members)
        return;
    const int has_temperature = count_calibrated(members) > 0;
    cvy_text_add(&r->html, "<section><h2>Scores</h2>\n<div class=\"wide\"><table class=\"runs\"><thead><tr><th></th>%s",
                 has_temperature ? "<td>temperature</td>" : "");
    for (int i = 0; i < keys->count; i++) {
        cvy_html_add(&r->html, "<td>%s</td>", keys->key[i]);
    }
    cvy_text_add(&r->html, "</tr></thead><tbody>\n");
    for (int i = 0; i < members->count; i++) {
        cvy_text_add(&r->html, "<tr><th>");
        add_run(r, cvy_tree_text_at(members->child[i], "run"));
        cvy_text_add(&r->html, "</th>");
        add_cells(r, keys, cvy_tree_at(members->child[i], "metrics"),
                  cvy_tree_real_at(members->child[i], "temperature"), has_temperature);
    }
    for (int i = 0; i < CVY_COUNT(row); i++) {
        cvy_text_add(&r->html, "<tr><th>%s</th>", row[i][1]);
        add_cells(r, keys, cvy_tree_at(r->test, row[i][0]), NAN, has_temperature);
    }
    cvy_text_add(&r->html, "</tbody></table></div></section>\n");
}

/* ---- the page ---- */

static cvy_status write_page(cvy_report *r)
{
    char path[CVY_RUN_PATH], time[32];
    cvy_tree *tree = NULL;
    cvy_run_path(r->folder, CVY_ENSEMBLE_SCORES, path);
    CVY_CHECK(cvy_file_exists(path), CVY_E_IO, "%s: no " CVY_ENSEMBLE_SCORES ": `convoy test %s` writes it", r->folder,
              r->folder);
    CVY_TRY(cvy_tree_parse_file(r->pool, path, &tree));
    CVY_CHECK(tree->kind == CVY_TREE_MAP, CVY_E_FORMAT,
              "%s: expected a JSON object: write it again by `convoy test %s`", path, r->folder);
    r->test = tree;
    cvy_clock_text(time);
    cvy_page_begin(&r->html, r->folder);
    head(r);
    table(r);
    cvy_report_ensemble_charts(r);
    cvy_text_add(&r->html, "<footer>Written %s by convoy %s.</footer>\n", time, cvy_version());
    cvy_page_end(&r->html);
    CVY_TRY(r->html.status);
    cvy_run_path(r->folder, CVY_ENSEMBLE_REPORT, path);
    return cvy_file_replace(path, r->html.data, r->html.bytes);
}

cvy_status cvy_report_ensemble(const char *folder)
{
    CVY_ENTRY();
    cvy_report r = {.folder = folder};
    CVY_CHECK(folder && *folder, CVY_E_ARGUMENT, "cvy_report_ensemble() needs a folder of runs");
    CVY_TRY(cvy_pool_create(&r.pool));
    const cvy_status status = write_page(&r);
    cvy_text_free(&r.html);
    cvy_pool_destroy(&r.pool);
    return status;
}
