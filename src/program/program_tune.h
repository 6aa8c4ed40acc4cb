/*
 * program_tune.h: the choice of kernels for a program, the same on all ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_TUNE_H
#define CVY_PROGRAM_TUNE_H

#include "program/program_view.h"

typedef cvy_status (*cvy_make_graph_fn)(cvy_program *program, cvy_graph **out);
typedef cvy_status (*cvy_make_task_graph_fn)(cvy_program *program, int task, cvy_graph **out);
/* Chooses kernels by rank 0's wisdom and measurements, and sets program->kernel.choices on all ranks. Rank 0 decides
 * for the graphs that `make` makes there: the largest share of the program's first task and, if this is one of several
 * turns of a step, of the other turns. Nodes of a later turn that earlier turns have, too, get the same kernels there.
 * Kernels that were chosen before (by a plan file) stay as they are, and only the times of the first task are looked
 * up. Collective. */
cvy_status cvy_program_tune(cvy_program *program, const cvy_plan_opts *opts, cvy_make_task_graph_fn make);
/* Whether a task is one of the turns of a step with whole batches. */
int cvy_program_is_turn(const cvy_program *program, int task);

/* With the kernel clock and a pipeline: finds the times of each stage of the cut, because a stage copies values between
 * layouts where the whole network does not. make: makes the graph of the stage grid.stage. Collective. */
cvy_status cvy_program_tune_stages(cvy_program *program, const cvy_plan_opts *opts, cvy_make_graph_fn make);

/* The kernels of the graph that `make` makes are chosen already. Finds their times, by measurement if planning is. */
cvy_status cvy_program_price(cvy_program *program, const cvy_plan_opts *opts, cvy_make_graph_fn make);

#endif
