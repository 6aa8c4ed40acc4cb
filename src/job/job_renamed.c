/*
 * job_renamed.c: words of older job files. Keys and values that have a new name are still read in files, in overrides,
 * and in files that runs and checkpoints keep. A note tells the user the new word.
 *
 * A rename is one row of the table. The old word occurs nowhere else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "job/job_table.h"

static const struct {
    const char *path;  /* keys from the top of the file, with dots */
    const char *value; /* the old value; NULL: the key itself has a new name */
    const char *now;   /* the new value, or the new name of the last key */
} renamed[] = {
    {"update", "pipelined", "delayed"},
    {"update.mode", "pipelined", "delayed"},
    {"update", "sharded", "zero1"},
    {"update.mode", "sharded", "zero1"},
};

/* Finds the map that has the last key of the path, and the index of that key. NULL: the key is not given. */
static cvy_tree *find(cvy_tree *root, const char *path, int *index_out)
{
    cvy_tree *map = root;
    for (;;) {
        const size_t n = strcspn(path, ".");
        int at = -1;
        for (int i = 0; map->kind == CVY_TREE_MAP && i < map->count; i++)
            if (strlen(map->key[i]) == n && strncmp(map->key[i], path, n) == 0)
                at = i;
        if (at < 0)
            return NULL;
        if (path[n] == '\0') {
            *index_out = at;
            return map;
        }
        map = map->child[at];
        path += n + 1;
    }
}

static cvy_status rename_key(cvy_pool *pool, cvy_tree *map, int at, const char *now, cvy_text *notes)
{
    CVY_CHECK(!cvy_tree_get(map, now), CVY_E_CONFIG, "%s: %s is called %s now, and that is given too: leave one out",
              cvy_tree_where(map->child[at]), map->key[at], now);
    cvy_text_add(notes, "%s%s: the key %s is called %s now", notes->bytes ? "\n" : "", cvy_tree_where(map->child[at]),
                 map->key[at], now);
    char *copy = NULL;
    CVY_TRY(cvy_pool_strdup(pool, now, &copy));
    map->key[at] = copy;
    return CVY_OK;
}

static cvy_status rename_value(cvy_pool *pool, cvy_tree *node, const char *path, const char *now, cvy_text *notes)
{
    char *copy = NULL;
    cvy_text_add(notes, "%s%s: %s: %s is called %s now", notes->bytes ? "\n" : "", cvy_tree_where(node), path,
                 node->text, now);
    CVY_TRY(cvy_pool_strdup(pool, now, &copy));
    node->text = copy;
    return CVY_OK;
}

cvy_status cvy_job_read_old_words(cvy_pool *pool, cvy_tree *root, cvy_text *notes)
{
    for (int i = 0; i < CVY_COUNT(renamed); i++) {
        int at = 0;
        cvy_tree *map = find(root, renamed[i].path, &at), *node = map ? map->child[at] : NULL;
        if (node && !renamed[i].value)
            CVY_TRY(rename_key(pool, map, at, renamed[i].now, notes));
        else if (node && node->kind == CVY_TREE_SCALAR && node->text && strcmp(node->text, renamed[i].value) == 0)
            CVY_TRY(rename_value(pool, node, renamed[i].path, renamed[i].now, notes));
    }
    return notes->status;
}
