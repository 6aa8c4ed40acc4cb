/*
 * data_hdf5_lists.c: reads lists of bytes (encoded pictures) by their position in the file.
 *
 * A row of such a data set is a reference: how many bytes, the address of a collection of objects (a global heap), and
 * the number of the object in it. Threads follow references without the library and in parallel. Whatever is not as
 * expected is left to the library, which reads it or says what is wrong. Source: the HDF5 file format specification
 * 3.0, III.E (global heap) and VIII.B (variable-length data).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <string.h>

#include "base/base_file.h"

enum {
    HEAD_BYTES = 16,     /* of a collection, and of each object in it */
    USUAL_BYTES = 4096,  /* of a collection of small objects; a larger object has one of its own */
    OBJECTS_MAX = 65535, /* in a collection: their numbers have 16 bits */
};

static uint64_t number_at(const uint8_t *at, int bytes)
{
    uint64_t n = 0;
    while (bytes-- > 0)
        n = n << 8 | at[bytes];
    return n;
}

/* A collection, of which the first bytes are in memory. */
struct heap {
    int fd;
    uint64_t address, bytes; /* in the file */
    size_t have;
    uint8_t start[USUAL_BYTES];
};

static cvy_status open_heap(const cvy_h5_file *f, uint64_t address, struct heap *heap)
{
    const uint64_t end = (uint64_t)f->bytes;
    if (address > end || end - address < HEAD_BYTES)
        return CVY_NOT_APPLICABLE;
    heap->fd = f->fd;
    heap->address = address;
    heap->have = (size_t)CVY_MIN(end - address, (uint64_t)USUAL_BYTES);
    CVY_TRY(cvy_pread_all(f->fd, heap->start, heap->have, (int64_t)address, "the global heap"));
    heap->bytes = number_at(heap->start + 8, 8);
    return memcmp(heap->start, "GCOL\1", 5) == 0 && heap->bytes <= end - address ? CVY_OK : CVY_NOT_APPLICABLE;
}

/* Copies bytes of the collection, which lie within it. */
static cvy_status copy(const struct heap *heap, uint64_t at, void *out, size_t bytes)
{
    if (at <= heap->have && bytes <= heap->have - at) {
        memcpy(out, heap->start + at, bytes);
        return CVY_OK;
    }
    return cvy_pread_all(heap->fd, out, bytes, (int64_t)(heap->address + at), "the global heap");
}

/* Finds the object with this number and size. */
static cvy_status find_object(const struct heap *heap, uint64_t number, uint64_t bytes, uint64_t *at_out)
{
    uint8_t head[HEAD_BYTES];
    uint64_t at = HEAD_BYTES;
    for (int i = 0; i < OBJECTS_MAX && at + HEAD_BYTES <= heap->bytes; i++) {
        CVY_TRY(copy(heap, at, head, sizeof head));
        const uint64_t own = number_at(head, 2), size = number_at(head + 8, 8), room = heap->bytes - at - HEAD_BYTES;
        if (own == 0 || size > room) /* 0: the rest is free */
            return CVY_NOT_APPLICABLE;
        *at_out = at + HEAD_BYTES;
        if (own == number)
            return size == bytes ? CVY_OK : CVY_NOT_APPLICABLE;
        at += HEAD_BYTES + (size + 7) / 8 * 8;
    }
    return CVY_NOT_APPLICABLE;
}

static cvy_status follow(const cvy_h5_file *f, const uint8_t *reference, cvy_bytes *out)
{
    const uint64_t bytes = number_at(reference, 4), address = number_at(reference + 4, 8),
                   number = number_at(reference + 12, 4);
    struct heap heap;
    uint64_t at = 0;
    if (bytes == 0 || bytes > CVY_H5_ENCODED_MAX)
        return CVY_NOT_APPLICABLE;
    CVY_TRY(open_heap(f, address, &heap));
    CVY_TRY(find_object(&heap, number, bytes, &at));
    CVY_TRY(cvy_bytes_need(out, (size_t)bytes));
    return copy(&heap, at, out->data, (size_t)bytes);
}

cvy_status cvy_h5_list_read(cvy_hdf5 *h, int64_t file, int column, int64_t row, cvy_bytes *out)
{
    uint8_t reference[CVY_H5_REFERENCE_BYTES];
    cvy_h5_row at;
    if (h->file[file].storage[column].kind == CVY_H5_LIBRARY ||
        cvy_h5_row_get(h, file, column, row, reference, &at) != CVY_OK)
        return CVY_NOT_APPLICABLE;
    memcpy(reference, at.data, sizeof reference);
    cvy_h5_row_put(h, &at);
    CVY_TRY(cvy_h5_pin(h, file));
    const cvy_status status = follow(&h->file[file], reference, out);
    cvy_h5_unpin(h, file);
    return status == CVY_OK || status == CVY_E_MEMORY ? status : CVY_NOT_APPLICABLE;
}

#endif
