/*
 * data_described_copy.c: copies of descriptions: whole, or with the few coordinates that files of runs and packs keep.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_described.h"

static cvy_status copy_text(cvy_pool *pool, const char **text)
{
    char *copy = NULL;
    if (*text)
        CVY_TRY(cvy_pool_strdup(pool, *text, &copy));
    *text = copy;
    return CVY_OK;
}

static cvy_status copy_axis(cvy_pool *pool, int64_t most, cvy_coordinates *c)
{
    double *value = NULL;
    CVY_TRY(copy_text(pool, &c->name));
    CVY_TRY(copy_text(pool, &c->of));
    for (int i = 0; i < CVY_CF_COUNT; i++)
        CVY_TRY(copy_text(pool, &c->cf[i]));
    if (!c->value)
        return CVY_OK;
    const double *all = c->value;
    const int was_kept = c->nkept > 0;
    if (!was_kept && c->n > most)
        c->nkept = most;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)cvy_coordinates_count(c) * sizeof *value, &value));
    for (int64_t k = 0; k < cvy_coordinates_count(c); k++)
        value[k] = all[was_kept ? k : cvy_coordinates_kept_at(c, k)];
    c->value = value;
    return CVY_OK;
}

/* most: coordinates of an axis. */
static cvy_status copy(cvy_pool *pool, int64_t most, const cvy_described *d, cvy_described *out)
{
    cvy_described own = *d;
    CVY_TRY(copy_text(pool, &own.name));
    CVY_TRY(copy_text(pool, &own.file));
    for (int i = 0; i < CVY_CF_COUNT; i++)
        CVY_TRY(copy_text(pool, &own.cf[i]));
    for (int i = 0; i < own.ndim; i++)
        CVY_TRY(copy_axis(pool, most, &own.axis[i]));
    CVY_TRY(copy_axis(pool, most, &own.samples));
    CVY_TRY(copy_axis(pool, most, &own.height));
    *out = own;
    return CVY_OK;
}

cvy_status cvy_described_copy(cvy_pool *pool, const cvy_described *d, cvy_described *out)
{
    return copy(pool, INT64_MAX, d, out);
}

cvy_status cvy_described_keep(cvy_pool *pool, const cvy_described *d, cvy_described *out)
{
    return copy(pool, CVY_COORDINATES_KEPT, d, out);
}
