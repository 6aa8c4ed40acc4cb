/*
 * data_hdf5_remote.h: the HDF5 reader whose library runs in another process: see data_hdf5_remote.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_HDF5_REMOTE_H
#define CVY_DATA_HDF5_REMOTE_H

#include "data/hdf5/data_hdf5.h"
#include "data/hdf5/data_hdf5_process.h"

#if CVY_HAVE_HDF5

/* Starts a reader process, which opens the files as cvy_h5_load() does, and makes h and info equal to what it found.
 * CVY_NOT_APPLICABLE: sandbox is auto, and no process can be started. */
cvy_status cvy_h5_remote_load(cvy_hdf5 *h, const char *path, cvy_reader_info *info);
void cvy_h5_remote_close(cvy_hdf5 *h);
/* What data_hdf5_library.c asks, answered by the reader process. After it has crashed another one is started, and a
 * file that has ended it too often is not read any more. */
cvy_status cvy_h5_remote_places(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, cvy_bytes *out);
cvy_status cvy_h5_remote_rows(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, void *out);
cvy_status cvy_h5_remote_encoded(cvy_hdf5 *h, int64_t file, int column, int64_t row, cvy_bytes *out);

cvy_status cvy_h5_remote_scale(cvy_hdf5 *h, int64_t file, int column, int axis, cvy_pool *pool, cvy_coordinates *out);

/* data_hdf5_wire.c: puts structures into an area, or gets them out. The same call does both, so that the two sides
 * cannot differ. */
typedef struct cvy_h5_wire {
    cvy_area *area;
    size_t at, end; /* end: if is_reading, of the bytes that were sent */
    int is_reading;
    cvy_pool *pool;    /* for what is read */
    cvy_status status; /* the first fault; later calls do nothing */
} cvy_h5_wire;
cvy_h5_wire cvy_h5_wire_write(cvy_area *area);
cvy_h5_wire cvy_h5_wire_read(cvy_area *area, size_t bytes, cvy_pool *pool);
void cvy_h5_wire_text(cvy_h5_wire *w, const char **text); /* may be NULL */
/* The reader's options that cvy_h5_load() uses. */
void cvy_h5_wire_options(cvy_h5_wire *w, struct hdf5_opts *o);
/* Files, columns and their storage. */
void cvy_h5_wire_state(cvy_h5_wire *w, cvy_hdf5 *h);
/* Samples, labels, classes and blocks. */
void cvy_h5_wire_samples(cvy_h5_wire *w, cvy_hdf5 *h, cvy_reader_info *info);
/* What files say of their data sets. */
void cvy_h5_wire_descriptions(cvy_h5_wire *w, cvy_descriptions *d);
/* The coordinates along an axis. */
void cvy_h5_wire_coordinates(cvy_h5_wire *w, cvy_coordinates *c);
/* Checks that what was read can be used without harm, although the process that sent it may be out of order. */
cvy_status cvy_h5_wire_check(const cvy_hdf5 *h, const cvy_reader_info *info);

#endif
#endif
