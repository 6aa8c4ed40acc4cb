/*
 * score_prediction_csv.c: predictions as text: see score_prediction_file.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "score/score_prediction_file.h"

/* Writes a text as a field of CSV: in quotes if it has a character that CSV uses itself. */
static void write_text(FILE *file, const char *text)
{
    const int plain = strpbrk(text, ",\"\n\r") == NULL;
    if (!plain)
        fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    if (!plain)
        fputc('"', file);
}

static void write_class(const cvy_prediction_file *t, int64_t label)
{
    if (t->class_name && label >= 0)
        write_text(t->file.stream, t->class_name[label]);
    else if (label >= 0)
        fprintf(t->file.stream, "%lld", (long long)label);
}

static void separate(const cvy_prediction_file *t, int is_first)
{
    if (!is_first)
        fputc(',', t->file.stream);
}

/* The names of the columns of a set: classes, numbers, or its own name if it is one number. */
static cvy_status write_column_names(const cvy_prediction_file *t, int k, int is_first)
{
    const cvy_prediction_set *set = &t->set[k];
    for (int64_t i = 0; i < set->elems; i++, is_first = 0) {
        char *name = NULL;
        if (set->column && set->by_class && t->class_name)
            CVY_TRY(cvy_mem_printf(&name, "%s_%s", set->column, t->class_name[i]));
        else if (set->column && set->shape.ndim == 0 && t->ensemble->by_class)
            CVY_TRY(cvy_mem_printf(&name, "%s", set->column));
        else if (set->column)
            CVY_TRY(cvy_mem_printf(&name, "%s_%lld", set->column, (long long)i));
        separate(t, is_first);
        if (name)
            write_text(t->file.stream, name);
        else
            write_class(t, i);
        cvy_mem_free(&name);
    }
    return CVY_OK;
}

static cvy_status write_head(const cvy_prediction_file *t)
{
    FILE *file = t->file.stream;
    if (t->ask.names)
        fprintf(file, "sample");
    for (int64_t k = 1; k <= t->nlabel; k++) {
        separate(t, k == 1 && !t->ask.names);
        fprintf(file, "class_%lld,probability_%lld", (long long)k, (long long)k);
    }
    for (int k = 0; k < t->nset; k++)
        CVY_TRY(write_column_names(t, k, k == 0 && !t->ask.names && t->nlabel == 0));
    fputc('\n', file);
    return CVY_OK;
}

static cvy_status csv_begin(cvy_prediction_file *t)
{
    CVY_TRY(cvy_file_temporary_open(t->ask.out, &t->file));
    return t->ask.header ? write_head(t) : CVY_OK;
}

static cvy_status csv_row(cvy_prediction_file *t, const cvy_prediction_row *row)
{
    FILE *file = t->file.stream;
    int is_first = !row->name;
    if (row->name)
        write_text(file, row->name);
    for (int64_t i = 0; i < t->nlabel; i++, is_first = 0) {
        separate(t, is_first);
        write_class(t, row->label[i]);
        fprintf(file, ",%.9g", row->share[i]);
    }
    for (int k = 0; k < t->nset; k++)
        for (int64_t i = 0; i < t->set[k].elems; i++, is_first = 0) {
            separate(t, is_first);
            fprintf(file, "%.9g", row->value[k][i]);
        }
    fputc('\n', file);
    return CVY_OK;
}

const cvy_prediction_format cvy_prediction_csv = {csv_begin, csv_row};
