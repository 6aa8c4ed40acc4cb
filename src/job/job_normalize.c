/*
 * job_normalize.c: interprets the keys data.normalize and data.normalize_targets (`auto`, `none`, or numbers) and
 * data.roles. With data.augment they become one list of operations on a sample.
 *
 * session/session_normalize.c computes the numbers for `auto`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "job/job_table.h"

/* Reads a word or numbers. *value becomes NULL for `none`. */
static cvy_status read_numbers(const char *key, const cvy_tree **value, int *auto_out)
{
    const cvy_tree *n = *value;
    const char *word = n && n->kind == CVY_TREE_SCALAR && n->text ? n->text : "";
    *auto_out = strcmp(word, "auto") == 0;
    if (strcmp(word, "none") == 0)
        *value = n = NULL;
    CVY_CHECK(!n || *auto_out || n->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: data.%s is neither auto, none nor a map {mean: [..], std: [..]}", cvy_tree_where(n), key);
    return CVY_OK;
}

/* The roles of y and of x; NULL: it has none. */
static cvy_status read_roles(const cvy_tree *roles, const cvy_tree **y_out, const cvy_tree **x_out)
{
    *y_out = *x_out = NULL;
    if (!roles)
        return CVY_OK;
    CVY_CHECK(roles->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: data.roles is not a map, expected one such as {y: field}",
              cvy_tree_where(roles));
    for (int i = 0; i < roles->count; i++)
        CVY_CHECK(strcmp(roles->key[i], "y") == 0 || strcmp(roles->key[i], "x") == 0, CVY_E_CONFIG,
                  "%s: data.roles: '%s' has no role; the input is x, the target is y",
                  cvy_tree_where(roles->key_at ? roles->key_at[i] : roles), roles->key[i]);
    *y_out = cvy_tree_get(roles, "y");
    *x_out = cvy_tree_get(roles, "x");
    const cvy_tree *role = *x_out && (*x_out)->kind == CVY_TREE_MAP ? cvy_tree_get(*x_out, "role") : *x_out;
    const char *word = role && role->text ? role->text : "";
    CVY_CHECK(!*x_out || strcmp(word, "target") == 0 || strcmp(word, "vector") == 0 || strcmp(word, "none") == 0,
              CVY_E_CONFIG,
              "%s: data.roles: the role that x may have is target: the network imitates its input; vector: channels of "
              "it are components along the axes of the picture, as in {x: {role: vector, order: x_y}}; or none",
              cvy_tree_where(*x_out));
    return CVY_OK;
}

/* Appends the operation `name: value` to the list. */
static cvy_status append(cvy_pool *pool, cvy_tree *list, const char *name, const cvy_tree *value)
{
    cvy_tree *item = NULL, *copy = NULL, **child = NULL;
    CVY_TRY(cvy_tree_new_map(pool, value->file, &item));
    CVY_TRY(cvy_tree_copy(pool, value, &copy));
    CVY_TRY(cvy_tree_set(pool, item, name, copy));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)(list->count + 1) * sizeof(cvy_tree *), &child));
    for (int i = 0; i < list->count; i++)
        child[i] = list->child[i];
    child[list->count++] = item;
    list->child = child;
    return CVY_OK;
}

/* Appends copies of the operations of data.augment. */
static cvy_status append_augment(cvy_pool *pool, cvy_tree *list, const cvy_tree *augment)
{
    cvy_tree *copy = NULL, **child = NULL;
    if (!augment || augment->count == 0)
        return CVY_OK;
    CVY_TRY(cvy_tree_copy(pool, augment, &copy));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)(list->count + copy->count) * sizeof(cvy_tree *), &child));
    for (int i = 0; i < list->count + copy->count; i++)
        child[i] = i < list->count ? list->child[i] : copy->child[i - list->count];
    list->count += copy->count;
    list->child = child;
    return CVY_OK;
}

cvy_status cvy_job_interpret_normalize(cvy_job *job)
{
    struct cvy_job_data *d = &job->data;
    const cvy_tree *y = NULL, *x = NULL;
    cvy_tree *list = NULL;
    CVY_TRY(read_roles(d->roles, &y, &x));
    CVY_TRY(read_numbers("normalize", &d->normalize, &d->normalize_auto));
    CVY_TRY(read_numbers("normalize_targets", &d->normalize_targets, &d->normalize_targets_auto));
    CVY_TRY(cvy_tree_parse_text(job->pool, "data.augment", "[]", 2, &list));
    if (y)
        CVY_TRY(append(job->pool, list, "target", y));
    if (x)
        CVY_TRY(append(job->pool, list, "input", x));
    CVY_TRY(append_augment(job->pool, list, d->augment));
    if (d->normalize && !d->normalize_auto)
        CVY_TRY(append(job->pool, list, "normalize", d->normalize));
    if (d->normalize_targets && !d->normalize_targets_auto)
        CVY_TRY(append(job->pool, list, "normalize_target", d->normalize_targets));
    d->steps = list;
    return CVY_OK;
}
