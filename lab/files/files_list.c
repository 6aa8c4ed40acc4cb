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
#include "base/text/base_json.h"
#include "files/files_runs.h"

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

static void add_run_json(const cvy_run_summary *r, cvy_json *json)
{
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "folder", r->folder);
    cvy_json_string(json, "state", cvy_run_state_text(r->state));
    cvy_json_string(json, "why", r->why);
    cvy_json_int(json, "step", r->step);
    cvy_json_int(json, "steps", r->steps);
    cvy_json_real(json, "epoch", r->epoch);
    cvy_json_real(json, "epochs", r->epochs);
    cvy_json_string(json, "metric", r->metric);
    cvy_json_real(json, "best", r->best);
    cvy_json_real(json, "best_epoch", r->best_epoch);
    cvy_json_bool(json, "best_higher", r->best_higher);
    cvy_json_real(json, "last_loss", r->last_loss);
    cvy_json_real(json, "images_per_s", r->images_per_s);
    cvy_json_real(json, "seconds", r->seconds);
    cvy_json_real(json, "left_s", r->left_s);
    cvy_json_int(json, "nodes", r->nodes);
    cvy_json_int(json, "ranks", r->ranks);
    cvy_json_real(json, "changed", r->changed);
    cvy_json_close(json, '}');
}

cvy_status cvy_run_list_result_json(const cvy_run_list_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_run_list_result r;
    cvy_json json = {0};
    *text_out = NULL;
    CVY_TRY(CVY_OPTS_READ(cvy_run_list_result, result, &r));
    cvy_json_open(&json, NULL, '{');
    cvy_json_open(&json, "runs", '[');
    for (int i = 0; i < r.nruns; i++)
        add_run_json(&r.run[i], &json);
    cvy_json_close(&json, ']');
    cvy_json_open(&json, "unreadable", '[');
    for (int i = 0; i < r.nunreadable; i++)
        cvy_json_string(&json, NULL, r.unreadable[i]);
    cvy_json_close(&json, ']');
    cvy_json_close(&json, '}');
    if (json.text.status == CVY_OK)
        *text_out = json.text.data;
    else
        cvy_text_free(&json.text);
    return *text_out ? CVY_OK : CVY_E_MEMORY;
}

/* A number, or "-" if it is not known. */
static const char *figure(double x, const char *format, char text[32])
{
    if (isfinite(x))
        snprintf(text, 32, format, x);
    return isfinite(x) ? text : "-";
}

static void add_line(const cvy_run_summary *r, int width, cvy_text *t)
{
    char step[48], epoch[72], score[160], number[32], best_epoch[32], loss[32], changed[32] = "-";
    const time_t when = (time_t)r->changed;
    struct tm tm;
    snprintf(step, sizeof step, "%lld/%lld", (long long)r->step, (long long)r->steps);
    snprintf(epoch, sizeof epoch, "%s/%s", figure(r->epoch, "%.4g", number), figure(r->epochs, "%.4g", best_epoch));
    snprintf(score, sizeof score, "-");
    if (r->metric[0])
        snprintf(score, sizeof score, "%s %s (%s)", r->metric, figure(r->best, "%.5g", number),
                 figure(r->best_epoch, "%g", best_epoch));
    if (r->changed > 0 && localtime_r(&when, &tm))
        strftime(changed, sizeof changed, "%Y-%m-%d %H:%M", &tm);
    cvy_text_add(t, "%-*s  %-10s %13s %13s  %-30s %10s %12s %12s", width, r->folder, cvy_run_state_text(r->state), step,
                 epoch, score, figure(r->last_loss, "%.4g", loss), cvy_run_duration_text(r->seconds).at,
                 cvy_run_duration_text(r->left_s).at);
    cvy_text_add(t, " %5s", figure(r->nodes ? r->nodes : NAN, "%.0f", number));
    cvy_text_add(t, " %5s  %s\n", figure(r->ranks ? r->ranks : NAN, "%.0f", number), changed);
    if (r->why[0])
        cvy_text_add(t, "%*s%s\n", 4, "", r->why);
}

cvy_status cvy_run_list_result_lines(const cvy_run_list_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_run_list_result r;
    cvy_text t = {0};
    int width = 3;
    *text_out = NULL;
    CVY_TRY(CVY_OPTS_READ(cvy_run_list_result, result, &r));
    for (int i = 0; i < r.nruns; i++)
        width = CVY_MAX(width, CVY_MIN((int)strlen(r.run[i].folder), 48));
    cvy_text_add(&t, "%-*s  %-10s %13s %13s  %-30s %10s %12s %12s %5s %5s  %s\n", width, "run", "state", "step",
                 "epoch", "best score (epoch)", "loss", "taken", "left", "nodes", "ranks", "last change");
    for (int i = 0; i < r.nruns; i++)
        add_line(&r.run[i], width, &t);
    for (int i = 0; i < r.nunreadable; i++)
        cvy_text_add(&t, "not readable: %s\n", r.unreadable[i]);
    if (t.status == CVY_OK)
        *text_out = t.data;
    else
        cvy_text_free(&t);
    return *text_out ? CVY_OK : CVY_E_MEMORY;
}
