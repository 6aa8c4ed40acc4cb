/*
 * session_source.c: a data source as it is written on the command line.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "session/session_source.h"

#include <string.h>

#include "data/data_public.h"
#include "data/data_reader.h"

cvy_status cvy_job_parse_source(cvy_pool *pool, const char *source, cvy_tree **out)
{
    return cvy_data_parse_source(pool, source, out);
}

cvy_status cvy_job_open_source(cvy_pool *pool, const char *source, cvy_dataset **out)
{
    cvy_tree *tree = NULL;
    CVY_TRY(cvy_job_parse_source(pool, source, &tree));
    return cvy_dataset_open(tree, NULL, 0, 0, out);
}

/* ---- the options of another source ---- */

static int is_among(const char *word, const char *const *list)
{
    while (*list && strcmp(*list, word) != 0)
        list++;
    return *list != NULL;
}

/* Options that choose samples, or name files that belong to the other source. */
static int is_own(const char *reader, const char *key)
{
    static const char *const always[] = {"where", "mask", "part", "index", "root", NULL};
    static const char *const files_of_npy[] = {"x", "y", "label", "weight", NULL};
    if (strcmp(key, "group") == 0 && strcmp(reader, "csv") != 0) /* of a table it is no input, so it is left out */
        return 1;
    return is_among(key, always) || (strcmp(reader, "npy") == 0 && is_among(key, files_of_npy)) ||
           (strcmp(reader, "idx") == 0 && strcmp(key, "labels") == 0);
}

static int is_of_targets(const char *key)
{
    static const char *const keys[] = {"y",       "label",          "labels",      "text", "weight",
                                       "classes", "class_per_file", "first_label", NULL};
    return is_among(key, keys);
}

static const cvy_option *find_option(const cvy_reader_def *reader, const char *key)
{
    const cvy_option *o = reader->options;
    while (o && o->name && strcmp(o->name, key) != 0)
        o++;
    return o && o->name ? o : NULL;
}

/* The map of a source, or of the first of several; NULL: a path alone, or generated data. */
static const cvy_tree *first_map(const cvy_tree *source)
{
    while (source && source->kind != CVY_TREE_SCALAR) {
        const cvy_tree *several = source->kind == CVY_TREE_LIST ? source : cvy_tree_get(source, "sources");
        if (!several)
            return cvy_tree_get(source, "path") || cvy_tree_get(source, "x") ? source : NULL;
        source = several->kind == CVY_TREE_LIST && several->count > 0 ? several->child[0] : NULL;
    }
    return NULL;
}

const char *cvy_job_source_option(const cvy_tree *source, const char *key)
{
    const cvy_tree *map = first_map(source), *value = map ? cvy_tree_get(map, key) : NULL;
    return value && value->kind == CVY_TREE_SCALAR ? value->text : NULL;
}

/* The reader of a path; NULL: none, and opening the path says why. */
static const cvy_reader_def *find_reader(const char *path, const cvy_tree *like)
{
    const cvy_tree *format = like ? cvy_tree_get(like, "format") : NULL;
    const cvy_reader_def *reader = NULL;
    if (cvy_reader_detect(path, &reader) == CVY_OK)
        return reader;
    return format && format->text && cvy_reader_by_name(format->text, &reader) == CVY_OK ? reader : NULL;
}

static cvy_status add_text(cvy_pool *pool, cvy_tree *map, const char *key, const char *text)
{
    cvy_tree *value = NULL;
    CVY_TRY(cvy_tree_new_scalar(pool, map->file, text, &value));
    return cvy_tree_set(pool, map, key, value);
}

/* Replaces a path by a map of the path, its format and the options. */
static cvy_status add_options(cvy_pool *pool, const cvy_tree *like, int with_targets, int channels, cvy_tree **path)
{
    const char *const name = (*path)->text;
    const cvy_reader_def *reader = name ? find_reader(name, like) : NULL;
    cvy_tree *map = NULL;
    if (!reader)
        return CVY_OK;
    CVY_TRY(cvy_tree_new_map(pool, (*path)->file, &map));
    CVY_TRY(cvy_tree_set(pool, map, "path", *path));
    CVY_TRY(add_text(pool, map, "format", reader->name));
    for (int i = 0; like && i < like->count; i++)
        if (find_option(reader, like->key[i]) && !is_own(reader->name, like->key[i]) &&
            (with_targets || !is_of_targets(like->key[i])))
            CVY_TRY(cvy_tree_set(pool, map, like->key[i], like->child[i]));
    const cvy_option *colours = find_option(reader, "channels");
    if (channels && colours && strcmp(colours->valid, "auto|grey|rgb") == 0 && !cvy_tree_get(map, "channels"))
        CVY_TRY(add_text(pool, map, "channels", channels == 1 ? "grey" : "rgb"));
    *path = map;
    return CVY_OK;
}

cvy_status cvy_job_parse_source_like(cvy_pool *pool, const char *source, const cvy_tree *like, int with_targets,
                                     int channels, cvy_tree **out)
{
    cvy_tree *tree = NULL;
    const cvy_tree *map = first_map(like);
    CVY_TRY(cvy_job_parse_source(pool, source, &tree));
    if (tree->kind == CVY_TREE_SCALAR)
        CVY_TRY(add_options(pool, map, with_targets, channels, &tree));
    for (int i = 0; tree->kind == CVY_TREE_LIST && i < tree->count; i++)
        if (tree->child[i]->kind == CVY_TREE_SCALAR)
            CVY_TRY(add_options(pool, map, with_targets, channels, &tree->child[i]));
    *out = tree;
    return CVY_OK;
}
