/*
 * data_hdf5_places.c: where the chunks of data sets are stored.
 *
 * The library is asked for the places of many blocks at a time, and they are kept: a question to a reader process costs
 * as much as unpacking a small chunk. Sets with very many chunks are asked for one block at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <stdio.h>

enum { GROUP_CHUNKS = 1024, KEPT_BYTES = 64 << 20 };

/* The places of a data set in one file, in groups of blocks. */
struct cvy_h5_located {
    int64_t ngroup;
    struct group {
        void *place; /* NULL: not asked yet */
        int failed;  /* it cannot be asked for as a whole: a chunk of it is damaged */
    } * group;       /* [ngroup]; NULL: nothing of the set was asked yet */
};

static int64_t rows_of_group(const cvy_h5_storage *p, int64_t chunks_of_block)
{
    return p->block_rows * CVY_MAX(GROUP_CHUNKS / chunks_of_block, 1);
}

/* The caller holds the lock. */
static cvy_status find_group(cvy_hdf5 *h, int64_t file, int column, int64_t ngroup, int64_t number, struct group **out)
{
    if (!h->cache.located)
        CVY_TRY(cvy_mem_alloc((size_t)h->nfile * (size_t)h->ncolumn * sizeof *h->cache.located, &h->cache.located));
    struct cvy_h5_located *l = &h->cache.located[file * h->ncolumn + column];
    if (!l->group)
        CVY_TRY(cvy_mem_alloc((size_t)ngroup * sizeof *l->group, &l->group));
    l->ngroup = ngroup;
    *out = &l->group[number];
    return CVY_OK;
}

/* Asks for a group, without the lock. If another thread was faster, its answer is kept. */
static cvy_status ask_group(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, struct group *group)
{
    cvy_bytes places = {0};
    const cvy_status status = cvy_h5_ask_places(h, file, column, first, rows, &places);
    pthread_mutex_lock(&h->cache.lock);
    group->failed |= status != CVY_OK;
    if (status == CVY_OK && !group->place) {
        group->place = places.data;
        places.data = NULL;
    }
    pthread_mutex_unlock(&h->cache.lock);
    cvy_mem_free(&places.data);
    return status;
}

/* The places of the group; NULL: they are not known. */
static const cvy_h5_place *group_get(cvy_hdf5 *h, struct group *group, int *failed_out)
{
    pthread_mutex_lock(&h->cache.lock);
    const cvy_h5_place *place = group->place;
    *failed_out = group->failed;
    pthread_mutex_unlock(&h->cache.lock);
    return place;
}

static cvy_status ask_block(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, cvy_bytes *own,
                            const cvy_h5_place **out)
{
    CVY_TRY(cvy_h5_ask_places(h, file, column, first, rows, own));
    *out = own->data;
    return CVY_OK;
}

/* After a group could not be asked for: its fault is told if this block has one, too, because it came first. */
static cvy_status ask_block_after(cvy_hdf5 *h, cvy_status asked, int64_t file, int column, int64_t first, int64_t rows,
                                  cvy_bytes *own, const cvy_h5_place **out)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", cvy_error_text());
    return ask_block(h, file, column, first, rows, own, out) == CVY_OK ? CVY_OK : cvy_error_set(asked, "%s", text);
}

cvy_status cvy_h5_places_get(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, cvy_bytes *own,
                             const cvy_h5_place **out)
{
    const cvy_h5_file *f = &h->file[file];
    const cvy_h5_storage *p = &f->storage[column];
    struct group *group = NULL;
    size_t block = 0, all = 0;
    const cvy_h5_column *c = cvy_h5_column_in(h, file, column);
    CVY_TRY(cvy_h5_places_bytes(c, p, p->block_rows, &block));
    CVY_TRY(cvy_h5_places_bytes(c, p, f->rows, &all));
    if (all > KEPT_BYTES / (size_t)h->nfile)
        return ask_block(h, file, column, first, rows, own, out);
    const int64_t chunks = (int64_t)(block / sizeof **out), each = rows_of_group(p, chunks), number = first / each;
    int failed = 0;
    pthread_mutex_lock(&h->cache.lock);
    const cvy_status status = find_group(h, file, column, (f->rows + each - 1) / each, number, &group);
    pthread_mutex_unlock(&h->cache.lock);
    CVY_TRY(status);
    const cvy_h5_place *place = group_get(h, group, &failed);
    if (!place && !failed) {
        const cvy_status asked =
            ask_group(h, file, column, number * each, CVY_MIN(each, f->rows - number * each), group);
        if (asked != CVY_OK)
            return ask_block_after(h, asked, file, column, first, rows, own, out);
        place = group_get(h, group, &failed);
    }
    if (!place)
        return ask_block(h, file, column, first, rows, own, out);
    *out = place + (first - number * each) / p->block_rows * chunks;
    return CVY_OK;
}

void cvy_h5_places_free(cvy_hdf5 *h)
{
    for (int64_t set = 0; h->cache.located && set < h->nfile * h->ncolumn; set++) {
        for (int64_t i = 0; i < h->cache.located[set].ngroup; i++)
            cvy_mem_free(&h->cache.located[set].group[i].place);
        cvy_mem_free(&h->cache.located[set].group);
    }
    cvy_mem_free(&h->cache.located);
}

#endif
