/*
 * files_list.c: cvy_run_list(): finds the runs below a folder, for `convoy ls`.
 *
 * A folder of a run is not searched further. A link to a folder of a run counts, but links are not followed otherwise,
 * so the search ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "files/files_runs.h"
#include "table/table.h"

enum { DEPTH_MAX = 16 };

/* ---- the search ---- */

/* Makes room for one more element; the room doubles when it is full. */
static cvy_status grow(void *array_ptr, size_t elem, int count)
{
    if ((count & (count - 1)) != 0)
        return CVY_OK;
    return cvy_mem_grow(array_ptr, elem * (size_t)count, elem * (size_t)CVY_MAX(2 * count, 1));
}

static cvy_status add_unreadable(cvy_run_list_result *o, const char *text)
{
    CVY_TRY(grow(&o->unreadable, sizeof *o->unreadable, o->nunreadable));
    CVY_TRY(cvy_pool_strdup(o->pool, text, &o->unreadable[o->nunreadable]));
    o->nunreadable++;
    return CVY_OK;
}

static cvy_status add_run(cvy_run_list_result *o, const char *path)
{
    CVY_TRY(grow(&o->run, sizeof *o->run, o->nruns));
    const cvy_status status = cvy_run_summary_read(path, &o->run[o->nruns]);
    if (status == CVY_OK)
        o->nruns++;
    return status == CVY_OK || status == CVY_E_MEMORY ? status : add_unreadable(o, cvy_error_text());
}

static cvy_status search(cvy_run_list_result *o, const char *path, int depth)
{
    char **name = NULL;
    int64_t count = 0;
    if (cvy_run_is_folder(path))
        return add_run(o, path);
    const cvy_status status = cvy_file_list(o->pool, path, &name, &count);
    if (status != CVY_OK)
        return status == CVY_E_MEMORY ? status : add_unreadable(o, cvy_error_text());
    for (int64_t i = 0; i < count; i++) {
        struct stat about;
        char *child = NULL;
        if (name[i][0] == '.')
            continue;
        CVY_TRY(cvy_pool_printf(o->pool, &child, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", name[i]));
        if (lstat(child, &about) != 0)
            continue; /* it has been removed */
        if (S_ISLNK(about.st_mode) && cvy_file_is_folder(child) && cvy_run_is_folder(child))
            CVY_TRY(add_run(o, child));
        else if (S_ISDIR(about.st_mode) && depth < DEPTH_MAX)
            CVY_TRY(search(o, child, depth + 1));
    }
    return CVY_OK;
}

cvy_status cvy_run_list(const char *folder, cvy_run_list_result *out)
{
    CVY_ENTRY();
    *out = (cvy_run_list_result){0};
    CVY_CHECK(folder && *folder, CVY_E_ARGUMENT, "the name of the folder to list is empty");
    CVY_CHECK(cvy_file_is_folder(folder), CVY_E_IO, "%s: no such folder", folder);
    CVY_TRY(cvy_pool_create(&out->pool));
    const cvy_status status = search(out, folder, 0);
    if (status != CVY_OK)
        cvy_run_list_result_release(out);
    return status;
}

void cvy_run_list_result_release(cvy_run_list_result *result)
{
    cvy_mem_free(&result->run);
    cvy_mem_free(&result->unreadable);
    cvy_pool_destroy(&result->pool);
    *result = (cvy_run_list_result){0};
}

/* ---- texts ---- */

static void state_words(cvy_cell cell, cvy_text *out)
{
    cvy_text_add(out, "%s", cvy_run_state_text(*(const cvy_run_state *)cell.value));
}

static void step_words(cvy_cell cell, cvy_text *out)
{
    const cvy_run_summary *r = cell.row;
    cvy_text_add(out, "%lld/%lld", (long long)r->step, (long long)r->steps);
}

/* A number, or "-" if it is not known. */
static void add_figure(const char *format, double x, cvy_text *out)
{
    cvy_text_add(out, isfinite(x) ? format : "-", x);
}

static void epoch_words(cvy_cell cell, cvy_text *out)
{
    const cvy_run_summary *r = cell.row;
    add_figure("%.4g", r->epoch, out);
    cvy_text_add(out, "/");
    add_figure("%.4g", r->epochs, out);
}

static void score_words(cvy_cell cell, cvy_text *out)
{
    const cvy_run_summary *r = cell.row;
    cvy_text_add(out, r->metric[0] ? "%s " : "-", r->metric);
    if (!r->metric[0])
        return;
    add_figure("%.5g", r->best, out);
    cvy_text_add(out, " (");
    add_figure("%g", r->best_epoch, out);
    cvy_text_add(out, ")");
}

static void duration_words(cvy_cell cell, cvy_text *out)
{
    cvy_text_add(out, "%s", cvy_run_duration_text(*(const double *)cell.value).at);
}

static void count_words(cvy_cell cell, cvy_text *out)
{
    const int n = *(const int *)cell.value;
    cvy_text_add(out, n ? "%d" : "-", n);
}

static void time_words(cvy_cell cell, cvy_text *out)
{
    const double changed = *(const double *)cell.value;
    const time_t when = (time_t)changed;
    char text[32] = "-";
    struct tm tm;
    if (changed > 0 && localtime_r(&when, &tm))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
    cvy_text_add(out, "%s", text);
}

#define COLUMN(...) CVY_COLUMN(cvy_run_summary, __VA_ARGS__)

static const cvy_column columns[] = {
    COLUMN(TEXT, folder, .title = "run", .width = -3, .widest = 48),
    COLUMN(WORDS, state, .title = "state", .width = -10, .gap = 2, .words = state_words),
    COLUMN(TEXT, why),
    COLUMN(COUNT, step, .title = "step", .width = 13, .words = step_words),
    COLUMN(COUNT, steps),
    COLUMN(REAL, epoch, .title = "epoch", .width = 13, .words = epoch_words),
    COLUMN(REAL, epochs),
    COLUMN(TEXT, metric, .title = "best score (epoch)", .width = -30, .gap = 2, .words = score_words),
    COLUMN(REAL, best),
    COLUMN(REAL, best_epoch),
    COLUMN(BOOL, best_higher),
    COLUMN(REAL, last_loss, .title = "loss", .width = 10, .format = "%.4g"),
    COLUMN(REAL, images_per_s),
    COLUMN(REAL, seconds, .title = "taken", .width = 12, .words = duration_words),
    COLUMN(REAL, left_s, .title = "left", .width = 12, .words = duration_words),
    COLUMN(INT, nodes, .title = "nodes", .width = 5, .words = count_words),
    COLUMN(INT, ranks, .title = "ranks", .width = 5, .words = count_words),
    COLUMN(REAL, changed, .title = "last change", .width = -1, .gap = 2, .words = time_words),
    {0},
};

cvy_status cvy_run_list_result_json(const cvy_run_list_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_table_json(columns, CVY_ROWS(result->run, result->nruns), "runs", &json);
    cvy_json_open(&json, "unreadable", '[');
    for (int i = 0; i < result->nunreadable; i++)
        cvy_json_string(&json, NULL, result->unreadable[i]);
    cvy_json_close(&json, ']');
    cvy_json_close(&json, '}');
    return cvy_text_take(&json.text, text_out);
}

static void add_why(const void *row, cvy_text *out)
{
    const cvy_run_summary *r = row;
    if (r->why[0])
        cvy_text_add(out, "    %s\n", r->why);
}

cvy_status cvy_run_list_result_lines(const cvy_run_list_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_text t = {0};
    cvy_table_print(columns, CVY_ROWS(result->run, result->nruns), add_why, &t);
    for (int i = 0; i < result->nunreadable; i++)
        cvy_text_add(&t, "not readable: %s\n", result->unreadable[i]);
    return cvy_text_take(&t, text_out);
}
