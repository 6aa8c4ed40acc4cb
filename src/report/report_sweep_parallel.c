/*
 * report_sweep_parallel.c: parallel coordinates (Inselberg 1985): an axis for each key and one for the score, and a
 * line for each trial. The best trial is drawn on top, and worse ones are paler.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "report/report_svg.h"
#include "report/report_sweep.h"

enum { LINES_MAX = 400, LABEL_MAX = 20 }; /* LABEL_MAX: characters */
#define WIDTH 1040.0
#define HEIGHT 360.0
#define TOP 46.0
#define BOTTOM 338.0
#define LEFT 70.0
#define RIGHT 970.0

struct scale {
    double min, max;
    int log, flipped; /* flipped: small values are at the top */
};

static double y_of(const struct scale *s, double v)
{
    double t = s->log ? log(v / s->min) / log(s->max / s->min) : (v - s->min) / (s->max - s->min);
    t = s->flipped ? 1 - t : t;
    return BOTTOM - t * (BOTTOM - TOP);
}

static double x_of(const cvy_sweep_page *p, int axis)
{
    return LEFT + (RIGHT - LEFT) * axis / p->sweep.nkey;
}

static struct scale scale_of(const cvy_sweep_page *p, int axis)
{
    const cvy_sweep_summary *s = &p->sweep;
    struct scale scale = {.min = INFINITY, .max = -INFINITY};
    for (int i = 0; i < s->nranked; i++) {
        const double v = axis < s->nkey ? p->column[axis].value[i] : s->row[i].score;
        scale.min = fmin(scale.min, v);
        scale.max = fmax(scale.max, v);
    }
    if (axis < s->nkey)
        scale.log = p->column[axis].is_log && !p->column[axis].nlevels;
    else
        scale.log = scale.min > 0 && scale.max > 40 * scale.min;
    scale.flipped = axis == s->nkey && !s->higher;
    if (axis < s->nkey && p->column[axis].nlevels)
        scale = (struct scale){.min = 0, .max = p->column[axis].nlevels - 1};
    if (!(scale.max > scale.min)) {
        scale.log = 0;
        scale.min -= 0.5;
        scale.max += 0.5;
    }
    return scale;
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

static void add_label(cvy_sweep_page *p, int axis, double y, const char *text)
{
    const int is_last = axis == p->sweep.nkey, shown = bytes_of(text, LABEL_MAX);
    char *cut = NULL;
    if (cvy_pool_printf(p->pool, &cut, "%.*s%s", shown, text, text[shown] ? "…" : "") != CVY_OK)
        return;
    cvy_text_add(&p->html, "<text class=\"tick halo\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">",
                 is_last ? "start" : "end", x_of(p, axis) + (is_last ? 7 : -7), y + 4);
    cvy_html_escape(&p->html, cut);
    cvy_text_add(&p->html, "</text>");
}

static void draw_axis(cvy_sweep_page *p, int axis, const struct scale *scale)
{
    const cvy_sweep_summary *s = &p->sweep;
    const double x = x_of(p, axis);
    cvy_text_add(&p->html, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" />", x, x, TOP,
                 BOTTOM);
    cvy_text_add(&p->html, "<text class=\"label\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">", x,
                 axis % 2 && s->nkey > 5 ? 14.0 : 30.0); /* long names of neighbours do not overlap */
    cvy_html_escape(&p->html, axis < s->nkey ? s->key[axis] : s->metric);
    cvy_text_add(&p->html, "</text>");
    if (axis < s->nkey && p->column[axis].nlevels) {
        for (int i = 0; i < p->column[axis].nlevels; i++)
            add_label(p, axis, y_of(scale, i), p->column[axis].level[i]);
        return;
    }
    for (int i = 0; i < 5; i++) {
        const double t = i / 4.0, v = scale->log ? scale->min * pow(scale->max / scale->min, t)
                                                 : scale->min + t * (scale->max - scale->min);
        add_label(p, axis, y_of(scale, v), cvy_number_text(v, 3).at);
    }
}

static void draw_trial(cvy_sweep_page *p, int i, const struct scale *scales)
{
    const cvy_sweep_summary *s = &p->sweep;
    const double place = s->nranked > 1 ? (double)i / (s->nranked - 1) : 0;
    cvy_text_add(&p->html, "<path class=\"line %s\" stroke-opacity=\"%.2f\" d=\"", i ? "c0" : "c1",
                 i ? 0.75 - 0.6 * place : 1.0);
    for (int a = 0; a <= s->nkey; a++)
        cvy_text_add(&p->html, "%s%.1f %.1f", a ? "L" : "M", x_of(p, a),
                     y_of(&scales[a], a < s->nkey ? p->column[a].value[i] : s->row[i].score));
    cvy_text_add(&p->html, "\"><title>trial %d, rank %d: %s</title></path>\n", s->row[i].trial, s->row[i].rank,
                 cvy_number_text(s->row[i].score, 5).at);
}

void cvy_sweep_parallel(cvy_sweep_page *p)
{
    struct scale scales[CVY_SWEEP_KEYS_MAX + 1];
    const int shown = CVY_MIN(p->sweep.nranked, LINES_MAX);
    for (int a = 0; a <= p->sweep.nkey; a++)
        scales[a] = scale_of(p, a);
    cvy_text_add(&p->html,
                 "<section><h2>Trials</h2>\n<figure><figcaption><b>Values and scores</b><span>A line for each trial; "
                 "better scores are higher up on the axis at the right, and the best trial has another colour.");
    if (shown < p->sweep.nranked)
        cvy_text_add(&p->html, " The best %d of %d trials are drawn.", shown, p->sweep.nranked);
    cvy_text_add(&p->html, "</span></figcaption><svg viewBox=\"0 0 %g %g\" role=\"img\">\n", WIDTH, HEIGHT);
    for (int i = shown - 1; i >= 0; i--)
        draw_trial(p, i, scales);
    for (int a = 0; a <= p->sweep.nkey; a++)
        draw_axis(p, a, &scales[a]);
    cvy_text_add(&p->html, "</svg></figure></section>\n");
}
