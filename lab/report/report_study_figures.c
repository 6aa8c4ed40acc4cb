/*
 * report_study_figures.c: the figures of a study: a chart for each combination of values of the panels' axes, a line
 * for each value of the lines' axis, with the range over the repeats behind it. Published figures are points of their
 * own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_page.h"
#include "report/report_study.h"
#include "report/report_svg.h"

enum { LABEL = 256, IDEAL = 33 };

/* "vgg-a, forward, ranks 2": the values of the panels' axes; a number needs the name of its axis. */
static void name_values(const cvy_study_page *p, const cvy_study_row *row, const cvy_case *c, const cvy_figure *f,
                        char *text, size_t room)
{
    size_t n = 0;
    *text = '\0';
    for (int i = 0; i < f->npanels && n < room; i++) {
        const char *of = row ? cvy_study_value(row, f->panels[i]) : cvy_case_value(c, f->panels[i]);
        const char *value = cvy_study_name(p, f->panels[i], of ? of : "");
        double number = 0;
        const int is_number = cvy_text_real(value, &number) == CVY_OK;
        n += (size_t)snprintf(text + n, room - n, "%s%s%s%s", i ? ", " : "", is_number ? f->panels[i] : "",
                              is_number ? " " : "", value);
    }
}

static void name_panel(const cvy_study_page *p, const cvy_study_row *row, const cvy_figure *f, char *text, size_t room)
{
    name_values(p, row, NULL, f, text, room);
}

void cvy_study_panel_of_case(const cvy_study_page *p, const cvy_case *c, const cvy_figure *f, char *text, size_t room)
{
    name_values(p, NULL, c, f, text, room);
}

/* Whether the lines are the members of the curves, all but that of x. */
static int has_members(const cvy_figure *f)
{
    return cvy_figure_curve(f) && strcmp(f->y, cvy_figure_curve(f)) == 0;
}

static int is_in(const cvy_study_page *p, const cvy_study_row *row, const cvy_figure *f, const char *panel,
                 const char *line)
{
    char name[LABEL];
    name_panel(p, row, f, name, sizeof name);
    return strcmp(name, panel) == 0 &&
           (!f->lines || has_members(f) || strcmp(cvy_study_value(row, f->lines), line) == 0);
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

cvy_status cvy_study_band_new(cvy_study_page *p, int64_t n, cvy_study_band *out)
{
    double **const array[] = {&out->x, &out->median, &out->low, &out->high};
    *out = (cvy_study_band){.n = n};
    for (int i = 0; i < CVY_COUNT(array); i++)
        CVY_TRY(cvy_pool_alloc(p->pool, sizeof(double) * ((size_t)n + 1), array[i]));
    return CVY_OK;
}

/* The points of all rows of a line: each row is one. */
static cvy_status gather_points(cvy_study_page *p, const cvy_figure *f, const char *panel, const char *line,
                                cvy_study_band *out, int *is_predicted)
{
    struct points *at = NULL;
    int64_t n = 0;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *at * ((size_t)p->nrow + 1), &at));
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        const cvy_spread y = cvy_study_spread(row, f->y);
        double value = 0;
        if (!cvy_study_shows(p, row, f->of) || !is_in(p, row, f, panel, line) || y.n == 0 ||
            cvy_text_real(cvy_study_value(row, f->x), &value) != CVY_OK)
            continue;
        at[n++] = (struct points){value, y.median, y.low, y.high};
        *is_predicted |= row->first->is_predicted;
    }
    qsort(at, (size_t)n, sizeof *at, compare_points);
    scale_points(f, at, n);
    CVY_TRY(cvy_study_band_new(p, n, out));
    for (int64_t i = 0; i < n; i++) {
        out->x[i] = at[i].x;
        out->median[i] = at[i].median;
        out->low[i] = at[i].low;
        out->high[i] = at[i].high;
    }
    return CVY_OK;
}

/* The curve of the first row of a line. With y: curve, the line is a member of the curves. */
static cvy_status gather_curve(cvy_study_page *p, const cvy_figure *f, const char *panel, const char *line,
                               cvy_study_band *out, int *is_predicted)
{
    char path[LABEL];
    snprintf(path, sizeof path, has_members(f) ? "%s.%s" : "%s", f->y, line);
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        if (!cvy_study_shows(p, row, f->of) || !is_in(p, row, f, panel, line))
            continue;
        *is_predicted = row->first->is_predicted;
        return cvy_study_curve(p, row, f->x, path, out);
    }
    return cvy_study_band_new(p, 0, out);
}

/* A number says nothing without its axis: "ranks 2". Nor does a value of a key of the job or of an option:
 * "comm.progress poll". A name that the study file gives to a value says enough. */
static cvy_status name_line(cvy_study_page *p, const cvy_figure *f, const char *line, const char **out)
{
    const int is_value = f->lines && !has_members(f);
    char *text = NULL;
    *out = is_value ? cvy_study_name(p, f->lines, line) : line;
    if (!is_value || *out != line || (strspn(line, "0123456789.") == 0 && !strchr(f->lines, '.')))
        return CVY_OK;
    CVY_TRY(cvy_pool_printf(p->pool, &text, "%s %s", f->lines, line));
    *out = text;
    return CVY_OK;
}

static void know_members(const cvy_study_row *row, const cvy_figure *f, const char **line, int *n)
{
    const cvy_tree *curve = cvy_tree_at(row->line[0]->result, cvy_figure_curve(f));
    for (int i = 0; curve && curve->kind == CVY_TREE_MAP && i < curve->count; i++)
        if (strcmp(curve->key[i], f->x + strlen(cvy_figure_curve(f)) + 1) != 0)
            cvy_study_know(line, n, CVY_STUDY_LINES, curve->key[i]);
}

/* Where a line would be that loses nothing. */
static cvy_status add_ideal(cvy_study_page *p, const cvy_figure *f, cvy_chart *chart)
{
    double first = INFINITY, last = 0, *x = NULL, *y = NULL;
    const int grows = strcmp(f->x, "ranks") == 0 || strcmp(f->x, "threads") == 0; /* the machine with x */
    if (f->as == CVY_FIGURE_VALUE || chart->nseries == 0 || !grows)
        return CVY_OK;
    for (int i = 0; i < chart->nseries; i++)
        for (int64_t k = 0; k < chart->series[i].n; k++) {
            first = fmin(first, chart->series[i].x[k]);
            last = fmax(last, chart->series[i].x[k]);
        }
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *x * IDEAL, &x));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *y * IDEAL, &y));
    for (int i = 0; i < IDEAL; i++) { /* many points, because a straight line is a curve on a logarithmic axis */
        x[i] = first * pow(last / first, i / (double)(IDEAL - 1));
        y[i] = f->as == CVY_FIGURE_EFFICIENCY ? 1 : x[i] / first;
    }
    cvy_chart_add(chart,
                  &(cvy_series){.name = "ideal", .draw = CVY_DRAW_DASHED, .color = -1, .x = x, .y = y, .n = IDEAL}, 2);
    return CVY_OK;
}

/* ---- what others have published ---- */

/* Whether a published figure belongs into a chart: it is of a network that the chart is about, or of several. */
static int is_about(const cvy_published *row, const cvy_figure_mark *mark, const char *panel)
{
    const int is_any = strncmp(row->network, "any", 3) == 0 || strncmp(row->network, "four", 4) == 0;
    if (strcmp(row->metric, mark->metric) != 0 || (mark->network && strcmp(row->network, mark->network) != 0))
        return 0;
    return mark->panel ? strstr(panel, mark->panel) != NULL : is_any || !*panel || strstr(panel, row->network) != NULL;
}

/* A point, or a line from the lowest to the highest value. Percentages become parts where the axis has parts. */
static cvy_status add_mark(cvy_study_page *p, const cvy_figure *f, const cvy_published *row, double at,
                           cvy_chart *chart)
{
    const double by = f->as == CVY_FIGURE_EFFICIENCY && strcmp(row->unit, "%") == 0 ? 0.01 : 1;
    double *x = NULL, *y = NULL;
    char *name = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *x * 2, &x));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *y * 2, &y));
    CVY_TRY(cvy_pool_printf(p->pool, &name, "published, %s: %s %s", row->framework, row->value_text, row->unit));
    x[0] = x[1] = at;
    y[0] = by * row->low;
    y[1] = by * row->high;
    cvy_chart_add(
        chart,
        &(cvy_series){
            .name = name, .draw = CVY_DRAW_LINE, .color = -1, .x = x, .y = y, .n = row->low < row->high ? 2 : 1},
        1);
    return CVY_OK;
}

static cvy_status add_marks(cvy_study_page *p, const cvy_figure *f, const char *panel, cvy_chart *chart)
{
    for (int m = 0; m < f->nmark && chart->nseries > 0; m++)
        for (int i = 0; i < p->published.n; i++)
            if (is_about(&p->published.row[i], &f->mark[m], panel))
                CVY_TRY(add_mark(p, f, &p->published.row[i], f->mark[m].x, chart));
    return CVY_OK;
}

/* ---- lines, charts, figures ---- */

/* The lines of the whole figure, so that a line has the same colour in all charts, in the order of the study file. */
static void list_lines(const cvy_study_page *p, const cvy_figure *f, const char **line, int *n)
{
    const cvy_experiment *e = cvy_study_experiment(&p->spec, f->of);
    for (int a = 0; e && f->lines && !has_members(f) && a < e->naxis; a++)
        for (int v = 0; strcmp(e->axis[a].name, f->lines) == 0 && v < e->axis[a].nvalue; v++)
            for (int i = 0; i < p->nrow; i++)
                if (cvy_study_shows(p, &p->row[i], f->of) &&
                    strcmp(cvy_study_value(&p->row[i], f->lines), e->axis[a].value[v]) == 0)
                    cvy_study_know(line, n, CVY_STUDY_LINES, e->axis[a].value[v]);
    for (int i = 0; i < p->nrow; i++) {
        if (!cvy_study_shows(p, &p->row[i], f->of))
            continue;
        if (has_members(f))
            know_members(&p->row[i], f, line, n);
        else
            cvy_study_know(line, n, CVY_STUDY_LINES, f->lines ? cvy_study_value(&p->row[i], f->lines) : f->y_label);
    }
}

cvy_status cvy_study_lines(cvy_study_page *p, const cvy_figure *f, const char *panel, cvy_study_line *out, int *n_out)
{
    const char *line[CVY_STUDY_LINES];
    const int is_curve = cvy_figure_curve(f) != NULL;
    *n_out = 0;
    list_lines(p, f, line, n_out);
    for (int i = 0; i < *n_out; i++) {
        cvy_study_line *to = &out[i];
        *to = (cvy_study_line){.value = line[i]};
        CVY_TRY(is_curve ? gather_curve(p, f, panel, line[i], &to->band, &to->is_predicted)
                         : gather_points(p, f, panel, line[i], &to->band, &to->is_predicted));
        CVY_TRY(name_line(p, f, line[i], &to->name));
    }
    return CVY_OK;
}

static void add_line(const cvy_study_line *line, int color, cvy_chart *chart)
{
    const cvy_study_band *b = &line->band;
    cvy_chart_add(chart,
                  &(cvy_series){.name = line->name,
                                .draw = line->is_predicted ? CVY_DRAW_DASHED : CVY_DRAW_LINE,
                                .color = color,
                                .x = b->x,
                                .y = b->median,
                                .n = b->n},
                  1);
    cvy_chart_add(
        chart,
        &(cvy_series){
            .draw = CVY_DRAW_AREA, .color = color, .faint = 1, .x = b->x, .y = b->high, .y_low = b->low, .n = b->n},
        2);
}

static cvy_status write_panel(cvy_study_page *p, const cvy_figure *f, const char *panel)
{
    cvy_study_line line[CVY_STUDY_LINES];
    int nline = 0;
    cvy_chart chart = {.title = *panel ? panel : f->title,
                       .x_label = f->x_label,
                       .y_label = f->y_label,
                       .x_what = f->x_label,
                       .log_x = f->log_x,
                       .log_y = f->log_y,
                       .ticks_at_data = 1,
                       .from_zero = !f->log_y};
    CVY_TRY(cvy_study_lines(p, f, panel, line, &nline));
    for (int i = 0; i < nline; i++)
        add_line(&line[i], i, &chart);
    CVY_TRY(add_ideal(p, f, &chart));
    CVY_TRY(add_marks(p, f, panel, &chart));
    const size_t begin = p->html.bytes;
    cvy_chart_write(&p->html, &chart);
    return p->html.status == CVY_OK ? cvy_study_write_svg(p, f->title, panel, p->html.data + begin) : p->html.status;
}

cvy_status cvy_study_panels(cvy_study_page *p, const cvy_figure *f, const char *const **out, int *n_out)
{
    const char **panel = NULL;
    *n_out = 0;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *panel * ((size_t)p->nrow + 1), &panel));
    for (int i = 0; i < p->nrow; i++) {
        char name[LABEL], *copy = NULL;
        if (!cvy_study_shows(p, &p->row[i], f->of))
            continue;
        name_panel(p, &p->row[i], f, name, sizeof name);
        CVY_TRY(cvy_pool_strdup(p->pool, name, &copy));
        cvy_study_know(panel, n_out, p->nrow, copy);
    }
    *out = panel;
    return CVY_OK;
}

static cvy_status write_figure(cvy_study_page *p, const cvy_figure *f)
{
    const char *const *panel = NULL, *origin = NULL;
    int npanel = 0;
    CVY_TRY(cvy_study_panels(p, f, &panel, &npanel));
    if (npanel == 0)
        return CVY_OK;
    cvy_html_add(&p->html, "<section><h2>%s</h2>\n", f->title);
    CVY_TRY(cvy_study_origin(p, f->of, &origin));
    if (*origin) {
        cvy_html_add(&p->html, "<p class=\"soft\">%s</p>\n", origin);
    }
    cvy_text_add(&p->html, "<div class=\"charts\">\n");
    for (int i = 0; i < npanel; i++)
        CVY_TRY(write_panel(p, f, panel[i]));
    cvy_text_add(&p->html, "</div></section>\n");
    return CVY_OK;
}

cvy_status cvy_study_figures(cvy_study_page *p)
{
    for (int i = 0; i < p->spec.nfigure; i++)
        CVY_TRY(write_figure(p, &p->spec.figure[i]));
    return CVY_OK;
}
