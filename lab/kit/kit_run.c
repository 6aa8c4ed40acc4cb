/*
 * kit_run.c: what the jobs of a kit do: the predictions and their seal, and then the measurements.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_opts.h"
#include "base/machine/base_clock.h"
#include "kit/kit_platform.h"
#include "study/study_file.h"

enum { LINE = 1024 };

struct runner {
    cvy_kit_run o;
    cvy_pool *pool;
    cvy_kit kit;
};

static void say(const struct runner *r, const char *fmt, ...) CVY_PRINTF(2, 3);
static void say(const struct runner *r, const char *fmt, ...)
{
    char line[LINE];
    va_list args;
    if (!r->o.show)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    r->o.show(r->o.user, line);
}

/* ---- the journal ---- */

static void open_event(cvy_json *json, const char *event)
{
    char time[32];
    cvy_clock_text(time);
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "event", event);
    cvy_json_string(json, "time", time);
}

static cvy_status close_event(const struct runner *r, int64_t nodes, cvy_json *json)
{
    cvy_json_close(json, '}');
    const cvy_status status = cvy_kit_note(&r->kit, nodes, json);
    cvy_text_free(&json->text);
    return status;
}

static cvy_status note_begin(const struct runner *r, int64_t nodes, const char *seal)
{
    struct utsname system = {.nodename = ""};
    cvy_json json = {.depth = 0};
    uname(&system);
    open_event(&json, "begin");
    cvy_json_string(&json, "host", system.nodename);
    cvy_json_string(&json, "convoy", cvy_version());
    if (r->o.commit && *r->o.commit)
        cvy_json_string(&json, "commit", r->o.commit);
    cvy_json_string(&json, "seal", seal);
    return close_event(r, nodes, &json);
}

static cvy_status note_study(const struct runner *r, int64_t nodes, const char *study, const cvy_study_result *result)
{
    cvy_json json = {.depth = 0};
    open_event(&json, "study");
    cvy_json_string(&json, "study", study);
    cvy_json_int(&json, "made", result->measured + result->earlier + result->failed);
    cvy_json_int(&json, "failed", result->failed);
    cvy_json_int(&json, "left_out", result->skipped);
    cvy_json_int(&json, "left", result->left);
    return close_event(r, nodes, &json);
}

/* ---- one study ---- */

static cvy_status run_study(const struct runner *r, const char *name, cvy_study_part part, cvy_study_result *result)
{
    char *path = NULL, *out = NULL, *frameworks = NULL;
    const char *text = NULL;
    CVY_TRY(cvy_kit_path(&r->kit, &path, "studies/%s.yaml", name));
    CVY_TRY(cvy_kit_path(&r->kit, &out, "results/%s", name));
    CVY_TRY(cvy_kit_path(&r->kit, &frameworks, "frameworks"));
    CVY_TRY(cvy_kit_text(&r->kit, path, &text));
    const cvy_study_opts opts = {.size = sizeof opts,
                                 .name = path,
                                 .text = text,
                                 .out = out,
                                 .frameworks = frameworks,
                                 .program = r->o.program,
                                 .published = r->o.published,
                                 .quick = r->kit.quick,
                                 .retry = r->o.retry,
                                 .commit = r->o.commit,
                                 .stop = r->o.stop,
                                 .show = r->o.show,
                                 .user = r->o.user,
                                 .nodes = part == CVY_STUDY_MEASURED ? r->o.nodes : 0,
                                 .ranks_per_node = r->kit.ranks_per_node,
                                 .part = part,
                                 .begin = r->o.begin,
                                 .end = r->o.end};
    say(r, "---- %s: %s", name, part == CVY_STUDY_PREDICTED ? "predictions" : "measurements");
    *result = (cvy_study_result){.size = sizeof *result};
    return cvy_run_study(&opts, result);
}

/* ---- predictions ---- */

/* Counts the predictions that there are. *why: the error of one that failed, if there is one. */
static cvy_status count_predictions(const struct runner *r, int *good, int *failed, const char **why)
{
    *good = *failed = 0;
    *why = NULL;
    for (int i = 0; i < r->kit.nstudy; i++) {
        cvy_study_results results = {.n = 0};
        char *folder = NULL;
        CVY_TRY(cvy_kit_path(&r->kit, &folder, "results/%s", r->kit.study[i]));
        if (!cvy_file_is_folder(folder))
            continue;
        CVY_TRY(cvy_study_results_read(r->pool, folder, &results));
        for (int k = 0; k < results.n; k++) {
            const cvy_study_result_line *line = &results.line[k];
            if (!line->is_predicted)
                continue;
            *good += line->result != NULL;
            *failed += line->result == NULL;
            *why = line->error ? line->error : *why;
        }
    }
    return CVY_OK;
}

/* Measures the platform if there is none, and that is possible here. *there: whether there is one now. */
static cvy_status need_platform(struct runner *r, int *there)
{
    char *path = NULL;
    CVY_TRY(cvy_kit_path(&r->kit, &path, CVY_KIT_PLATFORM));
    *there = cvy_file_exists(path);
    if (*there || r->o.nodes < 2)
        return CVY_OK;
    const cvy_status status = cvy_kit_measure_platform(&r->kit, &r->o, path);
    if (status == CVY_STOPPED)
        return status;
    if (status != CVY_OK)
        say(r, "the platform cannot be measured: %s", cvy_error_text());
    *there = cvy_file_exists(path);
    return CVY_OK;
}

static cvy_status predict_all(const struct runner *r)
{
    for (int i = 0; i < r->kit.nstudy; i++) {
        cvy_study_result result;
        CVY_TRY(run_study(r, r->kit.study[i], CVY_STUDY_PREDICTED, &result));
        CVY_TRY(note_study(r, 0, r->kit.study[i], &result));
    }
    return CVY_OK;
}

/* is_last: the measurements are about to begin, so what there is is sealed, even if that is nothing. */
static cvy_status predict(struct runner *r, int is_last)
{
    char note[512];
    const char *why = NULL;
    int there = 0, good = 0, failed = 0;
    CVY_TRY(note_begin(r, 0, ""));
    CVY_TRY(need_platform(r, &there));
    if (!there && is_last && r->o.nodes < 2 && r->kit.nodes[r->kit.nnodes - 1] > 1) {
        say(r, "there are no predictions yet, and one node cannot measure the platform: a job with more nodes comes "
               "first");
        return CVY_STOPPED;
    }
    CVY_CHECK(there || is_last, CVY_E_CONFIG,
              "%s has no " CVY_KIT_PLATFORM ": its first job measures it on two nodes; or make the kit with --platform",
              r->kit.folder);
    if (there)
        CVY_TRY(predict_all(r));
    CVY_TRY(count_predictions(r, &good, &failed, &why));
    CVY_CHECK(good > 0 || failed == 0 || is_last, CVY_E_CONFIG, "no prediction of %s could be made: %s", r->kit.folder,
              why ? why : "their results say no reason");
    if (good == 0)
        snprintf(note, sizeof note, "no predictions, because %s",
                 there ? why ? why : "no study asks for one" : "there is no platform");
    else
        snprintf(note, sizeof note, "%d predictions, %d failed", good, failed);
    note[strcspn(note, "\n")] = '\0';
    return cvy_kit_make_seal(&r->kit, r->o.commit, note);
}

/* Takes a lock of the kit. *fd: to be closed; -1: the file system has no locks, or another process has it (*busy). */
static cvy_status lock(const struct runner *r, const char *name, int *fd, int *busy)
{
    const char *why = "";
    char *path = NULL;
    CVY_TRY(cvy_kit_path(&r->kit, &path, "jobs"));
    CVY_TRY(cvy_file_make_folder(path));
    CVY_TRY(cvy_kit_path(&r->kit, &path, "jobs/%s.lock", name));
    *fd = cvy_file_open(path, O_RDWR | O_CREAT, 0666, &why);
    CVY_CHECK(*fd >= 0, CVY_E_IO, "%s cannot be made: %s", path, why);
    const cvy_lock state = cvy_file_lock(*fd);
    *busy = state == CVY_LOCK_BUSY;
    if (state == CVY_LOCK_CANNOT)
        cvy_protection_note(CVY_PROTECTION_RUN_LOCK, path, errno);
    return CVY_OK;
}

static cvy_status seal_predictions(struct runner *r, int is_last)
{
    cvy_kit_seal seal;
    int fd = -1, busy = 0;
    CVY_TRY(lock(r, "predictions", &fd, &busy));
    cvy_status status = CVY_OK;
    if (busy) {
        say(r, "another job is making the predictions: submit this one again later");
        status = CVY_STOPPED;
    }
    if (status == CVY_OK)
        status = cvy_kit_read_seal(&r->kit, &seal);
    if (status == CVY_OK && !seal.made) {
        status = predict(r, is_last);
        if (status == CVY_OK)
            status = cvy_kit_read_seal(&r->kit, &seal);
    }
    if (status == CVY_OK) {
        say(r, "predictions: %s", seal.made);
        say(r, "seal: %s", seal.hash);
        if (seal.changed)
            say(r, "warning: these files have changed since the seal was made: %s", seal.changed);
    }
    close(fd);
    return status;
}

/* ---- measurements ---- */

static cvy_status measure_all(struct runner *r)
{
    cvy_status first = CVY_OK;
    char error[LINE] = "";
    for (int i = 0; i < r->kit.nstudy; i++) {
        const char *study = r->kit.study[i];
        cvy_study_result result;
        const cvy_status status = run_study(r, study, CVY_STUDY_MEASURED, &result);
        if (status == CVY_OK || status == CVY_STOPPED)
            CVY_TRY(note_study(r, r->o.nodes, study, &result));
        if (status == CVY_STOPPED)
            return status;
        if (status != CVY_OK) { /* the other studies go on */
            first = status;
            snprintf(error, sizeof error, "%s: %.800s%s", study, cvy_error_text(), cvy_kit_advice(cvy_error_text()));
            say(r, "%s", error);
        }
    }
    return first == CVY_OK ? CVY_OK : cvy_error_set(first, "%s", error);
}

static cvy_status check_nodes(const struct runner *r)
{
    cvy_text known = {0};
    int found = 0;
    for (int i = 0; i < r->kit.nnodes; i++)
        found |= r->kit.nodes[i] == r->o.nodes;
    if (found)
        return CVY_OK;
    cvy_text_add_ints(&known, r->kit.nodes, r->kit.nnodes);
    if (known.status == CVY_OK)
        cvy_error_set(CVY_E_CONFIG, "%s has no job of %lld nodes: its jobs have %s", r->kit.folder,
                      (long long)r->o.nodes, known.data);
    cvy_text_free(&known);
    return CVY_E_CONFIG;
}

/* Marks the job as done, with the number of its measurements that failed: `submit.sh --retry` looks at it. */
static cvy_status mark_done(const struct runner *r, const char *name)
{
    char *done = NULL, *retry = NULL, text[32];
    int64_t failed = 0;
    for (int i = 0; i < r->kit.nstudy; i++) {
        cvy_kit_part part;
        CVY_TRY(cvy_kit_read_part(&r->kit, r->kit.study[i], r->o.nodes, &part));
        failed += part.failed;
    }
    CVY_TRY(cvy_kit_path(&r->kit, &retry, "jobs/%s.retry", name));
    if (cvy_file_exists(retry))
        CVY_TRY(cvy_file_remove_tree(retry));
    CVY_TRY(cvy_kit_path(&r->kit, &done, "jobs/%s.done", name));
    snprintf(text, sizeof text, "%lld failed\n", (long long)failed);
    return cvy_file_replace(done, text, strlen(text));
}

/* submit.sh has left a file if the measurements of this job that failed are to be made again. */
static cvy_status look_for_retry(struct runner *r, const char *name)
{
    char *path = NULL;
    CVY_TRY(cvy_kit_path(&r->kit, &path, "jobs/%s.retry", name));
    r->o.retry |= cvy_file_exists(path);
    return CVY_OK;
}

static cvy_status measure(struct runner *r)
{
    cvy_kit_seal seal;
    char name[32];
    int fd = -1, busy = 0;
    CVY_TRY(check_nodes(r));
    snprintf(name, sizeof name, "nodes-%lld", (long long)r->o.nodes);
    CVY_TRY(lock(r, name, &fd, &busy));
    cvy_status status = CVY_OK;
    if (busy)
        status = cvy_error_set(CVY_E_CONFIG, "another job of %s with %lld nodes is at work: let it end first",
                               r->kit.folder, (long long)r->o.nodes);
    if (status == CVY_OK)
        status = look_for_retry(r, name);
    if (status == CVY_OK)
        status = seal_predictions(r, 1);
    if (status == CVY_OK)
        status = cvy_kit_read_seal(&r->kit, &seal);
    if (status == CVY_OK)
        status = note_begin(r, r->o.nodes, seal.hash);
    if (status == CVY_OK)
        status = measure_all(r);
    if (status == CVY_OK)
        status = mark_done(r, name);
    close(fd);
    return status;
}

/* ---- all ---- */

static cvy_status run(const cvy_kit_run *given, cvy_status (*body)(struct runner *r))
{
    struct runner r = {.pool = NULL};
    CVY_TRY(CVY_OPTS_READ(cvy_kit_run, given, &r.o));
    CVY_CHECK(r.o.folder && r.o.program, CVY_E_ARGUMENT, "a kit needs its folder and the program");
    CVY_TRY(cvy_pool_create(&r.pool));
    cvy_status status = cvy_kit_read(r.pool, r.o.folder, &r.kit);
    if (status == CVY_OK && strcmp(r.kit.version, cvy_version()) != 0)
        say(&r, "warning: this is convoy %s, and the kit was made by %s: the page names both", cvy_version(),
            r.kit.version);
    if (status == CVY_OK)
        status = body(&r);
    cvy_pool_destroy(&r.pool);
    return status;
}

static cvy_status predict_first(struct runner *r)
{
    return seal_predictions(r, 0);
}

cvy_status cvy_kit_predict(const cvy_kit_run *opts)
{
    CVY_ENTRY();
    return run(opts, predict_first);
}

cvy_status cvy_kit_measure(const cvy_kit_run *opts)
{
    CVY_ENTRY();
    return run(opts, measure);
}
