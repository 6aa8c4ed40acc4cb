/*
 * data_hdf5_chunk.c: reads chunks of HDF5 data sets by their position in the file, and undoes their filters.
 *
 * Threads that read rows call it without the library: it handles chunks that are deflated, shuffled, summed
 * (fletcher32) or unfiltered. Source: the HDF5 file format specification 3.0 (chunks, filters).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <string.h>

#include "data/data_inflate.h"

/* ---- the shuffle filter ---- */

/* The filter stores the first bytes of all numbers, then their second bytes, and so on. This undoes it. */
static void unshuffle(const uint8_t *in, int64_t count, int bytes, uint8_t *restrict out)
{
    if (bytes == 2) {
        for (int64_t i = 0; i < count; i++) {
            out[2 * i] = in[i];
            out[2 * i + 1] = in[count + i];
        }
        return;
    }
    if (bytes == 4) {
        for (int64_t i = 0; i < count; i++) {
            out[4 * i] = in[i];
            out[4 * i + 1] = in[count + i];
            out[4 * i + 2] = in[2 * count + i];
            out[4 * i + 3] = in[3 * count + i];
        }
        return;
    }
    for (int b = 0; b < bytes; b++)
        for (int64_t i = 0; i < count; i++)
            out[i * bytes + b] = in[b * count + i];
}

/* ---- the checksum filter ---- */

/* Fletcher's checksum of words of 16 bits, the first byte of a word being the higher one. Both sums are modulo 65535,
 * by adding the high half to the low half; so a sum that is a multiple of 65535 remains 65535, and only zeros give 0.
 */
static uint32_t fletcher(const uint8_t *data, size_t bytes)
{
    enum { WORDS = 360 }; /* so many can be added before the second sum overflows */
    uint32_t low = 0, high = 0;
    for (size_t at = 0; at < bytes;) {
        const size_t end = CVY_MIN(at + 2 * WORDS, bytes);
        for (; at + 1 < end; at += 2) {
            low += (uint32_t)data[at] << 8 | data[at + 1];
            high += low;
        }
        if (at < end) { /* the last byte of an odd number */
            low += (uint32_t)data[at++] << 8;
            high += low;
        }
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    return high << 16 | low;
}

/* The checksum follows the chunk as a number of four bytes, the lowest first. Libraries before 1.6.3 wrote both halves
 * in the order of a big-endian machine. */
static cvy_status check_sum(const uint8_t *stored, size_t bytes)
{
    const uint8_t *at = stored + bytes;
    const uint32_t sum = fletcher(stored, bytes);
    const uint32_t noted = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24,
                   swapped = (noted & 0x00ff00ff) << 8 | (noted >> 8 & 0x00ff00ff);
    CVY_CHECK(sum == noted || sum == swapped, CVY_E_FORMAT,
              "its checksum is %08x, and that of its bytes is %08x: damaged", noted, sum);
    return CVY_OK;
}

/* ---- chunks ---- */

enum { SUM_BYTES = 4 };

cvy_h5_chunks cvy_h5_chunks_of(const cvy_hdf5 *h, int64_t file, int column)
{
    const cvy_h5_file *f = &h->file[file];
    cvy_h5_chunks c = {
        .file = f, .column = cvy_h5_column_in(h, file, column), .storage = &f->storage[column], .elems = 1};
    for (int i = 0; i < c.column->ndim; i++)
        c.elems *= c.storage->chunk[i];
    c.bytes = (size_t)c.elems * (size_t)c.column->number.bytes;
    return c;
}

/* Checks where the library says that a chunk is stored. CVY_NOT_APPLICABLE: it was never written, or was written
 * without some of its filters. */
static cvy_status check_place(const cvy_h5_chunks *c, const cvy_h5_place *p)
{
    const uint64_t end = (uint64_t)c->file->bytes;
    if (p->address == CVY_H5_NOWHERE || p->bytes == 0 || p->skipped)
        return CVY_NOT_APPLICABLE;
    CVY_CHECK(p->bytes <= end && p->address <= end - p->bytes, CVY_E_FORMAT,
              "%llu bytes at byte %llu, beyond the file's end at %llu: truncated", (unsigned long long)p->bytes,
              (unsigned long long)p->address, (unsigned long long)end);
    const size_t sum = c->storage->summed ? SUM_BYTES : 0;
    CVY_CHECK(p->bytes > sum, CVY_E_FORMAT, "%llu bytes, too few for a checksum", (unsigned long long)p->bytes);
    CVY_TRY(cvy_inflate_check_ratio((int64_t)p->bytes, (int64_t)c->bytes, CVY_H5_UNPACK));
    CVY_CHECK(c->storage->deflated || p->bytes == c->bytes + sum, CVY_E_FORMAT, "%llu bytes, expected %zu",
              (unsigned long long)p->bytes, c->bytes + sum);
    return CVY_OK;
}

cvy_status cvy_h5_chunk_read(const cvy_h5_chunks *c, const cvy_h5_place *place, void *out)
{
    const cvy_h5_storage *p = c->storage;
    CVY_TRY(check_place(c, place));
    const int64_t address = (int64_t)place->address;
    size_t stored = (size_t)place->bytes;
    if (!p->deflated && !p->shuffled && !p->summed)
        return cvy_pread_all(c->file->fd, out, stored, address, "the chunk");
    CVY_TRY(cvy_bytes_need(c->packed, stored));
    CVY_TRY(cvy_pread_all(c->file->fd, c->packed->data, stored, address, "the chunk"));
    if (p->summed) {
        stored -= SUM_BYTES;
        CVY_TRY(check_sum(c->packed->data, stored));
    }
    if (!p->deflated && !p->shuffled) {
        memcpy(out, c->packed->data, stored);
    } else if (!p->deflated) {
        unshuffle(c->packed->data, c->elems, c->column->number.bytes, out);
    } else if (!p->shuffled) {
        CVY_TRY(cvy_inflate(c->packed->data, stored, out, c->bytes));
    } else {
        CVY_TRY(cvy_bytes_need(c->plain, c->bytes));
        CVY_TRY(cvy_inflate(c->packed->data, stored, c->plain->data, c->bytes));
        unshuffle(c->plain->data, c->elems, c->column->number.bytes, out);
    }
    return CVY_OK;
}

#endif
