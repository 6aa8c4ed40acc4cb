/*
 * data_coordinates.c: the coordinates along axes: the attributes that are kept, and coordinates of several files that
 * become one axis.
 *
 * Each file may count its times from another date ("hours since 2020-01-01", then "hours since 2020-02-01"). They are
 * converted to the units of the first file, by the calendar that both name. It is called when a prediction begins.
 * Source: CF conventions 1.10, sections 4.4 and 4.4.1; days of the Gregorian and the Julian calendar: Fliegel and van
 * Flandern 1968.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/data_reader.h"

const char *const cvy_cf_name[CVY_CF_COUNT] = {
    [CVY_CF_UNITS] = "units",         [CVY_CF_CALENDAR] = "calendar", [CVY_CF_STANDARD_NAME] = "standard_name",
    [CVY_CF_LONG_NAME] = "long_name", [CVY_CF_AXIS] = "axis",         [CVY_CF_POSITIVE] = "positive",
};

/* ---- calendars ---- */

typedef enum { STANDARD, PROLEPTIC, JULIAN, DAYS_365, DAYS_366, DAYS_360, NCALENDAR } calendar;

/* NCALENDAR: days of this calendar are not known. */
static calendar find_calendar(const char *text)
{
    static const struct {
        const char *name;
        calendar is;
    } known[] = {{"standard", STANDARD}, {"gregorian", STANDARD}, {"proleptic_gregorian", PROLEPTIC},
                 {"julian", JULIAN},     {"noleap", DAYS_365},    {"365_day", DAYS_365},
                 {"all_leap", DAYS_366}, {"366_day", DAYS_366},   {"360_day", DAYS_360}};
    for (int i = 0; text && i < CVY_COUNT(known); i++)
        if (strcmp(text, known[i].name) == 0)
            return known[i].is;
    return text ? NCALENDAR : STANDARD;
}

/* The number of a day; only differences of these numbers have a meaning. */
static int64_t day_number(calendar c, int64_t year, int64_t month, int64_t day)
{
    static const int before[12] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const int64_t early = (14 - month) / 12, y = year + 4800 - early, m = month + 12 * early - 3; /* from March on */
    const int is_new = c == PROLEPTIC || (c == STANDARD && (year * 100 + month) * 100 + day >= 15821015);
    if (c == DAYS_360)
        return year * 360 + (month - 1) * 30 + day;
    if (c == DAYS_365)
        return year * 365 + before[month - 1] + day;
    if (c == DAYS_366)
        return year * 366 + before[month - 1] + (month > 2) + day;
    return day + (153 * m + 2) / 5 + 365 * y + y / 4 + (is_new ? -y / 100 + y / 400 - 32045 : -32083);
}

/* ---- units of time ---- */

struct since {
    double unit_s;  /* of one unit */
    int64_t second; /* of the date from which they count */
};

/* Seconds of a unit that is equally long everywhere; 0: it is none. */
static double unit_seconds(const char *name)
{
    static const struct {
        const char *name;
        double seconds;
    } known[] = {{"seconds", 1}, {"second", 1},   {"sec", 1},      {"s", 1},       {"minutes", 60},
                 {"minute", 60}, {"min", 60},     {"hours", 3600}, {"hour", 3600}, {"hr", 3600},
                 {"h", 3600},    {"days", 86400}, {"day", 86400},  {"d", 86400}};
    for (int i = 0; i < CVY_COUNT(known); i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].seconds;
    return 0;
}

/* Reads "hours since 2000-01-01 06:00:00". 0: it is something else, such as a date with a time zone. */
static int read_since(const char *units, calendar c, struct since *out)
{
    char unit[16] = "", zone[8] = "";
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, end = 0;
    if (sscanf(units, "%15s since %5d-%2d-%2d%n", unit, &year, &month, &day, &end) != 4 || end == 0)
        return 0;
    const char *rest = units + end;
    rest += *rest == 'T' || *rest == ' ';
    end = 0;
    if (sscanf(rest, "%2d:%2d%n", &hour, &minute, &end) == 2 && end > 0)
        rest += end;
    end = 0;
    if (*rest == ':' && sscanf(rest, ":%2d%n", &second, &end) == 1 && end > 0)
        rest += end + (int)strspn(rest + end, ".0"); /* whole seconds only */
    const int has_more = sscanf(rest, "%7s", zone) == 1;
    const double each = unit_seconds(unit);
    if (each == 0 || c == NCALENDAR || year < -4700 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 ||
        hour > 24 || minute < 0 || minute > 59 || second < 0 || second > 60 ||
        (has_more && strcmp(zone, "Z") != 0 && strcmp(zone, "UTC") != 0))
        return 0;
    *out = (struct since){each, day_number(c, year, month, day) * 86400 + hour * 3600 + minute * 60 + second};
    return 1;
}

/* ---- one axis of several files ---- */

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

int cvy_calendars_are_same(const char *a, const char *b)
{
    const calendar c = find_calendar(a);
    return same_text(a, b) || (c != NCALENDAR && c == find_calendar(b));
}

int cvy_times_convert(const cvy_coordinates *own, const cvy_coordinates *wanted, int64_t n, const double *value,
                      double *to)
{
    const char *units = own->cf[CVY_CF_UNITS], *in_units = wanted->cf[CVY_CF_UNITS];
    const calendar c = find_calendar(own->cf[CVY_CF_CALENDAR]);
    struct since from, in;
    if (!units || !in_units || !cvy_calendars_are_same(own->cf[CVY_CF_CALENDAR], wanted->cf[CVY_CF_CALENDAR]) ||
        !read_since(units, c, &from) || !read_since(in_units, c, &in))
        return 0;
    for (int64_t i = 0; i < n; i++)
        to[i] = (value[i] * from.unit_s + (double)(from.second - in.second)) / in.unit_s;
    return 1;
}

int cvy_coordinates_append(const cvy_coordinates *own, const cvy_coordinates *whole, int64_t first, int64_t n,
                           double *to)
{
    if (n == 0)
        return 1;
    if (!own->value || own->n < first + n || !same_text(own->name, whole->name) ||
        !cvy_calendars_are_same(own->cf[CVY_CF_CALENDAR], whole->cf[CVY_CF_CALENDAR]))
        return 0;
    if (!same_text(own->cf[CVY_CF_UNITS], whole->cf[CVY_CF_UNITS]))
        return cvy_times_convert(own, whole, n, own->value + first, to);
    memcpy(to, own->value + first, (size_t)n * sizeof *to);
    return 1;
}

/* ---- dates ---- */

int cvy_time_text(const char *units, const char *calendar_name, double value, char *text, size_t room)
{
    static const int64_t earliest = -4700, latest = 9999;
    const calendar c = find_calendar(calendar_name);
    struct since from;
    if (!read_since(units, c, &from))
        return 0;
    const double second = floor(value * from.unit_s + 0.5) + (double)from.second, day = floor(second / 86400);
    int64_t low = earliest, high = latest, month = 12;
    if (!(day >= (double)day_number(c, earliest, 1, 1) && day < (double)day_number(c, latest, 1, 1)))
        return 0;
    while (low < high - 1) { /* low: a year that begins on that day or before */
        const int64_t middle = (low + high) / 2;
        *(day_number(c, middle, 1, 1) <= (int64_t)day ? &low : &high) = middle;
    }
    while (month > 1 && day_number(c, low, month, 1) > (int64_t)day)
        month--;
    const int64_t left = (int64_t)(second - 86400 * day),
                  date =
                      (int64_t)day - day_number(c, low, month, 1) + 1 +
                      (c == STANDARD && low == 1582 && month == 10 && (int64_t)day >= day_number(c, 1582, 10, 15)) * 10;
    snprintf(text, room, "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld", (long long)low, (long long)month, (long long)date,
             (long long)(left / 3600), (long long)(left / 60 % 60), (long long)(left % 60));
    return 1;
}
