/*
 * plan_timer.h: times of work in a space. The host's work is timed by its clock. Work on a device is asynchronous: it
 * is timed by marks in the lane COMPUTE, which are read when the work is done.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_TIMER_H
#define CVY_PLAN_TIMER_H

#include "plan/plan.h"

/* Times a piece of work: start, the work, stop, which waits for the work. */
typedef struct cvy_stopwatch {
    const cvy_space *space;
    double start_s;
    cvy_mark *from, *to; /* on a device */
} cvy_stopwatch;

cvy_status cvy_stopwatch_open(const cvy_space *space, cvy_stopwatch *out);
void cvy_stopwatch_close(cvy_stopwatch *watch);
cvy_status cvy_stopwatch_start(cvy_stopwatch *watch);
cvy_status cvy_stopwatch_stop(cvy_stopwatch *watch, double *s_out);

/* Asks for the time of each instruction of a plan on a device: a mark follows each of them, and each part of a step
 * ends with a wait. On the host, where such times cost nothing, it does nothing. */
cvy_status cvy_plan_time_instructions(cvy_plan *plan);
/* For the executor: marks the end of instruction i (first - 1: the start of a part), and replaces the host's times of
 * the instructions first to end - 1 by those of the marks. They do nothing unless times were asked for. */
cvy_status cvy_plan_mark(cvy_plan *plan, int i);
cvy_status cvy_plan_read_marks(cvy_plan *plan, int first, int end);
void cvy_plan_free_marks(cvy_plan *plan);

#endif
