/*
 * data_hdf5_block.c: reads rows of HDF5 data sets, by any thread and in any order.
 *
 * The loader's threads call it. Rows of contiguous data sets are read by their position in the file. Otherwise a block
 * of rows (those of one chunk, or of a few small ones) is decompressed as a whole and cached, so that its next rows
 * cost nothing. The least recently used blocks are dropped to stay within the limit `cache_mb`. A thread that needs a
 * block which another thread is reading waits for it. The library only locates chunks with usual filters; threads
 * decompress them in parallel without it (data_hdf5_chunk.c). All other chunks are read by the library, one thread at a
 * time (data_hdf5_library.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <string.h>

struct cvy_h5_block {
    int64_t file, number;
    int column;
    int ready, users;
    void *data;
    size_t room;
    struct cvy_h5_block *next, *newer, *older; /* in its hash bucket; by last use */
};

struct cvy_h5_scratch { /* of a thread that reads a block */
    cvy_bytes packed, plain, places;
    struct cvy_h5_scratch *next;
};

/* ---- chunks ---- */

/* Copies a chunk, which has only a part of each row, to its place in the block. rows: number of rows of the block. */
static void place_chunk(const cvy_h5_chunks *j, const int64_t *at, int64_t first, int64_t rows, const char *chunk,
                        char *block)
{
    const cvy_h5_column *c = j->column;
    const int64_t *size = j->storage->chunk, elem = c->number.bytes;
    int64_t count[CVY_NDIM_MAX], k[CVY_NDIM_MAX] = {0};
    const int last = c->ndim - 1;
    for (int i = 0; i < c->ndim; i++) {
        const int64_t end = i == 0 ? first + rows : c->dim[i];
        count[i] = CVY_MIN(size[i], end - at[i]);
    }
    for (;;) {
        int64_t from = 0, to = 0;
        for (int i = 0; i < c->ndim; i++) {
            from = from * size[i] + k[i];
            to = i == 0 ? at[0] - first + k[0] : to * c->dim[i] + at[i] + k[i];
        }
        memcpy(block + to * elem, chunk + from * elem, (size_t)((last > 0 ? count[last] : 1) * elem));
        int i = last > 0 ? last - 1 : 0; /* the last axis is one memcpy */
        while (i >= 0 && ++k[i] == count[i])
            k[i--] = 0;
        if (i < 0)
            return;
    }
}

/* Reads the block's rows, from row `first` on, out of a grid of chunks. */
static cvy_status unpack_chunks(const cvy_h5_chunks *j, int64_t first, int64_t rows, char *block)
{
    const cvy_h5_column *c = j->column;
    const int64_t *size = j->storage->chunk;
    const cvy_h5_place *place = j->place;
    int64_t at[CVY_NDIM_MAX] = {first};
    int whole_rows = 1;
    cvy_bytes part = {0};
    cvy_status status = CVY_OK;
    for (int i = 1; i < c->ndim; i++)
        whole_rows &= size[i] == c->dim[i];
    if (!whole_rows)
        CVY_TRY(cvy_bytes_need(&part, j->bytes));
    for (;;) {
        char *to = whole_rows ? block + (size_t)(at[0] - first) * c->row_bytes : part.data;
        status = cvy_h5_chunk_read(j, place++, to);
        if (status < 0)
            cvy_error_prefix(status, "data set %s, chunk at row %lld", c->name, (long long)at[0]);
        CVY_TRY_OUT(status);
        if (!whole_rows)
            place_chunk(j, at, first, rows, part.data, block);
        if (!cvy_h5_next_chunk(c, j->storage, first, rows, at))
            break;
    }
out:
    cvy_mem_free(&part.data);
    return status;
}

/* ---- through the library ---- */

/* [outer, rows, inner] -> [rows, outer, inner] */
static void rows_first(const char *in, int64_t outer, int64_t rows, size_t inner_bytes, char *out)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t r = 0; r < rows; r++)
            memcpy(out + (size_t)(r * outer + o) * inner_bytes, in + (size_t)(o * rows + r) * inner_bytes, inner_bytes);
}

static cvy_status ask_library(cvy_hdf5 *h, const struct cvy_h5_block *b, struct cvy_h5_scratch *s, int64_t first,
                              int64_t rows)
{
    const cvy_h5_column *c = cvy_h5_column_in(h, b->file, b->column);
    int64_t outer = 1;
    char *to = b->data;
    for (int i = 0; i < c->axis; i++)
        outer *= c->dim[i];
    if (outer > 1) {
        CVY_TRY(cvy_bytes_need(&s->plain, (size_t)rows * c->row_bytes));
        to = s->plain.data;
    }
    CVY_TRY(cvy_h5_ask_rows(h, b->file, b->column, first, rows, to));
    if (outer > 1)
        rows_first(to, outer, rows, c->row_bytes / (size_t)outer, b->data);
    return CVY_OK;
}

/* ---- blocks ---- */

static size_t block_room(const cvy_h5_column *c, const cvy_h5_storage *p)
{
    return (size_t)p->block_rows * c->row_bytes;
}

static cvy_status borrow(cvy_hdf5 *h, struct cvy_h5_scratch **out)
{
    pthread_mutex_lock(&h->cache.lock);
    struct cvy_h5_scratch *s = h->cache.idle;
    if (s)
        h->cache.idle = s->next;
    pthread_mutex_unlock(&h->cache.lock);
    if (!s)
        CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *out = s;
    return CVY_OK;
}

static void give_back(cvy_hdf5 *h, struct cvy_h5_scratch *s)
{
    pthread_mutex_lock(&h->cache.lock);
    s->next = h->cache.idle;
    h->cache.idle = s;
    pthread_mutex_unlock(&h->cache.lock);
}

static cvy_status read_chunks(cvy_hdf5 *h, const struct cvy_h5_block *b, struct cvy_h5_scratch *s, int64_t first,
                              int64_t rows)
{
    cvy_h5_chunks j = cvy_h5_chunks_of(h, b->file, b->column);
    j.packed = &s->packed;
    j.plain = &s->plain;
    CVY_TRY(cvy_h5_places_get(h, b->file, b->column, first, rows, &s->places, &j.place));
    CVY_TRY(cvy_h5_pin(h, b->file));
    const cvy_status status = unpack_chunks(&j, first, rows, b->data);
    cvy_h5_unpin(h, b->file);
    return status;
}

static cvy_status make_block(cvy_hdf5 *h, struct cvy_h5_block *b)
{
    const cvy_h5_file *f = &h->file[b->file];
    const cvy_h5_storage *p = &f->storage[b->column];
    const cvy_h5_column *c = &h->column[b->column];
    const int64_t first = b->number * p->block_rows, rows = CVY_MIN(p->block_rows, f->rows - first);
    struct cvy_h5_scratch *s = NULL;
    cvy_status status = CVY_NOT_APPLICABLE;
    CVY_TRY(borrow(h, &s));
    if (p->kind == CVY_H5_CHUNKS)
        status = read_chunks(h, b, s, first, rows);
    if (status == CVY_NOT_APPLICABLE)
        status = ask_library(h, b, s, first, rows);
    give_back(h, s);
    if (status == CVY_OK)
        cvy_h5_swap(&c->number, b->data, rows * c->elems);
    return status;
}

/* ---- cached blocks: the caller holds the lock ---- */

static struct cvy_h5_block **bucket_of(cvy_hdf5 *h, int64_t file, int column, int64_t number)
{
    const uint64_t key = ((uint64_t)file * CVY_H5_COLUMNS + (uint64_t)column) * 0x9e3779b97f4a7c15u + (uint64_t)number;
    return &h->cache.bucket[(key ^ key >> 32) % CVY_H5_BUCKETS];
}

static struct cvy_h5_block *find(cvy_hdf5 *h, int64_t file, int column, int64_t number)
{
    struct cvy_h5_block *b = *bucket_of(h, file, column, number);
    while (b && (b->file != file || b->column != column || b->number != number))
        b = b->next;
    return b;
}

static void unlink_age(cvy_hdf5 *h, struct cvy_h5_block *b)
{
    *(b->newer ? &b->newer->older : &h->cache.newest) = b->older;
    *(b->older ? &b->older->newer : &h->cache.oldest) = b->newer;
}

static void link_newest(cvy_hdf5 *h, struct cvy_h5_block *b)
{
    b->newer = NULL;
    b->older = h->cache.newest;
    *(h->cache.newest ? &h->cache.newest->newer : &h->cache.oldest) = b;
    h->cache.newest = b;
}

/* Removes a block from the cache; the caller owns it then. */
static void take_out(cvy_hdf5 *h, struct cvy_h5_block *b)
{
    struct cvy_h5_block **at = bucket_of(h, b->file, b->column, b->number);
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    unlink_age(h, b);
    h->cache.held -= b->room + sizeof *b;
}

static void free_block(struct cvy_h5_block *b)
{
    cvy_mem_free(&b->data);
    cvy_mem_free(&b);
}

/* Drops old blocks until `room` more bytes fit into the limit. *out: a dropped block of the same size, which the caller
 * may use again; NULL if there is none. */
static void evict(cvy_hdf5 *h, size_t room, struct cvy_h5_block **out)
{
    for (struct cvy_h5_block *b = h->cache.oldest, *newer; b && h->cache.held + room + sizeof *b > h->cache.limit;
         b = newer) {
        newer = b->newer;
        if (!b->ready || b->users > 0)
            continue;
        take_out(h, b);
        if (!*out && b->room == room)
            *out = b;
        else
            free_block(b);
    }
}

/* Adds a new block, which is not ready and is in use by the caller. The caller holds the lock. */
static cvy_status enter_block(cvy_hdf5 *h, int64_t file, int column, int64_t number, struct cvy_h5_block **out)
{
    const size_t room = block_room(&h->column[column], &h->file[file].storage[column]);
    struct cvy_h5_block *b = NULL;
    evict(h, room, &b);
    if (!b) {
        CVY_TRY(cvy_mem_alloc(sizeof *b, &b));
        const cvy_status status = cvy_mem_alloc(room, &b->data);
        if (status != CVY_OK) {
            cvy_mem_free(&b);
            return status;
        }
    }
    *b = (struct cvy_h5_block){
        .file = file, .column = column, .number = number, .users = 1, .data = b->data, .room = room};
    struct cvy_h5_block **bucket = bucket_of(h, file, column, number);
    b->next = *bucket;
    *bucket = b;
    link_newest(h, b);
    h->cache.held += room + sizeof *b;
    *out = b;
    return CVY_OK;
}

static cvy_status get_block(cvy_hdf5 *h, int64_t file, int column, int64_t number, struct cvy_h5_block **out)
{
    struct cvy_h5_block *b = NULL;
    pthread_mutex_lock(&h->cache.lock);
    for (b = find(h, file, column, number); b && !b->ready; b = find(h, file, column, number))
        pthread_cond_wait(&h->cache.filled, &h->cache.lock);
    if (b) {
        b->users++;
        unlink_age(h, b);
        link_newest(h, b);
        pthread_mutex_unlock(&h->cache.lock);
        *out = b;
        return CVY_OK;
    }
    cvy_status status = enter_block(h, file, column, number, &b);
    pthread_mutex_unlock(&h->cache.lock);
    CVY_TRY(status);
    status = make_block(h, b);
    pthread_mutex_lock(&h->cache.lock);
    b->ready = status == CVY_OK;
    if (!b->ready)
        take_out(h, b);
    pthread_cond_broadcast(&h->cache.filled);
    pthread_mutex_unlock(&h->cache.lock);
    if (status != CVY_OK)
        free_block(b);
    else
        *out = b;
    return status;
}

void cvy_h5_free_blocks(cvy_hdf5 *h)
{
    for (struct cvy_h5_block *b = h->cache.newest, *older; b; b = older) {
        older = b->older;
        free_block(b);
    }
    for (struct cvy_h5_scratch *s = h->cache.idle, *next; s; s = next) {
        next = s->next;
        cvy_mem_free(&s->packed.data);
        cvy_mem_free(&s->plain.data);
        cvy_mem_free(&s->places.data);
        cvy_mem_free(&s);
    }
    h->cache.newest = h->cache.oldest = NULL;
    h->cache.idle = NULL;
    cvy_h5_places_free(h);
}

/* ---- rows ---- */

static cvy_status read_plain(cvy_hdf5 *h, int64_t file, int column, int64_t row, void *room)
{
    const cvy_h5_column *c = &h->column[column];
    const cvy_h5_file *f = &h->file[file];
    const int64_t at = f->storage[column].offset + row * (int64_t)c->row_bytes;
    CVY_TRY(cvy_h5_pin(h, file));
    const cvy_status status = cvy_pread_all(f->fd, room, c->row_bytes, at, c->name);
    cvy_h5_unpin(h, file);
    CVY_TRY(status);
    cvy_h5_swap(&c->number, room, c->elems);
    return CVY_OK;
}

cvy_status cvy_h5_row_get(cvy_hdf5 *h, int64_t file, int column, int64_t row, void *room, cvy_h5_row *out)
{
    const cvy_h5_storage *p = &h->file[file].storage[column];
    *out = (cvy_h5_row){.data = room};
    if (p->kind == CVY_H5_PLAIN)
        return read_plain(h, file, column, row, room);
    CVY_TRY(get_block(h, file, column, row / p->block_rows, &out->block));
    out->data = (const char *)out->block->data + (size_t)(row % p->block_rows) * h->column[column].row_bytes;
    return CVY_OK;
}

void cvy_h5_row_put(cvy_hdf5 *h, cvy_h5_row *row)
{
    if (!row->block)
        return;
    pthread_mutex_lock(&h->cache.lock);
    row->block->users--;
    pthread_mutex_unlock(&h->cache.lock);
    row->block = NULL;
}

/* ---- parts of rows ---- */

/* The part as a range of each axis of the data set, for one row; 0: the shape has other axes. */
static int as_stored(const cvy_h5_column *c, int64_t row, const cvy_field_part *part, cvy_field_part *out)
{
    const int added = part->shape.ndim - (c->ndim - 1); /* 1: an axis of channels, which is not stored */
    if (c->permuted || c->axis != 0 || added < 0 || added > 1 || (added && part->tile.whole.dim[0] != 1))
        return 0;
    *out = (cvy_field_part){.is_part = 1, .shape = {.ndim = c->ndim, .dim = {1}}, .tile.first = {row}};
    out->tile.whole = cvy_shape_make(c->ndim, c->dim);
    for (int d = 1; d < c->ndim; d++) {
        out->shape.dim[d] = part->shape.dim[d - 1 + added];
        out->tile.first[d] = part->tile.first[d - 1 + added];
    }
    return 1;
}

/* Copies what a chunk has of the part. at: the coordinates of the chunk's first number. 0: it has nothing of it. */
static int copy_common(const cvy_h5_chunks *j, const int64_t *at, const cvy_field_part *part, const char *chunk,
                       char *out)
{
    const int ndim = part->shape.ndim, elem = j->column->number.bytes;
    int64_t count = 1;
    cvy_field_part common = {.is_part = 1, .shape.ndim = ndim, .tile.whole.ndim = ndim}; /* as a part of the chunk */
    cvy_tile to = {.whole = part->shape};                                                /* where it is in the part */
    for (int d = 0; d < ndim; d++) {
        const int64_t first = CVY_MAX(at[d], part->tile.first[d]),
                      end = CVY_MIN(at[d] + j->storage->chunk[d], part->tile.first[d] + part->shape.dim[d]);
        common.shape.dim[d] = CVY_MAX(end - first, 0);
        common.tile.whole.dim[d] = j->storage->chunk[d];
        common.tile.first[d] = first - at[d];
        to.first[d] = first - part->tile.first[d];
        count *= common.shape.dim[d];
    }
    const int64_t run = common.shape.dim[ndim - 1];
    for (int64_t i = 0; chunk && i < count; i += run)
        memcpy(out + cvy_tile_index(&to, &common.shape, i) * elem,
               chunk + cvy_tile_index(&common.tile, &common.shape, i) * elem, (size_t)(run * elem));
    return count > 0;
}

static cvy_status unpack_part(const cvy_h5_chunks *j, int64_t row, const cvy_field_part *part, char *chunk, char *out)
{
    const cvy_h5_place *place = j->place;
    int64_t at[CVY_NDIM_MAX] = {row};
    do {
        if (copy_common(j, at, part, NULL, NULL)) {
            const cvy_status status = cvy_h5_chunk_read(j, place, chunk);
            if (status < 0)
                return cvy_error_prefix(status, "data set %s, chunk at row %lld", j->column->name, (long long)row);
            CVY_TRY(status);
            copy_common(j, at, part, chunk, out);
        }
        place++;
    } while (cvy_h5_next_chunk(j->column, j->storage, row, 1, at));
    return CVY_OK;
}

static cvy_status read_part_of_chunks(cvy_hdf5 *h, int64_t file, int column, int64_t row, const cvy_field_part *part,
                                      cvy_bytes *work, void *out)
{
    const cvy_h5_file *f = &h->file[file];
    struct cvy_h5_scratch *s = NULL;
    cvy_h5_chunks j = cvy_h5_chunks_of(h, file, column);
    const int64_t rows = j.storage->block_rows, first = row - row % rows; /* of the block */
    int64_t chunks = 1;                                                   /* of a row */
    for (int i = 1; i < j.column->ndim; i++)
        chunks *= (j.column->dim[i] + j.storage->chunk[i] - 1) / j.storage->chunk[i];
    CVY_TRY(cvy_bytes_need(work, j.bytes));
    CVY_TRY(borrow(h, &s));
    j.packed = &s->packed;
    j.plain = &s->plain;
    cvy_status status = cvy_h5_places_get(h, file, column, first, CVY_MIN(rows, f->rows - first), &s->places, &j.place);
    if (status == CVY_OK)
        status = cvy_h5_pin(h, file);
    if (status == CVY_OK) {
        j.place += (row - first) * chunks;
        status = unpack_part(&j, row, part, work->data, out);
        cvy_h5_unpin(h, file);
    }
    give_back(h, s);
    return status;
}

cvy_status cvy_h5_row_part(cvy_hdf5 *h, int64_t file, int column, int64_t row, const cvy_field_part *part,
                           cvy_bytes *work, void *out)
{
    const cvy_h5_column *c = cvy_h5_column_in(h, file, column);
    cvy_h5_file *f = &h->file[file];
    const cvy_h5_storage *p = &f->storage[column];
    const size_t elem = (size_t)c->number.bytes;
    cvy_field_part stored;
    cvy_status status = CVY_NOT_APPLICABLE;
    if (!as_stored(c, row, part, &stored))
        return CVY_NOT_APPLICABLE;
    if (p->kind == CVY_H5_PLAIN) {
        CVY_TRY(cvy_bytes_need(work, cvy_part_work_bytes(&stored, elem)));
        CVY_TRY(cvy_h5_pin(h, file));
        status = cvy_part_read(&stored, elem, f->fd, p->offset, c->name, work->data, out);
        cvy_h5_unpin(h, file);
    } else if (p->kind == CVY_H5_CHUNKS && p->chunk[0] == 1)
        status = read_part_of_chunks(h, file, column, row, &stored, work, out);
    if (status == CVY_OK)
        cvy_h5_swap(&c->number, out, cvy_shape_elems(&stored.shape));
    return status;
}

#endif
