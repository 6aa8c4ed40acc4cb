/* monitor_trace.h: the event log of the latest step of all ranks as one file that Perfetto and chrome://tracing open.
 */
#ifndef CVY_MONITOR_TRACE_H
#define CVY_MONITOR_TRACE_H

#include "program/program.h"

/* Collective; written by rank 0. The ranks' clocks are aligned by a barrier. */
cvy_status cvy_trace_write(cvy_program *program, int step, const char *path);

#endif
