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

/* The names of the columns of a set: classes, or numbers. Those of several outputs begin with the name of theirs. */
static cvy_status write_column_names(const cvy_prediction_file *t, int k)
{
    const cvy_prediction_set *set = &t->set[k];
    const int is_last = k + 1 == t->nset, several = t->nset > 1;
    for (int64_t i = 0; i < set->elems; i++) {
        char *name = NULL;
        if (several && set->by_class && t->class_name)
            CVY_TRY(cvy_mem_printf(&name, "%s_%s", set->name, t->class_name[i]));
        else if (several || !set->by_class)
            CVY_TRY(cvy_mem_printf(&name, "%s_%lld", several ? set->name : "output", (long long)i));
        if (name)
            write_text(t->file.stream, name);
        else
            write_class(t, i);
        cvy_mem_free(&name);
        fputc(is_last && i + 1 == set->elems ? '\n' : ',', t->file.stream);
    }
    return CVY_OK;
}

static cvy_status write_head(const cvy_prediction_file *t)
{
    FILE *file = t->file.stream;
    if (t->ask.names)
        fprintf(file, "sample,");
    for (int64_t k = 1; t->nset == 0 && k <= t->top; k++)
        fprintf(file, "class_%lld,probability_%lld%c", (long long)k, (long long)k, k < t->top ? ',' : '\n');
    for (int k = 0; k < t->nset; k++)
        CVY_TRY(write_column_names(t, k));
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
    if (row->name) {
        write_text(file, row->name);
        fputc(',', file);
    }
    for (int64_t i = 0; t->nset == 0 && i < t->top; i++) {
        write_class(t, row->label[i]);
        fprintf(file, ",%.9g%c", row->share[i], i + 1 < t->top ? ',' : '\n');
    }
    for (int k = 0; k < t->nset; k++)
        for (int64_t i = 0; i < t->set[k].elems; i++)
            fprintf(file, "%.9g%c", row->value[k][i], k + 1 == t->nset && i + 1 == t->set[k].elems ? '\n' : ',');
    return CVY_OK;
}

const cvy_prediction_format cvy_prediction_csv = {csv_begin, csv_row};
