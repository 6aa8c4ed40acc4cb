/*
 * program_guard.h: training steps that leave the weights as they are if a loss or a gradient is not finite.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_GUARD_H
#define CVY_PROGRAM_GUARD_H

#include "program/program_view.h"

/* Runs one step. If a loss or gradient is not finite, it returns CVY_E_NUMERIC on all ranks, and the message says where
 * the first such number was made. */
cvy_status cvy_guarded_step(cvy_program *program, cvy_program_task *task);
/* The first part of that step: forward, backward and all reductions. Only the update is left to do. */
cvy_status cvy_guard_update(cvy_program *program, cvy_program_task *task);
/* Checks the sums that this rank has, before the update (program_finite.c). All reductions must be complete. */
cvy_status cvy_gradients_finite(const cvy_plan *plan, int *finite_out);

#endif
