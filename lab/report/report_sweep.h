/*
 * report_sweep.h: what the sections of the page of a search share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_SWEEP_H
#define CVY_REPORT_SWEEP_H

#include "report/report_page.h"
#include "sweep/sweep_search.h"

typedef struct cvy_sweep_column { /* a key of the search, with a place for each trial */
    int is_number, is_log;        /* all values are numbers; they are shown on a logarithmic axis */
    int nlevels;                  /* number of different values, if there are few; 0: the axis has a scale */
    const char **level;           /* the values, in order */
    double *value;                /* of each trial: the number, or the index of its level */
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
/* Adds a cell to the open row of a table for each key. text: [nkey]. */
void cvy_sweep_add_cells(cvy_sweep_page *p, const char *const *text);
/* The generations of a population: who became a copy of whom, and which values the best trial had in its life. */
cvy_status cvy_sweep_lineage(cvy_sweep_page *p);

/* ---- charts over the whole width (report_sweep_parallel.c) ---- */

/* The box of such a chart, and the limits of its vertical axes. */
#define CVY_SWEEP_WIDTH 1040.0
#define CVY_SWEEP_HEIGHT 360.0
#define CVY_SWEEP_TOP 46.0
#define CVY_SWEEP_BOTTOM 326.0

typedef struct cvy_sweep_scale { /* a vertical axis; zero-initialise it with min INFINITY and max -INFINITY */
    double min, max;
    int is_log, is_flipped; /* is_flipped: small values are at the top */
} cvy_sweep_scale;
/* Makes room for a value. */
void cvy_sweep_scale_add(cvy_sweep_scale *scale, double value);
/* Ends the axis of the scores: whether it is logarithmic, and which end is up. */
void cvy_sweep_scale_end(cvy_sweep_scale *scale, int is_score, int higher);
double cvy_sweep_scale_y(const cvy_sweep_scale *scale, double value);
/* Draws the axis with five numbers at its left, or at its right. */
void cvy_sweep_draw_scale(cvy_sweep_page *p, const cvy_sweep_scale *scale, double x, int is_right);
/* Begins and ends the figure. */
void cvy_sweep_begin_chart(cvy_sweep_page *p, const char *title, const char *note);
void cvy_sweep_end_chart(cvy_sweep_page *p);

#endif
