/*
 * monitor_watchdog.h: a thread that notices when a run stands still, says where and which rank it waits for, and calls
 * the context's fatal hook. It never computes and never calls MPI: what other ranks do it reads from the board.
 */
#ifndef CVY_MONITOR_WATCHDOG_H
#define CVY_MONITOR_WATCHDOG_H

#include <stdatomic.h>

#include "program/program.h"

typedef struct cvy_watchdog cvy_watchdog;

typedef struct cvy_watchdog_opts {
    double timeout_s;       /* 0: *out stays NULL, and all calls below accept NULL */
    const atomic_int *told; /* set where a signal told this rank to end: among its signs; or NULL */
} cvy_watchdog_opts;

/* It watches the preparation, which may take some times longer. context is borrowed. */
cvy_status cvy_watchdog_start(const cvy_context *context, const cvy_watchdog_opts *opts, cvy_watchdog **out);
/* From now on it watches steps. program is borrowed: its running node is named in the message. board: the file of the
 * ranks' signs (monitor_heartbeat.h). */
void cvy_watchdog_steps(cvy_watchdog *w, const cvy_program *program, const char *board);
/* The run is alive: it does `what` (a static text) at this step. */
void cvy_watchdog_kick(cvy_watchdog *w, int64_t step, const char *what);
/* The same of work that may take some times longer than a step: a checkpoint that is waited for. */
void cvy_watchdog_kick_long(cvy_watchdog *w, int64_t step, const char *what);
void cvy_watchdog_stop(cvy_watchdog **w);
/* How much older than another's the last sign of a living rank may be. */
double cvy_watchdog_fresh_s(double timeout_s);

#endif
