/*
 * program_compare.h: compares the times of a step with two choices of kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_COMPARE_H
#define CVY_PROGRAM_COMPARE_H

#include "program/program_view.h"

/* Says whether the step of a graph is slower with the kernels `after` than with those of `before` (JSON, node name ->
 * kernel; NULL: by preference). The times come from the wisdom; if they are not there and measures is 1, both steps run
 * a few times, and their times are added to the wisdom. If no time is known, or there is no memory to run them in,
 * *slower_out is 0. known: [2], times of a step that differs little, which stand for those of this graph, and become
 * its wisdom; NULL or not above 0: none. ms: [2], gets the times of two steps that differ; not above 0: unknown. Not
 * collective. */
cvy_status cvy_program_compare(cvy_program *program, const cvy_plan_opts *opts, cvy_graph *graph, const char *before,
                               const char *after, int measures, const double *known, double *ms, int *slower_out);

#endif
