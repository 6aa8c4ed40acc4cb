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
#include "base/base_opts.h"
#include "files/files_runs.h"
#include "table/table.h"

enum { DEPTH_MAX = 16 };

/* The size of the struct's first version; without `owned` the caller could not release what it is given. */
#define FIRST_SIZE (offsetof(cvy_run_list_result, owned) + sizeof(void *))

struct owned {
    cvy_pool *pool; /* of the texts and of the list of folders that cannot be read */
    cvy_run_summary *run;
    char **unreadable;
    int nrun, nunreadable;
};

/* ---- the search ---- */

/* Makes room for one more element; the room doubles when it is full. */
static cvy_status grow(void *array_ptr, size_t elem, int count)
{
    if ((count & (count - 1)) != 0)
        return CVY_OK;
    return cvy_mem_grow(array_ptr, elem * (size_t)count, elem * (size_t)CVY_MAX(2 * count, 1));
}

static cvy_status add_unreadable(struct owned *o, const char *text)
{
    CVY_TRY(grow(&o->unreadable, sizeof *o->unreadable, o->nunreadable));
    CVY_TRY(cvy_pool_strdup(o->pool, text, &o->unreadable[o->nunreadable]));
    o->nunreadable++;
    return CVY_OK;
}

static cvy_status add_run(struct owned *o, const char *path)
{
    CVY_TRY(grow(&o->run, sizeof *o->run, o->nrun));
    const cvy_status status = cvy_run_summary_read(path, &o->run[o->nrun]);
    if (status == CVY_OK)
        o->nrun++;
    return status == CVY_OK || status == CVY_E_MEMORY ? status : add_unreadable(o, cvy_error_text());
}

static cvy_status search(struct owned *o, const char *path, int depth)
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

static void release(struct owned **owned)
{
    struct owned *o = *owned;
    if (!o)
        return;
    cvy_mem_free(&o->run);
    cvy_mem_free(&o->unreadable);
    cvy_pool_destroy(&o->pool);
    cvy_mem_free(owned);
}

static cvy_status find_all(const char *folder, struct owned **out)
{
    struct owned *o = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *o, &o));
    cvy_status status = cvy_pool_create(&o->pool);
    if (status == CVY_OK)
        status = search(o, folder, 0);
    for (int i = 0; i < o->nrun; i++)
        o->run[i].size = sizeof *o->run;
    if (status == CVY_OK)
        *out = o;
    else
        release(&o);
    return status;
}

cvy_status cvy_run_list(const char *folder, cvy_run_list_result *result_out)
{
    CVY_ENTRY();
    struct owned *o = NULL;
    CVY_CHECK(result_out, CVY_E_ARGUMENT, "cvy_run_list() needs a place for the runs");
    CVY_TRY(CVY_RESULT_CHECK(cvy_run_list_result, result_out));
    CVY_CHECK(result_out->size >= FIRST_SIZE, CVY_E_ARGUMENT,
              "the size of cvy_run_list_result is %zu, at least %zu is needed", result_out->size, FIRST_SIZE);
    CVY_CHECK(folder && *folder, CVY_E_ARGUMENT, "the name of the folder to list is empty");
    CVY_CHECK(cvy_file_is_folder(folder), CVY_E_IO, "%s: no such folder", folder);
    CVY_TRY(find_all(folder, &o));
    const cvy_run_list_result result = {.nruns = o->nrun,
                                        .run = o->run,
                                        .nunreadable = o->nunreadable,
                                        .unreadable = (const char *const *)o->unreadable,
                                        .owned = o};
    cvy_result_write(result_out, &result, sizeof result);
    return CVY_OK;
}

void cvy_run_list_result_release(cvy_run_list_result *result)
{
    CVY_ENTRY();
    const cvy_run_list_result empty = {0};
    if (result->size < FIRST_SIZE)
        return;
    struct owned *o = result->owned;
    release(&o);
    cvy_result_write(result, &empty, sizeof empty);
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
    cvy_run_list_result r;
    cvy_json json = {0};
    *text_out = NULL;
    CVY_TRY(CVY_OPTS_READ(cvy_run_list_result, result, &r));
    cvy_json_open(&json, NULL, '{');
    cvy_table_json(columns, CVY_ROWS(r.run, r.nruns), "runs", &json);
    cvy_json_open(&json, "unreadable", '[');
    for (int i = 0; i < r.nunreadable; i++)
        cvy_json_string(&json, NULL, r.unreadable[i]);
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
    cvy_run_list_result r;
    cvy_text t = {0};
    *text_out = NULL;
    CVY_TRY(CVY_OPTS_READ(cvy_run_list_result, result, &r));
    cvy_table_print(columns, CVY_ROWS(r.run, r.nruns), add_why, &t);
    for (int i = 0; i < r.nunreadable; i++)
        cvy_text_add(&t, "not readable: %s\n", r.unreadable[i]);
    return cvy_text_take(&t, text_out);
}
