/*
 * program_tune.h: the choice of kernels for a program, the same on all ranks.
 */
#ifndef CVY_PROGRAM_TUNE_H
#define CVY_PROGRAM_TUNE_H

#include "program/program.h"

/* "estimate", "measure" or "patient"; NULL is estimate. */
cvy_status cvy_planning_parse(const char *text, cvy_planning *out);
/* Chooses by rank 0's wisdom and measurements for the graph that `make` makes there, the largest share of the program's
 * first step, and sets program->kernel.choices on all ranks. Kernels that were chosen before (a plan file) stay and are
 * only priced. Collective: yes. */
typedef cvy_status (*cvy_make_graph_fn)(cvy_program *program, cvy_graph **out);
cvy_status cvy_program_tune(cvy_program *program, const cvy_plan_opts *opts, cvy_make_graph_fn make);

#endif
