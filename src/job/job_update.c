/*
 * job_update.c: the key `update`: how ranks update the weights, as a word or a map. Each update mode defines the keys
 * of its map (program/program_update.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "job/job_table.h"
#include "program/program_update.h"

/* ---- the modes ---- */

struct mode_key {
    int number;
};

/* Lists the modes as "sync|delayed|..." */
static cvy_status list_modes(cvy_pool *pool, char **out)
{
    cvy_text t = {0};
    const cvy_update_def *def;
    for (int i = 0; (def = cvy_update_by_mode(i)) != NULL; i++)
        cvy_text_add(&t, "%s%s", i > 0 ? "|" : "", def->name);
    const cvy_status status = t.status == CVY_OK ? cvy_pool_strdup(pool, t.data, out) : t.status;
    cvy_text_free(&t);
    return status;
}

static cvy_status find_mode(const cvy_job *job, const cvy_tree *word, const cvy_update_def **out)
{
    char *names = NULL;
    cvy_tree *map = NULL;
    struct mode_key key = {0};
    CVY_TRY(list_modes(job->pool, &names));
    const cvy_option rows[] = {
        {"mode", CVY_TYPE_CHOICE, CVY_FIELD(mode_key, number), NULL, names, "", "how ranks update the weights"}, {0}};
    CVY_TRY(cvy_tree_new_map(job->pool, word->file, &map));
    CVY_TRY(cvy_tree_set(job->pool, map, "mode", (cvy_tree *)(uintptr_t)word));
    CVY_TRY(cvy_options_parse(job->pool, "update", rows, map, NULL, &key, sizeof key));
    *out = cvy_update_by_mode(key.number);
    return CVY_OK;
}

/* ---- the key ---- */

static const char *where(const cvy_job *job, const char *key)
{
    const cvy_tree *node = cvy_tree_get(job->update_tree, key);
    return node ? cvy_tree_where(node) : cvy_tree_where(job->update_tree);
}

/* Gives the word of the mode, and a map that also has the mode's own keys. */
static cvy_status split(const cvy_job *job, const cvy_tree **word_out, cvy_tree **keys_out)
{
    const cvy_tree *node = job->update_tree;
    CVY_CHECK(node->kind != CVY_TREE_LIST, CVY_E_CONFIG, "%s: update is a list, expected a word or a map {mode: ...}",
              cvy_tree_where(node));
    CVY_TRY(cvy_tree_new_map(job->pool, node->file, keys_out));
    *word_out = node->kind == CVY_TREE_MAP ? cvy_tree_get(node, "mode") : node;
    CVY_CHECK(*word_out, CVY_E_CONFIG, "%s: update: the key \"mode\" is missing", cvy_tree_where(node));
    return node->kind == CVY_TREE_MAP ? cvy_tree_copy(job->pool, node, keys_out) : CVY_OK;
}

static cvy_status read_options(const cvy_job *job, const cvy_tree *map, const cvy_update_def *def, void **out)
{
    static const char *const also[] = {"mode", NULL};
    static const cvy_option none[] = {{0}};
    char who[64], text[256];
    const char *key = "";
    snprintf(who, sizeof who, "update (%s)", def->name);
    CVY_TRY(cvy_pool_alloc(job->pool, CVY_MAX(def->options_size, 1), out));
    CVY_TRY(cvy_options_parse(job->pool, who, def->options ? def->options : none, map, also, *out, def->options_size));
    if (!def->read_options || def->read_options(*out, &key) == CVY_OK)
        return CVY_OK;
    snprintf(text, sizeof text, "%s", cvy_error_text());
    return cvy_error_set(CVY_E_CONFIG, "%s: update.%s %s", where(job, key), key, text);
}

/* Writes the defaults into the tree, so that the resolved file shows what was used. A mode without keys becomes a
 * word. */
static cvy_status resolve(cvy_job *job)
{
    const cvy_update_def *def = job->update.def;
    cvy_tree *tree = NULL, *word = NULL, *keys = NULL;
    CVY_TRY(cvy_tree_new_scalar(job->pool, job->file, def->name, &word));
    job->update_tree = word;
    if (!def->options)
        return CVY_OK;
    CVY_TRY(cvy_options_tree(job->pool, def->options, job->update.options, &keys));
    CVY_TRY(cvy_tree_new_map(job->pool, job->file, &tree));
    CVY_TRY(cvy_tree_set(job->pool, tree, "mode", word));
    for (int i = 0; i < keys->count; i++)
        CVY_TRY(cvy_tree_set(job->pool, tree, keys->key[i], keys->child[i]));
    job->update_tree = tree;
    return CVY_OK;
}

cvy_status cvy_job_interpret_update(cvy_job *job)
{
    const cvy_tree *word = NULL;
    cvy_tree *map = NULL;
    CVY_TRY(split(job, &word, &map));
    CVY_TRY(find_mode(job, word, &job->update.def));
    CVY_TRY(read_options(job, map, job->update.def, &job->update.options));
    return resolve(job);
}

/* ---- options of a program ---- */

void cvy_job_fill_update(const cvy_job *job, cvy_program_opts *opts)
{
    opts->update_mode = (cvy_update_mode)job->update.def->mode;
    if (job->update.def->fill)
        job->update.def->fill(job->update.options, opts);
}

void cvy_job_update_in_sync(cvy_job *job)
{
    job->update = (struct cvy_job_update){.def = cvy_update_find("sync")};
}
