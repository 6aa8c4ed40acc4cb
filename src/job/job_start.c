/*
 * job_start.c: interprets what a run starts from: train.init.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "job/job_table.h"

/* Reads a text or a list of texts. */
static cvy_status read_skip(cvy_job *job, struct cvy_job_init *init)
{
    const cvy_tree *tree = init->skip_tree;
    const int is_list = tree && tree->kind == CVY_TREE_LIST, count = cvy_tree_is_null(tree) ? 0
                                                                     : is_list              ? tree->count
                                                                                            : 1;
    CVY_TRY(cvy_pool_alloc(job->pool, sizeof *init->skip * ((size_t)count + 1), &init->skip));
    for (int i = 0; i < count; i++) {
        const cvy_tree *item = is_list ? tree->child[i] : tree;
        CVY_CHECK(item->kind == CVY_TREE_SCALAR && item->text && *item->text, CVY_E_CONFIG,
                  "%s: train.init.skip: expected a pattern or a list of patterns, such as [fc.*]",
                  cvy_tree_where(item));
        init->skip[i] = item->text;
    }
    init->nskip = count;
    return CVY_OK;
}

static cvy_status read_rename(cvy_job *job, struct cvy_job_init *init)
{
    const cvy_tree *map = init->rename;
    if (cvy_tree_is_null(map))
        return CVY_OK;
    CVY_CHECK(map->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: train.init.rename: expected a map of regular expressions and replacements, such as "
              "{'^module\\.': ''}",
              cvy_tree_where(map));
    CVY_TRY(cvy_pool_alloc(job->pool, sizeof *init->pattern * ((size_t)map->count + 1), &init->pattern));
    CVY_TRY(cvy_pool_alloc(job->pool, sizeof *init->replacement * ((size_t)map->count + 1), &init->replacement));
    for (int i = 0; i < map->count; i++) {
        CVY_CHECK(map->child[i]->kind == CVY_TREE_SCALAR, CVY_E_CONFIG,
                  "%s: train.init.rename: the replacement for '%s' is not a text", cvy_tree_where(map->child[i]),
                  map->key[i]);
        map->child[i]->used = 1;
        init->pattern[i] = map->key[i];
        init->replacement[i] = map->child[i]->text ? map->child[i]->text : "";
    }
    init->nrename = map->count;
    return CVY_OK;
}

cvy_status cvy_job_interpret_init(cvy_job *job)
{
    struct cvy_job_init *init = &job->train.init;
    const cvy_tree *tree = job->train.init_tree;
    if (cvy_tree_is_null(tree) || (tree->text && !*tree->text))
        return CVY_OK;
    CVY_CHECK(tree->kind != CVY_TREE_LIST, CVY_E_CONFIG,
              "%s: train.init is a list, expected a file, the folder of a run, or a map {from: ...}",
              cvy_tree_where(tree));
    if (tree->kind == CVY_TREE_SCALAR) {
        init->from = tree->text;
        return CVY_OK;
    }
    CVY_TRY(cvy_options_parse(job->pool, "train.init", cvy_job_init_rows, tree, NULL, init, sizeof *init));
    CVY_TRY(read_rename(job, init));
    return read_skip(job, init);
}
