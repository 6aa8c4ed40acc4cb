/*
 * sweep_summary.c: a search as tables and pages show it, read from its sweep.json. The file may be that of a search
 * that still runs, or of an earlier version.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_tree.h"
#include "sweep/sweep_search.h"

/* The texts of the tree are in the pool of the summary. */
static const char *text_or_none(const cvy_tree *map, const char *path)
{
    const char *text = cvy_tree_text_at(map, path);
    return text ? text : "";
}

static int is_true(const cvy_tree *map, const char *key)
{
    return strcmp(text_or_none(map, key), "true") == 0;
}

/* A number from 1 to CVY_SWEEP_TRIALS_MAX, or 0. */
static int count_at(const cvy_tree *map, const char *key)
{
    const double x = cvy_tree_real_at(map, key);
    return x >= 1 && x <= CVY_SWEEP_TRIALS_MAX ? (int)x : 0;
}

/* ---- trials ---- */

static cvy_status read_values(cvy_pool *pool, const cvy_tree *node, int nkey, const char ***out)
{
    const cvy_tree *values = cvy_tree_get(node, "values");
    const char **text = NULL;
    CVY_CHECK(values && values->kind == CVY_TREE_LIST && values->count == nkey, CVY_E_FORMAT,
              "%s: a trial does not have %d values, one for each key: the file is damaged", cvy_tree_where(node), nkey);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *text * (size_t)CVY_MAX(nkey, 1), &text));
    for (int k = 0; k < nkey; k++)
        text[k] = values->child[k]->text ? values->child[k]->text : "";
    *out = text;
    return CVY_OK;
}

static cvy_status read_line(cvy_pool *pool, const cvy_tree *line, int nkey, cvy_sweep_row *row)
{
    if (!line)
        return CVY_OK;
    CVY_CHECK(line->kind == CVY_TREE_LIST, CVY_E_FORMAT, "%s: the generations of a trial are no list",
              cvy_tree_where(line));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *row->line * (size_t)CVY_MAX(line->count, 1), &row->line));
    for (int i = 0; i < line->count; i++) {
        cvy_sweep_ancestor *a = &row->line[i];
        a->parent = count_at(line->child[i], "parent");
        a->epochs = cvy_tree_real_at(line->child[i], "epochs");
        a->score = cvy_tree_real_at(line->child[i], "score");
        CVY_TRY(read_values(pool, line->child[i], nkey, &a->value));
    }
    row->nline = line->count;
    return CVY_OK;
}

static cvy_status read_row(cvy_pool *pool, const cvy_tree *node, int nkey, cvy_sweep_row *row)
{
    const cvy_tree *scores = cvy_tree_get(node, "scores");
    row->state = cvy_tree_text_at(node, "state");
    CVY_CHECK(cvy_sweep_state_of(node) >= 0 && scores && scores->kind == CVY_TREE_LIST, CVY_E_FORMAT,
              "%s: a trial has no state or no list of scores: the file is damaged", cvy_tree_where(node));
    CVY_TRY(read_values(pool, node, nkey, &row->value));
    row->rank = count_at(node, "rank");
    row->bracket = CVY_MAX(count_at(node, "bracket"), 1);
    row->score = row->rank && scores->count ? cvy_tree_real_or_nan(scores->child[scores->count - 1]) : NAN;
    row->epochs = cvy_tree_real_at(node, "epochs");
    row->seconds = cvy_tree_real_at(node, "seconds");
    row->error = cvy_tree_text_at(node, "error");
    return read_line(pool, cvy_tree_get(node, "generations"), nkey, row);
}

static int compare_rows(const void *a, const void *b)
{
    const cvy_sweep_row *x = a, *y = b;
    if (!x->rank != !y->rank)
        return x->rank ? -1 : 1;
    return x->rank != y->rank ? x->rank - y->rank : x->trial - y->trial;
}

static cvy_status read_rows(cvy_pool *pool, const cvy_tree *trials, cvy_sweep_summary *out)
{
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->row * (size_t)CVY_MAX(trials->count, 1), &out->row));
    for (int i = 0; i < trials->count; i++) {
        cvy_sweep_row *row = &out->row[out->nrows++];
        row->trial = i + 1;
        CVY_TRY(read_row(pool, trials->child[i], out->nkey, row));
        out->nranked += row->rank > 0;
        out->nfailed += cvy_sweep_state_of(trials->child[i]) == CVY_TRIAL_FAILED;
    }
    qsort(out->row, (size_t)out->nrows, sizeof *out->row, compare_rows);
    return CVY_OK;
}

/* ---- the search ---- */

static cvy_status read_keys(cvy_pool *pool, const cvy_tree *root, cvy_sweep_summary *out)
{
    const cvy_tree *keys = cvy_tree_get(root, "keys");
    CVY_CHECK(keys && keys->kind == CVY_TREE_LIST && keys->count <= CVY_SWEEP_KEYS_MAX, CVY_E_FORMAT,
              "%s: there is no list of at most %d keys: the file is damaged", cvy_tree_where(root), CVY_SWEEP_KEYS_MAX);
    const size_t n = (size_t)CVY_MAX(keys->count, 1);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->key * n, &out->key));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->is_log * n, &out->is_log));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *out->is_list * n, &out->is_list));
    for (int k = 0; k < keys->count; k++) {
        out->key[k] = text_or_none(keys->child[k], "key");
        out->is_list[k] = is_true(keys->child[k], "list");
        out->is_log[k] = is_true(keys->child[k], "log");
    }
    out->nkey = keys->count;
    return CVY_OK;
}

cvy_status cvy_sweep_summary_read(cvy_pool *pool, const char *folder, cvy_sweep_summary *out)
{
    const cvy_tree *root = NULL, *trials = NULL;
    *out = (cvy_sweep_summary){0};
    CVY_TRY(cvy_sweep_state_read(pool, folder, &root, &trials));
    out->name = text_or_none(root, "sweep");
    out->metric = text_or_none(root, "metric");
    out->search = text_or_none(root, "search.search");
    out->score_of = text_or_none(root, "score");
    out->higher = strcmp(text_or_none(root, "goal"), "max") == 0;
    CVY_TRY(read_keys(pool, root, out));
    return read_rows(pool, trials, out);
}
