/*
 * table.c: see table.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "table/table.h"

#include <math.h>
#include <string.h>

enum { COLUMNS_MAX = 64 };

static cvy_cell cell_of(const cvy_column *c, const void *row)
{
    return (cvy_cell){row, (const char *)row + c->offset};
}

static double real_of(const cvy_column *c, cvy_cell cell)
{
    const double value = *(const double *)cell.value;
    return c->scale != 0 ? value * c->scale : value;
}

static const char *string_of(const cvy_column *c, cvy_cell cell)
{
    const char *text = c->kind == CVY_CELL_TEXT ? cell.value : *(const char *const *)cell.value;
    return text ? text : "";
}

/* The words of a column; the caller frees them. */
static cvy_text words_of(const cvy_column *c, cvy_cell cell)
{
    cvy_text words = {0};
    c->words(cell, &words);
    return words;
}

static int is_empty(const cvy_column *c, cvy_cell cell)
{
    switch (c->kind) {
    case CVY_CELL_TEXT:
    case CVY_CELL_STRING: return !*string_of(c, cell);
    case CVY_CELL_COUNT: return *(const int64_t *)cell.value == 0;
    case CVY_CELL_INT:
    case CVY_CELL_BOOL: return *(const int *)cell.value == 0;
    case CVY_CELL_REAL: return !isfinite(real_of(c, cell));
    case CVY_CELL_WORDS: break;
    }
    cvy_text words = words_of(c, cell);
    const int empty = words.bytes == 0;
    cvy_text_free(&words);
    return empty;
}

static int is_left_out(const cvy_column *c, const void *row)
{
    return !c->key || (c->is_optional && is_empty(c, cell_of(c, row)));
}

/* ---- JSON ---- */

static void add_words(const cvy_column *c, cvy_cell cell, cvy_json *json)
{
    cvy_text words = words_of(c, cell);
    if (words.status != CVY_OK)
        json->text.status = words.status;
    cvy_json_string(json, c->key, words.data ? words.data : "");
    cvy_text_free(&words);
}

static void add_member(const cvy_column *c, cvy_cell cell, cvy_json *json)
{
    switch (c->kind) {
    case CVY_CELL_TEXT:
    case CVY_CELL_STRING: cvy_json_string(json, c->key, string_of(c, cell)); break;
    case CVY_CELL_COUNT: cvy_json_int(json, c->key, *(const int64_t *)cell.value); break;
    case CVY_CELL_INT: cvy_json_int(json, c->key, *(const int *)cell.value); break;
    case CVY_CELL_BOOL: cvy_json_bool(json, c->key, *(const int *)cell.value); break;
    case CVY_CELL_REAL: cvy_json_real(json, c->key, real_of(c, cell)); break;
    case CVY_CELL_WORDS: add_words(c, cell, json); break;
    }
}

void cvy_row_json(const cvy_column *columns, const void *row, cvy_json *json)
{
    for (const cvy_column *c = columns; c->key || c->title; c++)
        if (!is_left_out(c, row))
            add_member(c, cell_of(c, row), json);
}

void cvy_table_json(const cvy_column *columns, cvy_table_rows rows, const char *key, cvy_json *json)
{
    cvy_json_open(json, key, '[');
    for (int i = 0; i < rows.n; i++) {
        cvy_json_open(json, NULL, '{');
        cvy_row_json(columns, (const char *)rows.at + (size_t)i * rows.bytes, json);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

/* ---- for people ---- */

/* unknown: what stands for a real number that is not finite. */
static void add_value(const cvy_column *c, cvy_cell cell, const char *unknown, cvy_text *out)
{
    switch (c->kind) {
    case CVY_CELL_TEXT:
    case CVY_CELL_STRING: cvy_text_add(out, "%s", string_of(c, cell)); break;
    case CVY_CELL_COUNT: cvy_text_add(out, "%lld", (long long)*(const int64_t *)cell.value); break;
    case CVY_CELL_INT: cvy_text_add(out, "%d", *(const int *)cell.value); break;
    case CVY_CELL_BOOL: cvy_text_add(out, *(const int *)cell.value ? "true" : "false"); break;
    case CVY_CELL_REAL:
        if (isfinite(real_of(c, cell)))
            cvy_text_add(out, c->format ? c->format : "%.6g",
                         real_of(c, cell) * (c->shown_times != 0 ? c->shown_times : 1));
        else
            cvy_text_add(out, "%s", unknown);
        break;
    case CVY_CELL_WORDS: c->words(cell, out); break;
    }
}

void cvy_row_lines(const cvy_column *columns, const void *row, cvy_text *out)
{
    enum { KEY_WIDTH = 26 };
    for (const cvy_column *c = columns; c->key || c->title; c++) {
        if (is_left_out(c, row))
            continue;
        cvy_text_add(out, "%-*s  ", KEY_WIDTH, c->key);
        add_value(c, cell_of(c, row), "null", out);
        cvy_text_add(out, "\n");
    }
}

/* What a table shows; the caller frees it. row NULL: the title. */
static cvy_text text_of(const cvy_column *c, const void *row)
{
    cvy_text text = {0};
    if (!row)
        cvy_text_add(&text, "%s", c->title);
    else if (c->words)
        c->words(cell_of(c, row), &text);
    else
        add_value(c, cell_of(c, row), "-", &text);
    return text;
}

static void add_field(const cvy_column *c, const void *row, int width, int is_first, cvy_text *out)
{
    cvy_text text = text_of(c, row);
    if (text.status != CVY_OK)
        out->status = text.status;
    cvy_text_add(out, "%*s%*s", is_first ? 0 : CVY_MAX(c->gap, 1), "", c->width < 0 ? -width : width,
                 text.data ? text.data : "");
    cvy_text_free(&text);
}

static int width_of(const cvy_column *c, const void *row)
{
    cvy_text text = text_of(c, row);
    const int width = (int)text.bytes;
    cvy_text_free(&text);
    return width;
}

static void find_widths(const cvy_column *columns, cvy_table_rows rows, int width[COLUMNS_MAX])
{
    for (int k = 0; k < COLUMNS_MAX && (columns[k].key || columns[k].title); k++) {
        const cvy_column *c = &columns[k];
        width[k] = c->width < 0 ? -c->width : c->width;
        if (c->title && c->widest)
            width[k] = CVY_MAX(width[k], (int)strlen(c->title));
        for (int i = 0; i < rows.n && c->title && c->widest; i++) {
            const int own = width_of(c, (const char *)rows.at + (size_t)i * rows.bytes);
            width[k] = CVY_MAX(width[k], CVY_MIN(own, c->widest));
        }
    }
}

static void add_line(const cvy_column *columns, const void *row, const int *width, cvy_text *out)
{
    int is_first = 1;
    for (int k = 0; k < COLUMNS_MAX && (columns[k].key || columns[k].title); k++)
        if (columns[k].title) {
            add_field(&columns[k], row, width[k], is_first, out);
            is_first = 0;
        }
    while (out->bytes > 0 && out->data[out->bytes - 1] == ' ')
        out->data[--out->bytes] = '\0';
    cvy_text_add(out, "\n");
}

void cvy_table_print(const cvy_column *columns, cvy_table_rows rows, void (*after)(const void *row, cvy_text *out),
                     cvy_text *out)
{
    int width[COLUMNS_MAX];
    find_widths(columns, rows, width);
    add_line(columns, NULL, width, out);
    for (int i = 0; i < rows.n; i++) {
        const void *row = (const char *)rows.at + (size_t)i * rows.bytes;
        add_line(columns, row, width, out);
        if (after)
            after(row, out);
    }
}

/* ---- texts ---- */

cvy_status cvy_row_json_text(const cvy_column *columns, const void *row, char **text_out)
{
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_row_json(columns, row, &json);
    cvy_json_close(&json, '}');
    return cvy_text_take(&json.text, text_out);
}

cvy_status cvy_row_lines_text(const cvy_column *columns, const void *row, char **text_out)
{
    cvy_text lines = {0};
    cvy_row_lines(columns, row, &lines);
    return cvy_text_take(&lines, text_out);
}
