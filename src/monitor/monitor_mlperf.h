/*
 * monitor_mlperf.h: writes mlperf.log: lines ":::MLLOG {json}" as MLPerf's rules for trainings want them.
 *
 * Rank 0 calls it. A log describes one training, also if several processes took part in it one after the other: a
 * process that resumes the run appends, after it has cut off what will be written again. A run continues if it cannot
 * write its log. Source: the package mllog of MLCommons, for the members of a line and the names of keys.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_MLPERF_H
#define CVY_MONITOR_MLPERF_H

#include "base/text/base_json.h"

typedef struct cvy_mlperf cvy_mlperf;

typedef enum { CVY_MLPERF_POINT, CVY_MLPERF_START, CVY_MLPERF_END } cvy_mlperf_kind;

typedef struct cvy_mlperf_line {
    cvy_mlperf_kind kind;
    const char *key;
    const char *value;  /* as JSON; NULL: null */
    double wall_s;      /* when it happened; 0: now */
    int64_t epoch;      /* counted from 1; 0: the line belongs to no epoch */
    int64_t step;       /* steps done; looked at with an epoch */
    const char *status; /* success or aborted, of the last line; or NULL */
} cvy_mlperf_line;

/* Opens path for appending. resume_step < 0: makes an empty file. Otherwise it is the number of steps done so far: the
 * file is cut at its last line, "run_stop", at the first line of a later step, and at an incomplete one. within_epoch:
 * the step is not the last one of an epoch, so that an end of an epoch there is cut off, too. If nothing is left that
 * says when the run began, *out is NULL: such a log would give another duration. Errors: CVY_E_IO, CVY_E_MEMORY. */
cvy_status cvy_mlperf_open(const char *path, int64_t resume_step, int within_epoch, cvy_mlperf **out);
/* Whether an epoch has begun, and not ended. */
int cvy_mlperf_is_in_epoch(const cvy_mlperf *log);
/* Whether the training has begun, and not ended. */
int cvy_mlperf_is_running(const cvy_mlperf *log);
/* Appends the line, or nothing. CVY_E_IO is only a reason for a warning: in a row of failures only the first is
 * returned. A NULL log accepts everything. */
cvy_status cvy_mlperf_add(cvy_mlperf *log, const cvy_mlperf_line *line);
/* Destroys the log. Returns 0, or the errno of a close that failed. */
int cvy_mlperf_close(cvy_mlperf **log);

#endif
