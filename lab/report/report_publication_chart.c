/*
 * report_publication_chart.c: the figure of a study on the page of a publication: the picture of each chart, and a
 * table with its points, of which each empty cell says why.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_markdown.h"
#include "report/report_page.h"
#include "report/report_publication.h"

enum { X_MAX = 12 }; /* a chart with more points is too long for a table: their ends are shown */

const cvy_figure *cvy_publication_find_figure(const cvy_study_page *p, const char *title)
{
    for (int i = 0; i < p->spec.nfigure; i++)
        if (strcmp(p->spec.figure[i].title, title) == 0)
            return &p->spec.figure[i];
    return NULL;
}

static double value_at(const cvy_study_line *line, double x)
{
    for (int64_t i = 0; i < line->band.n; i++)
        if (line->band.x[i] == x)
            return line->band.median[i];
    return NAN;
}

/* All x of the lines, ascending; the number may be more than X_MAX, then only X_MAX are written. */
static int list_x(const cvy_study_line *line, int nline, double x[X_MAX])
{
    int n = 0;
    for (double above = -INFINITY;;) {
        double next = INFINITY;
        for (int i = 0; i < nline; i++)
            for (int64_t k = 0; k < line[i].band.n; k++)
                if (line[i].band.x[k] > above)
                    next = fmin(next, line[i].band.x[k]);
        if (!isfinite(next))
            return n;
        if (n < X_MAX)
            x[n] = next;
        n++;
        above = next;
    }
}

static void add_line_name(cvy_text *md, const cvy_study_line *line)
{
    cvy_text_add(md, "| ");
    cvy_md_text(md, line->name);
    cvy_text_add(md, "%s |", line->is_predicted ? " (predicted)" : "");
}

/* A row for each line, a column for each x. */
static cvy_status add_points(cvy_text *md, const cvy_study_page *p, const cvy_figure *f, const char *panel,
                             const cvy_study_line *line, int nline, const double *x, int nx)
{
    cvy_text_add(md, "\n| ");
    cvy_md_text(md, f->y_label);
    cvy_text_add(md, " at ");
    cvy_md_text(md, f->x_label);
    cvy_text_add(md, " |");
    for (int k = 0; k < nx; k++)
        cvy_text_add(md, " %.6g |", x[k]);
    cvy_md_end_head(md, nx + 1);
    for (int i = 0; i < nline; i++) {
        if (line[i].band.n == 0)
            continue;
        add_line_name(md, &line[i]);
        for (int k = 0; k < nx; k++) {
            const double value = value_at(&line[i], x[k]);
            char gap[48] = "";
            if (!isfinite(value))
                CVY_TRY(cvy_study_gap(p, f, panel, line[i].value, x[k], gap, sizeof gap));
            if (gap[0])
                cvy_md_cell(md, gap);
            else
                cvy_md_number(md, value);
        }
        cvy_text_add(md, "\n");
    }
    return CVY_OK;
}

/* Where each line ends. */
static void add_ends(cvy_text *md, const cvy_figure *f, const cvy_study_line *line, int nline)
{
    cvy_text_add(md, "\n| the last point |");
    cvy_md_cell(md, f->x_label);
    cvy_md_cell(md, f->y_label);
    cvy_md_end_head(md, 3);
    for (int i = 0; i < nline; i++) {
        int64_t last = line[i].band.n - 1;
        while (last >= 0 && !isfinite(line[i].band.median[last]))
            last--;
        if (last < 0)
            continue;
        add_line_name(md, &line[i]);
        cvy_md_number(md, line[i].band.x[last]);
        cvy_md_number(md, line[i].band.median[last]);
        cvy_text_add(md, "\n");
    }
}

static cvy_status add_chart(cvy_text *md, cvy_study_page *p, const cvy_part_item *item, const cvy_figure *f,
                            const char *panel)
{
    cvy_study_line line[CVY_STUDY_LINES];
    char name[160];
    double x[X_MAX];
    int nline = 0;
    CVY_TRY(cvy_study_lines(p, f, panel, line, &nline));
    cvy_study_svg_name(f->title, panel, name, sizeof name);
    cvy_text_add(md, "\n**");
    cvy_md_text(md, *panel ? panel : f->title);
    cvy_text_add(md, "**\n\n![");
    cvy_md_text(md, f->title);
    cvy_text_add(md, *panel ? ": " : "");
    cvy_md_text(md, panel);
    cvy_text_add(md, "](%s/%s)\n", item->study, name);
    const int nx = list_x(line, nline, x);
    if (nx <= X_MAX)
        return add_points(md, p, f, panel, line, nline, x, nx);
    add_ends(md, f, line, nline);
    return CVY_OK;
}

/* How many times as fast convoy is as the fastest other program, over the points of all charts of a figure. */
struct ratio {
    double low, high;
    int n;
};

static void count_ratios(const cvy_study_line *line, int nline, struct ratio *r)
{
    const cvy_study_line *own = NULL;
    for (int i = 0; i < nline; i++)
        if (strcmp(line[i].name, "convoy") == 0)
            own = &line[i];
    for (int64_t k = 0; own && k < own->band.n; k++) {
        double best = NAN;
        for (int i = 0; i < nline; i++)
            if (&line[i] != own && !line[i].is_predicted)
                best = fmax(best, value_at(&line[i], own->band.x[k]));
        const double ratio = own->band.median[k] / best;
        if (!isfinite(ratio))
            continue;
        r->low = r->n ? fmin(r->low, ratio) : ratio;
        r->high = r->n ? fmax(r->high, ratio) : ratio;
        r->n++;
    }
}

static cvy_status add_ratio(cvy_text *md, cvy_study_page *p, const cvy_part_item *item, const cvy_figure *f,
                            const char *const *panel, int npanel)
{
    struct ratio r = {.n = 0};
    const int has_speeds = f->as == CVY_FIGURE_VALUE && strcmp(f->y, "images_per_s") == 0 && f->lines &&
                           strcmp(f->lines, "framework") == 0;
    for (int i = 0; has_speeds && i < npanel; i++) {
        cvy_study_line line[CVY_STUDY_LINES];
        int nline = 0;
        if (item->panel && !strstr(panel[i], item->panel))
            continue;
        CVY_TRY(cvy_study_lines(p, f, panel[i], line, &nline));
        count_ratios(line, nline, &r);
    }
    if (r.n > 0)
        cvy_text_add(md, "\nconvoy is %s to %s times as fast as the fastest other program (%d points).\n",
                     cvy_number_text(r.low, 3).at, cvy_number_text(r.high, 3).at, r.n);
    return CVY_OK;
}

cvy_status cvy_publication_figure(cvy_text *md, cvy_study_page *p, const cvy_part_item *item)
{
    const cvy_figure *f = cvy_publication_find_figure(p, item->figure);
    const char *const *panel = NULL;
    int n = 0;
    CVY_TRY(cvy_study_panels(p, f, &panel, &n));
    for (int i = 0; i < n; i++)
        if (!item->panel || strstr(panel[i], item->panel))
            CVY_TRY(add_chart(md, p, item, f, panel[i]));
    return add_ratio(md, p, item, f, panel, n);
}
