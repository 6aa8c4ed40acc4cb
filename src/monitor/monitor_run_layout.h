/*
 * monitor_run_layout.h: the names of the files of a run folder, and whether its run is still active.
 *
 * Training and scoring write these files. Resume, inspect, export, test and the report read them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_RUN_LAYOUT_H
#define CVY_MONITOR_RUN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/base_status.h"

#define CVY_RUN_JOB "job.resolved.yaml"        /* the job with all its defaults */
#define CVY_RUN_PLAN "plan.json"               /* the plan of a full step */
#define CVY_RUN_METRICS "metrics.jsonl"        /* a line for each logged step and each epoch */
#define CVY_RUN_MLPERF "mlperf.log"            /* lines of MLPerf, if the job asks for them */
#define CVY_RUN_CHECKPOINTS "checkpoints"      /* a folder */
#define CVY_RUN_STATUS "STATUS"                /* one line: see cvy_run_status */
#define CVY_RUN_TEST "test.json"               /* the scores of `convoy test` */
#define CVY_RUN_CALIBRATION "calibration.json" /* the temperature of `convoy test --calibrate` */
#define CVY_RUN_ANALYSIS "analysis.json"       /* other methods on the test data, written by another program */
#define CVY_RUN_REPORT "report.html"
#define CVY_ENSEMBLE_SCORES "ensemble.json" /* of a folder of runs: the scores of `convoy test` */
#define CVY_ENSEMBLE_REPORT "ensemble.html"
#define CVY_RUN_LOCK "lock" /* locked by rank 0 while the run is active */

enum { CVY_RUN_PATH = 640 }; /* bytes of a buffer for a path into a run folder */

void cvy_run_path(const char *run, const char *file, char path[CVY_RUN_PATH]);

/* The line in STATUS: "finished step 33 of 150 at 2026-01-31T12:00:00Z: early stop ...". */
typedef struct cvy_run_status {
    char word[16]; /* running, stopped, finished or failed */
    int64_t step, steps;
    char time[32];  /* UTC */
    char why[1024]; /* what follows the time; "": nothing */
} cvy_run_status;

/* Returns 0 if the text is not such a line. */
int cvy_run_status_parse(const char *text, cvy_run_status *out);
/* Whether the status is that of a run that was ended by early stopping. */
int cvy_run_status_is_early(const cvy_run_status *status);

/* Locks the folder of a run, or of a search, for this process; cvy_run_unlock() ends that. Two runs would mix their
 * files in one folder, for example if a job is submitted again while the first still runs. The first one may be about
 * to end, so this waits up to three seconds for it. If the file system does not support locks, that is noted
 * (base_protection.h), and a run is refused only if it is on the same host (monitor_owner.h). If the lock file cannot
 * be opened, *lock_out is -1 and *warning_out says why; the caller frees it with cvy_mem_free(). CVY_E_IO: another
 * process has the lock. */
cvy_status cvy_run_lock(const char *folder, int *lock_out, char **warning_out);
void cvy_run_unlock(const char *folder, int *lock);
/* Whether a file of this name in a run's folder is only there for the lock. */
int cvy_run_is_lock(const char *name);

/* Whether the run ended without a final status, for example after an abort by the watchdog: STATUS says "running", and
 * nobody holds the lock. If so, `text` says that, and what the heartbeat file tells. */
int cvy_run_is_dead(const char *run, char *text, size_t room);

#endif
