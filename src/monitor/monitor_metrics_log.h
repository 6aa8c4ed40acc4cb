/*
 * monitor_metrics_log.h: the writer of metrics.jsonl: one JSON object a line, for every logged step and every epoch.
 *
 * In the step: after a logged step and after an epoch, on rank 0. A run goes on if it cannot write its log.
 */
#ifndef CVY_MONITOR_METRICS_LOG_H
#define CVY_MONITOR_METRICS_LOG_H

#include "base/base_json.h"

typedef struct cvy_metrics_log cvy_metrics_log;

/* Opens path for appending. resume_step < 0: a new file. Else the steps done so far: from the first line whose "step"
 * is larger, or that is unfinished, the file is cut, so that the resumed run does not write anything twice. Errors:
 * CVY_E_IO, CVY_E_MEMORY. */
cvy_status cvy_metrics_log_open(const char *path, int64_t resume_step, cvy_metrics_log **out);

/* Appends line (a closed JSON object) whole or not at all. CVY_E_IO is for a warning, not for an end: only the first of
 * a row of failures is returned, and writing is tried again with the next line. A NULL log accepts everything. */
cvy_status cvy_metrics_log_add(cvy_metrics_log *log, const cvy_json *line);

/* Lines that could not be written so far. */
int64_t cvy_metrics_log_lost(const cvy_metrics_log *log);

void cvy_metrics_log_close(cvy_metrics_log **log);

#endif
