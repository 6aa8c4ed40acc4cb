/*
 * plan_tune.h: chooses a kernel for each node by measured times, and predicts what the step will take.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_TUNE_H
#define CVY_PLAN_TUNE_H

#include "plan/plan_wisdom.h"

typedef enum {
    CVY_PLANNING_ESTIMATE, /* uses the order of preference and the wisdom; measures nothing */
    CVY_PLANNING_MEASURE,  /* times the registered kernels that may be faster */
    CVY_PLANNING_PATIENT,  /* also times plain kernels of small nodes; more repetitions, two rounds */
} cvy_planning;

typedef struct cvy_tuning {
    char *choices; /* JSON, node name -> kernel, those of opts->choices among them; NULL: by preference. The caller
                      frees it with cvy_mem_free */
    double micro_ms, update_ms; /* sum of the times of the calls of one micro-batch, and of the update */
    int ncall, nunknown;        /* number of calls that take time; how many of them have no known time */
    int nmeasured;              /* number of times that were measured now */
    int nvaried;                /* those that varied, and were measured again */
    int nchanged;               /* number of nodes that do not have the preferred kernel */
    double seconds;             /* duration of the tuning */
} cvy_tuning;

/* If opts->choices are given without opts->settled, it only predicts their time. It leaves the layouts of variables as
 * they were. */
cvy_status cvy_plan_tune(cvy_graph *graph, const cvy_plan_opts *opts, cvy_planning how, cvy_wisdom *wisdom,
                         cvy_tuning *out);
/* Prints a table of the candidates of each node: which one is taken, their times if known, and why others do not
 * apply. */
cvy_status cvy_plan_explain(const cvy_lowered *lowered, const cvy_plan_opts *opts, const cvy_wisdom *wisdom,
                            char **text_out);

#endif
