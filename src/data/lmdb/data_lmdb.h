/*
 * data_lmdb.h: access to an LMDB database for a reader, and Caffe's messages in it.
 *
 * Shared by data_lmdb_file.c (from pages to values), data_lmdb.c (from values to samples) and data_lmdb_write.c. The
 * number of a value is its index in the order of keys. Its bytes are read by position, so any number of threads and
 * ranks may read at the same time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_LMDB_H
#define CVY_DATA_LMDB_H

#include "data/data_reader.h"

#define CVY_LMDB_FILE "data.mdb"
#define CVY_LMDB_NAMES "labels.txt"            /* in the same folder: the names of the classes, one per line */
#define CVY_LMDB_PARTIAL "convoy.json.partial" /* in the same folder while a conversion is not finished */

/* Field numbers of Caffe's message Datum. Source: caffe.proto. */
enum {
    DATUM_CHANNELS = 1,
    DATUM_HEIGHT = 2,
    DATUM_WIDTH = 3,
    DATUM_DATA = 4, /* bytes: [C, H, W] of u8, or an encoded picture */
    DATUM_LABEL = 5,
    DATUM_FLOATS = 6, /* repeated f32, packed or not */
    DATUM_ENCODED = 7,
};

enum { CVY_LMDB_PAGE_MAX = 32768 };

typedef struct cvy_lmdb cvy_lmdb;

typedef struct cvy_lmdb_page { /* a cached page: consecutive values are mostly on the same page */
    int64_t number;            /* 0: no page yet */
    uint8_t bytes[CVY_LMDB_PAGE_MAX];
} cvy_lmdb_page;

typedef struct cvy_lmdb_value {
    int64_t bytes;
    int64_t at;          /* position in the file */
    const uint8_t *here; /* in the cached page if the value is small; otherwise NULL */
} cvy_lmdb_value;

/* Opens the file `path` and reads the tree of keys. It is an error if the file is truncated, damaged or not an LMDB
 * database. */
cvy_status cvy_lmdb_open(cvy_pool *pool, const char *path, cvy_lmdb **out);
void cvy_lmdb_close(cvy_lmdb *db);
int64_t cvy_lmdb_count(const cvy_lmdb *db);
const char *cvy_lmdb_path(const cvy_lmdb *db);
/* Finds where the value with this number is. page is a cache that the caller keeps between calls. */
cvy_status cvy_lmdb_find(const cvy_lmdb *db, int64_t number, cvy_lmdb_page *page, cvy_lmdb_value *out);
/* Copies a part of a value; from + bytes must not exceed its size. */
cvy_status cvy_lmdb_fetch(const cvy_lmdb *db, const cvy_lmdb_value *value, int64_t from, int64_t bytes, void *to);
/* Call it after a read. It returns an error if the database was written to since it was opened. If it returns CVY_OK,
 * what was read before is consistent: a transaction only overwrites pages that the previous one does not need. */
cvy_status cvy_lmdb_check_still(const cvy_lmdb *db);
/* The key as text, for messages; "" if it cannot be read. It sets no error. */
void cvy_lmdb_key_text(const cvy_lmdb *db, int64_t number, char *text, size_t room);

#endif
