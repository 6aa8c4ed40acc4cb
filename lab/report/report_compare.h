/*
 * report_compare.h: what the sections of a page about several runs share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_COMPARE_H
#define CVY_REPORT_COMPARE_H

#include "files/files_runs.h"
#include "report/report.h"
#include "report/report_page.h"

typedef struct cvy_compared { /* a run */
    cvy_report files;
    cvy_run_summary summary;
    char *name;                     /* the last part of the folder, or all of it if two runs have the same */
    double *step_unit, *epoch_unit; /* time of each row of files.steps and files.epochs, in units of the page */
} cvy_compared;

typedef struct cvy_comparison {
    cvy_pool *pool;
    cvy_compared run[CVY_REPORT_RUNS_MAX];
    int nruns;
    const char *unit; /* of time: "s", "min" or "h" */
    cvy_text html;
} cvy_comparison;

/* The table of differing keys and of scores. */
cvy_status cvy_comparison_table(cvy_comparison *c);
/* The curves. */
void cvy_comparison_charts(cvy_comparison *c);

#endif
