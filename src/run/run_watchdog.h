/*
 * run_watchdog.h: a thread that notices when a run stands still, says where, and calls the context's fatal hook. It never computes and never calls MPI.
 */
#ifndef CVY_RUN_WATCHDOG_H
#define CVY_RUN_WATCHDOG_H

#include "run/run_program.h"

typedef struct cvy_watchdog cvy_watchdog;

/* timeout_s 0: *out stays NULL, and all calls below accept NULL. program is borrowed: its running step is named in the message. */
cvy_status cvy_watchdog_start(const cvy_program *program, double timeout_s, cvy_watchdog **out);
/* The run is alive: it does `what` (a static text) at this step. */
void cvy_watchdog_kick(cvy_watchdog *w, int64_t step, const char *what);
void cvy_watchdog_stop(cvy_watchdog **w);

#endif
