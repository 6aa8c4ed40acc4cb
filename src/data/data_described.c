/*
 * data_described.c: whether two variables are described alike: see data_described.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_described.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "data/data_units.h"

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* ---- coordinates ---- */

/* The values of `own` where `like` has its own: all, or those that are kept. element: the number of each. */
struct pairs {
    int64_t n;           /* 0: there is nothing to compare */
    const double *like;  /* [n] */
    const double *whole; /* of own, in the units of like: all values, or those that are kept of both */
    double unit;         /* a circle in these units: 360 degrees; 0: no angle */
    double shift;        /* which is subtracted from own before it is compared */
    int is_whole;
    int64_t length; /* of the axis */
    const cvy_coordinates *places;
};

static int64_t element(const struct pairs *p, int64_t k)
{
    return cvy_coordinates_kept_at(p->places, k);
}

/* Which element of an axis of n becomes element k: see cvy_mend. */
static int64_t mended_at(int64_t k, int64_t n, int turned, int64_t roll)
{
    const int64_t at = (k + roll) % n;
    return turned ? n - 1 - at : at;
}

static double value_at(const struct pairs *p, int64_t k, int turned, int64_t roll)
{
    if (!p->is_whole)
        return p->whole[turned ? p->n - 1 - k : k];
    return p->whole[mended_at(element(p, k), p->length, turned, roll)];
}

/* How far apart two values are that are equal but for rounding: a fiftieth of a cell, or what f32 leaves. */
static double tolerance(const struct pairs *p, int64_t k)
{
    const int64_t n = p->n, a = CVY_MAX(k - 1, 0), b = CVY_MIN(k + 1, n - 1);
    double cell = INFINITY, largest = CVY_MAX(fabs(p->like[0]), fabs(p->like[n - 1]));
    if (a < k)
        cell = fabs(p->like[k] - p->like[a]) / (double)(element(p, k) - element(p, a));
    if (b > k)
        cell = CVY_MIN(cell, fabs(p->like[b] - p->like[k]) / (double)(element(p, b) - element(p, k)));
    return (isfinite(cell) ? cell / 50 : 0) + 4 * (double)FLT_EPSILON * largest;
}

static int any_nan(const double *value, int64_t n)
{
    int any = 0;
    for (int64_t i = 0; i < n; i++)
        any |= isnan(value[i]);
    return any;
}

static int are_equal(const struct pairs *p, int turned, int64_t roll, double circle)
{
    for (int64_t k = 0; k < p->n; k++) {
        double apart = value_at(p, k, turned, roll) - p->shift - p->like[k];
        if (circle > 0)
            apart = remainder(apart, circle);
        if (!(fabs(apart) <= tolerance(p, k)))
            return 0;
    }
    return 1;
}

/* Whether it is the same circle of longitudes, which begins elsewhere. */
static int is_rolled(const struct pairs *p, int turned, int64_t *roll_out)
{
    for (int64_t roll = 0; p->unit > 0 && p->is_whole && roll < p->length; roll++)
        if (fabs(remainder(value_at(p, 0, turned, roll) - p->like[0], p->unit)) <= tolerance(p, 0) &&
            are_equal(p, turned, roll, p->unit)) {
            *roll_out = roll;
            return 1;
        }
    return 0;
}

/* Converts the coordinates to the units of the others. 0: they cannot be compared. */
static int convert(const cvy_coordinates *like, const cvy_coordinates *own, double *value)
{
    const char *from = own->cf[CVY_CF_UNITS], *to = like->cf[CVY_CF_UNITS];
    const int64_t n = cvy_coordinates_count(own);
    double factor = 1, offset = 0;
    memcpy(value, own->value, (size_t)n * sizeof *value);
    if (!from || !to)
        return 1;
    if (strstr(from, " since ") || strstr(to, " since "))
        return cvy_times_convert(own, like, n, own->value, value);
    if (cvy_units_relate(from, to, &factor, &offset) == CVY_UNITS_OTHER)
        return 0;
    for (int64_t i = 0; i < n; i++)
        value[i] = value[i] * factor + offset;
    return 1;
}

/* SHIFTED: all by the same amount, as those of another window of one axis are. */
typedef enum { EQUAL, MOVED, SHIFTED, DIFFERENT } relation;

/* value: memory for the values of own. The others: how an axis that is MOVED is read, as in cvy_mend. */
static relation relate_values(const cvy_coordinates *like, const cvy_coordinates *own, double *value, int *turned_out,
                              int64_t *roll_out)
{
    struct pairs p = {
        .n = cvy_coordinates_count(like), .like = like->value, .whole = value, .length = own->n, .places = like};
    const char *units = like->cf[CVY_CF_UNITS];
    double factor = 1, offset = 0;
    *turned_out = 0;
    *roll_out = 0;
    if (!convert(like, own, value))
        return DIFFERENT;
    p.is_whole = own->nkept == 0;
    if (any_nan(like->value, p.n) ||
        any_nan(value, cvy_coordinates_count(own))) /* some are missing: nothing is known */
        return EQUAL;
    if (!p.is_whole && own->nkept != cvy_coordinates_count(like)) /* of a different version */
        return EQUAL;
    if (cvy_axis_kind_of(like) == CVY_AXIS_KIND_LONGITUDE)
        p.unit =
            units && cvy_units_relate("degrees", units, &factor, &offset) == CVY_UNITS_CONVERTED ? 360 * factor : 360;
    if (are_equal(&p, 0, 0, p.unit))
        return EQUAL;
    *turned_out = p.n > 1 && are_equal(&p, 1, 0, p.unit);
    if (*turned_out || is_rolled(&p, 0, roll_out))
        return MOVED;
    *turned_out = is_rolled(&p, 1, roll_out);
    if (*turned_out)
        return MOVED;
    p.shift = value_at(&p, 0, 0, 0) - p.like[0];
    return are_equal(&p, 0, 0, 0) ? SHIFTED : DIFFERENT;
}

/* Writes "1000, 850, 500" or "-60 .. 60" and the units. */
enum { VALUES_TEXT = 120 };
static const char *values_text(const cvy_coordinates *c, char text[VALUES_TEXT])
{
    const int64_t n = cvy_coordinates_count(c);
    const char *units = c->cf[CVY_CF_UNITS] ? c->cf[CVY_CF_UNITS] : "";
    size_t at = 0;
    if (n > 4)
        at = (size_t)snprintf(text, VALUES_TEXT, "%.6g, %.6g .. %.6g", c->value[0], c->value[1], c->value[n - 1]);
    for (int64_t i = 0; n <= 4 && i < n; i++)
        at += (size_t)snprintf(text + at, VALUES_TEXT - at, "%s%.6g", i ? ", " : "", c->value[i]);
    snprintf(text + at, VALUES_TEXT - at, "%s%.30s", *units ? " " : "", units);
    return text;
}

/* The same coordinates, of which as few are kept as there. */
static cvy_coordinates keep_as(const cvy_coordinates *c, int64_t nkept, double *value)
{
    cvy_coordinates kept = *c;
    if (nkept == 0 || c->nkept > 0)
        return kept;
    kept.nkept = nkept;
    kept.value = value;
    for (int64_t k = 0; k < nkept; k++)
        value[k] = c->value[cvy_coordinates_kept_at(&kept, k)];
    return kept;
}

struct comparison {
    const cvy_described *like, *own;
    const char *where;
    int how;
    cvy_remarks *remarks;
    cvy_mend *mend;
};

/* Says what is mended and how, or that it would have to be. needs: the CVY_COMPARE_* with which the reader does it. */
static cvy_status say_mended(const struct comparison *c, int needs, const char *kind, const char *cure, const char *fmt,
                             ...) CVY_PRINTF(5, 6);
static cvy_status say_mended(const struct comparison *c, int needs, const char *kind, const char *cure, const char *fmt,
                             ...)
{
    char text[800];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    CVY_CHECK(c->how & needs, CVY_E_CONFIG, "%s: bring them into agreement, or %s", text,
              c->how & CVY_COMPARE_CONVERTS ? "say `metadata: ignore` of the source to read them as they are"
                                            : "read both from the files that they come from");
    return cvy_remark(c->remarks, c->own->file, kind, "%s: %s", text, cure);
}

/* A line about several files is about the axis, with the values of the first of them. */
enum { KIND_TEXT = 64 };
static const char *name_kind(char text[KIND_TEXT], const char *what, const cvy_coordinates *axis)
{
    snprintf(text, KIND_TEXT, "%s %.40s", what, axis->name ? axis->name : "");
    return text;
}

static cvy_status differ(const struct comparison *c, const cvy_coordinates *like, const cvy_coordinates *own,
                         int is_shifted, int *differs_out)
{
    char text[2][VALUES_TEXT];
    const cvy_axis_kind r = cvy_axis_kind_of(like);
    const int may_differ = r == CVY_AXIS_KIND_LATITUDE || r == CVY_AXIS_KIND_LONGITUDE || r == CVY_AXIS_KIND_X ||
                           r == CVY_AXIS_KIND_Y || r == CVY_AXIS_KIND_TIME || r == CVY_AXIS_KIND_SPECTRUM ||
                           (r == CVY_AXIS_KIND_UNKNOWN && is_shifted) || !(c->how & CVY_COMPARE_UNITS);
    *differs_out = 1;
    char kind[KIND_TEXT];
    CVY_CHECK(may_differ, CVY_E_CONFIG,
              "axis %s is %s, but %s %s: choose the same ones, or say `metadata: ignore` of the source if these "
              "coordinates mean nothing",
              own->name ? own->name : like->name, values_text(own, text[0]), values_text(like, text[1]), c->where);
    return cvy_remark(c->remarks, c->own->file, name_kind(kind, "places", own),
                      "axis %s is %s, but %s %s: these are other places", own->name, values_text(own, text[0]),
                      values_text(like, text[1]), c->where);
}

static cvy_status relate_axis(const struct comparison *c, int i, int *differs_out)
{
    const cvy_coordinates *like = &c->like->axis[i], *own = &c->own->axis[c->mend->from[i]];
    char text[2][VALUES_TEXT], kind[KIND_TEXT];
    double *value = NULL;
    if (like->name && own->name && !cvy_axes_are_same(like, own))
        CVY_TRY(cvy_remark(c->remarks, c->own->file, NULL, "axis %s is taken for the axis %s %s", own->name, like->name,
                           c->where));
    if (!like->value || !own->value || like->n != own->n || like->n == 0 || !same_text(like->of, own->of))
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc((size_t)(2 * own->n) * sizeof *value, &value));
    const cvy_coordinates kept = keep_as(like, own->nkept, value + own->n);
    const relation r = relate_values(&kept, own, value, &c->mend->turned[i], &c->mend->roll[i]);
    const int turned = c->mend->turned[i], rolled = c->mend->roll[i] != 0;
    cvy_mem_free(&value);
    if (r == SHIFTED || r == DIFFERENT)
        return differ(c, like, own, r == SHIFTED, differs_out);
    if (!turned && !rolled)
        return CVY_OK;
    return say_mended(c, CVY_COMPARE_MENDS, name_kind(kind, turned ? rolled ? "both" : "turned" : "rolled", own),
                      turned && rolled ? "it is turned round, and read from the same longitude on"
                      : turned         ? "it is turned round"
                                       : "it is read from the same longitude on",
                      "axis %s is %s, but %s %s", own->name, values_text(own, text[0]), values_text(like, text[1]),
                      c->where);
}

/* ---- units and calendars ---- */

static int has_word(const cvy_described *d, const char *word)
{
    const char *text[] = {d->cf[CVY_CF_STANDARD_NAME], d->cf[CVY_CF_LONG_NAME], d->name};
    for (int i = 0; i < CVY_COUNT(text); i++)
        for (const char *at = text[i]; at && *at; at++)
            if (strncasecmp(at, word, strlen(word)) == 0)
                return 1;
    return 0;
}

/* Differences of temperatures have no offset, but the units alone do not tell them from temperatures. */
static int is_difference(const cvy_described *d)
{
    return has_word(d, "anomal") || has_word(d, "difference") || has_word(d, "tendency") || has_word(d, "bias");
}

/* The units; an empty attribute says as much as none. */
static const char *units_of(const cvy_described *d)
{
    const char *units = d->cf[CVY_CF_UNITS];
    return units && units[strspn(units, " ")] ? units : NULL;
}

static cvy_status relate_units(const struct comparison *c)
{
    const char *own = units_of(c->own), *like = units_of(c->like);
    const char *name = c->own->name ? c->own->name : "it", *file = c->own->file;
    cvy_mend *m = c->mend;
    if (!own && !like)
        return CVY_OK;
    if (!own || !like)
        return cvy_remark(c->remarks, file, NULL, "%s has %s%s, but %s%s %s: its numbers are taken as they are", name,
                          own ? "the units " : "no units", own ? own : "", like ? "the units " : "no units",
                          like ? like : "", c->where);
    const cvy_units_relation r = cvy_units_relate(own, like, &m->factor, &m->offset);
    CVY_CHECK(r != CVY_UNITS_OTHER && (m->offset == 0 || (!is_difference(c->own) && !is_difference(c->like))),
              CVY_E_CONFIG,
              "%s is in %s, but in %s %s, and how to convert it is not certain: write it in the same units, or say "
              "`metadata: ignore` of the source if they mean the same",
              name, own, like, c->where);
    if (r == CVY_UNITS_SAME)
        return CVY_OK;
    char factor[64] = "", offset[64] = "", cure[160];
    if (m->factor != 1)
        snprintf(factor, sizeof factor, " * %.10g", m->factor);
    if (m->offset != 0)
        snprintf(offset, sizeof offset, " %c %.10g", m->offset < 0 ? '-' : '+', fabs(m->offset));
    snprintf(cure, sizeof cure, "it is converted, x%s%s", factor, offset);
    return say_mended(c, CVY_COMPARE_CONVERTS, NULL, cure, "%s is in %s, but in %s %s", name, own, like, c->where);
}

/* Whether it is a height near the ground, where models differ by a few metres and mean the same. */
static int is_near_ground(const cvy_coordinates *c)
{
    double factor = 1, offset = 0;
    const char *units = c->cf[CVY_CF_UNITS];
    return units && cvy_units_relate(units, "m", &factor, &offset) != CVY_UNITS_OTHER && fabs(*c->value * factor) <= 20;
}

/* One height or level for all numbers. */
static cvy_status relate_heights(const struct comparison *c)
{
    const cvy_coordinates *own = &c->own->height, *like = &c->like->height;
    char text[2][VALUES_TEXT];
    double value = 0;
    int turned = 0;
    int64_t roll = 0;
    if (!own->name || !like->name || !own->value || !like->value || own->n != 1 || like->n != 1)
        return CVY_OK;
    if (relate_values(like, own, &value, &turned, &roll) == EQUAL)
        return CVY_OK;
    if (is_near_ground(own) && is_near_ground(like))
        return cvy_remark(c->remarks, c->own->file, NULL, "%s is at %s %s, but at %s %s: it is read as it is",
                          c->own->name ? c->own->name : "it", own->name, values_text(own, text[0]),
                          values_text(like, text[1]), c->where);
    CVY_FAIL(CVY_E_CONFIG,
             "%s is at %s %s, but at %s %s: choose the same level, or say `metadata: ignore` of the source if this is "
             "meant",
             c->own->name ? c->own->name : "it", own->name, values_text(own, text[0]), values_text(like, text[1]),
             c->where);
}

static cvy_status relate_calendars(const struct comparison *c)
{
    const cvy_coordinates *own = &c->own->samples, *like = &c->like->samples;
    const char *a = own->cf[CVY_CF_CALENDAR], *b = like->cf[CVY_CF_CALENDAR];
    const char *units[] = {own->cf[CVY_CF_UNITS], like->cf[CVY_CF_UNITS]};
    if (!units[0] || !units[1] || !strstr(units[0], " since ") || !strstr(units[1], " since ") ||
        cvy_calendars_are_same(a, b))
        return CVY_OK;
    return cvy_remark(c->remarks, c->own->file, NULL,
                      "its times have the calendar %s, but %s %s: samples of one date differ", a ? a : "standard",
                      b ? b : "standard", c->where);
}

/* ---- variables ---- */

cvy_mend cvy_mend_nothing(void)
{
    cvy_mend m = {.factor = 1};
    for (int i = 0; i < CVY_NDIM_MAX; i++)
        m.from[i] = i;
    return m;
}

cvy_status cvy_described_relate(const cvy_described *like, const char *where, const cvy_described *own, int how,
                                cvy_remarks *remarks, cvy_mend *mend, int differs[CVY_NDIM_MAX])
{
    const struct comparison c = {like, own, where, how, remarks, mend};
    char text[2][CVY_AXES_TEXT];
    int last = -1, reordered = 0;
    for (int i = 0; i < like->ndim; i++) {
        differs[i] = 0;
        if (mend->from[i] < 0)
            continue;
        reordered |= mend->from[i] < last;
        last = mend->from[i];
    }
    if (how & CVY_COMPARE_AXES && reordered)
        CVY_TRY(say_mended(&c, CVY_COMPARE_MENDS, NULL, "they are brought into that order",
                           "%s has the axes %s, but %s %s", own->name ? own->name : "x",
                           cvy_described_axes_text(own, NULL, own->ndim, text[0]),
                           cvy_described_axes_text(own, mend->from, like->ndim, text[1]), where));
    for (int i = 0; i < like->ndim && how & CVY_COMPARE_AXES; i++)
        if (mend->from[i] >= 0)
            CVY_TRY(relate_axis(&c, i, &differs[i]));
    if (!(how & CVY_COMPARE_UNITS))
        return CVY_OK;
    CVY_TRY(relate_units(&c));
    CVY_TRY(relate_heights(&c));
    return relate_calendars(&c);
}

cvy_status cvy_described_mend(cvy_pool *pool, const cvy_described *like, const cvy_mend *mend, cvy_described *own)
{
    cvy_described d = *own;
    d.ndim = like->ndim;
    for (int i = 0; i < like->ndim; i++) {
        const int64_t n = like->axis[i].n;
        double *value = NULL;
        d.axis[i] = mend->from[i] >= 0 ? own->axis[mend->from[i]] : (cvy_coordinates){.n = 1};
        if (!d.axis[i].value || (!mend->turned[i] && mend->roll[i] == 0))
            continue;
        CVY_TRY(cvy_pool_alloc(pool, (size_t)n * sizeof *value, &value));
        for (int64_t k = 0; k < n; k++)
            value[k] = d.axis[i].value[mended_at(k, n, mend->turned[i], mend->roll[i])];
        d.axis[i].value = value;
    }
    if (mend->factor != 1 || mend->offset != 0)
        d.cf[CVY_CF_UNITS] = like->cf[CVY_CF_UNITS];
    *own = d;
    return CVY_OK;
}

/* ---- sources that are read as they are ---- */

static cvy_status agree(const cvy_described *like, const char *where, const cvy_described *own, cvy_remarks *said)
{
    cvy_mend mend = cvy_mend_nothing();
    int differs[CVY_NDIM_MAX] = {0};
    if (like->ndim != own->ndim)
        return CVY_OK; /* the shapes differ, which is found elsewhere */
    if (!cvy_described_match(like, own, 1, mend.from) || mend.from[0] < 0)
        mend = cvy_mend_nothing();
    const cvy_status status =
        cvy_described_relate(like, where, own, CVY_COMPARE_AXES | CVY_COMPARE_UNITS, said, &mend, differs);
    return status != CVY_OK && own->file ? cvy_error_prefix(status, "%s", own->file) : status;
}

cvy_status cvy_descriptions_agree(const cvy_descriptions *like, const char *where, int with_y, cvy_reader_info *own)
{
    cvy_remarks said = {.pool = own->pool};
    cvy_descriptions *d = &own->described;
    for (int i = 0; d->nx == like->nx && i < d->nx; i++)
        CVY_TRY(agree(&like->x[i], where, &d->x[i], &said));
    for (int i = 0; with_y && d->ny == like->ny && i < d->ny; i++)
        CVY_TRY(agree(&like->y[i], where, &d->y[i], &said));
    return cvy_remarks_note(&said, own);
}

cvy_status cvy_described_compare_axes(const cvy_described *whole, const cvy_described *other, int differs[CVY_NDIM_MAX])
{
    double *value = NULL;
    int turned = 0;
    int64_t roll = 0;
    for (int k = 0; k < whole->ndim; k++) {
        const cvy_coordinates *c = &whole->axis[k], *o = &other->axis[k];
        if (!c->value)
            continue;
        if (k >= other->ndim || !o->value || c->n != o->n) {
            differs[k] = 1;
            continue;
        }
        CVY_TRY(cvy_mem_alloc((size_t)cvy_coordinates_count(o) * sizeof *value, &value));
        differs[k] |= relate_values(c, o, value, &turned, &roll) != EQUAL;
        cvy_mem_free(&value);
    }
    return CVY_OK;
}

void cvy_described_drop_axes(cvy_described *d, const int differs[CVY_NDIM_MAX])
{
    for (int k = 0; k < d->ndim; k++)
        if (differs[k] && d->axis[k].value) {
            d->axis[k].value = NULL;
            d->axis[k].is_mixed = !d->axis[k].of; /* those of another variable are none of the axis */
        }
}

static cvy_status drop(cvy_pool *pool, int n, cvy_described **whole, const cvy_described *other)
{
    cvy_described *own = NULL;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)CVY_MAX(n, 1) * sizeof *own, &own));
    for (int i = 0; i < n; i++) {
        int differs[CVY_NDIM_MAX] = {0};
        own[i] = (*whole)[i];
        CVY_TRY(cvy_described_compare_axes(&own[i], &other[i], differs));
        cvy_described_drop_axes(&own[i], differs);
    }
    *whole = own;
    return CVY_OK;
}

cvy_status cvy_descriptions_drop(cvy_pool *pool, cvy_descriptions *whole, const cvy_descriptions *other)
{
    if (whole->nx == other->nx)
        CVY_TRY(drop(pool, whole->nx, &whole->x, other->x));
    return whole->ny == other->ny ? drop(pool, whole->ny, &whole->y, other->y) : CVY_OK;
}

void cvy_descriptions_axis(const cvy_descriptions *d, cvy_along along, int axis, cvy_coordinates *out)
{
    const cvy_described *v = along == CVY_ALONG_X ? d->x : d->y;
    const int n = along == CVY_ALONG_X ? d->nx : d->ny;
    *out = (cvy_coordinates){0};
    /* several variables are joined along the first axis of x, and into a vector as y */
    if (n > 0 && axis < v->ndim && (n == 1 || (along == CVY_ALONG_X && axis > 0)) && v->axis[axis].name)
        *out = v->axis[axis];
    if (out->of) { /* values of another variable are no coordinates of the axis */
        out->value = NULL;
        memset(out->cf, 0, sizeof out->cf);
    }
}
