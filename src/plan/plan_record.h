/*
 * plan_record.h: recordings: on a device that has them, instructions that follow each other and need nothing of the
 * host are put into the lane COMPUTE by one call of the driver, in place of one or more calls for each.
 *
 * The instructions of a step are cut where the host takes part: at exchanges with other ranks, barriers, and operators
 * that the host computes. What is between two cuts is run as always twice, and then recorded. Kernels read all that
 * changes from step to step from the memory of the device: inputs, rates, the number of the step. So a recording is
 * right until an address changes, or which shadow copies are made: then it is dropped, and made again.
 *
 * CONVOY_RECORD=off in the environment is without recordings. So are plans whose instructions are timed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_RECORD_H
#define CVY_PLAN_RECORD_H

#include "plan/plan.h"

/* Whether the space has recordings, and nothing in the environment forbids them. */
int cvy_records_are_wanted(const cvy_space *space);
/* For binding: makes room for recordings, and drops those that there are. */
cvy_status cvy_plan_make_records(cvy_plan *plan);
void cvy_plan_free_records(cvy_plan *plan);

/* ---- for the executor ---- */
/* The instruction up to which, from `first` on, one recording may go, at most `end`; if the plan has no recordings,
 * `end`. */
int cvy_plan_record_end(const cvy_plan *plan, int first, int end);
/* Puts the work of instructions first to end - 1 into the lane COMPUTE by a recording, if there is one or it is time to
 * make one. *done_out 0: it does nothing, and they are to be run. What the host notes of instructions is left to the
 * caller. */
cvy_status cvy_plan_replay(cvy_plan *plan, int first, int end, int *done_out);

/* ---- for reports ---- */
/* Into how many recordings the instructions of a step would go; *instr_out: how many of them. Not all need be there: a
 * part of the instructions may have no work. The plan need not be bound. */
int cvy_plan_count_records(const cvy_plan *plan, int *instr_out);
typedef struct cvy_recorded {
    int recordings, parts; /* pieces of work, which are kernels, copies and zeroes, in the recordings */
    const char *why;       /* the driver cannot record; NULL: it can */
} cvy_recorded;
/* For a call after each step. Returns 1 once, after the first step in which nothing more was recorded, or when the
 * driver has refused: then *out is what is recorded. */
int cvy_plan_recorded(cvy_plan *plan, cvy_recorded *out);

#endif
