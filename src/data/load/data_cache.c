/*
 * data_cache.c: `data.cache`: samples stay in memory after the first read, as stored or decoded, as long as there is
 * room.
 *
 * The cache is a reader that wraps the data set's own reader and runs in the loader's threads. The thread that reads a
 * sample first keeps it. A sample that does not fit is read anew each time, so a data set that is too large still gains
 * in part. The budget belongs to the rank and its data sets share it; a data set that is closed gives its part back.
 * Augmentation comes after the cache, so the cache does not change the samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/load/data_cache.h"

#include <stdatomic.h>
#include <string.h>

#include "base/base_hash.h"

struct cvy_cache_budget {
    int64_t limit;
    _Atomic int64_t used, samples;
    _Atomic int full; /* something did not fit */
};

struct cached {
    cvy_coding coding;
    cvy_dtype dtype;
    cvy_shape shape;
    int32_t label;
    float weight;
    size_t x_bytes, y_bytes, mask_bytes;
    int x_part, y_part; /* 1: it may have only the part that this rank reads; all its reads of parts ask for the same */
    unsigned char data[]; /* x, then y, then the mask */
};

struct cache {
    cvy_reader_def def;
    const cvy_reader_def *reader; /* the wrapped reader */
    void *state;
    cvy_cache_budget *budget;
    int decoded, has_y;
    int64_t nsamples, channels;
    struct cached *_Atomic *at; /* [nsamples]; NULL: not kept */
};

/* ---- the memory limit ---- */

cvy_status cvy_cache_budget_create(int64_t limit_bytes, cvy_cache_budget **out)
{
    cvy_cache_budget *budget = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *budget, &budget));
    budget->limit = limit_bytes;
    *out = budget;
    return CVY_OK;
}

void cvy_cache_budget_destroy(cvy_cache_budget **budget)
{
    cvy_mem_free(budget);
}

cvy_cache_state cvy_cache_budget_state(cvy_cache_budget *budget)
{
    return (cvy_cache_state){
        .limit = budget->limit, .bytes = budget->used, .samples = budget->samples, .full = budget->full};
}

static int reserve(cvy_cache_budget *budget, int64_t bytes)
{
    if (atomic_fetch_add(&budget->used, bytes) + bytes <= budget->limit)
        return 1;
    atomic_fetch_sub(&budget->used, bytes);
    budget->full = 1;
    return 0;
}

/* ---- samples ---- */

/* Replaces an encoded picture by its pixels. */
static cvy_status decode(const struct cache *c, cvy_raw *raw)
{
    cvy_bytes planes = {0}, rows = {0};
    cvy_picture p;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_picture_decode(raw->coding, raw->x.data, raw->x.bytes, c->channels, &planes, &rows, &p));
    const size_t bytes = (size_t)(p.C * p.H * p.W) * cvy_dtype_bytes(p.dtype);
    CVY_TRY_OUT(cvy_bytes_need(&raw->x, bytes));
    memcpy(raw->x.data, p.data, bytes);
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = p.dtype;
    raw->shape = cvy_shape_make(3, (const int64_t[]){p.C, p.H, p.W});
out:
    cvy_mem_free(&planes.data);
    cvy_mem_free(&rows.data);
    return status;
}

/* What a sample takes from the budget. */
static int64_t cached_bytes(size_t x_bytes, size_t y_bytes, size_t mask_bytes)
{
    return (int64_t)(sizeof(struct cached) + x_bytes + y_bytes + mask_bytes);
}

/* If there is no memory or no room, the sample is not kept; this is not an error. */
static void keep(struct cache *c, int64_t number, int x_part, int y_part, const cvy_raw *raw)
{
    struct cached *k = NULL, *none = NULL;
    const size_t y_bytes = c->has_y ? raw->y.bytes : 0;
    const int64_t bytes = cached_bytes(raw->x.bytes, y_bytes, raw->mask.bytes);
    if (!reserve(c->budget, bytes))
        return;
    if (cvy_mem_alloc((size_t)bytes, &k) != CVY_OK) {
        atomic_fetch_sub(&c->budget->used, bytes);
        return;
    }
    k->coding = raw->coding;
    k->dtype = raw->dtype;
    k->shape = raw->shape;
    k->label = raw->label;
    k->weight = raw->weight;
    k->x_bytes = raw->x.bytes;
    k->y_bytes = y_bytes;
    k->mask_bytes = raw->mask.bytes;
    k->x_part = x_part;
    k->y_part = y_part;
    memcpy(k->data, raw->x.data, k->x_bytes);
    if (y_bytes > 0)
        memcpy(k->data + k->x_bytes, raw->y.data, y_bytes);
    if (k->mask_bytes > 0)
        memcpy(k->data + k->x_bytes + y_bytes, raw->mask.data, k->mask_bytes);
    if (atomic_compare_exchange_strong(&c->at[number], &none, k)) {
        atomic_fetch_add(&c->budget->samples, 1);
        return;
    }
    atomic_fetch_sub(&c->budget->used, bytes); /* another thread was first */
    cvy_mem_free(&k);
}

static cvy_status take(const struct cached *k, cvy_raw *raw)
{
    CVY_TRY(cvy_bytes_need(&raw->x, k->x_bytes));
    CVY_TRY(cvy_bytes_need(&raw->y, k->y_bytes));
    CVY_TRY(cvy_bytes_need(&raw->mask, k->mask_bytes));
    raw->coding = k->coding;
    raw->dtype = k->dtype;
    raw->shape = k->shape;
    raw->label = k->label;
    raw->weight = k->weight;
    memcpy(raw->x.data, k->data, k->x_bytes);
    if (k->y_bytes > 0)
        memcpy(raw->y.data, k->data + k->x_bytes, k->y_bytes);
    if (k->mask_bytes > 0)
        memcpy(raw->mask.data, k->data + k->x_bytes + k->y_bytes, k->mask_bytes);
    return CVY_OK;
}

/* ---- the cache as a reader ---- */

static cvy_status cache_read_part(void *state, int64_t number, const cvy_field_part *x, const cvy_field_part *y,
                                  cvy_raw *raw)
{
    struct cache *c = state;
    const int in_parts = c->reader->read_part != NULL, x_part = in_parts && cvy_is_part(x),
              y_part = in_parts && cvy_is_part(y);
    const struct cached *k = c->at[number];
    if (k && k->x_part <= x_part && k->y_part <= y_part)
        return take(k, raw);
    CVY_TRY(x_part || y_part ? c->reader->read_part(c->state, number, x, y, raw)
                             : c->reader->read(c->state, number, raw));
    if (c->decoded && raw->coding != CVY_CODING_PLAIN)
        CVY_TRY(decode(c, raw));
    if (!k)
        keep(c, number, x_part, y_part, raw);
    return CVY_OK;
}

static cvy_status cache_read(void *state, int64_t number, cvy_raw *raw)
{
    return cache_read_part(state, number, NULL, NULL, raw);
}

static cvy_status cache_label(void *state, int64_t number, int32_t *label_out)
{
    const struct cache *c = state;
    return c->reader->label(c->state, number, label_out);
}

static void cache_where(void *state, int64_t number, char *text, size_t room)
{
    const struct cache *c = state;
    c->reader->where(c->state, number, text, room);
}

static void cache_name(void *state, int64_t number, char *text, size_t room)
{
    const struct cache *c = state;
    c->reader->name_sample(c->state, number, text, room);
}

static cvy_status cache_groups(void *state, cvy_groups *to)
{
    const struct cache *c = state;
    return c->reader->groups(c->state, to);
}

static cvy_status cache_coordinates(void *state, cvy_along along, int axis, cvy_pool *pool, cvy_coordinates *out)
{
    const struct cache *c = state;
    return c->reader->coordinates(c->state, along, axis, pool, out);
}

static void cache_hash(void *state, cvy_hasher *h)
{
    const struct cache *c = state;
    c->reader->hash(c->state, h);
}

static void cache_close(void *state)
{
    struct cache *c = state;
    if (c->reader->close)
        c->reader->close(c->state);
    for (int64_t i = 0; c->at && i < c->nsamples; i++) {
        struct cached *k = c->at[i];
        if (!k)
            continue;
        atomic_fetch_sub(&c->budget->used, cached_bytes(k->x_bytes, k->y_bytes, k->mask_bytes));
        atomic_fetch_sub(&c->budget->samples, 1);
        cvy_mem_free(&k);
    }
    cvy_mem_free(&c->at);
    cvy_mem_free(&c);
}

cvy_status cvy_cache_wrap(const cvy_reader_info *info, cvy_cache_budget *budget, int decoded,
                          const cvy_reader_def **reader, void **state)
{
    struct cache *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    const cvy_status status = cvy_mem_alloc((size_t)info->nsamples * sizeof *c->at, &c->at);
    if (status != CVY_OK) {
        cvy_mem_free(&c);
        return status;
    }
    c->def = (cvy_reader_def){.name = (*reader)->name,
                              .summary = "samples kept in memory",
                              .read = cache_read,
                              .read_part = cache_read_part,
                              .label = (*reader)->label ? cache_label : NULL,
                              .where = cache_where,
                              .name_sample = (*reader)->name_sample ? cache_name : NULL,
                              .groups = (*reader)->groups ? cache_groups : NULL,
                              .coordinates = (*reader)->coordinates ? cache_coordinates : NULL,
                              .hash = (*reader)->hash ? cache_hash : NULL,
                              .close = cache_close};
    c->reader = *reader;
    c->state = *state;
    c->budget = budget;
    c->decoded = decoded;
    c->has_y = info->has_y;
    c->nsamples = info->nsamples;
    c->channels = info->shape.ndim > 0 ? info->shape.dim[0] : 1;
    *reader = &c->def;
    *state = c;
    return CVY_OK;
}
