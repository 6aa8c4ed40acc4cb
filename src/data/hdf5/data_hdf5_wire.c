/*
 * data_hdf5_wire.c: carries a data set between the reader process and the process that reads samples.
 *
 * The reader process sends it after opening the files. A reader process that takes the place of a crashed one gets it
 * back, so that it need not open them all again. Both sides are of the same build, so structures go as they are, and
 * their pointers are set anew. What comes from the reader process is checked: a damaged file may have damaged its
 * memory before it crashes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5_remote.h"

#if CVY_HAVE_HDF5
#include <string.h>

/* ---- numbers and texts ---- */

cvy_h5_wire cvy_h5_wire_write(cvy_area *area)
{
    return (cvy_h5_wire){.area = area, .at = CVY_H5_AT_WORK};
}

cvy_h5_wire cvy_h5_wire_read(cvy_area *area, size_t bytes, cvy_pool *pool)
{
    return (cvy_h5_wire){
        .area = area, .at = CVY_H5_AT_WORK, .end = CVY_H5_AT_WORK + bytes, .is_reading = 1, .pool = pool};
}

static int fail(cvy_h5_wire *w)
{
    if (w->status == CVY_OK)
        w->status = cvy_error_set(CVY_E_FORMAT, "the HDF5 reader process sent a message that makes no sense");
    return 0;
}

static void wire_bytes(cvy_h5_wire *w, void *data, size_t bytes)
{
    if (w->status != CVY_OK || bytes == 0)
        return;
    if (w->is_reading && bytes > w->end - w->at) {
        fail(w);
        return;
    }
    if (!w->is_reading)
        w->status = cvy_area_need(w->area, w->at + bytes);
    if (w->status != CVY_OK)
        return;
    if (w->is_reading)
        memcpy(data, w->area->data + w->at, bytes);
    else
        memcpy(w->area->data + w->at, data, bytes);
    w->at += bytes;
}

#define WIRE(w, field) wire_bytes(w, &(field), sizeof(field))

/* A number of things of at least `each` bytes in the message. */
static int wire_count(cvy_h5_wire *w, int64_t *count, size_t each)
{
    WIRE(w, *count);
    if (w->status == CVY_OK && w->is_reading && (*count < 0 || (uint64_t)*count > (w->end - w->at) / each))
        fail(w);
    return w->status == CVY_OK;
}

void cvy_h5_wire_text(cvy_h5_wire *w, const char **text)
{
    int64_t bytes = *text && !w->is_reading ? (int64_t)strlen(*text) + 1 : 0;
    char *copy = NULL;
    if (!wire_count(w, &bytes, 1))
        return;
    if (!w->is_reading) {
        wire_bytes(w, (char *)*text, (size_t)bytes);
        return;
    }
    *text = NULL;
    if (bytes == 0)
        return;
    w->status = cvy_pool_alloc(w->pool, (size_t)bytes, &copy);
    wire_bytes(w, copy, (size_t)bytes);
    if (w->status == CVY_OK && copy[bytes - 1] != 0)
        fail(w);
    *text = copy;
}

/* ---- options ---- */

/* A name or a list of names; other kinds are sent without what is in them. */
static void wire_names(cvy_h5_wire *w, const cvy_tree **tree, int depth)
{
    int there = *tree != NULL;
    cvy_tree node = *tree && !w->is_reading ? **tree : (cvy_tree){0}, *copy = NULL;
    WIRE(w, there);
    if (w->status != CVY_OK || !there)
        return;
    WIRE(w, node.kind);
    WIRE(w, node.line);
    WIRE(w, node.column);
    WIRE(w, node.quoted);
    cvy_h5_wire_text(w, &node.file);
    cvy_h5_wire_text(w, &node.text);
    int64_t count = node.kind == CVY_TREE_LIST && depth == 0 ? node.count : 0;
    if (!wire_count(w, &count, sizeof there))
        return;
    if (w->is_reading) {
        node.count = (int)count;
        w->status = cvy_pool_alloc(w->pool, sizeof *copy, &copy);
        if (w->status == CVY_OK)
            w->status = cvy_pool_alloc(w->pool, (size_t)count * sizeof *node.child, &node.child);
        if (w->status != CVY_OK)
            return;
        *copy = node;
        *tree = copy;
    }
    for (int64_t i = 0; i < count && w->status == CVY_OK; i++) {
        const cvy_tree *child = node.child[i];
        wire_names(w, &child, depth + 1);
        if (w->is_reading)
            node.child[i] = (cvy_tree *)child;
    }
}

void cvy_h5_wire_options(cvy_h5_wire *w, struct hdf5_opts *o)
{
    wire_names(w, &o->x, 0);
    wire_names(w, &o->y, 0);
    const char **text[] = {&o->label, &o->weight, &o->mask, &o->where, &o->axes, &o->sample_axis, &o->group};
    for (int i = 0; i < CVY_COUNT(text); i++)
        cvy_h5_wire_text(w, text[i]);
    WIRE(w, o->classes);
    WIRE(w, o->cache_mb);
    WIRE(w, o->class_per_file);
    WIRE(w, o->channels);
    WIRE(w, o->metadata);
}

/* ---- files and columns ---- */

/* The column as it is in a file, if that differs. */
static void wire_own_column(cvy_h5_wire *w, const cvy_hdf5 *h, int number, cvy_h5_storage *p)
{
    cvy_h5_column *own = NULL, column = {0};
    int there = !w->is_reading && p->own;
    if (there)
        column = *p->own;
    WIRE(w, there);
    p->own = w->is_reading ? NULL : p->own;
    if (w->status != CVY_OK || !there)
        return;
    WIRE(w, column);
    if (!w->is_reading)
        return;
    if (w->status == CVY_OK)
        w->status = cvy_pool_alloc(w->pool, sizeof *own, &own);
    if (w->status != CVY_OK)
        return;
    *own = column;
    own->name = h->column[number].name;
    p->own = own;
}

static void wire_file(cvy_h5_wire *w, const cvy_hdf5 *h, cvy_h5_file *f)
{
    if (w->is_reading) {
        *f = (cvy_h5_file){.fd = -1, .id = -1};
        w->status = cvy_pool_alloc(w->pool, (size_t)h->ncolumn * sizeof *f->storage, &f->storage);
        if (w->status == CVY_OK)
            w->status = cvy_pool_alloc(w->pool, (size_t)h->ncolumn * sizeof *f->set, &f->set);
        for (int i = 0; i < h->ncolumn && w->status == CVY_OK; i++)
            f->set[i] = -1;
    }
    cvy_h5_wire_text(w, &f->path);
    WIRE(w, f->bytes);
    WIRE(w, f->rows);
    WIRE(w, f->first);
    wire_bytes(w, f->storage, (size_t)h->ncolumn * sizeof *f->storage);
    if (w->status == CVY_OK && !f->path)
        fail(w);
    for (int i = 0; i < h->ncolumn && w->status == CVY_OK; i++)
        wire_own_column(w, h, i, &f->storage[i]);
}

void cvy_h5_wire_state(cvy_h5_wire *w, cvy_hdf5 *h)
{
    WIRE(w, h->nrows);
    WIRE(w, h->ncolumn);
    WIRE(w, h->nx);
    WIRE(w, h->ny);
    WIRE(w, h->weight);
    WIRE(w, h->coding);
    WIRE(w, h->extent);
    WIRE(w, h->dtype);
    WIRE(w, h->shape);
    WIRE(w, h->y_elems);
    WIRE(w, h->cache.limit);
    WIRE(w, h->noted);
    if (w->status == CVY_OK && (h->ncolumn < 1 || h->ncolumn > CVY_H5_COLUMNS))
        fail(w);
    for (int i = 0; w->status == CVY_OK && i < h->ncolumn; i++) {
        const char *name = h->column[i].name;
        cvy_h5_wire_text(w, &name);
        WIRE(w, h->column[i]);
        h->column[i].name = name;
        if (w->status == CVY_OK && !name)
            fail(w);
    }
    if (!wire_count(w, &h->nfile, sizeof(cvy_h5_storage)))
        return;
    if (w->is_reading)
        w->status = cvy_pool_alloc(w->pool, (size_t)h->nfile * sizeof *h->file, &h->file);
    for (int64_t i = 0; i < h->nfile && w->status == CVY_OK; i++)
        wire_file(w, h, &h->file[i]);
}

/* ---- samples ---- */

/* One number for each sample, or none at all. */
static void wire_array(cvy_h5_wire *w, void *array, int64_t count, size_t each)
{
    void **data = array;
    int there = *data != NULL;
    WIRE(w, there);
    if (w->status != CVY_OK || !there)
        return;
    if (w->is_reading && (count < 0 || (uint64_t)count > (w->end - w->at) / each)) {
        fail(w);
        return;
    }
    if (w->is_reading)
        w->status = cvy_mem_alloc((size_t)count * each, array);
    wire_bytes(w, *data, (size_t)count * each);
}

static void wire_classes(cvy_h5_wire *w, cvy_reader_info *info)
{
    int64_t count = info->class_name ? info->nclasses : 0;
    const char **name = NULL;
    WIRE(w, info->nclasses);
    if (!wire_count(w, &count, sizeof count) || count == 0)
        return;
    if (w->is_reading)
        w->status = cvy_pool_alloc(w->pool, (size_t)count * sizeof *name, &name);
    for (int64_t i = 0; i < count && w->status == CVY_OK; i++) {
        const char *text = w->is_reading ? NULL : info->class_name[i];
        cvy_h5_wire_text(w, &text);
        if (w->is_reading)
            name[i] = text;
        if (w->status == CVY_OK && !text)
            fail(w);
    }
    if (w->is_reading && w->status == CVY_OK && count != info->nclasses)
        fail(w);
    if (w->is_reading)
        info->class_name = name;
}

static void wire_groups(cvy_h5_wire *w, cvy_groups *g, int64_t nsamples)
{
    int64_t count = g->names.count;
    int number = 0;
    wire_array(w, &g->of, nsamples, sizeof *g->of);
    if (!wire_count(w, &count, sizeof count) || !g->of)
        return;
    for (int64_t i = 0; i < count && w->status == CVY_OK; i++) {
        const char *text = w->is_reading ? NULL : g->names.text[i];
        cvy_h5_wire_text(w, &text);
        if (w->status == CVY_OK && !text)
            fail(w);
        if (w->is_reading && w->status == CVY_OK)
            w->status = cvy_keys_add(&g->names, text, &number);
    }
    if (w->is_reading && w->status == CVY_OK)
        g->n = g->room = nsamples;
}

void cvy_h5_wire_samples(cvy_h5_wire *w, cvy_hdf5 *h, cvy_reader_info *info)
{
    cvy_blocks *b = &info->blocks;
    WIRE(w, h->nsamples);
    wire_array(w, &h->selected, h->nsamples, sizeof *h->selected);
    wire_array(w, &h->label, h->nsamples, sizeof *h->label);
    cvy_h5_wire_descriptions(w, &h->described);
    wire_groups(w, &h->groups, h->nsamples);
    WIRE(w, info->has_label);
    WIRE(w, info->has_y);
    WIRE(w, info->has_weight);
    WIRE(w, info->y_shape);
    WIRE(w, info->weight_shape);
    for (int i = 0; i < CVY_CF_COUNT; i++)
        cvy_h5_wire_text(w, &info->y_cf[i]);
    cvy_h5_wire_text(w, &info->y_name);
    for (int i = 0; i < CVY_NDIM_MAX; i++)
        cvy_h5_wire_text(w, &info->y_axis[i]);
    cvy_h5_wire_text(w, &info->note);
    wire_classes(w, info);
    if (!wire_count(w, &b->count, sizeof *b->first))
        return;
    if (w->is_reading)
        w->status = cvy_pool_alloc(w->pool, (size_t)b->count * sizeof *b->first, &b->first);
    wire_bytes(w, b->first, (size_t)b->count * sizeof *b->first);
    info->nsamples = h->nsamples;
    info->dtype = h->dtype;
    info->shape = h->shape;
}

/* ---- coordinates ---- */

void cvy_h5_wire_coordinates(cvy_h5_wire *w, cvy_coordinates *c)
{
    double *value = (double *)c->value;
    int64_t count = !c->value ? 0 : c->nkept > 0 ? c->nkept : c->n;
    cvy_h5_wire_text(w, &c->name);
    for (int i = 0; i < CVY_CF_COUNT; i++)
        cvy_h5_wire_text(w, &c->cf[i]);
    cvy_h5_wire_text(w, &c->of);
    WIRE(w, c->n);
    WIRE(w, c->nkept);
    WIRE(w, c->is_mixed);
    if (!wire_count(w, &count, sizeof *value))
        return;
    if (w->is_reading) {
        value = NULL;
        if (count > 0 && (count != (c->nkept > 0 ? c->nkept : c->n) || c->nkept > c->n))
            fail(w);
        else if (count > 0)
            w->status = cvy_pool_alloc(w->pool, (size_t)count * sizeof *value, &value);
        c->value = value;
    }
    wire_bytes(w, value, (size_t)count * sizeof *value);
}

static void wire_described(cvy_h5_wire *w, cvy_described *d)
{
    cvy_h5_wire_text(w, &d->name);
    cvy_h5_wire_text(w, &d->file);
    for (int i = 0; i < CVY_CF_COUNT; i++)
        cvy_h5_wire_text(w, &d->cf[i]);
    WIRE(w, d->ndim);
    if (w->status == CVY_OK && (d->ndim < 0 || d->ndim > CVY_NDIM_MAX))
        fail(w);
    for (int i = 0; w->status == CVY_OK && i < d->ndim; i++)
        cvy_h5_wire_coordinates(w, &d->axis[i]);
    cvy_h5_wire_coordinates(w, &d->samples);
    cvy_h5_wire_coordinates(w, &d->height);
}

static void wire_list(cvy_h5_wire *w, int *count, cvy_described **list)
{
    int64_t n = *count;
    if (!wire_count(w, &n, sizeof n))
        return;
    if (w->is_reading)
        w->status = cvy_pool_alloc(w->pool, (size_t)CVY_MAX(n, 1) * sizeof **list, list);
    for (int64_t i = 0; i < n && w->status == CVY_OK; i++)
        wire_described(w, &(*list)[i]);
    *count = (int)n;
}

void cvy_h5_wire_descriptions(cvy_h5_wire *w, cvy_descriptions *d)
{
    wire_list(w, &d->nx, &d->x);
    wire_list(w, &d->ny, &d->y);
}

/* ---- what was read ---- */

static int is_column(const cvy_hdf5 *h, int number)
{
    return number >= -1 && number < h->ncolumn;
}

static int is_shape(const cvy_shape *s)
{
    int64_t left = (int64_t)1 << 40;
    int good = s->ndim >= 0 && s->ndim <= CVY_NDIM_MAX;
    for (int i = 0; good && i < s->ndim; i++) {
        good = s->dim[i] > 0 && s->dim[i] <= left;
        left /= good ? s->dim[i] : 1;
    }
    return good;
}

static int is_number(const cvy_h5_number *n)
{
    static const int bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8}; /* of each cvy_h5_kind */
    return (unsigned)n->kind < sizeof bytes / sizeof *bytes && n->bytes == bytes[n->kind];
}

static int is_good_column(const cvy_h5_column *c)
{
    if (c->ndim < 1 || c->ndim > CVY_NDIM_MAX || c->axis < 0 || c->axis >= c->ndim)
        return 0;
    if (c->encoded)
        return c->ndim == 1 && c->axis == 0 && c->elems == 0 && c->row_bytes == CVY_H5_REFERENCE_BYTES &&
               c->number.bytes == CVY_H5_REFERENCE_BYTES && !c->number.big_endian;
    int64_t left = c->elems, least = c->permuted ? c->base : 0, last = least, stored = c->elems;
    const int n = c->number.bytes;
    int good = is_number(&c->number) && is_shape(&c->shape) && c->shape.ndim > 0 && c->elems > 0 &&
               c->elems <= (int64_t)1 << 32 && c->row_bytes == (size_t)c->elems * (size_t)n;
    for (int i = 0; good && i < c->shape.ndim; i++) {
        const int64_t dim = c->shape.dim[i], stride = c->permuted ? c->stride[i] : 0;
        good = left % dim == 0 && c->roll[i] >= 0 && c->roll[i] < dim && stride < c->elems && -stride < c->elems;
        left /= dim;
        if (good) /* the least and the largest index of a number in its row */
            *(stride < 0 ? &least : &last) += (dim - 1) * stride;
        good &= least >= 0 && last < c->elems;
    }
    for (int i = 0; good && i < c->ndim; i++) {
        const int64_t dim = i == c->axis ? 1 : c->dim[i];
        good = dim > 0 && stored % dim == 0;
        stored /= good ? dim : 1;
    }
    return good && left == 1 && stored == 1;
}

/* A column that is other in a file has the same numbers and the same shape there. */
static int is_good_own(const cvy_hdf5 *h, int64_t file, int column)
{
    const cvy_h5_column *own = h->file[file].storage[column].own, *c = &h->column[column];
    return !own || (is_good_column(own) && !own->encoded && !c->encoded && own->number.kind == c->number.kind &&
                    own->number.big_endian == c->number.big_endian && cvy_shape_equal(&own->shape, &c->shape));
}

static int is_good_storage(const cvy_h5_file *f, const cvy_h5_column *c, const cvy_h5_storage *p)
{
    int good = (unsigned)p->kind <= CVY_H5_LIBRARY && p->packing.nmissing >= 0 &&
               p->packing.nmissing <= CVY_H5_MISSING_MAX && (!p->packing.by_bits || c->number.bytes == 8);
    if (!good)
        return 0;
    if (p->kind == CVY_H5_PLAIN)
        return p->offset >= 0 && f->rows <= (INT64_MAX - p->offset) / (int64_t)c->row_bytes;
    good = p->block_rows > 0 && p->block_rows <= ((int64_t)1 << 32) / (int64_t)c->row_bytes;
    size_t bytes = (size_t)c->number.bytes;
    for (int i = 0; good && i < c->ndim && p->kind == CVY_H5_CHUNKS; i++) {
        good = p->chunk[i] > 0 && (size_t)p->chunk[i] <= ((size_t)1 << 33) / bytes;
        bytes *= good ? (size_t)p->chunk[i] : 1;
    }
    return good && (p->kind != CVY_H5_CHUNKS || (c->axis == 0 && p->block_rows % p->chunk[0] == 0));
}

static int is_good_state(const cvy_hdf5 *h)
{
    int64_t rows = 0, x = 0, y = 0;
    int good = h->nfile >= 1 && h->nx >= 1 && h->ny >= 0 && h->nx <= h->ncolumn && h->ny <= h->ncolumn - h->nx &&
               is_column(h, h->weight) && is_column(h, h->coding) && is_column(h, h->extent) &&
               (h->dtype == CVY_DTYPE_U8 || h->dtype == CVY_DTYPE_F32);
    for (int i = 0; good && i < h->ncolumn; i++) {
        const cvy_h5_column *c = &h->column[i];
        good = is_good_column(c) && (!c->encoded || (i == 0 && h->nx == 1));
        good &= i >= h->nx || h->dtype == CVY_DTYPE_F32 || c->encoded || c->number.bytes == 1;
        x += i < h->nx ? c->elems : 0;
        y += i >= h->nx && i < h->nx + h->ny ? c->elems : 0;
    }
    for (int64_t i = 0; good && i < h->nfile; i++) {
        const cvy_h5_file *f = &h->file[i];
        good = f->rows >= 0 && f->first == rows && f->rows <= INT64_MAX / 2 - rows && f->bytes >= 0;
        for (int k = 0; good && k < h->ncolumn; k++)
            good = is_good_storage(f, cvy_h5_column_in(h, i, k), &f->storage[k]) && is_good_own(h, i, k);
        rows += f->rows;
    }
    return good && rows == h->nrows && y == h->y_elems &&
           (h->column[0].encoded || (is_shape(&h->shape) && cvy_shape_elems(&h->shape) == x));
}

/* A weight of one number has no axes. */
static int is_weight_shape(const cvy_shape *s, int64_t elems)
{
    return s->ndim == 0 ? elems == 1 : is_shape(s) && cvy_shape_elems(s) == elems;
}

static int is_good_info(const cvy_hdf5 *h, const cvy_reader_info *info)
{
    int good = h->nsamples >= 0 && h->nsamples <= h->nrows && (h->selected || h->nsamples == h->nrows);
    for (int64_t i = 0; good && h->selected && i < h->nsamples; i++)
        good = h->selected[i] >= 0 && h->selected[i] < h->nrows;
    for (int64_t i = 0; good && i < h->groups.n; i++)
        good = h->groups.of[i] >= -1 && h->groups.of[i] < h->groups.names.count;
    for (int64_t i = 0; good && i < info->blocks.count; i++)
        good =
            info->blocks.first[i] >= (i > 0 ? info->blocks.first[i - 1] + 1 : 0) && info->blocks.first[i] < h->nsamples;
    return good && info->nclasses >= 0 && (!info->has_label || info->nclasses > 0) && (!h->label || info->has_label) &&
           (!info->has_weight ||
            (h->weight >= 0 && is_weight_shape(&info->weight_shape, h->column[h->weight].elems))) &&
           (!info->has_y || (is_shape(&info->y_shape) && cvy_shape_elems(&info->y_shape) == h->y_elems));
}

cvy_status cvy_h5_wire_check(const cvy_hdf5 *h, const cvy_reader_info *info)
{
    CVY_CHECK(is_good_state(h) && is_good_info(h, info), CVY_E_FORMAT,
              "the HDF5 reader process sent a data set that makes no sense: the file is damaged or made to do harm");
    return CVY_OK;
}

#endif
