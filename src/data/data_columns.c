/*
 * data_columns.c: see data_columns.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_columns.h"

static void add_names(cvy_json *json, const char *key, const char *const *name, int64_t n)
{
    cvy_json_open(json, key, '[');
    for (int64_t i = 0; i < n; i++)
        cvy_json_string(json, NULL, name[i]);
    cvy_json_close(json, ']');
}

void cvy_columns_write(const cvy_reader_info *info, cvy_json *json)
{
    const cvy_columns *c = &info->columns;
    if (!c->x)
        return;
    cvy_json_open(json, c->nx == cvy_shape_elems(&info->shape) ? "columns" : "variables", '{');
    add_names(json, "x", c->x, c->nx);
    add_names(json, "y", c->y, c->ny);
    if (c->label)
        cvy_json_string(json, "label", c->label);
    if (c->weight)
        cvy_json_string(json, "weight", c->weight);
    cvy_json_close(json, '}');
}

static cvy_status read_names(cvy_pool *pool, const cvy_tree *list, const char *const **out, int64_t *n_out)
{
    const char **name = NULL;
    CVY_CHECK(list && list->kind == CVY_TREE_LIST, CVY_E_FORMAT, "its \"columns\" have no lists \"x\" and \"y\"");
    CVY_TRY(cvy_pool_alloc(pool, sizeof *name * (size_t)CVY_MAX(list->count, 1), &name));
    for (int i = 0; i < list->count; i++)
        name[i] = list->child[i]->text ? list->child[i]->text : "";
    *out = name;
    *n_out = list->count;
    return CVY_OK;
}

cvy_status cvy_columns_read(cvy_pool *pool, const cvy_tree *root, cvy_reader_info *info)
{
    const cvy_tree *columns = cvy_tree_get(root, "columns"), *map = columns ? columns : cvy_tree_get(root, "variables"),
                   *label = NULL, *weight = NULL;
    cvy_columns *c = &info->columns;
    if (!map)
        return CVY_OK;
    CVY_TRY(read_names(pool, cvy_tree_get(map, "x"), &c->x, &c->nx));
    CVY_TRY(read_names(pool, cvy_tree_get(map, "y"), &c->y, &c->ny));
    CVY_CHECK(!columns || c->nx == cvy_shape_elems(&info->shape), CVY_E_FORMAT,
              "it has %lld columns and an input of %s", (long long)c->nx, cvy_shape_text(&info->shape));
    label = cvy_tree_get(map, "label");
    weight = cvy_tree_get(map, "weight");
    c->label = label ? label->text : NULL;
    c->weight = weight ? weight->text : NULL;
    return CVY_OK;
}
