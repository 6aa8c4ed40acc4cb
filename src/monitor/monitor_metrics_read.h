/*
 * monitor_metrics_read.h: reads metrics.jsonl into tables of numbers. report.h describes the lines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_METRICS_READ_H
#define CVY_MONITOR_METRICS_READ_H

#include "base/base_status.h"

/* A table of numbers: all lines of one kind. */
#define CVY_FRAME_COLUMNS 64
typedef struct cvy_frame {
    int64_t nrow, room;
    int ncol;
    char name[CVY_FRAME_COLUMNS][48];
    double *at[CVY_FRAME_COLUMNS]; /* nrow numbers; NaN if the line does not have the key */
} cvy_frame;

/* Reads metrics.jsonl. A line that is not a JSON object of a known kind is skipped. If a row has the same key (step or
 * epoch) as the row before, it replaces that row. stages: a row for each stage of a pipeline in each epoch; may be
 * NULL. */
cvy_status cvy_frames_read(const char *path, cvy_frame *steps, cvy_frame *epochs, cvy_frame *stages);
void cvy_frame_free(cvy_frame *frame);
/* A column, or NULL if it has no finite value. */
const double *cvy_frame_column(const cvy_frame *frame, const char *name);
/* Samples per second over all logged steps: their number over the time that they took. NaN: unknown. */
double cvy_frame_speed(const cvy_frame *steps);

#endif
