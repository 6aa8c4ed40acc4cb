/*
 * plan_tune.h: chooses a kernel for each node by measured times, and predicts what the step will take.
 */
#ifndef CVY_PLAN_TUNE_H
#define CVY_PLAN_TUNE_H

#include "plan/plan_wisdom.h"

typedef enum {
    CVY_PLANNING_ESTIMATE, /* the order of preference, and what wisdom there is; measures nothing */
    CVY_PLANNING_MEASURE,  /* plausible candidates are timed */
    CVY_PLANNING_PATIENT,  /* all are, more often; a second round */
} cvy_planning;

typedef struct cvy_tuning {
    char *choices;              /* JSON, node name -> kernel; NULL: as preferred. Freed by cvy_mem_free */
    double micro_ms, update_ms; /* sums of the times of a micro-batch's calls, and of the update's */
    int ncall, nunknown;        /* calls that take time; of them without a known one */
    int nmeasured;              /* times taken now */
    int nchanged;               /* nodes that do not have the kernel that is preferred */
    double seconds;             /* that this took */
} cvy_tuning;

/* opts->choices, where given, are priced only. Layouts of variables are left as they were. */
cvy_status cvy_plan_tune(cvy_graph *graph, const cvy_plan_opts *opts, cvy_planning how, cvy_wisdom *wisdom,
                         cvy_tuning *out);
/* For each node of a unit a table of its candidates: taken, slower, or why not; with their times where they are known.
 */
cvy_status cvy_plan_explain(const cvy_lowered *unit, const cvy_plan_opts *opts, const cvy_wisdom *wisdom,
                            char **text_out);

#endif
