/*
 * report_sweep_lineage.c: the generations of a population: the score of each member over the epochs, with a line from
 * the parent to the copy where one became a copy of another; and the values that the best trial had on its way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "report/report_svg.h"
#include "report/report_sweep.h"

enum { LINES_MAX = 20000, STRETCHES_MAX = 200 };
#define LEFT 70.0
#define RIGHT 1020.0

typedef struct lineage {
    const cvy_sweep_row **row; /* by number of the trial */
    int *best;                 /* [length]: the trial in which the weights of the best one were, rung by rung */
    int length;                /* rungs of the best trial that have a score */
    double epochs;             /* the last ones on the axis */
    cvy_sweep_scale scale;
} lineage;

/* The trial, counted from 0, in which the weights of this trial were one rung before. */
static int source_of(const lineage *l, int trial, int rung)
{
    const int parent = l->row[trial]->line[rung].parent;
    return parent > 0 ? parent - 1 : trial;
}

static cvy_status find_best(const cvy_sweep_page *p, lineage *l)
{
    const cvy_sweep_row *best = &p->sweep.row[0];
    int at = best->trial - 1;
    while (l->length < best->nline && isfinite(best->line[l->length].score))
        l->length++;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *l->best * (size_t)CVY_MAX(l->length, 1), &l->best));
    for (int r = l->length - 1; r >= 0; r--) {
        l->best[r] = at;
        at = source_of(l, at, r);
    }
    return CVY_OK;
}

/* A file that was changed by hand may name trials or generations that do not exist. */
static cvy_status check(const cvy_sweep_page *p, const lineage *l)
{
    for (int i = 0; i < p->sweep.nrows; i++)
        for (int r = 0; r < l->row[i]->nline; r++) {
            const int parent = l->row[i]->line[r].parent;
            CVY_CHECK(parent <= p->sweep.nrows && (!parent || (r > 0 && l->row[parent - 1]->nline >= r)), CVY_E_FORMAT,
                      "%s/" CVY_SWEEP_STATE ": generation %d of trial %d names trial %d, which has no generation "
                      "before it: the file is damaged",
                      p->folder, r + 1, i + 1, parent);
        }
    return CVY_OK;
}

static cvy_status find_lines(const cvy_sweep_page *p, lineage *l)
{
    const cvy_sweep_summary *s = &p->sweep;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *l->row * (size_t)s->nrows, &l->row));
    for (int i = 0; i < s->nrows; i++)
        l->row[s->row[i].trial - 1] = &s->row[i];
    CVY_TRY(check(p, l));
    for (int i = 0; i < s->nrows; i++)
        for (int r = 0; r < s->row[i].nline; r++)
            if (isfinite(s->row[i].line[r].score) && isfinite(s->row[i].line[r].epochs)) {
                cvy_sweep_scale_add(&l->scale, s->row[i].line[r].score);
                l->epochs = fmax(l->epochs, s->row[i].line[r].epochs);
            }
    cvy_sweep_scale_end(&l->scale, 1, s->higher);
    return find_best(p, l);
}

/* ---- the chart ---- */

static double x_of(const lineage *l, double epochs)
{
    return LEFT + (RIGHT - LEFT) * epochs / l->epochs;
}

/* From the end of the rung before to the end of this one. */
static void draw_rung(cvy_sweep_page *p, const lineage *l, int trial, int rung)
{
    const cvy_sweep_ancestor *to = &l->row[trial]->line[rung];
    const cvy_sweep_ancestor *from = rung > 0 ? &l->row[source_of(l, trial, rung)]->line[rung - 1] : to;
    const int is_best = rung < l->length && l->best[rung] == trial;
    if (!isfinite(to->score) || !isfinite(from->score))
        return;
    const double x = x_of(l, to->epochs), y = cvy_sweep_scale_y(&l->scale, to->score);
    if (rung > 0)
        cvy_text_add(&p->html, "<path class=\"%s %s\"%s d=\"M%.1f %.1fL%.1f %.1f\"/>", to->parent ? "dashed" : "line",
                     is_best ? "c1" : "c0", is_best ? "" : " stroke-opacity=\".5\"", x_of(l, from->epochs),
                     cvy_sweep_scale_y(&l->scale, from->score), x, y);
    cvy_text_add(&p->html, "<circle class=\"point %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>trial %d",
                 is_best ? "c1" : "c0", x, y, is_best ? "4" : "3", trial + 1);
    if (to->parent)
        cvy_text_add(&p->html, ", a copy of trial %d", to->parent);
    cvy_text_add(&p->html, ", epoch %s: %s</title></circle>\n", cvy_number_count(to->epochs).at,
                 cvy_number_text(to->score, 5).at);
}

static void draw_epochs(cvy_sweep_page *p, const lineage *l)
{
    double first = 0, step = 1;
    const int n = cvy_ticks(0, l->epochs, 8, 1, &first, &step);
    cvy_text_add(&p->html, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, RIGHT,
                 CVY_SWEEP_BOTTOM, CVY_SWEEP_BOTTOM);
    for (int i = 0; i < n; i++)
        cvy_text_add(&p->html, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>",
                     x_of(l, first + i * step), CVY_SWEEP_BOTTOM + 17, cvy_number_count(first + i * step).at);
    cvy_html_add(&p->html,
                 "<text class=\"label\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">epoch</text><text class=\"label\" "
                 "x=\"4\" y=\"30\">%s</text>",
                 (LEFT + RIGHT) / 2, CVY_SWEEP_HEIGHT - 3, p->sweep.metric);
}

static void chart(cvy_sweep_page *p, const lineage *l)
{
    int drawn = 0;
    cvy_sweep_begin_chart(p, "Scores of the members",
                          "A point for each member at the end of each generation. A dashed line leads from a parent to "
                          "the copy of it. The way of the weights of the best trial has another colour.");
    for (int on_top = 0; on_top < 2; on_top++)
        for (int i = 0; i < p->sweep.nrows; i++)
            for (int r = 0; r < l->row[i]->nline && drawn < LINES_MAX; r++)
                if ((r < l->length && l->best[r] == i) == on_top) {
                    draw_rung(p, l, i, r);
                    drawn++;
                }
    cvy_sweep_draw_scale(p, &l->scale, LEFT, 0);
    draw_epochs(p, l);
    cvy_sweep_end_chart(p);
}

/* ---- the values on the way of the best trial ---- */

static int same_values(const cvy_sweep_summary *s, const cvy_sweep_ancestor *a, const cvy_sweep_ancestor *b)
{
    for (int k = 0; k < s->nkey; k++)
        if (strcmp(a->value[k], b->value[k]) != 0)
            return 0;
    return 1;
}

static void add_stretch(cvy_sweep_page *p, const lineage *l, int first, int last)
{
    const cvy_sweep_ancestor *begin = first > 0 ? &l->row[l->best[first - 1]]->line[first - 1] : NULL;
    const cvy_sweep_ancestor *end = &l->row[l->best[last]]->line[last];
    cvy_text_add(&p->html, "<tr><td>%s to %s</td><td>%d</td><td>%s</td>",
                 cvy_number_count(begin ? begin->epochs : 0).at, cvy_number_count(end->epochs).at, l->best[last] + 1,
                 cvy_number_text(end->score, 5).at);
    cvy_sweep_add_cells(p, end->value);
    cvy_text_add(&p->html, "</tr>\n");
}

static void table(cvy_sweep_page *p, const lineage *l)
{
    int n = 0, first = 0;
    cvy_text_add(
        &p->html,
        "<h3>The values on the way to the best trial</h3>\n<div class=\"wide\"><table class=\"runs\"><thead><tr>"
        "<td>epochs</td><td>in trial</td><td>score at the end</td>");
    cvy_sweep_add_cells(p, p->sweep.key);
    cvy_text_add(&p->html, "</tr></thead><tbody>\n");
    for (int r = 0; r < l->length && n < STRETCHES_MAX; r++) {
        const int goes_on = r + 1 < l->length && l->best[r + 1] == l->best[r] &&
                            same_values(&p->sweep, &l->row[l->best[r]]->line[r], &l->row[l->best[r]]->line[r + 1]);
        if (goes_on)
            continue;
        add_stretch(p, l, first, r);
        first = r + 1;
        n++;
    }
    cvy_text_add(&p->html, "</tbody></table></div>\n");
    if (first < l->length)
        cvy_text_add(&p->html, "<p class=\"soft\">The generations after that are in " CVY_SWEEP_STATE ".</p>\n");
}

cvy_status cvy_sweep_lineage(cvy_sweep_page *p)
{
    lineage l = {.scale = {.min = INFINITY, .max = -INFINITY}};
    if (!p->sweep.nranked || !p->sweep.row[0].nline)
        return CVY_OK;
    CVY_TRY(find_lines(p, &l));
    if (l.length == 0 || l.epochs <= 0)
        return CVY_OK;
    cvy_text_add(&p->html, "<section><h2>Lineages</h2>\n");
    chart(p, &l);
    table(p, &l);
    cvy_text_add(&p->html, "</section>\n");
    return CVY_OK;
}
