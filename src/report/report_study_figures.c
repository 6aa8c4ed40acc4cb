/*
 * report_study_figures.c: the figures of a study: a chart for each combination of values of the panels' axes, a line
 * for each value of the lines' axis, with the range over the repeats behind it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/report_study.h"
#include "report/report_svg.h"

enum { LINES_MAX = 8, LABEL = 256 };

static int is_of(const cvy_study_page *p, const cvy_study_row *row, const cvy_figure *f)
{
    return strcmp(row->first->machine, p->machine) == 0 && strcmp(row->first->experiment, f->of) == 0 && row->n > 0;
}

/* "vgg-a, forward": the values of the panels' axes. */
static void name_panel(const cvy_study_row *row, const cvy_figure *f, char *text, size_t room)
{
    size_t n = 0;
    *text = '\0';
    for (int i = 0; i < f->npanels && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%s", i ? ", " : "", cvy_study_value(row, f->panels[i]));
}

static int is_in(const cvy_study_row *row, const cvy_figure *f, const char *panel, const char *line)
{
    char name[LABEL];
    name_panel(row, f, name, sizeof name);
    return strcmp(name, panel) == 0 && (!f->lines || strcmp(cvy_study_value(row, f->lines), line) == 0);
}

struct points {
    double x, median, low, high;
};

static int compare_points(const void *a, const void *b)
{
    const struct points *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

/* Relative to the first point: the speed, or the speed for each unit of x. */
static void scale_points(const cvy_figure *f, struct points *at, int64_t n)
{
    const struct points first = at[0];
    for (int64_t i = 0; i < n && f->as != CVY_FIGURE_VALUE && first.median > 0 && first.x > 0; i++) {
        const double by = first.median * (f->as == CVY_FIGURE_EFFICIENCY ? at[i].x / first.x : 1);
        at[i].median /= by;
        at[i].low /= by;
        at[i].high /= by;
    }
}

static cvy_status add_line(cvy_study_page *p, const cvy_figure *f, const char *panel, const char *line, int color,
                           cvy_chart *chart)
{
    struct points *at = NULL;
    double *x = NULL, *median = NULL, *low = NULL, *high = NULL;
    int64_t n = 0;
    int is_predicted = 0;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *at * ((size_t)p->nrow + 1), &at));
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        const cvy_spread y = cvy_study_spread(row, f->y);
        double value = 0;
        if (!is_of(p, row, f) || !is_in(row, f, panel, line) || y.n == 0 ||
            cvy_text_real(cvy_study_value(row, f->x), &value) != CVY_OK)
            continue;
        at[n++] = (struct points){value, y.median, y.low, y.high};
        is_predicted |= row->first->is_predicted;
    }
    qsort(at, (size_t)n, sizeof *at, compare_points);
    scale_points(f, at, n);
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *x * ((size_t)n + 1), &x));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *x * ((size_t)n + 1), &median));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *x * ((size_t)n + 1), &low));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *x * ((size_t)n + 1), &high));
    for (int64_t i = 0; i < n; i++) {
        x[i] = at[i].x;
        median[i] = at[i].median;
        low[i] = at[i].low;
        high[i] = at[i].high;
    }
    cvy_chart_add(chart,
                  &(cvy_series){.name = line,
                                .draw = is_predicted ? CVY_DRAW_DASHED : CVY_DRAW_LINE,
                                .color = color,
                                .x = x,
                                .y = median,
                                .n = n},
                  1);
    cvy_chart_add(
        chart,
        &(cvy_series){.draw = CVY_DRAW_AREA, .color = color, .faint = 1, .x = x, .y = high, .y_low = low, .n = n}, 2);
    return CVY_OK;
}

/* Adds a text to a list without repeating it. */
static void know(const char **list, int *n, int most, const char *text)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(list[i], text) == 0)
            return;
    if (*n < most)
        list[(*n)++] = text;
}

static cvy_status write_panel(cvy_study_page *p, const cvy_figure *f, const char *panel, const char *const *line,
                              int nline)
{
    cvy_chart chart = {.title = *panel ? panel : f->title,
                       .x_label = f->x,
                       .y_label = f->y_label,
                       .x_what = f->x,
                       .log_x = f->log_x,
                       .log_y = f->log_y,
                       .from_zero = !f->log_y};
    for (int i = 0; i < nline; i++)
        CVY_TRY(add_line(p, f, panel, line[i], i, &chart));
    cvy_chart_write(&p->html, &chart);
    return CVY_OK;
}

static cvy_status write_figure(cvy_study_page *p, const cvy_figure *f)
{
    const char *line[LINES_MAX], **panel = NULL;
    int nline = 0, npanel = 0;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *panel * ((size_t)p->nrow + 1), &panel));
    for (int i = 0; i < p->nrow; i++) {
        char name[LABEL], *copy = NULL;
        if (!is_of(p, &p->row[i], f))
            continue;
        name_panel(&p->row[i], f, name, sizeof name);
        CVY_TRY(cvy_pool_strdup(p->pool, name, &copy));
        know(panel, &npanel, p->nrow, copy);
        know(line, &nline, LINES_MAX, f->lines ? cvy_study_value(&p->row[i], f->lines) : f->y_label);
    }
    if (npanel == 0)
        return CVY_OK;
    cvy_text_add(&p->html, "<section><h2>");
    cvy_html_escape(&p->html, f->title);
    cvy_text_add(&p->html, "</h2>\n<div class=\"charts\">\n");
    for (int i = 0; i < npanel; i++)
        CVY_TRY(write_panel(p, f, panel[i], line, nline));
    cvy_text_add(&p->html, "</div></section>\n");
    return CVY_OK;
}

cvy_status cvy_study_figures(cvy_study_page *p)
{
    for (int i = 0; i < p->spec.nfigure; i++)
        CVY_TRY(write_figure(p, &p->spec.figure[i]));
    return CVY_OK;
}
