/*
 * sweep_table.c: cvy_sweep_table(): the ranking of a search as text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "sweep/sweep_search.h"
#include "table/table.h"

enum { ERRORS_MAX = 5 };

/* A trial with its values side by side, so that each is the member of a column. */
typedef struct line {
    cvy_sweep_row trial;
    const char *value[CVY_SWEEP_KEYS_MAX];
} line;

static void rank_words(cvy_cell cell, cvy_text *out)
{
    const int rank = *(const int *)cell.value;
    if (rank)
        cvy_text_add(out, "%d", rank);
}

static void score_words(cvy_cell cell, cvy_text *out)
{
    const cvy_sweep_row *trial = &((const line *)cell.row)->trial;
    if (trial->rank)
        cvy_text_add_score(out, trial->score);
    else
        cvy_text_add(out, "%s", trial->state);
}

#define COLUMN(kind_of_it, member, ...)                                                                                \
    CVY_COLUMN_AS(line, NULL, kind_of_it, member, .widest = 64, .gap = 2, __VA_ARGS__)

static cvy_status add_table(cvy_pool *pool, const cvy_sweep_summary *s, int rows, cvy_text *text)
{
    cvy_column columns[5 + CVY_SWEEP_KEYS_MAX + 1] = {
        COLUMN(INT, trial.rank, .title = "rank", .words = rank_words),
        COLUMN(INT, trial.trial, .title = "trial"),
        COLUMN(REAL, trial.score, .title = s->metric, .words = score_words),
        COLUMN(REAL, trial.epochs, .title = "epochs", .format = "%.4g"),
        COLUMN(REAL, trial.seconds, .title = "seconds", .format = "%.1f"),
    };
    const int shown = rows > 0 ? CVY_MIN(rows, s->nrows) : s->nrows;
    line *lines = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *lines * ((size_t)shown + 1), &lines));
    for (int k = 0; k < s->nkey; k++)
        columns[5 + k] = (cvy_column)COLUMN(STRING, value[k], .title = s->key[k]);
    for (int i = 0; i < shown; i++) {
        lines[i].trial = s->row[i];
        memcpy(lines[i].value, s->row[i].value, sizeof *lines[i].value * (size_t)s->nkey);
    }
    cvy_table_print(columns, CVY_ROWS(lines, shown), NULL, text);
    if (shown < s->nrows)
        cvy_text_add(text, "and %d more: " CVY_SWEEP_STATE " has all %d trials\n", s->nrows - shown, s->nrows);
    return CVY_OK;
}

/* The errors of failed trials, which are the last rows. */
static void add_errors(const cvy_sweep_summary *s, cvy_text *text)
{
    int n = 0;
    for (int i = 0; i < s->nrows && n < ERRORS_MAX; i++)
        if (s->row[i].error && strcmp(s->row[i].state, "failed") == 0) {
            cvy_text_add(text, "trial %d failed: %s\n", s->row[i].trial, s->row[i].error);
            n++;
        }
    if (n < s->nfailed)
        cvy_text_add(text, "and %d more failed: " CVY_SWEEP_STATE " has their errors\n", s->nfailed - n);
}

static cvy_status print_table(const char *folder, int rows, char **text_out)
{
    cvy_sweep_summary summary;
    cvy_pool *pool = NULL;
    cvy_text text = {0};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_sweep_summary_read(pool, folder, &summary));
    CVY_TRY_OUT(add_table(pool, &summary, rows, &text));
    for (int k = 0; k < summary.nkey; k++)
        cvy_sweep_add_edge(&summary, k, &text);
    add_errors(&summary, &text);
    CVY_TRY_OUT(text.status);
    *text_out = text.data;
    text = (cvy_text){0};
out:
    cvy_text_free(&text);
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_sweep_table(const char *folder, int rows, char **text_out)
{
    CVY_ENTRY();
    CVY_CHECK(folder && text_out, CVY_E_ARGUMENT, "cvy_sweep_table() needs a folder and a place for the table");
    CVY_CHECK(strlen(folder) < CVY_SWEEP_OUT_MAX, CVY_E_ARGUMENT,
              "cvy_sweep_table(): the name of the folder has %zu characters, expected fewer than %d", strlen(folder),
              CVY_SWEEP_OUT_MAX);
    *text_out = NULL;
    return print_table(folder, rows, text_out);
}
