/*
 * report_published.c: reads published.csv.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "report/report_published.h"

#include <math.h>
#include <string.h>

#include "base/text/base_text.h"

enum { STUDY, SYSTEM, FRAMEWORK, NETWORK, METRIC, SETTING, KIND, VALUE, UNIT, COLUMNS };

/* Cuts a line into its columns, in place. A column in quotes may have commas. Returns whether there are enough. */
static int cut_line(char *line, const char *column[COLUMNS])
{
    int n = 0;
    for (char *at = line; n < COLUMNS; at++) {
        const int is_quoted = *at == '"';
        char *end = is_quoted ? strchr(at + 1, '"') : at + strcspn(at, ",");
        column[n++] = at + is_quoted;
        if (!end)
            return 0;
        at = end;
        if (is_quoted)
            *at++ = '\0';
        if (*at != ',')
            return n == COLUMNS && !*at;
        *at = '\0';
    }
    return 0;
}

static cvy_status fill_row(cvy_pool *pool, const char *const *column, cvy_published *out)
{
    char *text = NULL, *low = NULL;
    const char *dots = strcmp(column[KIND], "bounds") == 0 ? strstr(column[VALUE], "..") : NULL;
    *out = (cvy_published){.study = column[STUDY],
                           .system = column[SYSTEM],
                           .framework = column[FRAMEWORK],
                           .network = column[NETWORK],
                           .metric = column[METRIC],
                           .setting = column[SETTING],
                           .unit = column[UNIT],
                           .is_about = strcmp(column[KIND], "about") == 0};
    CVY_TRY(cvy_pool_printf(pool, &low, "%.*s", dots ? (int)(dots - column[VALUE]) : 255, column[VALUE]));
    if (cvy_text_real(low, &out->low) != CVY_OK)
        out->low = NAN;
    if (cvy_text_real(dots ? dots + 2 : low, &out->high) != CVY_OK)
        out->high = NAN;
    if (dots)
        CVY_TRY(cvy_pool_printf(pool, &text, "%s to %s", low, dots + 2));
    else
        CVY_TRY(cvy_pool_printf(pool, &text, "%s%s", out->is_about ? "about " : "", column[VALUE]));
    out->value_text = text;
    return CVY_OK;
}

cvy_status cvy_published_read(cvy_pool *pool, const char *text, const char *studies, cvy_published_list *out)
{
    char *copy = NULL;
    int lines = 1;
    *out = (cvy_published_list){.n = 0};
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    CVY_TRY(cvy_pool_strdup(pool, text, &copy));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->row * (size_t)lines, &out->row));
    for (char *line = copy; *line;) {
        const char *column[COLUMNS];
        char *end = line + strcspn(line, "\n");
        const int is_last = !*end;
        *end = '\0';
        if (*line != '#' && strncmp(line, "study,", 6) != 0 && cut_line(line, column) &&
            (!studies || cvy_text_lists(studies, " ", column[STUDY])))
            CVY_TRY(fill_row(pool, column, &out->row[out->n++]));
        line = is_last ? end : end + 1;
    }
    return CVY_OK;
}
