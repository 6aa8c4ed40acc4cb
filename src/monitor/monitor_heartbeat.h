/*
 * monitor_heartbeat.h: the heartbeat file in the run folder. Each rank keeps one line in it, with the time of its last
 * heartbeat and what it did then.
 *
 * The watchdog's thread writes it every few seconds; a training step never does. If a run hangs, the lines of all
 * ranks tell which rank the others wait for. If a run has died, the next start reads whose heartbeats ended first. If
 * the folder is not shared by all nodes, the lines of other nodes are missing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_HEARTBEAT_H
#define CVY_MONITOR_HEARTBEAT_H

#include "base/base_status.h"

#define CVY_HEARTBEAT_FILE "ranks"
enum { CVY_HEARTBEAT_LINE = 192 }; /* bytes of a line; the line of rank r begins at r times this */

typedef enum {
    CVY_HEARTBEAT_RUNNING,
    CVY_HEARTBEAT_ENDING,
    CVY_HEARTBEAT_STALLED,
    CVY_HEARTBEAT_FINISHED
} cvy_heartbeat_state; /* ENDING: a signal told the rank to end. FINISHED: it has stopped its watchdog */

typedef struct cvy_heartbeat {
    int rank;
    char host[40];
    double time; /* seconds since 1970 */
    cvy_heartbeat_state state;
    int64_t step, ncollectives; /* number of steps done; number of collectives begun */
    double still_s;             /* seconds since the rank last made progress */
    char what[80];
} cvy_heartbeat;

/* Writes this rank's line. A failure does not matter to the run: the line stays as it was, and so does the text of the
 * last fault. */
void cvy_heartbeat_write(int fd, const cvy_heartbeat *heartbeat);
/* Reads the lines of `nranks` ranks. A missing line gets rank -1. */
cvy_status cvy_heartbeat_read(const char *path, int nranks, cvy_heartbeat *heartbeats_out);
/* Writes to `text` which rank holds up the others. fresh_s: a living rank's heartbeat may be older than the latest one
 * by this many seconds. Returns 0 if the heartbeats do not tell. */
int cvy_heartbeat_suspect(const cvy_heartbeat *heartbeat, int nranks, double fresh_s, char *text, size_t room);
/* For a run that ended without a final status: writes to `text` the rank whose heartbeats ended first by more than
 * fresh_s, or that alone was not told to end. Returns 0 if the heartbeats do not tell. */
int cvy_heartbeat_first_gone(const char *path, double fresh_s, char *text, size_t room);

#endif
