/*
 * program_guard.h: training steps that leave the weights as they are if a loss or a gradient is not finite.
 */
#ifndef CVY_PROGRAM_GUARD_H
#define CVY_PROGRAM_GUARD_H

#include "program/program.h"

/* CVY_E_NUMERIC on all ranks then; the text says where such a number was made first. */
cvy_status cvy_guarded_step(cvy_program *program, cvy_program_task *task);
/* Its first part: forward, backward, all reductions. What is left is to update. */
cvy_status cvy_guard_update(cvy_program *program, cvy_program_task *task);
/* program_finite.c: of the sums that this rank has, before the update; all reductions must be complete. */
cvy_status cvy_gradients_finite(const cvy_plan *plan, int *finite_out);

#endif
