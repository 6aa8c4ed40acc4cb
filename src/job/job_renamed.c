/*
 * job_renamed.c: words of older job files. Keys and values that have a new name, or are gone, are still read in files,
 * in overrides, and in files that runs and checkpoints keep. A note tells the user the new word, or what to use
 * instead.
 *
 * An old word is one row of the table. It occurs nowhere else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/text/base_table.h"
#include "job/job_table.h"

typedef struct old_word {
    const char *path;    /* keys from the top of the file, with dots */
    const char *value;   /* the old value; NULL: the row is about the key itself */
    const char *now;     /* the new value, or the new name of the last key; NULL: the key is gone */
    const char *instead; /* what to use instead of what is gone; NULL: it is the same under another name */
    const char *silent;  /* the value with which a key that is gone had no effect */
} old_word;

static const old_word words[] = {
    {"update", "pipelined", "delayed", NULL, NULL},
    {"update.mode", "pipelined", "delayed", NULL, NULL},
    {"update", "sharded", "zero1", NULL, NULL},
    {"update.mode", "sharded", "zero1", NULL, NULL},
    {"comm.progress", "mpi", "poll", "comm.algorithm: library uses all-reduces of the MPI library", NULL},
    {"data.stage_keep", NULL, NULL,
     "copies are removed at the end; to keep them, copy the files in the job script and name the copies in data.train",
     "false"},
};

/* Recipes that train.preset filled in where the job was silent. */
static const struct {
    const char *name, *keys;
} presets[] = {
    {"goyal2017",
     "epochs: 90, lr_rule: linear, optimizer: {name: sgd, lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 1e-4}, "
     "schedule: {name: multi_step, at: [30 epochs, 60 epochs, 80 epochs], factor: 0.1, warmup: 5 epochs}"},
    {"you2017",
     "epochs: 90, lr_rule: sqrt, optimizer: {name: lars, lr: 2, momentum: 0.9, trust_coefficient: 0.001, weight_decay: "
     "5e-4}, schedule: {name: polynomial, power: 2, warmup: 5 epochs}"},
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

static cvy_status rename_value(cvy_pool *pool, cvy_tree *node, const old_word *w, cvy_text *notes)
{
    char *copy = NULL;
    cvy_text_add(notes,
                 w->instead ? "%s%s: %s: %s is gone, and %s takes its place: %s" : "%s%s: %s: %s is called %s now",
                 notes->bytes ? "\n" : "", cvy_tree_where(node), w->path, node->text, w->now, w->instead);
    CVY_TRY(cvy_pool_strdup(pool, w->now, &copy));
    node->text = copy;
    return CVY_OK;
}

static void remove_key(cvy_tree *map, int at)
{
    map->count--;
    for (int i = at; i < map->count; i++) {
        map->key[i] = map->key[i + 1];
        map->key_at[i] = map->key_at[i + 1];
        map->child[i] = map->child[i + 1];
    }
}

/* A key that is gone is left out, with a note if it had an effect. */
static void drop_key(const old_word *w, cvy_tree *map, int at, cvy_text *notes)
{
    const cvy_tree *node = map->child[at];
    const int had_effect =
        !cvy_tree_is_null(node) && !(node->text && strcmp(cvy_bool_word(node->text), w->silent) == 0);
    if (had_effect)
        cvy_text_add(notes, "%s%s: the key %s is gone: %s", notes->bytes ? "\n" : "", cvy_tree_where(node), w->path,
                     w->instead);
    remove_key(map, at);
}

/* Files that runs keep have all keys of a preset beside its name. In other files the keys that it stood for are
 * missing, so they are refused. */
static cvy_status drop_preset(cvy_tree *root)
{
    static const char *const key[] = {"train.lr_rule", "train.optimizer.name", "train.schedule"};
    int at = 0, index = 0, complete = 1;
    cvy_tree *train = find(root, "train.preset", &at), *node = train ? train->child[at] : NULL;
    for (int i = 0; i < CVY_COUNT(key); i++)
        complete = complete && find(root, key[i], &index);
    for (int i = 0; node && node->text && !complete && i < CVY_COUNT(presets); i++)
        CVY_CHECK(strcmp(node->text, presets[i].name) != 0, CVY_E_CONFIG,
                  "%s: train.preset is gone; write its keys where it is, but for those that train has: %s",
                  cvy_tree_where(node), presets[i].keys);
    if (node && (complete || cvy_tree_is_null(node)))
        remove_key(train, at);
    return CVY_OK;
}

cvy_status cvy_job_read_old_words(cvy_pool *pool, cvy_tree *root, cvy_text *notes)
{
    for (const old_word *w = words; w < words + CVY_COUNT(words); w++) {
        int at = 0;
        cvy_tree *map = find(root, w->path, &at), *node = map ? map->child[at] : NULL;
        if (node && !w->now)
            drop_key(w, map, at, notes);
        else if (node && !w->value)
            CVY_TRY(rename_key(pool, map, at, w->now, notes));
        else if (node && node->kind == CVY_TREE_SCALAR && node->text && strcmp(node->text, w->value) == 0)
            CVY_TRY(rename_value(pool, node, w, notes));
    }
    CVY_TRY(drop_preset(root));
    return notes->status;
}
