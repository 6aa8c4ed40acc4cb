/*
 * monitor_metrics_log.c: appends lines to metrics.jsonl, each with one write, and cuts off lines that a resumed run
 * will write again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_metrics_log.h"

#include <stdlib.h>
#include <string.h>

#include "monitor/monitor_append.h"

struct cvy_metrics_log {
    cvy_append file;
};

/* The value of "step" in a line of this log, or -1. In a string the quotes would be escaped, so the key is found
 * safely. */
static int64_t step_of(const char *line)
{
    const char *at = strstr(line, "\"step\":");
    return at ? strtoll(at + 7, NULL, 10) : -1;
}

/* Whether the run wrote the line up to step *user. */
static int is_before(void *user, const char *line)
{
    return step_of(line) <= *(const int64_t *)user;
}

cvy_status cvy_metrics_log_open(const char *path, int64_t resume_step, cvy_metrics_log **out)
{
    cvy_status status = CVY_OK;
    cvy_metrics_log *log = NULL;
    off_t end = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *log, &log));
    if (resume_step >= 0)
        CVY_TRY_OUT(cvy_append_find_end(path, is_before, &resume_step, &end));
    CVY_TRY_OUT(cvy_append_open(&log->file, path, end));
    *out = log;
    log = NULL;
out:
    cvy_metrics_log_close(&log);
    return status;
}

cvy_status cvy_metrics_log_add(cvy_metrics_log *log, const cvy_json *line)
{
    cvy_text text = {0};
    if (!log)
        return CVY_OK;
    CVY_TRY(line->text.status);
    cvy_text_add_bytes(&text, line->text.data, line->text.bytes);
    cvy_text_add_bytes(&text, "\n", 1);
    const cvy_status status = text.status == CVY_OK ? cvy_append_add(&log->file, text.data, text.bytes) : text.status;
    cvy_text_free(&text);
    return status;
}

int64_t cvy_metrics_log_lost(const cvy_metrics_log *log)
{
    return log ? log->file.lost : 0;
}

int cvy_metrics_log_close(cvy_metrics_log **log)
{
    if (!*log)
        return 0;
    const int reason = cvy_append_close(&(*log)->file);
    cvy_mem_free(log);
    return reason;
}
