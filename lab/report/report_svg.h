/*
 * report_svg.h: charts as inline SVG: axes with round ticks, lines, areas, steps, bars, points, legends; and heat maps.
 *
 * Colours, fonts and line widths are CSS classes of the page, so the same chart works in light mode, in dark mode and
 * in print. All text is escaped here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_SVG_H
#define CVY_REPORT_SVG_H

#include "base/text/base_text.h"

typedef enum {
    CVY_DRAW_LINE, /* with dots if there are few points */
    CVY_DRAW_AREA, /* between y_low (0 if NULL) and y */
    CVY_DRAW_STEP, /* histogram: n values between n + 1 edges in x */
    CVY_DRAW_BARS, /* one bar per point */
    CVY_DRAW_POINTS,
    CVY_DRAW_DASHED, /* a thin dashed line, for guides and limits */
} cvy_draw;

typedef struct cvy_series {
    const char *name; /* in the legend; NULL: no legend entry */
    cvy_draw draw;
    int color; /* 0..7: class c0 .. c7; -1: neutral */
    int faint; /* drawn pale: the band between minimum and maximum, or a line behind another one */
    const double *x, *y, *y_low;
    int64_t n;
} cvy_series;

#define CVY_CHART_SERIES 20
typedef struct cvy_chart {
    const char *title, *note; /* note: a line below the title; may be NULL */
    const char *x_label, *y_label;
    const char *x_what; /* name of x in tooltips: "epoch" */
    int log_x, log_y;
    int from_zero;     /* whether the y axis begins at zero */
    int whole_x;       /* whether ticks are only at integers */
    int ticks_at_data; /* whether ticks of a logarithmic x axis, or of one with a single x, are at the points: 1, 2, 4,
                          .. ranks */
    double x_min, x_max, y_min, y_max; /* used if min < max; otherwise the range of the data */
    int square;
    int small;   /* a third of the width instead of a half */
    int nseries; /* the first series is drawn on top of the others */
    cvy_series series[CVY_CHART_SERIES];
} cvy_chart;

/* Appends a <figure>. It appends nothing if no series has a point that can be drawn. */
void cvy_chart_write(cvy_text *html, const cvy_chart *chart);
/* Copies a series into the chart if it has at least `least` finite points. x, y and y_low must live until
 * cvy_chart_write. */
void cvy_chart_add(cvy_chart *chart, const cvy_series *series, int64_t least);

typedef struct cvy_heatmap {
    const char *title, *note, *x_label, *y_label;
    int rows, columns;
    const double *value; /* rows x columns; printed in the cells */
    const double *shade; /* 0..1: how dark each cell is */
    const char *const *row_name;
    const char *const *column_name;
} cvy_heatmap;

void cvy_heatmap_write(cvy_text *html, const cvy_heatmap *map);

/* Finds round tick positions in min..max: *first_out, *step_out. Returns their number, at most 12. */
int cvy_ticks(double min, double max, int wanted, int whole, double *first_out, double *step_out);

#endif
