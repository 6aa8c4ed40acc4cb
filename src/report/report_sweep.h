/*
 * report_sweep.h: what the sections of the page of a search share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_SWEEP_H
#define CVY_REPORT_SWEEP_H

#include "report/report.h"
#include "sweep/sweep.h"

typedef struct cvy_sweep_column { /* a key of the search, with a place for each trial */
    const char *name;
    int is_number, is_log; /* all values are numbers; they are shown on a logarithmic axis */
    int nlevels;           /* number of different values, if there are few; 0: the axis has a scale */
    const char **level;    /* the values, in order */
    double *value;         /* of each trial: the number, or the index of its level */
} cvy_sweep_column;

typedef struct cvy_sweep_page {
    cvy_pool *pool;
    const char *folder;
    cvy_sweep_summary sweep;
    cvy_sweep_column *column; /* one for each key */
    cvy_text html;
} cvy_sweep_page;

/* Finds levels and numbers of each key. */
cvy_status cvy_sweep_columns(cvy_sweep_page *p);
/* The share of the variance of the ranks that a key explains, 0 .. 1; NaN: too few trials to tell. */
cvy_status cvy_sweep_importance(const cvy_sweep_page *p, int key, double *share_out);
/* Parallel coordinates. */
void cvy_sweep_parallel(cvy_sweep_page *p);

#endif
