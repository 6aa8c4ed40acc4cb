/* SPDX-License-Identifier: BSD-3-Clause */
/* program_trace.h: the latest step of a plan as trace events. */
#ifndef CVY_PROGRAM_TRACE_H
#define CVY_PROGRAM_TRACE_H

#include "program/program_execute.h"

/* Writes the latest step as Chrome trace events (in microseconds since base_s), as members of an open JSON list. pid is
 * the rank. */
void cvy_plan_trace(const cvy_plan *plan, double base_s, cvy_json *json);

#endif
