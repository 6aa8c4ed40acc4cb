/*
 * report_page.c: reads the files in a run's folder and writes its page: one file for screen and paper, without scripts,
 * which loads nothing from elsewhere.
 *
 * It is called at the end of `train`, after `test`, and by `convoy report RUN` at any time; never in a step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "base/text/base_text.h"
#include "monitor/monitor_run_layout.h"
#include "report/report_page.h"

#define TEXT_BYTES_MAX ((size_t)16 << 20)

extern const char cvy_report_css[]; /* report.css, embedded by the build */

/* ---- reading ---- */

static cvy_status path_of(cvy_report *r, const char *name, char **path_out, int *exists_out)
{
    CVY_TRY(cvy_pool_printf(r->pool, path_out, "%s/%s", r->folder, name));
    *exists_out = cvy_file_exists(*path_out);
    return CVY_OK;
}

/* If a file cannot be read, the page says so and goes on. Only a lack of memory is an error. */
static cvy_status note_read_error(cvy_report *r, const char *name, cvy_status status)
{
    if (status == CVY_OK || status == CVY_E_MEMORY || r->nread_errors == CVY_COUNT(r->read_errors))
        return status == CVY_E_MEMORY ? status : CVY_OK;
    CVY_TRY(cvy_pool_printf(r->pool, &r->read_errors[r->nread_errors], "%s is left out: %s", name, cvy_error_text()));
    r->nread_errors++;
    return CVY_OK;
}

static cvy_status read_tree(cvy_report *r, const char *name, const cvy_tree **out)
{
    char *path = NULL;
    cvy_tree *tree = NULL;
    int exists = 0;
    CVY_TRY(path_of(r, name, &path, &exists));
    if (!exists)
        return CVY_OK;
    CVY_TRY(note_read_error(r, name, cvy_tree_parse_file(r->pool, path, &tree)));
    *out = tree && tree->kind == CVY_TREE_MAP ? tree : NULL;
    return CVY_OK;
}

static cvy_status read_text(cvy_report *r, const char *name, const char **out)
{
    char *path = NULL, *data = NULL, *text = NULL;
    size_t bytes = 0;
    int exists = 0;
    CVY_TRY(path_of(r, name, &path, &exists));
    if (!exists)
        return CVY_OK;
    CVY_TRY(note_read_error(r, name, cvy_file_read(path, TEXT_BYTES_MAX, &data, &bytes)));
    if (!data)
        return CVY_OK;
    const cvy_status status = cvy_pool_strdup(r->pool, data, &text);
    cvy_mem_free(&data);
    *out = text;
    return status;
}

/* An analysis of other weights than those of test.json would be misleading, so the page leaves it out. */
static cvy_status read_analysis(cvy_report *r)
{
    const cvy_tree *analysis = NULL;
    CVY_TRY(read_tree(r, CVY_RUN_ANALYSIS, &analysis));
    const char *of = cvy_tree_text_at(analysis, "checkpoint"), *tested = cvy_tree_text_at(r->test, "checkpoint");
    r->analysis = analysis ? analysis : r->test;
    if (!analysis || !of || !tested || strcmp(of, tested) == 0)
        return CVY_OK;
    r->analysis = NULL;
    return note_read_error(
        r, CVY_RUN_ANALYSIS,
        cvy_error_set(CVY_E_FORMAT, "it is of %s, but the scores are of %s: run the analysis again", of, tested));
}

cvy_status cvy_report_read(cvy_report *r)
{
    char *path = NULL;
    int exists = 0;
    CVY_TRY(read_tree(r, CVY_RUN_JOB, &r->job));
    CVY_TRY(read_text(r, CVY_RUN_JOB, &r->job_text));
    CVY_TRY(read_text(r, CVY_RUN_STATUS, &r->status_text));
    CVY_TRY(read_tree(r, CVY_RUN_PLAN, &r->plan));
    CVY_TRY(read_tree(r, CVY_RUN_TEST, &r->test));
    CVY_TRY(read_analysis(r));
    CVY_TRY(path_of(r, CVY_RUN_METRICS, &path, &exists));
    return exists ? note_read_error(r, CVY_RUN_METRICS, cvy_frames_read(path, &r->steps, &r->epochs, &r->stages))
                  : CVY_OK;
}

/* ---- writing ---- */

void cvy_report_foot(cvy_report *r)
{
    const cvy_tree *machine = cvy_tree_at(r->plan, "machine");
    const char *version = cvy_tree_text_at(r->plan, "version");
    char time[32];
    cvy_clock_text(time);
    if (machine && machine->kind == CVY_TREE_MAP && machine->count > 0) {
        cvy_text_add(&r->html, "<section><h2>Machine</h2>\n<table><tbody>\n");
        for (int i = 0; i < machine->count; i++) {
            if (!machine->child[i]->text)
                continue;
            cvy_html_add(&r->html, "<tr><th>%s</th><td class=\"t\">%s</td></tr>\n", machine->key[i],
                         machine->child[i]->text);
        }
        cvy_text_add(&r->html, "</tbody></table></section>\n");
    }
    if (r->job_text) {
        cvy_html_add(&r->html,
                     "<section><h2>Job</h2>\n<details><summary>job.resolved.yaml, with which this run can be "
                     "repeated</summary><pre>%s</pre></details></section>\n",
                     r->job_text);
    }
    cvy_text_add(&r->html, "<footer>Written %s by convoy %s", time, cvy_version());
    if (version && strcmp(version, cvy_version()) != 0) {
        cvy_html_add(&r->html, "; the run was made by convoy %s", version);
    }
    cvy_text_add(&r->html, ".</footer>\n");
}

void cvy_page_begin(cvy_text *html, const char *title)
{
    cvy_html_add(html,
                 "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\" /><meta name=\"viewport\" "
                 "content=\"width=device-width,initial-scale=1\" /><title>%s: convoy report</title>\n<style>\n",
                 title);
    cvy_text_add_bytes(html, cvy_report_css, strlen(cvy_report_css));
    cvy_text_add(html, "</style></head><body><main>\n");
}

void cvy_page_end(cvy_text *html)
{
    cvy_text_add(html, "</main></body></html>\n");
}

static void write_page(cvy_report *r)
{
    cvy_page_begin(&r->html, r->folder);
    cvy_report_head(r);
    cvy_report_test(r);
    cvy_report_training(r);
    cvy_report_network(r);
    cvy_report_foot(r);
    cvy_page_end(&r->html);
}

static cvy_status write_inner(cvy_report *r)
{
    char *path = NULL;
    int exists = 0;
    CVY_TRY(cvy_report_read(r));
    write_page(r);
    CVY_TRY(r->html.status);
    CVY_TRY(path_of(r, CVY_RUN_REPORT, &path, &exists));
    return cvy_file_replace(path, r->html.data, r->html.bytes);
}

cvy_status cvy_report_write(const char *run_folder)
{
    CVY_ENTRY();
    cvy_report r = {.folder = run_folder};
    CVY_CHECK(run_folder, CVY_E_ARGUMENT, "cvy_report_write() needs a run folder");
    CVY_CHECK(cvy_file_is_folder(run_folder), CVY_E_IO, "%s: no such run folder", run_folder);
    CVY_TRY(cvy_pool_create(&r.pool));
    const cvy_status status = write_inner(&r);
    cvy_text_free(&r.html);
    cvy_frame_free(&r.steps);
    cvy_frame_free(&r.epochs);
    cvy_frame_free(&r.stages);
    cvy_pool_destroy(&r.pool);
    return status;
}
