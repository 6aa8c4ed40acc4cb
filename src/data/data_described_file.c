/*
 * data_described_file.c: see data_described_file.h.
 *
 * The layout is {"x": [VARIABLE, ..], "y": [..]}. A variable has "name", its attributes, "samples" (the axis that
 * counts them), "height" if it has one for all numbers, and "axes". An axis has "name", attributes, "n", and "at": its
 * coordinates, or those of the variable "of". A variable with the axes of
 * the first one has no list, so that many variables on one grid stay short.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_described_file.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- writing ---- */

static void write_attributes(const char *name, const char *const cf[CVY_CF_COUNT], cvy_json *json)
{
    if (name)
        cvy_json_string(json, "name", name);
    for (int i = 0; i < CVY_CF_COUNT; i++)
        if (cf[i])
            cvy_json_string(json, cvy_cf_name[i], cf[i]);
}

/* How many coordinates of an axis are written. */
static int64_t kept_of(const cvy_coordinates *c)
{
    return !c->value ? 0 : c->nkept ? c->nkept : CVY_MIN(c->n, CVY_COORDINATES_KEPT);
}

static void write_axis(const char *key, const cvy_coordinates *c, cvy_json *json)
{
    cvy_coordinates kept = *c;
    cvy_json_open(json, key, '{');
    write_attributes(c->name, c->cf, json);
    cvy_json_int(json, "n", c->n);
    if (c->of)
        cvy_json_string(json, "of", c->of);
    kept.nkept = kept_of(c);
    if (kept.nkept > 0) {
        cvy_json_open(json, "at", '[');
        for (int64_t k = 0; k < kept.nkept; k++)
            cvy_json_real(json, NULL, c->value[c->nkept ? k : cvy_coordinates_kept_at(&kept, k)]);
        cvy_json_close(json, ']');
    }
    cvy_json_close(json, '}');
}

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int same_axes(const cvy_described *a, const cvy_described *b)
{
    for (int i = 0; i < a->ndim && a->ndim == b->ndim; i++) {
        const cvy_coordinates *c = &a->axis[i], *d = &b->axis[i];
        int same = same_text(c->name, d->name) && same_text(c->of, d->of) && c->n == d->n && c->nkept == d->nkept &&
                   !c->value == !d->value;
        for (int k = 0; k < CVY_CF_COUNT; k++)
            same &= same_text(c->cf[k], d->cf[k]);
        if (!same || (c->value && memcmp(c->value, d->value, sizeof *c->value * (size_t)(c->nkept ? c->nkept : c->n))))
            return 0;
    }
    return a->ndim == b->ndim;
}

static void write_list(const char *key, const cvy_described *d, int n, cvy_json *json)
{
    cvy_json_open(json, key, '[');
    for (int i = 0; i < n; i++) {
        cvy_json_open(json, NULL, '{');
        write_attributes(d[i].name, d[i].cf, json);
        write_axis("samples", &d[i].samples, json);
        if (d[i].height.name)
            write_axis("height", &d[i].height, json);
        if (i == 0 || !same_axes(&d[0], &d[i])) {
            cvy_json_open(json, "axes", '[');
            for (int k = 0; k < d[i].ndim; k++)
                write_axis(NULL, &d[i].axis[k], json);
            cvy_json_close(json, ']');
        }
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

void cvy_descriptions_write(const cvy_descriptions *d, cvy_json *json)
{
    if (d->nx == 0)
        return;
    cvy_json_open(json, "described", '{');
    write_list("x", d->x, d->nx, json);
    write_list("y", d->y, d->ny, json);
    cvy_json_close(json, '}');
}

/* ---- reading ---- */

static void read_attributes(const cvy_tree *map, const char **name, const char *cf[CVY_CF_COUNT])
{
    *name = cvy_tree_text_at(map, "name");
    for (int i = 0; i < CVY_CF_COUNT; i++)
        cf[i] = cvy_tree_text_at(map, cvy_cf_name[i]);
}

static cvy_status read_axis(cvy_pool *pool, const cvy_tree *map, cvy_coordinates *out)
{
    const cvy_tree *n = map ? cvy_tree_get(map, "n") : NULL, *at = n ? cvy_tree_get(map, "at") : NULL;
    double *value = NULL;
    CVY_CHECK(n, CVY_E_FORMAT, "an axis has no \"n\"");
    CVY_TRY(cvy_tree_int(n, &out->n));
    read_attributes(map, &out->name, out->cf);
    out->of = cvy_tree_text_at(map, "of");
    CVY_CHECK(out->n >= 0 && out->n <= INT_MAX, CVY_E_FORMAT, "an axis has %lld elements", (long long)out->n);
    if (!at)
        return CVY_OK;
    CVY_CHECK(at->kind == CVY_TREE_LIST && at->count > 0 && at->count <= out->n && (at->count > 1 || out->n == 1),
              CVY_E_FORMAT, "an axis of %lld has %d coordinates", (long long)out->n, at->count);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *value * (size_t)at->count, &value));
    for (int i = 0; i < at->count; i++)
        value[i] = cvy_tree_real_or_nan(at->child[i]);
    out->value = value;
    out->nkept = at->count < out->n ? at->count : 0;
    return CVY_OK;
}

static cvy_status read_list(cvy_pool *pool, const cvy_tree *list, cvy_described **out, int *n_out)
{
    cvy_described *d = NULL;
    CVY_CHECK(list && list->kind == CVY_TREE_LIST, CVY_E_FORMAT, "its \"described\" has no lists \"x\" and \"y\"");
    CVY_TRY(cvy_pool_alloc(pool, sizeof *d * (size_t)CVY_MAX(list->count, 1), &d));
    for (int i = 0; i < list->count; i++) {
        const cvy_tree *map = list->child[i];
        CVY_CHECK(map->kind == CVY_TREE_MAP, CVY_E_FORMAT, "its \"described\" has an item that is no map");
        const cvy_tree *axes = cvy_tree_get(map, "axes");
        read_attributes(map, &d[i].name, d[i].cf);
        CVY_TRY(read_axis(pool, cvy_tree_get(map, "samples"), &d[i].samples));
        if (cvy_tree_get(map, "height"))
            CVY_TRY(read_axis(pool, cvy_tree_get(map, "height"), &d[i].height));
        if (!axes && i > 0) {
            d[i].ndim = d[0].ndim;
            memcpy(d[i].axis, d[0].axis, sizeof d[i].axis);
            continue;
        }
        CVY_CHECK(axes && axes->kind == CVY_TREE_LIST && axes->count <= CVY_NDIM_MAX, CVY_E_FORMAT,
                  "a variable has no \"axes\", at most %d", CVY_NDIM_MAX);
        d[i].ndim = axes->count;
        for (int k = 0; k < axes->count; k++)
            CVY_TRY(read_axis(pool, axes->child[k], &d[i].axis[k]));
    }
    *out = d;
    *n_out = list->count;
    return CVY_OK;
}

cvy_status cvy_descriptions_read(cvy_pool *pool, const cvy_tree *root, cvy_descriptions *out)
{
    const cvy_tree *map = cvy_tree_get(root, "described");
    cvy_descriptions d = {0};
    if (!map)
        return CVY_OK;
    CVY_CHECK(map->kind == CVY_TREE_MAP, CVY_E_FORMAT, "its \"described\" is no map");
    CVY_TRY(read_list(pool, cvy_tree_get(map, "x"), &d.x, &d.nx));
    CVY_TRY(read_list(pool, cvy_tree_get(map, "y"), &d.y, &d.ny));
    *out = d;
    return CVY_OK;
}

/* ---- copies ---- */

static cvy_status copy_list(cvy_pool *pool, const cvy_described *from, int n, cvy_described **out)
{
    cvy_described *d = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *d * (size_t)CVY_MAX(n, 1), &d));
    for (int i = 0; i < n; i++)
        CVY_TRY(cvy_described_keep(pool, &from[i], &d[i]));
    *out = d;
    return CVY_OK;
}

cvy_status cvy_descriptions_copy(cvy_pool *pool, const cvy_descriptions *d, cvy_descriptions *out)
{
    cvy_descriptions copy = {.nx = d->nx, .ny = d->ny};
    CVY_TRY(copy_list(pool, d->x, d->nx, &copy.x));
    CVY_TRY(copy_list(pool, d->y, d->ny, &copy.y));
    *out = copy;
    return CVY_OK;
}

/* ---- as text ---- */

/* Adds "lat 4, -60 .. 60 degrees_north". */
static void print_axis(const char *before, const cvy_coordinates *c, cvy_text *out)
{
    cvy_text_add(out, "%s%s", before, c->name ? c->name : "-");
    if (c->n > 0)
        cvy_text_add(out, " %lld", (long long)c->n);
    if (c->value)
        cvy_text_add(out, ", %.9g .. %.9g", c->value[0], c->value[(c->nkept ? c->nkept : c->n) - 1]);
    if (c->cf[CVY_CF_UNITS])
        cvy_text_add(out, " %s", c->cf[CVY_CF_UNITS]);
    if (c->cf[CVY_CF_CALENDAR])
        cvy_text_add(out, " (%s)", c->cf[CVY_CF_CALENDAR]);
}

static int is_known(const cvy_described *d)
{
    int known = d->cf[CVY_CF_UNITS] != NULL || d->samples.name;
    for (int i = 0; i < d->ndim; i++)
        known |= d->axis[i].name != NULL;
    return known;
}

static void print_list(const char *field, const cvy_described *d, int n, cvy_text *out)
{
    for (int i = 0; i < n; i++) {
        if (!is_known(&d[i]))
            continue;
        cvy_text_add(out, "  %s: %s, %s%s", field, d[i].name ? d[i].name : "-", d[i].cf[CVY_CF_UNITS] ? "in " : "",
                     d[i].cf[CVY_CF_UNITS] ? d[i].cf[CVY_CF_UNITS] : "no units");
        if (d[i].samples.name)
            print_axis("; samples along ", &d[i].samples, out);
        if (i > 0 && same_axes(&d[0], &d[i]))
            cvy_text_add(out, "; same axes");
        for (int k = 0; k < d[i].ndim && !(i > 0 && same_axes(&d[0], &d[i])); k++)
            print_axis("; ", &d[i].axis[k], out);
        cvy_text_add(out, "\n");
    }
}

void cvy_descriptions_print(const cvy_descriptions *d, cvy_text *out)
{
    print_list("x", d->x, d->nx, out);
    print_list("y", d->y, d->ny, out);
}
