/*
 * report_study_published.c: figures that others have published, in a table of their own. They are never mixed with
 * what was measured here.
 *
 * published.csv has a line for each statement: study, system, framework, network, metric, setting, kind, value, unit.
 * The kind is "exact", "about", or "bounds" for a range low..high.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_file.h"
#include "report/report_page.h"
#include "report/report_study.h"

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

static void add_cell(cvy_text *html, const char *text)
{
    cvy_html_add(html, "<td>%s</td>", text);
}

static void add_row(cvy_text *html, const char *const *column)
{
    static const int plain[] = {SYSTEM, FRAMEWORK, NETWORK, METRIC, SETTING};
    const char *dots = strcmp(column[KIND], "bounds") == 0 ? strstr(column[VALUE], "..") : NULL;
    cvy_text_add(html, "<tr>");
    for (int i = 0; i < CVY_COUNT(plain); i++)
        add_cell(html, column[plain[i]]);
    cvy_text_add(html, "<td>%s", strcmp(column[KIND], "about") == 0 ? "about " : "");
    if (dots)
        cvy_text_add(html, "%.*s to %s", (int)(dots - column[VALUE]), column[VALUE], dots + 2);
    else
        cvy_html_escape(html, column[VALUE]);
    cvy_html_add(html, " %s</td></tr>\n", column[UNIT]);
}

cvy_status cvy_study_published(cvy_study_page *p)
{
    char *path = NULL, *data = NULL;
    size_t bytes = 0;
    int n = 0;
    CVY_TRY(cvy_pool_printf(p->pool, &path, "%s/published.csv", p->folder));
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_file_read(path, 1 << 20, &data, &bytes));
    for (char *line = data; *line;) {
        const char *column[COLUMNS];
        char *end = line + strcspn(line, "\n");
        const int is_last = !*end;
        *end = '\0';
        if (strncmp(line, "study,", 6) != 0 && cut_line(line, column)) {
            if (n++ == 0)
                cvy_text_add(&p->html,
                             "<section><h2>What others have published</h2>\n<p class=\"soft\">On their machines "
                             "and with their settings: for comparison, not measured here.</p>\n"
                             "<div class=\"wide\"><table class=\"runs\"><thead><tr><td>system</td>"
                             "<td>framework</td><td>network</td><td>metric</td><td>setting</td>"
                             "<td>value</td></tr></thead><tbody>\n");
            add_row(&p->html, column);
        }
        line = is_last ? end : end + 1;
    }
    if (n > 0)
        cvy_text_add(&p->html, "</tbody></table></div></section>\n");
    cvy_mem_free(&data);
    return CVY_OK;
}
