/*
 * report_markdown.h: text and tables in Markdown, as code hosts show it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_MARKDOWN_H
#define CVY_REPORT_MARKDOWN_H

#include "base/text/base_text.h"

/* Text in which Markdown or HTML would see marks. */
void cvy_md_text(cvy_text *md, const char *text);
/* A cell of a row with such a text, or with a number of three digits; one that is not finite leaves it empty. */
void cvy_md_cell(cvy_text *md, const char *text);
void cvy_md_number(cvy_text *md, double value);
/* The end of the first row of a table, and the line below it. */
void cvy_md_end_head(cvy_text *md, int columns);
/* The name of a section in a link to it. */
void cvy_md_anchor(cvy_text *md, const char *title);

#endif
