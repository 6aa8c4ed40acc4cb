/*
 * monitor_metrics_log.h: writes metrics.jsonl: one JSON object per line, for every logged step and every epoch.
 *
 * Rank 0 calls it after a logged step and after an epoch. A run continues if it cannot write its log.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_METRICS_LOG_H
#define CVY_MONITOR_METRICS_LOG_H

#include "base/text/base_json.h"

typedef struct cvy_metrics_log cvy_metrics_log;

/* Opens path for appending. resume_step < 0: makes an empty file. Otherwise it is the number of steps done so far. The
 * file is then cut at the first line that has a larger "step" or is incomplete, so that the resumed run writes nothing
 * twice. Errors: CVY_E_IO, CVY_E_MEMORY. */
cvy_status cvy_metrics_log_open(const char *path, int64_t resume_step, cvy_metrics_log **out);

/* Appends the whole line (a closed JSON object), or nothing. CVY_E_IO is only a reason for a warning: in a row of
 * failures only the first is returned, and the next call tries to write again. A NULL log accepts everything. */
cvy_status cvy_metrics_log_add(cvy_metrics_log *log, const cvy_json *line);

/* The number of lines that could not be written so far. */
int64_t cvy_metrics_log_lost(const cvy_metrics_log *log);

/* Destroys the log. Returns 0, or the errno of a close that failed: a network file system could not store the last
 * lines. It leaves the error record as it is. */
int cvy_metrics_log_close(cvy_metrics_log **log);

#endif
