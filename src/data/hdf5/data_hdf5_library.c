/*
 * data_hdf5_library.c: what the HDF5 library is asked while samples are read: where chunks are stored, rows that only
 * the library can read, and lists of bytes.
 *
 * Each question has two ways to the library: it is called here, one thread at a time, or the reader process of the data
 * set calls it (data_hdf5_remote.c). The answers are the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/hdf5/data_hdf5.h"

#if CVY_HAVE_HDF5
#include <string.h>

#include "data/hdf5/data_hdf5_remote.h"

/* ---- chunks ---- */

int cvy_h5_next_chunk(const cvy_h5_column *c, const cvy_h5_storage *p, int64_t first, int64_t rows, int64_t *at)
{
    int i = c->ndim - 1;
    while (i >= 0 && (at[i] += p->chunk[i]) >= (i == 0 ? first + rows : c->dim[i]))
        at[i] = i == 0 ? first : 0, i--;
    return i >= 0;
}

cvy_status cvy_h5_places_bytes(const cvy_h5_column *c, const cvy_h5_storage *p, int64_t rows, size_t *out)
{
    size_t bytes = sizeof(cvy_h5_place);
    for (int i = 0; i < c->ndim; i++) {
        const int64_t n = i == 0 ? rows : c->dim[i];
        CVY_TRY(cvy_size_mul(bytes, (size_t)(n / p->chunk[i] + (n % p->chunk[i] > 0)), &bytes));
    }
    *out = bytes;
    return CVY_OK;
}

static cvy_status find_place(hid_t set, int ndim, const int64_t *at, cvy_h5_place *out)
{
    hsize_t offset[CVY_NDIM_MAX], stored = 0;
    haddr_t address = HADDR_UNDEF;
    unsigned skipped = 0;
    for (int i = 0; i < ndim; i++)
        offset[i] = (hsize_t)at[i];
#if H5_VERSION_GE(1, 10, 5)
    if (set < 0 || H5Dget_chunk_info_by_coord(set, offset, &skipped, &address, &stored) < 0)
        return cvy_h5_fault(CVY_E_FORMAT, "cannot be found");
#else
    (void)set, (void)offset;
#endif
    *out = (cvy_h5_place){.address = address == HADDR_UNDEF ? CVY_H5_NOWHERE : (uint64_t)address,
                          .bytes = (uint64_t)stored,
                          .skipped = skipped != 0};
    return CVY_OK;
}

cvy_status cvy_h5_library_places(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, cvy_bytes *out)
{
    cvy_h5_file *f = &h->file[file];
    const cvy_h5_column *c = cvy_h5_column_in(h, file, column);
    const cvy_h5_storage *p = &f->storage[column];
    int64_t at[CVY_NDIM_MAX] = {first};
    size_t bytes = 0;
    CVY_TRY(cvy_h5_places_bytes(c, p, rows, &bytes));
    CVY_TRY(cvy_bytes_need(out, bytes));
    CVY_TRY(cvy_h5_pin(h, file));
    cvy_h5_place *place = out->data;
    cvy_status status = CVY_OK;
    cvy_h5_enter();
    const hid_t set = cvy_h5_set_id(h, f, column);
    do {
        status = find_place(set, c->ndim, at, place++);
        if (status != CVY_OK)
            cvy_error_prefix(status, "data set %s, chunk at row %lld", c->name, (long long)at[0]);
    } while (status == CVY_OK && cvy_h5_next_chunk(c, p, first, rows, at));
    cvy_h5_leave();
    cvy_h5_unpin(h, file);
    return status;
}

cvy_status cvy_h5_ask_places(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, cvy_bytes *out)
{
    return h->remote ? cvy_h5_remote_places(h, file, column, first, rows, out)
                     : cvy_h5_library_places(h, file, column, first, rows, out);
}

/* ---- rows ---- */

cvy_status cvy_h5_library_rows(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, void *out)
{
    const cvy_h5_column *c = cvy_h5_column_in(h, file, column);
    CVY_TRY(cvy_h5_pin(h, file));
    cvy_h5_enter();
    const hid_t set = cvy_h5_set_id(h, &h->file[file], column);
    const cvy_status status = set < 0 ? cvy_h5_fault(CVY_E_FORMAT, "the data set cannot be opened")
                                      : cvy_h5_read_rows(set, c->axis, first, rows, out);
    cvy_h5_leave();
    cvy_h5_unpin(h, file);
    return status == CVY_OK ? status : cvy_error_prefix(status, "data set %s", c->name);
}

cvy_status cvy_h5_ask_rows(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, void *out)
{
    return h->remote ? cvy_h5_remote_rows(h, file, column, first, rows, out)
                     : cvy_h5_library_rows(h, file, column, first, rows, out);
}

/* ---- lists of bytes ---- */

cvy_status cvy_h5_library_encoded(cvy_hdf5 *h, int64_t file, int column, int64_t row, cvy_h5_room_fn room, void *user)
{
    const hsize_t start = (hsize_t)row, count = 1;
    hvl_t bytes = {0};
    void *to = NULL;
    CVY_TRY(cvy_h5_pin(h, file));
    cvy_h5_enter();
    const hid_t set = cvy_h5_set_id(h, &h->file[file], column);
    const hid_t type = H5Tvlen_create(H5T_NATIVE_UCHAR), memory = H5Screate_simple(1, &count, NULL);
    const hid_t space = set < 0 ? -1 : H5Dget_space(set);
    cvy_status status = CVY_OK;
    if (space < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) < 0 ||
        H5Dread(set, type, memory, space, H5P_DEFAULT, &bytes) < 0)
        status = cvy_h5_fault(CVY_E_FORMAT, "data set %s cannot be read", h->column[column].name);
    else if (bytes.len > CVY_H5_ENCODED_MAX)
        status = cvy_error_set(CVY_E_FORMAT, "a picture of %zu bytes, expected at most 1 GiB", (size_t)bytes.len);
    else
        status = room(user, bytes.len, &to);
    if (status == CVY_OK && bytes.len > 0)
        memcpy(to, bytes.p, bytes.len);
    if (bytes.p)
        H5Dvlen_reclaim(type, memory, H5P_DEFAULT, &bytes);
    if (space >= 0)
        H5Sclose(space);
    H5Sclose(memory);
    H5Tclose(type);
    cvy_h5_leave();
    cvy_h5_unpin(h, file);
    return status;
}

static cvy_status bytes_room(void *user, size_t bytes, void **out)
{
    cvy_bytes *b = user;
    CVY_TRY(cvy_bytes_need(b, bytes));
    *out = b->data;
    return CVY_OK;
}

cvy_status cvy_h5_encoded_get(cvy_hdf5 *h, int64_t file, int column, int64_t row, cvy_bytes *out)
{
    const cvy_status status = cvy_h5_list_read(h, file, column, row, out);
    if (status != CVY_NOT_APPLICABLE)
        return status;
    return h->remote ? cvy_h5_remote_encoded(h, file, column, row, out)
                     : cvy_h5_library_encoded(h, file, column, row, bytes_room, out);
}

#endif
