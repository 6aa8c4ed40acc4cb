/*
 * monitor_events.h: writes event files, which TensorBoard reads while a run goes on: scalars, the graph of the network,
 * and histograms.
 *
 * Rank 0 calls it. A run continues if it cannot write its events. Without protobuf-c nothing can be written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_EVENTS_H
#define CVY_MONITOR_EVENTS_H

#include "base/text/base_json.h"
#include "graph/graph.h"
#include "monitor/monitor_histogram.h"

typedef struct cvy_events cvy_events;

/* Begins a new event file in the folder, which is made if it does not exist. resume_step: the number of steps done so
 * far. Events of later steps are then cut off the files that earlier processes of the run left in the folder, so that
 * none is there twice. resume_step < 0: the run begins; TensorBoard then hides what other files of the folder hold.
 * Errors: CVY_E_IO, CVY_E_MEMORY, CVY_E_UNSUPPORTED (no protobuf-c). */
cvy_status cvy_events_open(const char *folder, int64_t resume_step, cvy_events **out);
/* Whether the folder had event files of convoy before. */
int cvy_events_had_files(const cvy_events *events);

/* The calls below accept NULL. An event is written as a whole or not at all. CVY_E_IO is only a reason for a warning:
 * in a row of failures only the first is returned. */

/* Writes the numbers in a line of metrics.jsonl as scalars: "train/loss", "val/accuracy", "time/seconds_exposed_comm".
 * Lines that are not of a step, an epoch or a stage have none. */
cvy_status cvy_events_add_line(cvy_events *events, const cvy_json *line);
/* Writes the nodes of a graph. The first dimension of values is shown as unknown, because it is the batch. */
cvy_status cvy_events_add_graph(cvy_events *events, const cvy_graph *graph);
/* Writes a histogram; nothing if it has no values. */
cvy_status cvy_events_add_histogram(cvy_events *events, int64_t step, const char *tag, const cvy_histogram *h);

/* Destroys the object. Returns 0, or the errno of a close that failed. */
int cvy_events_close(cvy_events **events);

#endif
