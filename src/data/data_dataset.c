/*
 * data_dataset.c: a data set: opens a source with its reader and its augmentation, takes parts and views of it, and
 * says what identifies it. data_dataset_read.c reads its samples.
 *
 * A part (validation share) is a list of numbers in a whole set that stays open.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/base_process.h"
#include "data/data_agrees.h"
#include "data/data_dataset.h"
#include "data/data_split.h"
#include "data/load/data_cache.h"

const cvy_dataset_info *cvy_dataset_describe(const cvy_dataset *d)
{
    return &d->info;
}

const cvy_field *cvy_dataset_target(const cvy_dataset_info *info)
{
    if (info->target_is_input)
        return &info->field[0];
    for (int i = 1; i < info->nfield; i++)
        if (strcmp(info->field[i].name, CVY_SAMPLE_WEIGHT) != 0)
            return &info->field[i];
    return NULL;
}

const cvy_reader_info *cvy_dataset_reader_info(const cvy_dataset *d)
{
    return d->whole ? cvy_dataset_reader_info(d->whole) : &d->stored;
}

cvy_data_form cvy_dataset_form(const cvy_dataset *d)
{
    return (cvy_data_form){.stored = cvy_dataset_reader_info(d), .info = &d->info};
}

/* ---- opening ---- */

static void add_field(cvy_dataset_info *info, const char *name, cvy_dtype dtype, const cvy_shape *shape)
{
    info->field[info->nfield++] = (cvy_field){.name = (char *)name, .dtype = dtype, .shape = *shape};
}

/* Names the classes "0", "1", ... */
static cvy_status number_classes(cvy_dataset *d)
{
    const char **names = NULL;
    CVY_TRY(cvy_pool_alloc(d->pool, (size_t)d->info.nclasses * sizeof *names, &names));
    for (int64_t i = 0; i < d->info.nclasses; i++) {
        char *name = NULL;
        CVY_TRY(cvy_pool_printf(d->pool, &name, "%lld", (long long)i));
        names[i] = name;
    }
    d->info.class_name = names;
    return CVY_OK;
}

static cvy_status describe(cvy_dataset *d)
{
    static const cvy_shape scalar = {0};
    cvy_dataset_info *info = &d->info;
    const cvy_reader_info *r = &d->stored;
    const cvy_target_info *y = cvy_augment_target(d->augment);
    CVY_CHECK(r->nsamples > 0, CVY_E_FORMAT, "%s: holds no samples", info->path ? info->path : d->reader->name);
    info->nsamples = r->nsamples;
    info->format = d->reader->name;
    info->note = r->note;
    info->idle_step = cvy_augment_idle(d->augment);
    info->left_note = cvy_augment_left(d->augment);
    add_field(info, "x", CVY_DTYPE_F32, cvy_augment_shape(d->augment));
    if (r->has_label)
        add_field(info, "label", CVY_DTYPE_I32, &scalar);
    if (r->has_y)
        add_field(info, "y", y->dtype, &y->shape);
    info->target_channels = y->nchannels;
    info->scaling = y->scaling;
    info->may_be_left = y->may_be_left;
    if (r->has_weight)
        add_field(info, CVY_SAMPLE_WEIGHT, CVY_DTYPE_F32, cvy_augment_weight_shape(d->augment));
    CVY_CHECK(!r->has_label || y->nclasses == 0, CVY_E_CONFIG,
              "%s: y is a map of labels, but the samples have labels, too: leave one of them out (label: none)",
              info->path ? info->path : d->reader->name);
    info->target_is_input = y->is_input;
    info->nclasses = y->is_input ? 0 : r->has_label ? r->nclasses : y->nclasses;
    info->class_name = r->has_label ? r->class_name : NULL;
    return info->nclasses > 0 && !info->class_name ? number_classes(d) : CVY_OK;
}

static cvy_status open_source(cvy_dataset *d, const cvy_tree *source, const cvy_data_form *like)
{
    cvy_source s;
    CVY_TRY(cvy_source_open(d->pool, source, like, &s));
    d->reader = s.reader;
    d->state = s.state;
    d->stored = s.info;
    d->info.path = s.path;
    return CVY_OK;
}

static cvy_status make_empty(cvy_dataset **out)
{
    cvy_dataset *d = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *d, &d));
    const cvy_status status = cvy_pool_create(&d->pool);
    if (status == CVY_OK)
        d->lock_made = pthread_mutex_init(&d->lock, NULL) == 0;
    if (status != CVY_OK || !d->lock_made) {
        cvy_dataset_destroy(&d);
        return status != CVY_OK ? status : cvy_error_set(CVY_E_MEMORY, "cannot create a lock for a data set");
    }
    *out = d;
    return CVY_OK;
}

/* Says which data the augmentation does not fit, and that samples are of another shape than those of the training. */
static cvy_status explain_shape(const cvy_dataset *d, const cvy_reader_info *like, cvy_status status)
{
    char trained[96];
    const cvy_shape *shape = &d->stored.shape;
    const char *where = d->info.path && *d->info.path ? d->info.path : d->reader->name;
    if (!like || status == CVY_E_MEMORY)
        return status;
    if (cvy_shape_equal(shape, &like->shape)) /* the target does not fit */
        return cvy_error_prefix(status, "%s", where);
    if (like->varying)
        snprintf(trained, sizeof trained, "pictures");
    else
        snprintf(trained, sizeof trained, "%s", cvy_shape_text(&like->shape));
    if (shape->ndim != like->shape.ndim)
        return cvy_error_set(CVY_E_SHAPE, "%s: samples are %s, the network was trained on %s", where,
                             cvy_shape_text(shape), trained);
    return cvy_error_prefix(status, "%s: samples are %s, the network was trained on %s", where, cvy_shape_text(shape),
                            trained);
}

static cvy_status open_dataset(const cvy_tree *source, const cvy_tree *augment, int random, uint64_t seed,
                               int with_target, const cvy_data_form *like, cvy_dataset **out)
{
    cvy_dataset *d = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_process_check()); /* readers have locks and processes of their own */
    CVY_TRY_OUT(make_empty(&d));
    CVY_TRY_OUT(open_source(d, source, like));
    d->stored.has_y &= with_target;
    status = cvy_augment_create(augment, random, seed, &d->stored, &d->augment);
    if (status != CVY_OK)
        CVY_TRY_OUT(explain_shape(d, like ? like->stored : NULL, status));
    CVY_TRY_OUT(describe(d));
    if (like)
        CVY_TRY_OUT(cvy_dataset_agrees(like, d));
    *out = d;
    return CVY_OK;
out:
    cvy_dataset_destroy(&d);
    return status;
}

cvy_status cvy_dataset_open(const cvy_tree *source, const cvy_tree *augment, int random, uint64_t seed,
                            cvy_dataset **out)
{
    return open_dataset(source, augment, random, seed, 1, NULL, out);
}

cvy_status cvy_dataset_open_like(const cvy_tree *source, const cvy_tree *augment, uint64_t seed, int with_target,
                                 const cvy_data_form *like, cvy_dataset **out)
{
    return open_dataset(source, augment, 0, seed, with_target, like, out);
}

cvy_status cvy_dataset_view(cvy_dataset *d, const cvy_tree *augment, int random, uint64_t seed, cvy_dataset **out)
{
    cvy_dataset *view = NULL;
    cvy_status status = CVY_OK;
    CVY_EXPECT(!d->whole);
    CVY_TRY_OUT(make_empty(&view));
    view->borrows = 1;
    view->reader = d->reader;
    view->state = d->state;
    view->stored = d->stored;
    view->info.path = d->info.path;
    CVY_TRY_OUT(cvy_augment_create(augment, random, seed, &view->stored, &view->augment));
    CVY_TRY_OUT(describe(view));
    *out = view;
    return CVY_OK;
out:
    cvy_dataset_destroy(&view);
    return status;
}

cvy_status cvy_dataset_cache(cvy_dataset *d, cvy_cache_budget *budget, int decoded)
{
    CVY_EXPECT(!d->whole && !d->borrows);
    return cvy_cache_wrap(&d->stored, budget, decoded, &d->reader, &d->state);
}

void cvy_dataset_destroy(cvy_dataset **d)
{
    cvy_dataset *x = *d;
    if (!x)
        return;
    if (x->state && x->reader->close && !x->borrows)
        x->reader->close(x->state);
    cvy_dataset_free_scratch(x);
    cvy_augment_destroy(&x->augment);
    if (x->lock_made)
        pthread_mutex_destroy(&x->lock);
    cvy_pool_destroy(&x->pool);
    cvy_mem_free(&x->number);
    cvy_mem_free(d);
}

/* ---- parts ---- */

cvy_status cvy_dataset_side(cvy_dataset *d, const cvy_split *s, int side, cvy_dataset **out)
{
    cvy_dataset *piece = NULL;
    cvy_status status = CVY_OK;
    int64_t count = 0, at = 0;
    CVY_TRY_OUT(make_empty(&piece));
    piece->whole = d;
    piece->info = d->info;
    for (int64_t i = 0; i < s->n; i++)
        count += s->side[i] == side;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)CVY_MAX(count, 1) * sizeof *piece->number, &piece->number));
    for (int64_t i = 0; i < s->n; i++)
        if (s->side[i] == side)
            piece->number[at++] = i;
    piece->info.nsamples = count;
    *out = piece;
    return CVY_OK;
out:
    cvy_dataset_destroy(&piece);
    return status;
}

cvy_status cvy_dataset_split(cvy_dataset *d, double share, uint64_t seed, int part, cvy_dataset **out)
{
    cvy_split split = {0};
    CVY_CHECK(share > 0 && share < 1, CVY_E_CONFIG, "a share of a data set lies between 0 and 1, got %g", share);
    CVY_TRY(cvy_split_make(d, &(cvy_split_spec){.share = share}, seed, NULL, &split));
    const cvy_status status = cvy_dataset_side(d, &split, part ? CVY_SIDE_VAL : CVY_SIDE_TRAIN, out);
    cvy_split_free(&split);
    return status;
}

int64_t cvy_dataset_number_in_source(const cvy_dataset *d, int64_t number)
{
    for (; d->whole; d = d->whole)
        number = d->number[number];
    return number;
}

/* The numbers of a part ascend with those of the whole set, so a block of the whole set is a block of the part with
 * fewer samples. */
cvy_status cvy_dataset_blocks(const cvy_dataset *d, cvy_blocks *out)
{
    const cvy_blocks *stored = &cvy_dataset_reader_info(d)->blocks;
    cvy_blocks b = {0};
    *out = b;
    if (stored->count == 0)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc((size_t)stored->count * sizeof *b.first, &b.first));
    for (int64_t i = 0, k = 0; i < d->info.nsamples && k < stored->count; i++) {
        const int64_t number = cvy_dataset_number_in_source(d, i);
        if (number >= stored->first[k])
            cvy_blocks_add(&b, i);
        while (k < stored->count && number >= stored->first[k])
            k++;
    }
    *out = b;
    return CVY_OK;
}

/* ---- axes ---- */

cvy_status cvy_dataset_coordinates(const cvy_dataset *d, cvy_along along, int axis, cvy_pool *pool,
                                   cvy_coordinates *out)
{
    const cvy_shape *stored = along == CVY_ALONG_X ? &d->stored.shape : &d->stored.y_shape;
    *out = (cvy_coordinates){0};
    if (d->whole || !d->reader->coordinates || (along == CVY_ALONG_Y && !d->stored.has_y))
        return CVY_OK;
    if (along != CVY_ALONG_SAMPLES) {
        const cvy_shape *shape =
            along == CVY_ALONG_X ? cvy_augment_shape(d->augment) : &cvy_augment_target(d->augment)->shape;
        if (shape->ndim != stored->ndim || axis >= stored->ndim || shape->dim[axis] != stored->dim[axis])
            return CVY_OK;
    }
    return d->reader->coordinates(d->state, along, axis, pool, out);
}

/* ---- identity ---- */

static void hash_shape(cvy_hasher *h, const cvy_shape *s)
{
    const char *text = cvy_shape_text(s);
    cvy_hash_add(h, text, strlen(text) + 1);
}

static void hash_into(const cvy_dataset *d, cvy_hasher *h)
{
    cvy_hash_add(h, &d->info.nsamples, sizeof d->info.nsamples);
    if (d->whole) {
        hash_into(d->whole, h);
        cvy_hash_add(h, d->number, (size_t)d->info.nsamples * sizeof *d->number);
        return;
    }
    cvy_hash_add(h, d->info.format, strlen(d->info.format) + 1);
    for (int i = 0; i < d->info.nfield; i++) {
        const cvy_field *f = &d->info.field[i];
        const int dtype = f->dtype;
        cvy_hash_add(h, f->name, strlen(f->name) + 1);
        cvy_hash_add(h, &dtype, sizeof dtype);
        hash_shape(h, &f->shape);
    }
    hash_shape(h, &d->stored.shape);
    cvy_hash_add(h, &d->info.nclasses, sizeof d->info.nclasses);
    for (int64_t i = 0; i < d->info.nclasses; i++)
        cvy_hash_add(h, d->info.class_name[i], strlen(d->info.class_name[i]) + 1);
    if (d->reader->hash)
        d->reader->hash(d->state, h);
}

uint64_t cvy_dataset_hash(const cvy_dataset *d)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    hash_into(d, &h);
    return cvy_hash_end(&h);
}
