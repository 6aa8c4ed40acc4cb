/*
 * files_runs.h: what the files of a run folder tell about the run, for `convoy ls`, `convoy inspect` and the report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_FILES_RUNS_H
#define CVY_FILES_RUNS_H

#include "base/text/base_text.h"
#include "base/text/base_tree.h"
#include "files/files.h"
#include "monitor/monitor_metrics_read.h"

/* Whether the folder has the files of a run. */
int cvy_run_is_folder(const char *path);
/* Reads the files of a run. Damaged files are named in summary->why, and what they would tell is unknown. Errors:
 * CVY_E_IO (not a run), CVY_E_MEMORY. */
cvy_status cvy_run_summary_read(const char *run, cvy_run_summary *summary);
/* Adds lines about the state of a run and its scores: those of its last epoch, the best one, those of test.json. */
cvy_status cvy_run_scores_text(const char *run, cvy_text *text);

const char *cvy_run_state_text(cvy_run_state state);
/* A column of the epochs whose last letters are a metric's name, "val_accuracy": whether a higher value is better. */
int cvy_run_score_is_higher_better(const char *column);
/* Seconds from the start of the training to each row of the steps; NaN: not known. */
cvy_status cvy_frame_step_seconds(cvy_pool *pool, const cvy_frame *steps, const cvy_frame *epochs, double **out);

typedef struct cvy_run_duration {
    char at[24];
} cvy_run_duration;
cvy_run_duration cvy_run_duration_text(double seconds); /* "0.4 s", "3 min 20 s", "1 h 02 min", "2 d 03 h" */

#endif
