/*
 * data_lmdb.h: an LMDB data base as a reader needs it, and the messages of Caffe that are kept in one.
 *
 * Shared by data_lmdb_file.c (pages to values), data_lmdb.c (values to samples) and data_lmdb_write.c. A value is known
 * by its place in the order of keys; its bytes are fetched by position, so any number of threads and ranks may read at
 * once.
 */
#ifndef CVY_DATA_LMDB_H
#define CVY_DATA_LMDB_H

#include "data/data_reader.h"

#define CVY_LMDB_FILE "data.mdb"
#define CVY_LMDB_NAMES "labels.txt"            /* beside it: the names of the classes, a line each */
#define CVY_LMDB_PARTIAL "convoy.json.partial" /* beside it while a conversion into it is under way */

/* Caffe's Datum: the numbers of its fields. Source: caffe.proto. */
enum {
    DATUM_CHANNELS = 1,
    DATUM_HEIGHT = 2,
    DATUM_WIDTH = 3,
    DATUM_DATA = 4, /* bytes: [C, H, W] of u8, or a file of a picture */
    DATUM_LABEL = 5,
    DATUM_FLOATS = 6, /* repeated f32, packed or not */
    DATUM_ENCODED = 7,
};

enum { CVY_LMDB_PAGE_MAX = 32768 };

typedef struct cvy_lmdb cvy_lmdb;

typedef struct cvy_lmdb_page { /* a page at hand: values one after the other mostly lie in the same one */
    int64_t number;            /* 0: none yet */
    uint8_t bytes[CVY_LMDB_PAGE_MAX];
} cvy_lmdb_page;

typedef struct cvy_lmdb_value {
    int64_t bytes;
    int64_t at;          /* in the file */
    const uint8_t *here; /* in the page at hand where it is small; else NULL */
} cvy_lmdb_value;

/* path: of the file. Reads the tree of keys; a file that was cut off, is damaged or of another kind is a fault. */
cvy_status cvy_lmdb_open(cvy_pool *pool, const char *path, cvy_lmdb **out);
void cvy_lmdb_close(cvy_lmdb *db);
int64_t cvy_lmdb_count(const cvy_lmdb *db);
const char *cvy_lmdb_path(const cvy_lmdb *db);
/* Where the value of this number lies. */
cvy_status cvy_lmdb_find(const cvy_lmdb *db, int64_t number, cvy_lmdb_page *page, cvy_lmdb_value *out);
/* Copies bytes of a value, which its size bounds. */
cvy_status cvy_lmdb_fetch(const cvy_lmdb *db, const cvy_lmdb_value *value, int64_t from, int64_t bytes, void *to);
/* Called behind a read: a fault where somebody has written since the data base was opened. What was fetched before a
 * good answer is whole, for a transaction touches only pages that its predecessor does not need. */
cvy_status cvy_lmdb_check_still(const cvy_lmdb *db);
/* The key as text, for messages; "" where it cannot be had. Records no fault. */
void cvy_lmdb_key_text(const cvy_lmdb *db, int64_t number, char *text, size_t room);

#endif
