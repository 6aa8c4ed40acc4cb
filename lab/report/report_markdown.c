/*
 * report_markdown.c: see report_markdown.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "report/report_markdown.h"

#include <math.h>

#include "report/report_page.h"

/* Text in which Markdown or HTML would see marks. */
void cvy_md_text(cvy_text *md, const char *text)
{
    for (; *text; text++)
        if (*text == '|')
            cvy_text_add(md, "\\|");
        else if (*text == '<')
            cvy_text_add(md, "&lt;");
        else
            cvy_text_add(md, "%c", *text == '\n' ? ' ' : *text);
}

void cvy_md_cell(cvy_text *md, const char *text)
{
    cvy_text_add(md, " ");
    cvy_md_text(md, text);
    cvy_text_add(md, " |");
}

void cvy_md_end_head(cvy_text *md, int columns)
{
    cvy_text_add(md, "\n|");
    for (int i = 0; i < columns; i++)
        cvy_text_add(md, "---|");
    cvy_text_add(md, "\n");
}

/* The name of a section in a link to it, as code hosts make it. */
void cvy_md_anchor(cvy_text *md, const char *title)
{
    for (; *title; title++) {
        const int is_upper = *title >= 'A' && *title <= 'Z';
        if (is_upper || (*title >= 'a' && *title <= 'z') || (*title >= '0' && *title <= '9') || *title == '-' ||
            *title == '_')
            cvy_text_add(md, "%c", is_upper ? *title - 'A' + 'a' : *title);
        else if (*title == ' ')
            cvy_text_add(md, "-");
    }
}

void cvy_md_number(cvy_text *md, double value)
{
    if (isfinite(value))
        cvy_text_add(md, " %s |", cvy_number_text(value, 3).at);
    else
        cvy_text_add(md, " |");
}
