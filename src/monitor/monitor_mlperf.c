/*
 * monitor_mlperf.c: the file of monitor_mlperf.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_mlperf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine/base_clock.h"
#include "monitor/monitor_append.h"

#define STEP "\"step_num\": "

/* The lines between which others stand. */
#define RUN_START "run_start"
#define RUN_STOP "run_stop"
#define EPOCH_START "epoch_start"
#define EPOCH_STOP "epoch_stop"

struct cvy_mlperf {
    cvy_append file;
    int is_running, is_in_epoch;
};

static void note(cvy_mlperf *log, const char *key)
{
    if (strcmp(key, RUN_START) == 0)
        log->is_running = 1;
    else if (strcmp(key, RUN_STOP) == 0)
        log->is_running = 0;
    else if (strcmp(key, EPOCH_START) == 0)
        log->is_in_epoch = 1;
    else if (strcmp(key, EPOCH_STOP) == 0)
        log->is_in_epoch = 0;
}

/* ---- what a resumed run keeps ---- */

struct kept {
    cvy_mlperf *log;
    int64_t step;
    int within_epoch;
};

static int is_key(const char *at, const char *key)
{
    const size_t n = strlen(key);
    return strncmp(at, key, n) == 0 && at[n] == '"';
}

/* In a string the quotes would be escaped, so that these texts are found safely. */
static int is_kept(void *user, const char *line)
{
    const struct kept *k = user;
    static const char *const words[] = {RUN_START, EPOCH_START, EPOCH_STOP};
    const char *step = strstr(line, STEP), *key = strstr(line, "\"key\": \"");
    if (!key || (step && strtoll(step + strlen(STEP), NULL, 10) > k->step))
        return 0;
    key += strlen("\"key\": \"");
    if (is_key(key, RUN_STOP) ||
        (k->within_epoch && is_key(key, EPOCH_STOP) && step && strtoll(step + strlen(STEP), NULL, 10) == k->step))
        return 0;
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (is_key(key, words[i]))
            note(k->log, words[i]);
    return 1;
}

cvy_status cvy_mlperf_open(const char *path, int64_t resume_step, int within_epoch, cvy_mlperf **out)
{
    cvy_status status = CVY_OK;
    cvy_mlperf *log = NULL;
    off_t end = 0;
    *out = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *log, &log));
    struct kept kept = {log, resume_step, within_epoch};
    if (resume_step >= 0)
        CVY_TRY_OUT(cvy_append_find_end(path, is_kept, &kept, &end));
    if (resume_step >= 0 && !log->is_running)
        goto out;
    CVY_TRY_OUT(cvy_append_open(&log->file, path, end));
    *out = log;
    log = NULL;
out:
    cvy_mlperf_close(&log);
    return status;
}

int cvy_mlperf_is_in_epoch(const cvy_mlperf *log)
{
    return log && log->is_in_epoch;
}

int cvy_mlperf_is_running(const cvy_mlperf *log)
{
    return log && log->is_running;
}

/* ---- lines ---- */

static void add_metadata(cvy_json *j, const cvy_mlperf_line *line)
{
    cvy_json_open(j, "metadata", '{');
    if (line->epoch > 0) {
        cvy_json_int(j, "epoch_num", line->epoch);
        cvy_json_int(j, "step_num", line->step);
    }
    if (line->status)
        cvy_json_string(j, "status", line->status);
    cvy_json_close(j, '}');
}

cvy_status cvy_mlperf_add(cvy_mlperf *log, const cvy_mlperf_line *line)
{
    static const char *const kind[] = {
        [CVY_MLPERF_POINT] = "POINT_IN_TIME", [CVY_MLPERF_START] = "INTERVAL_START", [CVY_MLPERF_END] = "INTERVAL_END"};
    const double wall_s = line && line->wall_s > 0 ? line->wall_s : cvy_clock_wall_s();
    cvy_json j = {0};
    cvy_text text = {0};
    if (!log)
        return CVY_OK;
    cvy_json_open(&j, NULL, '{');
    cvy_json_string(&j, "namespace", "");
    cvy_json_int(&j, "time_ms", (int64_t)floor(1e3 * wall_s));
    cvy_json_string(&j, "event_type", kind[line->kind]);
    cvy_json_string(&j, "key", line->key);
    cvy_json_raw(&j, "value", line->value ? line->value : "null");
    add_metadata(&j, line);
    cvy_json_close(&j, '}');
    cvy_text_add(&text, ":::MLLOG %s\n", j.text.data ? j.text.data : "");
    cvy_status status = j.text.status == CVY_OK ? text.status : j.text.status;
    if (status == CVY_OK)
        status = cvy_append_add(&log->file, text.data, text.bytes);
    cvy_text_free(&j.text);
    cvy_text_free(&text);
    note(log, line->key);
    return status;
}

int cvy_mlperf_close(cvy_mlperf **log)
{
    if (!*log)
        return 0;
    const int reason = cvy_append_close(&(*log)->file);
    cvy_mem_free(log);
    return reason;
}
