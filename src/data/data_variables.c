/*
 * data_variables.c: the names of the variables that are joined as x and y, in formats whose sources list them (`x:
 * [t2m, u10]` of NetCDF, HDF5 and FITS). They are columns as those of a table are: further data have them in the order
 * of the training, whatever the order of their own list.
 *
 * It runs when a source is opened.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "data/data_agrees.h"
#include "data/data_names.h"

/* Whether its sources list variables: of a table, x is all columns that are nothing else. */
static int lists_variables(const cvy_reader_def *reader)
{
    const cvy_option *o = reader->options;
    while (o && o->name && strcmp(o->name, "x") != 0)
        o++;
    return o && o->name && o->type == CVY_TYPE_TREE;
}

/* The list that the source has for x or y; NULL: there is none, or fewer than two names. */
static const cvy_tree *list_of(const cvy_reader_def *reader, const cvy_tree *source, const char *key)
{
    const int may = lists_variables(reader) && source && source->kind == CVY_TREE_MAP;
    const cvy_tree *list = may ? cvy_tree_get(source, key) : NULL;
    if (!list || list->kind != CVY_TREE_LIST || list->count < 2)
        return NULL;
    for (int i = 0; i < list->count; i++)
        if (list->child[i]->kind != CVY_TREE_SCALAR || !list->child[i]->text)
            return NULL; /* the reader says so */
    return list;
}

static cvy_status names_of(cvy_pool *pool, const cvy_tree *list, const char *const **out, int64_t *n_out)
{
    char **name = NULL;
    *n_out = list ? list->count : 0;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *name * (size_t)CVY_MAX(*n_out, 1), &name));
    for (int64_t i = 0; i < *n_out; i++)
        CVY_TRY(cvy_pool_strdup(pool, list->child[i]->text, &name[i]));
    *out = (const char *const *)name;
    return CVY_OK;
}

/* Puts a list of these names into the place of the source's own, if that has them in another order. */
static cvy_status reorder(cvy_pool *pool, const cvy_reader_def *reader, const char *key, const char *const *known,
                          int64_t nknown, const cvy_tree **source, int *renamed, char **note_out)
{
    const cvy_tree *own = list_of(reader, *source, key);
    const char *const *name = NULL;
    cvy_tree *copy = NULL, *list = NULL, *item = NULL;
    cvy_data_names relation = CVY_DATA_NAMES_SAME;
    char text[2][CVY_DATA_NAMES_TEXT];
    int64_t n = 0;
    if (!own || nknown < 2)
        return CVY_OK;
    CVY_TRY(names_of(pool, own, &name, &n));
    CVY_TRY(cvy_data_names_relate(known, nknown, name, n, &relation));
    for (int64_t i = 0; relation == CVY_DATA_NAMES_OTHER && i < n; i++)
        for (int64_t k = 0; k < nknown; k++)
            CVY_CHECK(i == k || strcmp(name[i], known[k]) != 0, CVY_E_CONFIG,
                      "%s: %s is %s, and that of the training data is %s: %s has another place among other names",
                      cvy_tree_where(own), key, cvy_data_names_text(name, n, text[0]),
                      cvy_data_names_text(known, nknown, text[1]), name[i]);
    if (relation == CVY_DATA_NAMES_OTHER && n == nknown) {
        *renamed = 1;
        return cvy_pool_printf(pool, note_out,
                               "%s: %s is %s, and that of the training data is %s: they are taken in the order of the "
                               "lists",
                               cvy_tree_where(own), key, cvy_data_names_text(name, n, text[0]),
                               cvy_data_names_text(known, nknown, text[1]));
    }
    if (relation != CVY_DATA_NAMES_REORDERED)
        return CVY_OK;
    CVY_TRY(cvy_tree_copy(pool, *source, &copy));
    CVY_TRY(cvy_tree_copy(pool, own, &list));
    for (int i = 0; i < list->count; i++) {
        CVY_TRY(cvy_tree_new_scalar(pool, own->file, known[i], &item));
        item->used = own->child[i]->used = 1;
        list->child[i] = item;
    }
    CVY_TRY(cvy_tree_set(pool, copy, key, list));
    *source = copy;
    return cvy_pool_printf(pool, note_out, "%s: %s is brought into the order of the training data: %s",
                           cvy_tree_where(own), key, cvy_data_names_text(known, nknown, text[0]));
}

cvy_status cvy_variables_follow(cvy_pool *pool, const cvy_reader_def *reader, const cvy_columns *like,
                                const cvy_tree **source, cvy_followed *out)
{
    CVY_TRY(reorder(pool, reader, "x", like->x, like->nx, source, &out->renamed, &out->note[0]));
    return reorder(pool, reader, "y", like->y, like->ny, source, &out->renamed, &out->note[1]);
}

cvy_status cvy_variables_describe(cvy_pool *pool, const cvy_reader_def *reader, const cvy_tree *source,
                                  const cvy_followed *followed, cvy_reader_info *info)
{
    static const char *const only[] = {"x"}; /* one variable is x, whatever its name */
    const cvy_tree *x = list_of(reader, source, "x"), *y = list_of(reader, source, "y");
    cvy_columns *c = &info->columns;
    for (int i = 0; i < CVY_COUNT(followed->note); i++)
        if (followed->note[i])
            CVY_TRY(cvy_reader_note(info, "%s", followed->note[i]));
    if (c->x || followed->renamed || (!x && !y))
        return CVY_OK;
    const char *label = source ? cvy_tree_text_at(source, "label") : NULL;
    if (info->has_label)
        CVY_TRY(
            cvy_pool_strdup(pool, label ? label : "label", (char **)&c->label)); /* one of the names that are tried */
    CVY_TRY(names_of(pool, y, &c->y, &c->ny));
    CVY_TRY(names_of(pool, x, &c->x, &c->nx));
    if (!x) {
        c->x = only;
        c->nx = 1;
    }
    return CVY_OK;
}
