/*
 * job_update.c: the key `update`: how ranks update the weights, as a word or a map. Each update mode defines the keys
 * of its map (program/program_update.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "job/job_table.h"
#include "program/program_options.h"
#include "program/program_update.h"

/* Reads the word into job->program.update_mode. */
static cvy_status find_mode(cvy_job *job, const cvy_tree *word)
{
    const cvy_program_option *mode = cvy_program_option_of_key("update", "mode");
    CVY_TRY(cvy_option_set(job->pool, "update", &mode->row, word, &job->program));
    job->update.def = cvy_update_by_mode((int)job->program.update_mode);
    return CVY_OK;
}

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

static cvy_status read_options(cvy_job *job, const cvy_tree *map, const cvy_update_def *def)
{
    static const char *const also[] = {"mode", NULL};
    const cvy_option *rows = NULL;
    void *fields = NULL;
    char who[64], text[256];
    const char *key = "";
    snprintf(who, sizeof who, "update (%s)", def->name);
    CVY_TRY(cvy_pool_alloc(job->pool, CVY_MAX(def->job.options_size, 1), &job->update.options));
    CVY_TRY(cvy_job_update_rows(job, job->pool, def, &rows, &fields));
    CVY_TRY(cvy_options_parse(job->pool, who, rows, map, also, fields, def->job.options_size));
    if (!def->job.read_options || def->job.read_options(job->update.options, &key) == CVY_OK)
        return CVY_OK;
    snprintf(text, sizeof text, "%s", cvy_error_text());
    return cvy_error_set(CVY_E_CONFIG, "%s: update.%s %s", where(job, key), key, text);
}

/* Writes the defaults into the tree, so that the resolved file shows what was used. A mode without keys becomes a
 * word. */
static cvy_status resolve(cvy_job *job)
{
    const cvy_update_def *def = job->update.def;
    const cvy_option *rows = NULL;
    void *fields = NULL;
    cvy_tree *tree = NULL, *word = NULL, *keys = NULL;
    CVY_TRY(cvy_tree_new_scalar(job->pool, job->file, def->name, &word));
    job->update_tree = word;
    CVY_TRY(cvy_job_update_rows(job, job->pool, def, &rows, &fields));
    if (!rows->name)
        return CVY_OK;
    CVY_TRY(cvy_options_tree(job->pool, rows, fields, &keys));
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
    CVY_TRY(find_mode(job, word));
    CVY_TRY(read_options(job, map, job->update.def));
    return resolve(job);
}

void cvy_job_update_in_sync(cvy_job *job)
{
    job->update = (struct cvy_job_update){.def = cvy_update_find("sync")};
    job->program.update_mode = (cvy_update_mode)job->update.def->mode;
}
