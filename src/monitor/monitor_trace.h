/* SPDX-License-Identifier: BSD-3-Clause */
/* monitor_trace.h: writes the events of the latest step of all ranks to one file that Perfetto and chrome://tracing can
 * open. */
#ifndef CVY_MONITOR_TRACE_H
#define CVY_MONITOR_TRACE_H

#include "program/program_view.h"

/* Writes the file on rank 0. Barriers align the clocks of the ranks. Collective. */
cvy_status cvy_trace_write(cvy_program *program, int step, const char *path);

#endif
