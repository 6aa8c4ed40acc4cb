/*
 * monitor_watchdog.h: a thread that notices when a run hangs, says where it is and which rank it waits for, and calls
 * the context's fatal hook. It never computes and never calls MPI. It reads what other ranks do from the heartbeat
 * file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_WATCHDOG_H
#define CVY_MONITOR_WATCHDOG_H

#include <stdatomic.h>

#include "program/program_view.h"

typedef struct cvy_watchdog cvy_watchdog;

typedef struct cvy_watchdog_opts {
    double timeout_s; /* 0: *out stays NULL, and all calls below accept NULL */
    const atomic_int
        *stop_flag; /* flag that is set when a signal tells this rank to end, for its heartbeats; or NULL */
} cvy_watchdog_opts;

/* Starts the thread, which first watches the preparation. The preparation may take several times the timeout. context
 * is borrowed. */
cvy_status cvy_watchdog_start(const cvy_context *context, const cvy_watchdog_opts *opts, cvy_watchdog **out);
/* From now on it watches steps. program is borrowed; messages name its running node. heartbeat_path: path of the
 * heartbeat file (monitor_heartbeat.h). */
void cvy_watchdog_steps(cvy_watchdog *w, const cvy_program *program, const char *heartbeat_path);
/* Tells the watchdog that the run is alive, and does `what` (a static text) at this step. */
void cvy_watchdog_kick(cvy_watchdog *w, int64_t step, const char *what);
/* The same for work that may take several times longer than a step, such as waiting for a checkpoint. */
void cvy_watchdog_kick_long(cvy_watchdog *w, int64_t step, const char *what);
void cvy_watchdog_stop(cvy_watchdog **w);
/* The seconds by which the last heartbeat of a living rank may be older than that of another. */
double cvy_watchdog_fresh_s(double timeout_s);

#endif
