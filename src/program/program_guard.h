/*
 * program_guard.h: training steps that leave the weights as they are if a loss or a gradient is not finite.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_GUARD_H
#define CVY_PROGRAM_GUARD_H

#include "program/program_view.h"

/* These two run one step; they are the `step` and the `end` of an update mode. If a loss or gradient is not finite, one
 * of them returns CVY_E_NUMERIC on all ranks, and the message says where the first such number was made. Between the
 * two, a device may still compute the step. lr: is in the feeds. */
cvy_status cvy_guarded_step(cvy_program *program, cvy_program_task *task, double lr);
cvy_status cvy_guarded_end(cvy_program *program, cvy_program_task *task);
/* Whether cvy_guarded_end() would not wait. */
int cvy_guarded_is_done(const cvy_program_task *task);
/* The first part of that step: forward, backward, all reductions, and the check. Only the update is left to do. */
cvy_status cvy_guard_update(cvy_program *program, cvy_program_task *task);

/* ---- program_finite.c; all reductions must be complete ---- */
/* Checks the sums that this rank has, before the update. */
cvy_status cvy_gradients_finite(cvy_plan *plan, int *finite_out);
/* On a device: makes plan->finite, which checks the losses of the task and all gradients, and finds out whether the
 * update can be held. */
cvy_status cvy_make_check(const cvy_program_task *task);

#endif
