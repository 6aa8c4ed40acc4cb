/*
 * report_compare.c: cvy_report_compare(): a page about several runs, of the same kind as the page of one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "report/report_compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/machine/base_clock.h"

/* ---- reading ---- */

static cvy_status name_run(cvy_comparison *c, int i, const char *folder)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/')
        end--;
    size_t first = end;
    while (first > 0 && folder[first - 1] != '/')
        first--;
    return cvy_pool_printf(c->pool, &c->run[i].name, "%.*s", (int)(end - first), folder + first);
}

/* Runs with the same last part are told apart by their whole folders. */
static cvy_status name_runs(cvy_comparison *c, const char *const *folders)
{
    int is_double[CVY_REPORT_RUNS_MAX] = {0};
    for (int i = 0; i < c->nruns; i++)
        CVY_TRY(name_run(c, i, folders[i]));
    for (int i = 0; i < c->nruns; i++)
        for (int k = 0; k < c->nruns; k++)
            is_double[i] |= i != k && strcmp(c->run[i].name, c->run[k].name) == 0;
    for (int i = 0; i < c->nruns; i++)
        if (is_double[i])
            CVY_TRY(cvy_pool_strdup(c->pool, folders[i], &c->run[i].name));
    return CVY_OK;
}

static cvy_status read_run(cvy_comparison *c, int i, const char *folder)
{
    cvy_compared *run = &c->run[i];
    CVY_TRY(cvy_run_summary_read(folder, &run->summary));
    run->files = (cvy_report){.pool = c->pool, .folder = folder};
    return cvy_report_read(&run->files);
}

/* The time at the end of each epoch, and at each logged step. */
static cvy_status find_times(cvy_comparison *c, cvy_compared *run)
{
    const cvy_frame *epochs = &run->files.epochs;
    const double *epoch_s = cvy_frame_column(epochs, "seconds");
    double sum = 0;
    CVY_TRY(cvy_frame_step_seconds(c->pool, &run->files.steps, epochs, &run->step_unit));
    CVY_TRY(cvy_pool_alloc(c->pool, sizeof(double) * ((size_t)epochs->nrow + 1), &run->epoch_unit));
    for (int64_t i = 0; i < epochs->nrow; i++) {
        sum += epoch_s && isfinite(epoch_s[i]) ? epoch_s[i] : 0;
        run->epoch_unit[i] = epoch_s ? sum : NAN;
    }
    return CVY_OK;
}

/* All runs have the same unit, that of the longest. */
static void scale_times(cvy_comparison *c)
{
    double longest = 0, unit_s = 1;
    for (int i = 0; i < c->nruns; i++)
        longest = fmax(longest, c->run[i].summary.seconds);
    c->unit = longest >= 2 * 3600 ? "h" : longest >= 120 ? "min" : "s";
    unit_s = longest >= 2 * 3600 ? 3600 : longest >= 120 ? 60 : 1;
    for (int i = 0; i < c->nruns; i++) {
        for (int64_t k = 0; k < c->run[i].files.steps.nrow; k++)
            c->run[i].step_unit[k] /= unit_s;
        for (int64_t k = 0; k < c->run[i].files.epochs.nrow; k++)
            c->run[i].epoch_unit[k] /= unit_s;
    }
}

static cvy_status read_runs(cvy_comparison *c, const char *const *folders)
{
    CVY_TRY(name_runs(c, folders));
    for (int i = 0; i < c->nruns; i++) {
        CVY_TRY(read_run(c, i, folders[i]));
        CVY_TRY(find_times(c, &c->run[i]));
    }
    scale_times(c);
    return CVY_OK;
}

/* ---- the head ---- */

/* Whether all runs were selected by the same score; if so, its best value over the runs. */
static int find_best(const cvy_comparison *c, double *best_out)
{
    *best_out = NAN;
    for (int i = 0; i < c->nruns; i++) {
        const cvy_run_summary *s = &c->run[i].summary;
        if (!s->metric[0] || strcmp(s->metric, c->run[0].summary.metric) != 0)
            return 0;
        if (!isfinite(s->best))
            continue;
        if (isnan(*best_out) || (s->best_higher ? s->best > *best_out : s->best < *best_out))
            *best_out = s->best;
    }
    return 1;
}

static void verdict(cvy_comparison *c)
{
    double best = 0;
    int nbest = 0;
    cvy_text_add(&c->html, "<p class=\"verdict\">");
    if (!find_best(c, &best)) {
        cvy_text_add(&c->html, "The runs have no score in common by which they were selected.</p>\n");
        return;
    }
    if (isnan(best)) {
        cvy_html_add(&c->html, "No run has a finite %s, by which they were selected.</p>\n", c->run[0].summary.metric);
        return;
    }
    cvy_html_add(&c->html, "The best %s is %s, of ", c->run[0].summary.metric, cvy_number_text(best, 4).at);
    for (int i = 0; i < c->nruns; i++) {
        const cvy_run_summary *s = &c->run[i].summary;
        if (s->best != best)
            continue;
        cvy_text_add(&c->html, "%s", nbest++ ? ", " : "");
        cvy_html_add(&c->html, "%s (epoch %s)", c->run[i].name, cvy_number_count(s->best_epoch).at);
    }
    cvy_text_add(&c->html, ".</p>\n");
}

/* Reasons of failures and early stops, and damaged files. */
static void notes(cvy_comparison *c)
{
    int n = 0;
    for (int i = 0; i < c->nruns; i++) {
        const cvy_compared *run = &c->run[i];
        if (!run->summary.why[0] && run->files.nread_errors == 0)
            continue;
        cvy_text_add(&c->html, "%s<li>", n++ ? "" : "<ul class=\"notes\">");
        cvy_html_add(&c->html, "%s: %s", run->name, run->summary.why);
        for (int k = 0; k < run->files.nread_errors; k++) {
            cvy_text_add(&c->html, "%s", k || run->summary.why[0] ? "; " : "");
            cvy_html_escape(&c->html, run->files.read_errors[k]);
        }
        cvy_text_add(&c->html, "</li>\n");
    }
    cvy_text_add(&c->html, n ? "</ul>\n" : "");
}

static void head(cvy_comparison *c)
{
    cvy_text_add(&c->html, "<header class=\"names\"><p class=\"over\">convoy comparison</p><h1>");
    for (int i = 0; i < c->nruns; i++) {
        cvy_text_add(&c->html, "%s", i == 0 ? "" : i == c->nruns - 1 ? " and " : ", ");
        cvy_html_escape(&c->html, c->run[i].name);
    }
    cvy_text_add(&c->html, "</h1>\n");
    verdict(c);
    notes(c);
    cvy_text_add(&c->html, "</header>\n");
}

/* ---- the page ---- */

static cvy_status write_page(cvy_comparison *c, const char *path)
{
    char time[32];
    cvy_clock_text(time);
    cvy_page_begin(&c->html, "comparison");
    head(c);
    CVY_TRY(cvy_comparison_table(c));
    cvy_comparison_charts(c);
    cvy_text_add(&c->html, "<footer>Written %s by convoy %s.</footer>\n", time, cvy_version());
    cvy_page_end(&c->html);
    CVY_TRY(c->html.status);
    return cvy_file_replace(path, c->html.data, c->html.bytes);
}

static cvy_status compare(cvy_comparison *c, const char *const *folders, const char *path)
{
    CVY_TRY(cvy_pool_create(&c->pool));
    CVY_TRY(read_runs(c, folders));
    return write_page(c, path);
}

cvy_status cvy_report_compare(const char *const *folders, int count, const char *path)
{
    CVY_ENTRY();
    cvy_comparison *c = NULL;
    CVY_CHECK(count >= 2 && count <= CVY_REPORT_RUNS_MAX, CVY_E_ARGUMENT,
              "a comparison of %d runs, expected 2 to %d of them", count, CVY_REPORT_RUNS_MAX);
    CVY_CHECK(folders && path, CVY_E_ARGUMENT, "cvy_report_compare() needs run folders and a path");
    for (int i = 0; i < count; i++)
        CVY_CHECK(folders[i], CVY_E_ARGUMENT, "cvy_report_compare(): run folder %d is NULL", i);
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    c->nruns = count;
    const cvy_status status = compare(c, folders, path);
    for (int i = 0; i < count; i++) {
        cvy_frame_free(&c->run[i].files.steps);
        cvy_frame_free(&c->run[i].files.epochs);
    }
    cvy_text_free(&c->html);
    cvy_pool_destroy(&c->pool);
    cvy_mem_free(&c);
    return status;
}
