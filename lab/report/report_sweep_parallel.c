/*
 * report_sweep_parallel.c: parallel coordinates (Inselberg 1985): an axis for each key and one for the score, and a
 * line for each trial. The best trial is drawn on top, and worse ones are paler. The axes are also those of the
 * lineages of a population.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "report/report_svg.h"
#include "report/report_sweep.h"

enum { LINES_MAX = 400, LABEL_MAX = 20 }; /* LABEL_MAX: characters */
#define LEFT 70.0
#define RIGHT 970.0
#define LETTER 6.6 /* width of a letter of a label on average, in px */

/* ---- axes ---- */

void cvy_sweep_scale_add(cvy_sweep_scale *scale, double value)
{
    scale->min = fmin(scale->min, value);
    scale->max = fmax(scale->max, value);
}

void cvy_sweep_scale_end(cvy_sweep_scale *scale, int is_score, int higher)
{
    if (is_score) {
        scale->is_log = scale->min > 0 && scale->max > 40 * scale->min;
        scale->is_flipped = !higher;
    }
    if (!isfinite(scale->min))
        scale->min = scale->max = 0;
    if (!(scale->max > scale->min)) {
        scale->is_log = 0;
        scale->min -= 0.5;
        scale->max += 0.5;
    }
}

double cvy_sweep_scale_y(const cvy_sweep_scale *s, double v)
{
    double t = s->is_log ? log(v / s->min) / log(s->max / s->min) : (v - s->min) / (s->max - s->min);
    t = s->is_flipped ? 1 - t : t;
    return CVY_SWEEP_BOTTOM - t * (CVY_SWEEP_BOTTOM - CVY_SWEEP_TOP);
}

/* The number of bytes of the first characters of a text. */
static int bytes_of(const char *text, int characters)
{
    int n = 0;
    for (; text[n] && characters >= 0; n++)
        if ((text[n] & 0xC0) != 0x80 && characters-- == 0)
            break;
    return n;
}

/* Writes a text that is cut after `most` characters; then the whole text is a tooltip. */
static void add_text(cvy_sweep_page *p, const char *class, const char *anchor, double x, double y, const char *text,
                     int most)
{
    const int shown = bytes_of(text, most);
    char *cut = NULL;
    if (cvy_pool_printf(p->pool, &cut, "%.*s%s", shown, text, text[shown] ? "…" : "") != CVY_OK)
        return;
    cvy_text_add(&p->html, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, anchor, x, y);
    cvy_html_escape(&p->html, cut);
    if (text[shown]) {
        cvy_html_add(&p->html, "<title>%s</title>", text);
    }
    cvy_text_add(&p->html, "</text>");
}

static void draw_line(cvy_sweep_page *p, double x)
{
    cvy_text_add(&p->html, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" />", x, x,
                 CVY_SWEEP_TOP, CVY_SWEEP_BOTTOM);
}

/* step: the distance to the next axis in px. */
static void add_label(cvy_sweep_page *p, double x, int is_right, double y, double step, const char *text)
{
    const int most = CVY_MAX(CVY_MIN((int)(0.85 * step / LETTER) - 1, LABEL_MAX), 4);
    add_text(p, "tick halo", is_right ? "start" : "end", x + (is_right ? 7 : -7), y + 4, text, most);
}

void cvy_sweep_draw_scale(cvy_sweep_page *p, const cvy_sweep_scale *scale, double x, int is_right)
{
    draw_line(p, x);
    for (int i = 0; i < 5; i++) {
        const double t = i / 4.0, v = scale->is_log ? scale->min * pow(scale->max / scale->min, t)
                                                    : scale->min + t * (scale->max - scale->min);
        add_label(p, x, is_right, cvy_sweep_scale_y(scale, v), RIGHT - LEFT, cvy_number_text(v, 3).at);
    }
}

void cvy_sweep_begin_chart(cvy_sweep_page *p, const char *title, const char *note)
{
    cvy_text_add(&p->html,
                 "<figure><figcaption><b>%s</b><span>%s</span></figcaption><div class=\"wide\"><svg class=\"broad\" "
                 "viewBox=\"0 0 %g %g\" role=\"img\">\n",
                 title, note, CVY_SWEEP_WIDTH, CVY_SWEEP_HEIGHT);
}

void cvy_sweep_end_chart(cvy_sweep_page *p)
{
    cvy_text_add(&p->html, "</svg></div></figure>\n");
}

/* ---- parallel coordinates ---- */

static double x_of(const cvy_sweep_page *p, int axis)
{
    return LEFT + (RIGHT - LEFT) * axis / p->sweep.nkey;
}

static cvy_sweep_scale scale_of(const cvy_sweep_page *p, int axis)
{
    const cvy_sweep_summary *s = &p->sweep;
    const int is_score = axis == s->nkey;
    cvy_sweep_scale scale = {.min = INFINITY, .max = -INFINITY};
    if (!is_score && p->column[axis].nlevels) {
        cvy_sweep_scale_add(&scale, 0);
        cvy_sweep_scale_add(&scale, p->column[axis].nlevels - 1);
    }
    for (int i = 0; i < s->nranked && (is_score || !p->column[axis].nlevels); i++)
        cvy_sweep_scale_add(&scale, is_score ? s->row[i].score : p->column[axis].value[i]);
    scale.is_log = !is_score && p->column[axis].is_log && !p->column[axis].nlevels;
    cvy_sweep_scale_end(&scale, is_score, s->higher);
    return scale;
}

/* Names stand above their axes, at two heights if there are many, and end in dots before they would reach the name at
 * the same height. The first one may reach the left edge, and the last one the right edge. */
static void add_name(cvy_sweep_page *p, int axis)
{
    const cvy_sweep_summary *s = &p->sweep;
    const double step = (RIGHT - LEFT) / s->nkey;
    const int is_last = axis == s->nkey, heights = s->nkey > 3 ? 2 : 1;
    const int most = (int)(0.95 * heights * step / LETTER) - 2;
    const char *anchor = axis == 0 ? "start" : is_last ? "end" : "middle";
    const double x = axis == 0 ? 4 : is_last ? CVY_SWEEP_WIDTH - 4 : x_of(p, axis);
    add_text(p, "label", anchor, x, axis % 2 && heights == 2 ? 12 : 30, is_last ? s->metric : s->key[axis],
             CVY_MAX(most, 6));
}

static void draw_axis(cvy_sweep_page *p, int axis, const cvy_sweep_scale *scale)
{
    const double x = x_of(p, axis), step = axis > 0 ? x - x_of(p, axis - 1) : LEFT;
    add_name(p, axis);
    if (axis == p->sweep.nkey || !p->column[axis].nlevels) {
        cvy_sweep_draw_scale(p, scale, x, axis == p->sweep.nkey);
        return;
    }
    draw_line(p, x);
    for (int i = 0; i < p->column[axis].nlevels; i++)
        add_label(p, x, 0, cvy_sweep_scale_y(scale, i), step, p->column[axis].level[i]);
}

static void draw_trial(cvy_sweep_page *p, int i, const cvy_sweep_scale *scales)
{
    const cvy_sweep_summary *s = &p->sweep;
    const double place = s->nranked > 1 ? (double)i / (s->nranked - 1) : 0;
    cvy_text_add(&p->html, "<path class=\"line %s\" stroke-opacity=\"%.2f\" d=\"", i ? "c0" : "c1",
                 i ? 0.75 - 0.6 * place : 1.0);
    for (int a = 0; a <= s->nkey; a++)
        cvy_text_add(&p->html, "%s%.1f %.1f", a ? "L" : "M", x_of(p, a),
                     cvy_sweep_scale_y(&scales[a], a < s->nkey ? p->column[a].value[i] : s->row[i].score));
    cvy_text_add(&p->html, "\"><title>trial %d, rank %d: %s</title></path>\n", s->row[i].trial, s->row[i].rank,
                 cvy_number_text(s->row[i].score, 5).at);
}

void cvy_sweep_parallel(cvy_sweep_page *p)
{
    cvy_sweep_scale scales[CVY_SWEEP_KEYS_MAX + 1];
    const int shown = CVY_MIN(p->sweep.nranked, LINES_MAX);
    cvy_text note = {0};
    for (int a = 0; a <= p->sweep.nkey; a++)
        scales[a] = scale_of(p, a);
    cvy_text_add(&note, "A line for each trial; better scores are higher up on the axis at the right, and the best "
                        "trial has another colour.");
    if (shown < p->sweep.nranked)
        cvy_text_add(&note, " The best %d of %d trials are drawn.", shown, p->sweep.nranked);
    cvy_text_add(&p->html, "<section><h2>Trials</h2>\n");
    cvy_sweep_begin_chart(p, "Values and scores", note.data ? note.data : "");
    cvy_text_free(&note);
    for (int i = shown - 1; i >= 0; i--)
        draw_trial(p, i, scales);
    for (int a = 0; a <= p->sweep.nkey; a++)
        draw_axis(p, a, &scales[a]);
    cvy_sweep_end_chart(p);
    cvy_text_add(&p->html, "</section>\n");
}
