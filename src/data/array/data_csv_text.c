/*
 * data_csv_text.c: fields of a line of a table, and the numbers that they hold.
 *
 * A field may be in quotes; a quote inside is doubled, as RFC 4180 says, or follows a backslash, as R writes it. A
 * number has a decimal mark and, if the table's options say so, marks between groups of thousands.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "data/array/data_csv.h"
#include "data/data_missing.h"

/* ---- fields ---- */

struct fields cvy_csv_fields(const struct csv *c, cvy_line_part line)
{
    return (struct fields){.rest = line, .mark = c->mark, .quote = c->quote};
}

/* mark 0: any of them. */
static int is_mark(char mark, char c)
{
    return mark ? c == mark || (mark == ' ' && c == '\t') : c && strchr(",;\t| ", c) != NULL;
}

/* Looks for the quote that ends a quoted text, from *at on, and sets *at to the position after it. Returns 0 if there
 * is none. */
static int find_end(cvy_line_part s, char mark, char quote, size_t *at)
{
    for (size_t i = *at; i < s.bytes; i++) {
        if (s.at[i] == '\\' && i + 2 < s.bytes && s.at[i + 1] == quote && !is_mark(mark, s.at[i + 2]) &&
            s.at[i + 2] != '\r' && s.at[i + 2] != '\n') {
            i++;
        } else if (s.at[i] == quote && i + 1 < s.bytes && s.at[i + 1] == quote) {
            i++;
        } else if (s.at[i] == quote) {
            *at = i + 1;
            return 1;
        }
    }
    *at = s.bytes;
    return 0;
}

int cvy_csv_next_field(struct fields *f, cvy_line_part *out)
{
    if (f->mark == ' ') {
        f->rest = cvy_line_part_trim(f->rest);
        f->ended |= f->rest.bytes == 0;
    }
    if (f->ended)
        return 0;
    size_t end = 0;
    while (f->mark != ' ' && end < f->rest.bytes && f->rest.at[end] == ' ')
        end++;
    if (f->quote && end < f->rest.bytes && f->rest.at[end] == f->quote) {
        end++;
        find_end(f->rest, f->mark, f->quote, &end);
    }
    while (end < f->rest.bytes && !is_mark(f->mark, f->rest.at[end]))
        end++;
    *out = cvy_line_part_trim((cvy_line_part){f->rest.at, end});
    f->quoted = f->quote && out->bytes >= 2 && out->at[0] == f->quote && out->at[out->bytes - 1] == f->quote;
    if (f->quoted)
        *out = (cvy_line_part){out->at + 1, out->bytes - 2};
    f->ended = end == f->rest.bytes;
    if (!f->ended)
        f->rest = (cvy_line_part){f->rest.at + end + 1, f->rest.bytes - end - 1};
    return 1;
}

size_t cvy_csv_unquote(const struct csv *c, cvy_line_part field, int is_quoted, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < field.bytes; i++) {
        const int is_pair = c->quote && i + 1 < field.bytes && field.at[i + 1] == c->quote;
        i += is_pair && ((is_quoted && field.at[i] == c->quote) || field.at[i] == '\\');
        to[n++] = field.at[i];
    }
    return n;
}

const char *cvy_csv_show(const char *text, char to[CSV_SHOWN])
{
    size_t n = strlen(text);
    const int is_cut = n >= CSV_SHOWN;
    n = is_cut ? CSV_SHOWN - 3 : n;
    while (is_cut && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) /* inside a letter of UTF-8 */
        n--;
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
    strcpy(to + n, is_cut ? ".." : "");
    return to;
}

int cvy_csv_count_fields(const struct csv *c, cvy_line_part line)
{
    struct fields f = cvy_csv_fields(c, line);
    cvy_line_part field;
    int n = 0;
    while (cvy_csv_next_field(&f, &field))
        n++;
    return n;
}

int cvy_csv_is_comment(const struct csv *c, cvy_line_part line)
{
    static const char *const errors[] = {"#N/A", "#NA", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"};
    const cvy_line_part text = cvy_line_part_trim(line);
    if (c->keep_comments || text.bytes == 0 || text.at[0] != '#')
        return 0;
    for (int i = 0; i < CVY_COUNT(errors); i++) {
        const size_t n = strlen(errors[i]);
        if (text.bytes > n && memcmp(text.at, errors[i], n) == 0 && is_mark(c->mark, text.at[n]))
            return 0;
    }
    return 1;
}

int cvy_csv_is_open(const void *user, cvy_line_part text, cvy_line_quotes *searched)
{
    const struct csv *c = user;
    size_t at = searched->at;
    if (at == 0 && (!c->quote || !memchr(text.at, c->quote, text.bytes) || cvy_csv_is_comment(c, text)))
        return 0;
    if (at == 0 && text.bytes >= 3 && memcmp(text.at, "\xEF\xBB\xBF", 3) == 0)
        at = 3;
    for (;;) {
        if (!searched->inside) {
            while (at < text.bytes && (text.at[at] == ' ' || (c->mark == ' ' && text.at[at] == '\t')))
                at++;
            searched->inside = at < text.bytes && text.at[at] == c->quote;
            at += (size_t)searched->inside;
        }
        if (searched->inside && !find_end(text, c->mark, c->quote, &at)) {
            searched->at = at;
            return 1;
        }
        searched->inside = 0;
        while (at < text.bytes && !is_mark(c->mark, text.at[at]))
            at++;
        if (at == text.bytes)
            return 0;
        at++;
    }
}

/* ---- numbers ---- */

enum { THOUSANDS_NONE, THOUSANDS_COMMA, THOUSANDS_POINT, THOUSANDS_SPACE, THOUSANDS_APOSTROPHE, THOUSANDS_UNDERSCORE };

/* Bytes of the mark between groups at s; 0: there is none. Blanks may be those that do not break a line, U+00A0, U+2009
 * and U+202F, and an apostrophe may be U+2019. */
static size_t group_mark(int thousands, cvy_line_part s)
{
    static const char mark[] = {0, ',', '.', ' ', '\'', '_'};
    static const char *const wide[][3] = {[THOUSANDS_SPACE] = {"\xC2\xA0", "\xE2\x80\x89", "\xE2\x80\xAF"},
                                          [THOUSANDS_APOSTROPHE] = {"\xE2\x80\x99", NULL, NULL},
                                          [THOUSANDS_UNDERSCORE] = {NULL, NULL, NULL}};
    if (s.bytes > 0 && s.at[0] == mark[thousands])
        return 1;
    for (int i = 0; i < 3 && wide[thousands][i]; i++)
        if (s.bytes >= strlen(wide[thousands][i]) && memcmp(s.at, wide[thousands][i], strlen(wide[thousands][i])) == 0)
            return strlen(wide[thousands][i]);
    return 0;
}

/* A number in another notation. The groups before the decimal mark have three digits, or two as in India, the first one
 * one to three and the last one three. */
static int real_in(int decimal, int thousands, cvy_line_part s, double *out)
{
    char text[72];
    size_t n = 0, i = 0;
    int digits = 0, groups = 0, is_whole = 1;
    if (decimal == DECIMAL_POINT && thousands == THOUSANDS_NONE)
        return cvy_line_part_real(s, out);
    if (s.bytes > sizeof text)
        return 0;
    while (i < s.bytes) {
        const size_t mark = is_whole ? group_mark(thousands, (cvy_line_part){s.at + i, s.bytes - i}) : 0;
        if (mark > 0) {
            if (digits < (groups ? 2 : 1) || digits > 3)
                return 0;
            groups++;
            digits = 0;
            i += mark;
            continue;
        }
        const char c = s.at[i++];
        const int is_point = c == (decimal == DECIMAL_COMMA ? ',' : '.');
        if (!is_point && (c == ',' || c == '.'))
            return 0;
        if (is_whole && !cvy_is_digit(c) && (n > 0 || (c != '-' && c != '+'))) {
            if (groups && digits != 3)
                return 0;
            is_whole = 0;
        }
        digits += cvy_is_digit(c);
        text[n++] = is_point ? '.' : c;
    }
    return (!is_whole || !groups || digits == 3) && cvy_line_part_real((cvy_line_part){text, n}, out);
}

int cvy_csv_real(const struct csv *c, cvy_line_part s, double *out)
{
    return real_in(c->decimal, c->thousands, s, out);
}

int cvy_csv_is_missing(cvy_line_part s)
{
    return cvy_missing_is_word(s.at, s.bytes);
}

int cvy_csv_truth(cvy_line_part s, double *out)
{
    static const char *const words[] = {"false", "true"};
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strlen(words[i]) == s.bytes && strncasecmp(words[i], s.at, s.bytes) == 0) {
            *out = i;
            return 1;
        }
    return 0;
}

/* ---- numbers in another notation ---- */

static const struct {
    int decimal, thousands;
    const char *options;
} notations[] = {
    {DECIMAL_POINT, THOUSANDS_NONE, "`decimal: \".\"`"},
    {DECIMAL_COMMA, THOUSANDS_NONE, "`decimal: \",\"`"},
    {DECIMAL_POINT, THOUSANDS_COMMA, "`thousands: \",\"`"},
    {DECIMAL_COMMA, THOUSANDS_POINT, "`decimal: \",\", thousands: \".\"`"},
    {DECIMAL_POINT, THOUSANDS_SPACE, "`thousands: space`"},
    {DECIMAL_COMMA, THOUSANDS_SPACE, "`decimal: \",\", thousands: space`"},
    {DECIMAL_POINT, THOUSANDS_APOSTROPHE, "`thousands: apostrophe`"},
    {DECIMAL_COMMA, THOUSANDS_APOSTROPHE, "`decimal: \",\", thousands: apostrophe`"},
    {DECIMAL_POINT, THOUSANDS_UNDERSCORE, "`thousands: underscore`"},
};

static int has_group_mark(int thousands, cvy_line_part s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if (group_mark(thousands, (cvy_line_part){s.at + i, s.bytes - i}))
            return 1;
    return thousands == THOUSANDS_NONE;
}

int cvy_csv_is_other_number(const struct csv *c, cvy_line_part s)
{
    double value = 0;
    for (int i = 0; i < CVY_COUNT(notations); i++)
        if ((notations[i].decimal != c->decimal || notations[i].thousands != c->thousands) &&
            real_in(notations[i].decimal, notations[i].thousands, s, &value))
            return 1;
    return 0;
}

/* Lists the notations in which it is a number, with the number. A comma that separates columns is seldom a decimal
 * mark, too, so such a number is taken for one with groups if it can be. */
static size_t list_notations(const struct csv *c, cvy_line_part s, char *text, size_t room)
{
    size_t at = 0;
    double value = 0, before = 0;
    const int has_groups = c->mark == ',' && real_in(DECIMAL_POINT, THOUSANDS_COMMA, s, &value);
    for (int i = 0; i < CVY_COUNT(notations) && at < room; i++) {
        if ((notations[i].decimal == c->decimal && notations[i].thousands == c->thousands) ||
            !has_group_mark(notations[i].thousands, s) ||
            !real_in(notations[i].decimal, notations[i].thousands, s, &value) ||
            (has_groups && notations[i].decimal == DECIMAL_COMMA) || (at > 0 && value == before))
            continue;
        at += (size_t)snprintf(text + at, room - at, "%s%s%s as %.10g", at ? ", and " : "a number (",
                               notations[i].options, at ? "" : " of the source reads it", value);
        before = value;
    }
    return at < room ? at : room - 1;
}

/* Whether a text looks like a day or a time. */
static int is_date(cvy_line_part s)
{
    int group[3] = {0}, ngroup = 0;
    char mark = 0;
    for (size_t i = 0; i < s.bytes && ngroup < 3; i++) {
        if (cvy_is_digit(s.at[i])) {
            group[ngroup]++;
        } else if (group[ngroup] > 0 && strchr("-/.:", s.at[i]) && (!mark || mark == s.at[i]) && ngroup < 2) {
            mark = s.at[i];
            ngroup++;
        } else {
            return ngroup == 2 && (s.at[i] == 'T' || s.at[i] == ' ') && mark != ':';
        }
    }
    return (ngroup == 2 && group[0] <= 4 && group[1] <= 2 && group[2] > 0 && group[2] <= 4) ||
           (ngroup == 1 && mark == ':' && group[0] <= 2 && group[1] == 2);
}

/* The sign before or after a number that is not part of it, such as $ or %; 0: there is none. */
static size_t find_unit(cvy_line_part s, const char **unit_out)
{
    static const char *const unit[] = {"$", "%", "\xE2\x82\xAC", "\xC2\xA3", "\xC2\xA5", "\xC2\xB0"};
    double value = 0;
    for (int i = 0; i < CVY_COUNT(unit); i++) {
        const size_t n = strlen(unit[i]);
        if (s.bytes <= n)
            continue;
        const int before = memcmp(s.at, unit[i], n) == 0, after = memcmp(s.at + s.bytes - n, unit[i], n) == 0;
        const cvy_line_part rest = cvy_line_part_trim((cvy_line_part){before ? s.at + n : s.at, s.bytes - n});
        *unit_out = unit[i];
        if ((before || after) && cvy_line_part_real(rest, &value))
            return n;
    }
    return 0;
}

const char *cvy_csv_text_kind(const char *text)
{
    static const char *const picture[] = {".jpg", ".jpeg", ".png"};
    const cvy_line_part s = {text, strlen(text)};
    const char *unit = "";
    for (int i = 0; i < CVY_COUNT(picture); i++)
        if (cvy_data_has_suffix(text, picture[i]))
            return ", a picture: `format: list` reads lists of pictures";
    return is_date(s) ? ", a date or a time" : find_unit(s, &unit) ? ", a number with a unit" : "";
}

static int is_infinite(cvy_line_part s)
{
    static const char *const words[] = {"inf", "infinity"};
    if (s.bytes > 0 && (s.at[0] == '-' || s.at[0] == '+'))
        s = (cvy_line_part){s.at + 1, s.bytes - 1};
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strlen(words[i]) == s.bytes && strncasecmp(words[i], s.at, s.bytes) == 0)
            return 1;
    return 0;
}

const char *cvy_csv_why_no_number(const struct csv *c, cvy_line_part s, const struct column *of, char *text,
                                  size_t room)
{
    const char *unit = "";
    if (cvy_csv_is_missing(s))
        return of->role == COLUMN_X ? "a number (`missing: NUMBER` of the source replaces missing numbers of the input)"
                                    : "a number";
    if (is_infinite(s))
        return "a finite number";
    const size_t at = list_notations(c, s, text, room);
    if (at > 0) {
        snprintf(text + at, room - at, ")");
        return text;
    }
    if (find_unit(s, &unit)) {
        snprintf(text, room, "a number: write it without %s", unit);
        return text;
    }
    if (of->look.number > of->look.text && !is_date(s))
        return "a number, as the column has in other rows (lines of units, totals and the like must be taken out)";
    snprintf(text, room, "a number%s (name a column of classes by `label:` of the source, or leave it out by `drop:`)",
             is_date(s) ? " but a date or a time" : "");
    return text;
}
