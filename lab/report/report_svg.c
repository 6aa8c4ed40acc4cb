/*
 * report_svg.c: draws a chart. Coordinates are those of a box of 520 x 300 (other sizes for `square` and `small`); the
 * page scales it.
 *
 * Ticks are at 1, 2 or 5 times a power of ten (Heckbert 1990, "Nice numbers for graph labels").
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "report/report_svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_page.h"

#define TICKS_MAX 12
#define DOTS_MAX 40    /* a line with more points is drawn without dots */
#define LETTER_PX 6.8  /* average width of a letter, in px at font size 12 */
#define FEW_POINTS 300 /* so many points are seen one by one */

struct axis {
    double min, max; /* limits of the axis, including padding */
    int log;
    double from_px, to_px;
};

struct canvas {
    cvy_text *svg;
    const cvy_chart *chart;
    double width, height;
    struct axis x, y;
    int has_one_x; /* all points have the same x, which is in the middle of the axis */
};

/* ---- axes ---- */

int cvy_ticks(double min, double max, int wanted, int whole, double *first_out, double *step_out)
{
    const double span = max - min, rough = span / CVY_MAX(wanted, 1);
    const double power = pow(10, floor(log10(rough > 0 ? rough : 1))), fraction = rough / power;
    double step = (fraction < 1.5 ? 1 : fraction < 3.5 ? 2 : fraction < 7.5 ? 5 : 10) * power;
    if (whole)
        step = CVY_MAX(round(step), 1);
    *first_out = ceil(min / step - 1e-9) * step;
    *step_out = step;
    const double count = floor((max - *first_out) / step + 1e-9) + 1;
    return count < 0 || !(count < 1e9) ? 0 : (int)CVY_MIN(count, (double)TICKS_MAX);
}

static double to_px(const struct axis *a, double v)
{
    const double t = a->log ? log10(v / a->min) / log10(a->max / a->min) : (v - a->min) / (a->max - a->min);
    return a->from_px + t * (a->to_px - a->from_px);
}

/* Whether v can be drawn on the axis at all: it is finite, and positive on a logarithmic axis. */
static int drawable(const struct axis *a, double v)
{
    return isfinite(v) && (!a->log || v > 0);
}

static void widen(double v, int log, double *min, double *max)
{
    if (!isfinite(v) || (log && v <= 0))
        return;
    *min = CVY_MIN(*min, v);
    *max = CVY_MAX(*max, v);
}

/* Finds the ranges of the data. Returns 0 if there are no finite values. */
static int find_range(const cvy_chart *c, double *x_min, double *x_max, double *y_min, double *y_max)
{
    *x_min = *y_min = INFINITY;
    *x_max = *y_max = -INFINITY;
    for (int s = 0; s < c->nseries; s++) {
        const cvy_series *at = &c->series[s];
        const int64_t nx = at->n + (at->draw == CVY_DRAW_STEP);
        for (int64_t i = 0; i < nx; i++) {
            if (i < at->n && !isfinite(at->y[i]))
                continue;
            widen(at->x[i], c->log_x, x_min, x_max);
            if (i == at->n)
                continue;
            widen(at->y[i], c->log_y, y_min, y_max);
            if (at->y_low)
                widen(at->y_low[i], c->log_y, y_min, y_max);
            if (at->draw == CVY_DRAW_BARS || at->draw == CVY_DRAW_STEP || (at->draw == CVY_DRAW_AREA && !at->y_low))
                widen(0, c->log_y, y_min, y_max);
        }
    }
    return *x_min <= *x_max && *y_min <= *y_max;
}

static void set_log_axis(struct axis *a, double min, double max)
{
    a->log = 1;
    a->min = min;
    a->max = max > min * 1.0001 ? max : min * 10;
}

static int set_axes(struct canvas *v)
{
    const cvy_chart *c = v->chart;
    double x0, x1, y0, y1;
    if (!find_range(c, &x0, &x1, &y0, &y1))
        return 0;
    const int bars = c->nseries > 0 && c->series[0].draw == CVY_DRAW_BARS, given = c->y_min < c->y_max;
    if (c->x_min < c->x_max) {
        x0 = c->x_min;
        x1 = c->x_max;
    } else if (bars || x0 == x1) {
        const double half = bars ? 0.6 : x0 == 0 ? 0.5 : fabs(x0) * 0.05;
        v->has_one_x = x0 == x1;
        x0 -= half;
        x1 += half;
    }
    if (given) {
        y0 = c->y_min;
        y1 = c->y_max;
    } else if (!c->log_y) {
        const double pad = y1 > y0 ? 0.06 * (y1 - y0) : CVY_MAX(fabs(y0) * 0.05, 1e-12);
        const int rests = c->from_zero || y0 == 0;
        y0 = rests ? CVY_MIN(y0, 0) : y0 - pad;
        y1 += pad;
    } else {
        y0 /= 1.15;
        y1 *= 1.15;
    }
    v->x.min = x0, v->x.max = x1;
    v->y.min = y0, v->y.max = y1;
    if (c->log_x)
        set_log_axis(&v->x, CVY_MAX(x0, 1e-300), x1);
    if (c->log_y)
        set_log_axis(&v->y, CVY_MAX(y0, 1e-300), y1);
    return 1;
}

static void superscript(cvy_text *t, int n)
{
    static const char *const digit[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    for (const char *c = text; *c; c++)
        cvy_text_add(t, "%s", *c == '-' ? "⁻" : digit[*c - '0']);
}

/* A label with as few digits as the step allows. */
static void add_label(cvy_text *t, double value, double step)
{
    const double size = fabs(value), unit = step >= 1e9                                   ? 1e9
                                            : step >= 1e6 || (step >= 1e5 && size >= 1e6) ? 1e6
                                            : step >= 1e3                                 ? 1e3
                                                                                          : 1;
    const double shown = value / unit, shown_step = step / unit;
    if (size > 0 && step < 1e-4)
        cvy_text_add(t, "%.3g", value);
    else
        cvy_text_add(t, "%.*f%s",
                     shown_step >= 1 ? (shown_step == floor(shown_step) ? 0 : 1) : (int)ceil(-log10(shown_step) - 1e-9),
                     size < step * 1e-6 ? 0.0 : shown,
                     unit == 1e9   ? "G"
                     : unit == 1e6 ? "M"
                     : unit == 1e3 ? "k"
                                   : "");
}

static void add_x_tick(struct canvas *v, double at)
{
    const double px = to_px(&v->x, at);
    cvy_text_add(v->svg, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" />", px, px,
                 v->y.from_px, v->y.to_px);
    cvy_text_add(v->svg, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">", px, v->y.from_px + 17);
}

static void add_y_tick(struct canvas *v, double at)
{
    const double px = to_px(&v->y, at);
    cvy_text_add(v->svg, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" />", v->x.from_px,
                 v->x.to_px, px, px);
    cvy_text_add(v->svg, "<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">", v->x.from_px - 7, px + 4);
}

/* Draws ticks at powers of ten; if there are at most two decades, also at 2 and 5. */
static void draw_log_ticks(struct canvas *v, const struct axis *a, void (*add)(struct canvas *, double))
{
    const int first = (int)floor(log10(a->min) + 1e-9), last = (int)ceil(log10(a->max) - 1e-9), decades = last - first;
    const int every = CVY_MAX(1, decades / 8);
    static const double fine[] = {1, 2, 5};
    for (int e = first; e <= last; e += every)
        for (int k = 0; k < (decades <= 2 ? 3 : 1); k++) {
            const double at = fine[k] * pow(10, e);
            if (at < a->min * 0.999 || at > a->max * 1.001)
                continue;
            add(v, at);
            if (decades <= 2 && e >= -4 && e <= 4)
                cvy_text_add(v->svg, "%g", at);
            else {
                cvy_text_add(v->svg, k ? "%g·10" : "10", fine[k]);
                superscript(v->svg, e);
            }
            cvy_text_add(v->svg, "</text>");
        }
}

#define BETWEEN_TICKS_PX 30

/* The smallest x of all points that is larger than `above` and, but for the first tick, not too close to it. */
static double next_x(const struct canvas *v, double above)
{
    double next = INFINITY;
    for (int s = 0; s < v->chart->nseries; s++) {
        const cvy_series *series = &v->chart->series[s];
        for (int64_t i = 0; series->color >= 0 && i < series->n; i++) /* a neutral line is a guide */
            if (drawable(&v->x, series->x[i]) &&
                (above <= 0 || to_px(&v->x, series->x[i]) >= to_px(&v->x, above) + BETWEEN_TICKS_PX))
                next = fmin(next, series->x[i]);
    }
    return next;
}

/* Sizes in bytes, which are powers of two, have binary prefixes, so that they do not overlap. */
static void add_x_number(struct canvas *v, double at)
{
    static const char *const prefix[] = {"", "Ki", "Mi", "Gi"};
    int k = 0;
    for (; v->x.max >= 1048576 && k < 3 && at >= 1024 && fmod(at, 1024) == 0; k++)
        at /= 1024;
    cvy_text_add(v->svg, "%.6g%s</text>", at, prefix[k]);
}

static void draw_ticks_at_data(struct canvas *v)
{
    if (v->has_one_x && !v->x.log) {
        add_x_tick(v, (v->x.min + v->x.max) / 2);
        add_x_number(v, (v->x.min + v->x.max) / 2);
        return;
    }
    for (double at = next_x(v, 0); isfinite(at); at = next_x(v, at)) {
        add_x_tick(v, at);
        add_x_number(v, at);
    }
}

static void draw_ticks(struct canvas *v, const struct axis *a, int wanted, int whole,
                       void (*add)(struct canvas *, double))
{
    double first, step;
    if (a->log) {
        draw_log_ticks(v, a, add);
        return;
    }
    const int n = cvy_ticks(a->min, a->max, wanted, whole, &first, &step);
    for (int i = 0; i < n; i++) {
        add(v, first + i * step);
        add_label(v->svg, first + i * step, step);
        cvy_text_add(v->svg, "</text>");
    }
}

static void draw_axes(struct canvas *v)
{
    const cvy_chart *c = v->chart;
    if (c->ticks_at_data && (v->x.log || v->has_one_x))
        draw_ticks_at_data(v);
    else
        draw_ticks(v, &v->x, c->small ? 4 : 6, c->whole_x, add_x_tick);
    draw_ticks(v, &v->y, 5, 0, add_y_tick);
    cvy_text_add(v->svg, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" />", v->x.from_px,
                 v->x.to_px, v->y.from_px, v->y.from_px);
    if (c->x_label) {
        cvy_html_add(v->svg, "<text class=\"label\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>",
                     (v->x.from_px + v->x.to_px) / 2, v->height - 6, c->x_label);
    }
    if (c->y_label) {
        const double y = (v->y.from_px + v->y.to_px) / 2;
        cvy_html_add(v->svg,
                     "<text class=\"label\" text-anchor=\"middle\" x=\"13\" y=\"%.1f\" transform=\"rotate(-90 13 "
                     "%.1f)\">%s</text>",
                     y, y, c->y_label);
    }
}

/* ---- series ---- */

static void add_class(struct canvas *v, const cvy_series *s, const char *what)
{
    if (s->color < 0)
        cvy_text_add(v->svg, " class=\"%s neutral\"", what);
    else
        cvy_text_add(v->svg, " class=\"%s c%d%s\"", what, s->color % 8, s->faint ? " faint" : "");
}

/* Draws the path of y over x, with gaps where a value is missing. */
static void draw_line(struct canvas *v, const cvy_series *s, const char *what)
{
    int pen_down = 0;
    cvy_text_add(v->svg, "<path");
    add_class(v, s, what);
    cvy_text_add(v->svg, " d=\"");
    for (int64_t i = 0; i < s->n; i++) {
        const int there = drawable(&v->x, s->x[i]) && drawable(&v->y, s->y[i]);
        if (there)
            cvy_text_add(v->svg, "%s%.1f %.1f", pen_down ? "L" : "M", to_px(&v->x, s->x[i]), to_px(&v->y, s->y[i]));
        pen_down = there;
    }
    cvy_text_add(v->svg, "\"/>");
}

/* Lines have dots of different shapes, so that colour is not all that tells them apart. */
static const char *shape_of(int color)
{
    static const char *const shape[] = {
        "m-1 0a1 1 0 1 0 2 0a1 1 0 1 0 -2 0z", /* circle */
        "m-.9 -.9h1.8v1.8h-1.8z",              /* square */
        "m0 -1.2l1.1 1.9h-2.2z",               /* triangle */
        "m0 -1.3l1.3 1.3l-1.3 1.3l-1.3 -1.3z", /* diamond */
        "m0 1.2l1.1 -1.9h-2.2z",               /* triangle that points down */
        "m-.6 -1h1.2l.6 1l-.6 1h-1.2l-.6 -1z", /* hexagon */
        "m-1.2 0l1.9 -1.1v2.2z",               /* triangle that points left */
        "m1.2 0l-1.9 -1.1v2.2z",               /* triangle that points right */
    };
    return shape[color < 0 ? 0 : color % CVY_COUNT(shape)];
}

static void add_dot(struct canvas *v, const cvy_series *s, double x, double y, double radius)
{
    cvy_text_add(v->svg, "<path");
    add_class(v, s, "dot");
    cvy_text_add(v->svg, " transform=\"translate(%.1f %.1f) scale(%.1f)\" d=\"M0 0%s\"", x, y, radius,
                 shape_of(s->color));
}

static void add_point(struct canvas *v, const cvy_series *s, int64_t i, const char *what, double radius)
{
    if (!drawable(&v->x, s->x[i]) || !drawable(&v->y, s->y[i]))
        return;
    const double x = to_px(&v->x, s->x[i]), y = to_px(&v->y, s->y[i]);
    const char *element = s->draw == CVY_DRAW_LINE ? "path" : "circle";
    if (s->draw == CVY_DRAW_LINE) {
        add_dot(v, s, x, y, radius);
    } else {
        cvy_text_add(v->svg, "<circle");
        add_class(v, s, what);
        cvy_text_add(v->svg, " cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", x, y, radius);
    }
    if (!s->name || !v->chart->x_what) {
        cvy_text_add(v->svg, " />");
        return;
    }
    cvy_html_add(v->svg, "><title>%s", s->name);
    cvy_text_add(v->svg, ", %s %s: %s</title></%s>", v->chart->x_what, cvy_number_text(s->x[i], 4).at,
                 cvy_number_text(s->y[i], 4).at, element);
}

static void draw_area(struct canvas *v, const cvy_series *s)
{
    int begun = 0;
    cvy_text_add(v->svg, "<path");
    add_class(v, s, "area");
    cvy_text_add(v->svg, " d=\"");
    for (int64_t k = 0; k < 2 * s->n; k++) {
        const int64_t i = k < s->n ? k : 2 * s->n - 1 - k;
        const double low = s->y_low ? s->y_low[i] : v->y.log ? v->y.min : 0, y = k < s->n ? s->y[i] : low;
        if (!drawable(&v->x, s->x[i]) || !drawable(&v->y, s->y[i]) || !drawable(&v->y, low))
            continue;
        cvy_text_add(v->svg, "%s%.1f %.1f", begun ? "L" : "M", to_px(&v->x, s->x[i]), to_px(&v->y, y));
        begun = 1;
    }
    cvy_text_add(v->svg, begun ? "Z\"/>" : "\"/>");
}

static void draw_step(struct canvas *v, const cvy_series *s)
{
    const double floor_px = v->y.from_px;
    for (int outline = 0; outline < 2; outline++) {
        cvy_text_add(v->svg, "<path");
        add_class(v, s, outline ? "line" : "area light");
        cvy_text_add(v->svg, " d=\"M%.1f %.1f", to_px(&v->x, s->x[0]), floor_px);
        for (int64_t i = 0; i < s->n; i++) {
            const double y = drawable(&v->y, s->y[i]) ? CVY_MIN(to_px(&v->y, s->y[i]), floor_px) : floor_px;
            cvy_text_add(v->svg, "V%.1fH%.1f", y, to_px(&v->x, s->x[i + 1]));
        }
        cvy_text_add(v->svg, "V%.1f%s\"/>", floor_px, outline ? "" : "Z");
    }
}

static void draw_bars(struct canvas *v, const cvy_series *s)
{
    const double span = v->x.max - v->x.min, slot = (v->x.to_px - v->x.from_px) / CVY_MAX(span, 1),
                 width = CVY_MIN(slot * 0.72, 60);
    for (int64_t i = 0; i < s->n; i++) {
        if (!drawable(&v->x, s->x[i]) || !drawable(&v->y, s->y[i]))
            continue;
        const double top = to_px(&v->y, s->y[i]), middle = to_px(&v->x, s->x[i]);
        cvy_text_add(v->svg, "<rect");
        add_class(v, s, "column");
        cvy_text_add(v->svg, " x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"%.1f\"", middle - width / 2,
                     top, width, CVY_MAX(v->y.from_px - top, 0), CVY_MIN(2, width / 4));
        cvy_text_add(v->svg, "><title>%s %s: %s</title></rect>", v->chart->x_what ? v->chart->x_what : "at",
                     cvy_number_text(s->x[i], 4).at, cvy_number_text(s->y[i], 4).at);
    }
}

static void draw_series(struct canvas *v, const cvy_series *s)
{
    int64_t npoint = 0;
    switch (s->draw) {
    case CVY_DRAW_LINE:
        draw_line(v, s, s->faint ? "line thin" : "line");
        for (int64_t i = 0; i < s->n; i++)
            npoint += isfinite(s->y[i]);
        for (int64_t i = 0; i < s->n && npoint <= DOTS_MAX && !s->faint; i++)
            add_point(v, s, i, "dot", 2.6);
        break;
    case CVY_DRAW_DASHED: draw_line(v, s, "dashed"); break;
    case CVY_DRAW_AREA: draw_area(v, s); break;
    case CVY_DRAW_STEP: draw_step(v, s); break;
    case CVY_DRAW_BARS: draw_bars(v, s); break;
    case CVY_DRAW_POINTS:
        for (int64_t i = 0; i < s->n; i++) /* a few points are seen by themselves, many by their density */
            add_point(v, s, i, s->n > FEW_POINTS ? "point" : "point few", s->n > FEW_POINTS ? 1.8 : 4);
        break;
    }
}

/* ---- the figure ---- */

static double text_px(const char *text)
{
    double letters = 0;
    for (const char *c = text; *c; c++)
        letters += ((unsigned char)*c & 0xC0) != 0x80;
    return letters * LETTER_PX;
}

/* Draws colour samples and names above the plot, in as many rows as they need, if svg is not NULL. Returns the
 * height. */
static double legend(const cvy_chart *c, double left, double right, cvy_text *svg)
{
    struct canvas v = {.svg = svg, .chart = c};
    double x = left, y = 16;
    int n = 0;
    for (int i = 0; i < c->nseries; i++) {
        const cvy_series *s = &c->series[i];
        if (!s->name)
            continue;
        const double width = 24 + text_px(s->name) + 16;
        if (n++ && x + width > right + 12) {
            x = left;
            y += 18;
        }
        if (svg) {
            const char *kind = s->draw == CVY_DRAW_DASHED ? "dashed" : "swatch";
            cvy_text_add(svg, s->color < 0 ? "<line class=\"%s neutral\"" : "<line class=\"%s c%d\"", kind,
                         s->color % 8);
            cvy_html_add(svg,
                         " x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" /><text class=\"legend\" x=\"%.1f\" "
                         "y=\"%.1f\">%s</text>",
                         x, x + 16, y - 4, y - 4, x + 22, y, s->name);
            if (s->draw == CVY_DRAW_LINE && !s->faint && s->n <= DOTS_MAX) {
                add_dot(&v, s, x + 8, y - 4, 3.2);
                cvy_text_add(svg, "/>");
            }
        }
        x += width;
    }
    return n ? y + 10 : 10;
}

static void open_figure(cvy_text *html, const char *title, const char *note, const char *size)
{
    cvy_text_add(html, "<figure class=\"%s\"><figcaption><b>", size);
    cvy_html_add(html, "%s</b>", title);
    if (note && note[0]) {
        cvy_html_add(html, "<span>%s</span>", note);
    }
    cvy_text_add(html, "</figcaption>");
}

static void open_svg(cvy_text *html, const char *title, double width, double height)
{
    cvy_html_add(html, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">", width, height, title);
}

void cvy_chart_write(cvy_text *html, const cvy_chart *chart)
{
    struct canvas v = {.svg = html, .chart = chart};
    v.width = chart->square ? 440 : chart->small ? 340 : 520;
    v.height = chart->square ? 420 : chart->small ? 240 : 300;
    v.x.from_px = chart->y_label ? 68 : 46;
    v.x.to_px = v.width - 18;
    const double top = legend(chart, v.x.from_px, v.x.to_px, NULL);
    v.height += CVY_MAX(top - 26, 0);
    v.y.from_px = v.height - (chart->x_label ? 44 : 26);
    v.y.to_px = top + 4;
    if (!set_axes(&v))
        return;
    open_figure(html, chart->title, chart->note, chart->small ? "third" : "half");
    open_svg(html, chart->title, v.width, v.height);
    draw_axes(&v);
    const size_t id = html->bytes; /* unique within the page */
    cvy_text_add(html,
                 "<clipPath id=\"p%zu\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" /></clipPath><g "
                 "clip-path=\"url(#p%zu)\">",
                 id, v.x.from_px - 4, v.y.to_px - 4, v.x.to_px - v.x.from_px + 8, v.y.from_px - v.y.to_px + 8, id);
    for (int i = chart->nseries - 1; i >= 0; i--)
        draw_series(&v, &chart->series[i]);
    cvy_text_add(html, "</g>");
    legend(chart, v.x.from_px, v.x.to_px, html);
    cvy_text_add(html, "</svg></figure>\n");
}

void cvy_chart_add(cvy_chart *chart, const cvy_series *series, int64_t least)
{
    int64_t finite = 0;
    if (!series->y || !series->x || chart->nseries == CVY_CHART_SERIES)
        return;
    for (int64_t i = 0; i < series->n; i++)
        finite += isfinite(series->y[i]);
    if (finite >= least && finite > 0)
        chart->series[chart->nseries++] = *series;
}

/* ---- heat map ---- */

static void heat_names(cvy_text *html, const cvy_heatmap *m, double left, double top, double cell)
{
    const int every = (int)CVY_MAX(ceil(9 / cell), 1);
    for (int i = 0; i < m->columns; i += every) {
        const double x = left + (i + 0.5) * cell, y = top - 7;
        cvy_html_add(html, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" transform=\"rotate(-40 %.1f %.1f)\">%s</text>",
                     x, y, x, y, m->column_name[i]);
    }
    for (int i = 0; i < m->rows; i += every) {
        cvy_html_add(html, "<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>", left - 7,
                     top + (i + 0.5) * cell + 4, m->row_name[i]);
    }
}

void cvy_heatmap_write(cvy_text *html, const cvy_heatmap *m)
{
    double name_px = 30;
    for (int i = 0; i < m->rows; i++)
        name_px = CVY_MIN(CVY_MAX(name_px, text_px(m->row_name[i])), 110);
    const double left = name_px + 28, top = 22 + name_px * 0.7,
                 cell = CVY_MIN(380.0 / CVY_MAX(m->columns, m->rows), 90);
    const double width = left + m->columns * cell + 0.6 * name_px, height = top + m->rows * cell + 14;
    open_figure(html, m->title, m->note, "half");
    open_svg(html, m->title, CVY_MAX(width, 440), CVY_MAX(height, 240));
    heat_names(html, m, left, top, cell);
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->columns; c++) {
            const double share = CVY_MIN(CVY_MAX(m->shade[r * m->columns + c], 0), 1),
                         shade = pow(share, 0.6); /* so that rare cells are still visible */
            const double x = left + c * cell, y = top + r * cell;
            const cvy_number value = cvy_number_count(m->value[r * m->columns + c]);
            cvy_text_add(html,
                         "<rect class=\"cell%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                         "style=\"fill-opacity:%.3f\"><title>",
                         r == c ? " hit" : "", x, y, cell - 1, cell - 1, shade);
            cvy_html_add(html, "%s → %s", m->row_name[r], m->column_name[c]);
            cvy_text_add(html, ": %s (%s)</title></rect>", value.at, cvy_number_percent(share).at);
            if (cell >= 26)
                cvy_text_add(html, "<text class=\"%s\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>",
                             shade > 0.55 ? "in dark" : "in", x + (cell - 1) / 2, y + cell / 2 + 4, value.at);
        }
    if (m->y_label) {
        const double y = top + m->rows * cell / 2;
        cvy_html_add(html,
                     "<text class=\"label\" text-anchor=\"middle\" x=\"12\" y=\"%.1f\" transform=\"rotate(-90 12 "
                     "%.1f)\">%s</text>",
                     y, y, m->y_label);
    }
    if (m->x_label) {
        cvy_html_add(html, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\">%s</text>", left - 7, height - 1, m->x_label);
    }
    cvy_text_add(html, "</svg></figure>\n");
}
