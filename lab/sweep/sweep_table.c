/*
 * sweep_table.c: cvy_sweep_table(): the ranking of a search as text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "sweep/sweep.h"

enum { COLUMNS = CVY_SWEEP_KEYS_MAX + 5, ERRORS_MAX = 5 };

typedef struct cell {
    char text[64];
} cell;

/* The cells of a row, in the order of the columns. */
static void fill_cells(const cvy_sweep_summary *s, const cvy_sweep_row *row, cell cells[COLUMNS])
{
    cvy_text score = {0};
    cvy_text_add_score(&score, row->score);
    memset(cells, 0, sizeof(cell) * COLUMNS);
    if (row->rank)
        snprintf(cells[0].text, sizeof cells[0].text, "%d", row->rank);
    snprintf(cells[1].text, sizeof cells[1].text, "%d", row->trial);
    snprintf(cells[2].text, sizeof cells[2].text, "%s", row->rank && score.data ? score.data : row->state);
    snprintf(cells[3].text, sizeof cells[3].text, "%.4g", row->epochs);
    snprintf(cells[4].text, sizeof cells[4].text, "%.1f", row->seconds);
    for (int k = 0; k < s->nkey; k++)
        snprintf(cells[5 + k].text, sizeof cells[5 + k].text, "%s", row->value[k]);
    cvy_text_free(&score);
}

static void add_cells(const cell *cells, const int *width, int ncolumns, cvy_text *text)
{
    for (int c = 0; c < ncolumns; c++)
        cvy_text_add(text, "%s%*s", c ? "  " : "", width[c], cells[c].text);
    cvy_text_add(text, "\n");
}

static void add_table(const cvy_sweep_summary *s, int rows, cvy_text *text)
{
    cell head[COLUMNS] = {{"rank"}, {"trial"}, {""}, {"epochs"}, {"seconds"}}, cells[COLUMNS];
    int width[COLUMNS] = {0};
    const int ncolumns = 5 + s->nkey, shown = rows > 0 ? CVY_MIN(rows, s->nrows) : s->nrows;
    snprintf(head[2].text, sizeof head[2].text, "%s", s->metric);
    for (int k = 0; k < s->nkey; k++)
        snprintf(head[5 + k].text, sizeof head[5 + k].text, "%s", s->key[k]);
    for (int i = -1; i < shown; i++) {
        if (i >= 0)
            fill_cells(s, &s->row[i], cells);
        for (int c = 0; c < ncolumns; c++)
            width[c] = CVY_MAX(width[c], (int)strlen(i < 0 ? head[c].text : cells[c].text));
    }
    add_cells(head, width, ncolumns, text);
    for (int i = 0; i < shown; i++) {
        fill_cells(s, &s->row[i], cells);
        add_cells(cells, width, ncolumns, text);
    }
    if (shown < s->nrows)
        cvy_text_add(text, "and %d more: " CVY_SWEEP_STATE " has all %d trials\n", s->nrows - shown, s->nrows);
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
    add_table(&summary, rows, &text);
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
