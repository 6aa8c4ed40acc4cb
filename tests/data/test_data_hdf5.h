/*
 * test_data_hdf5.h: makes HDF5 files for the tests, one data set at a time, and opens them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_DATA_HDF5_H
#define TEST_DATA_HDF5_H

#include "test_data_support.h"

#if CVY_HAVE_HDF5
#include <hdf5.h>
#include <stdio.h>

/* Describes a data set to make. If chunk[0] is 0, it is contiguous. */
struct layout {
    hid_t type;
    int ndim;
    hsize_t dim[6], chunk[6];
    int shuffle, level, sum; /* sum: a checksum for each chunk */
};

static inline hid_t half(void)
{
    const hid_t t = H5Tcopy(H5T_IEEE_F32LE);
    TRUE_THAT(H5Tset_fields(t, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(t, 2) >= 0 && H5Tset_ebias(t, 15) >= 0);
    return t;
}

static inline hid_t truth(void)
{
    const hid_t t = H5Tenum_create(H5T_STD_I8LE);
    const int8_t no = 0, yes = 1;
    TRUE_THAT(H5Tenum_insert(t, "FALSE", &no) >= 0 && H5Tenum_insert(t, "TRUE", &yes) >= 0);
    return t;
}

/* The values are given as doubles; the library converts them. */
static inline hid_t put_set(hid_t file, const char *name, struct layout l, const double *value)
{
    const hid_t space = H5Screate_simple(l.ndim, l.dim, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    if (l.chunk[0]) {
        H5Pset_chunk(list, l.ndim, l.chunk);
        if (l.shuffle)
            H5Pset_shuffle(list);
        if (l.level)
            H5Pset_deflate(list, (unsigned)l.level);
        if (l.sum)
            H5Pset_fletcher32(list);
    }
    const hid_t set = H5Dcreate2(file, name, l.type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    TRUE_THAT(set >= 0);
    if (H5Tget_class(l.type) == H5T_ENUM) {
        const hssize_t n = H5Sget_simple_extent_npoints(space);
        int8_t *byte = malloc((size_t)n);
        for (hssize_t i = 0; i < n; i++)
            byte[i] = value[i] != 0;
        TRUE_THAT(H5Dwrite(set, l.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, byte) >= 0);
        free(byte);
    } else {
        TRUE_THAT(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    }
    H5Pclose(list);
    H5Sclose(space);
    return set;
}

static inline void add_set(hid_t file, const char *name, struct layout l, const double *value)
{
    H5Dclose(put_set(file, name, l, value));
}

static inline hid_t new_file(const char *name)
{
    const hid_t file = H5Fcreate(in_scratch(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(file >= 0);
    return file;
}

/* Returns whole numbers that every type can hold. No two rows are equal. */
static inline double value_at(int64_t i)
{
    return (double)((i * 7 + i / 13) % 101);
}

static inline double *values(int64_t n)
{
    double *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = value_at(i);
    return v;
}

/* Lists of bytes that begin like a JPEG: many short ones, which share a collection in the file, and a few long ones. */
enum { LISTS = 300, LIST_MAX = 20000 };
static inline size_t list_bytes(int row)
{
    return row % 50 == 7 ? LIST_MAX : row % 20 == 3 ? 5000 : (size_t)(4 + row * 13 % 90);
}

static inline void fill_list(int row, uint8_t *out)
{
    for (size_t i = 0; i < list_bytes(row); i++)
        out[i] = (uint8_t)((size_t)row * 7 + i * 31);
    memcpy(out, (const uint8_t[]){0xff, 0xd8, 0xff}, 3);
}

static inline void add_lists(hid_t file, struct layout l)
{
    static uint8_t bytes[LISTS][LIST_MAX];
    hvl_t list[LISTS];
    const int64_t shape[3] = {3, 0, 0};
    const hsize_t rows = LISTS, three = 3;
    const hid_t type = H5Tvlen_create(H5T_STD_U8LE), space = H5Screate_simple(1, &rows, NULL),
                axes = H5Screate_simple(1, &three, NULL), made = H5Pcreate(H5P_DATASET_CREATE);
    for (int i = 0; i < LISTS; i++) {
        fill_list(i, bytes[i]);
        list[i] = (hvl_t){list_bytes(i), bytes[i]};
    }
    if (l.chunk[0])
        H5Pset_chunk(made, 1, l.chunk);
    if (l.shuffle)
        H5Pset_shuffle(made);
    if (l.level)
        H5Pset_deflate(made, (unsigned)l.level);
    const hid_t set = H5Dcreate2(file, "encoded", type, space, H5P_DEFAULT, made, H5P_DEFAULT);
    const hid_t at = H5Acreate2(set, "shape", H5T_STD_I64LE, axes, H5P_DEFAULT, H5P_DEFAULT);
    TRUE_THAT(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, list) >= 0);
    TRUE_THAT(H5Awrite(at, H5T_NATIVE_INT64, shape) >= 0);
    H5Aclose(at);
    H5Dclose(set);
    H5Pclose(made);
    H5Sclose(axes);
    H5Sclose(space);
    H5Tclose(type);
}

static inline cvy_status open_in(const char *name, const char *options, cvy_dataset **out)
{
    char text[1024];
    snprintf(text, sizeof text, "{path: \"%s\", format: hdf5%s%s}", in_scratch(name), *options ? ", " : "", options);
    return open_text(text, NULL, 0, out);
}

static inline const char *shape_of(const cvy_dataset *d)
{
    return cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape);
}

/* Reads x of sample i into `x`, which has room for all its elements. */
static inline void read_x(cvy_dataset *d, int64_t i, float *x)
{
    static float rest[CVY_FIELD_MAX][64];
    void *field[CVY_FIELD_MAX] = {x};
    for (int k = 1; k < CVY_FIELD_MAX; k++)
        field[k] = rest[k];
    OK(cvy_dataset_read(d, i, 0, field));
}

#endif
#endif
