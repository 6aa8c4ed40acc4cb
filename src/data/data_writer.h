/*
 * data_writer.h: what a writer is: one data format, one file, one descriptor at the file's end.
 *
 * `convoy convert` cuts a data set into pieces of consecutive samples and has each piece written by one rank; what is
 * written does not depend on the number of ranks. A piece appears under its name only when it is whole, so a conversion
 * that was killed is taken up again with the pieces that are missing. finish() comes last, on one rank, and makes the
 * whole out of the pieces; until then a reader must not take them for a data set.
 */
#ifndef CVY_DATA_WRITER_H
#define CVY_DATA_WRITER_H

#include "data/data_reader.h"

typedef struct cvy_writer_args {
    cvy_pool *pool;      /* lives until close() */
    const char *path;    /* the folder, which exists when the first piece begins */
    const void *options; /* filled from the table; strings live in the pool */
    int64_t npieces;
    /* Of the samples to come: shapes, kinds, classes. nsamples is an upper bound: bad ones may be left out. */
    const cvy_reader_info *info;
    const char *const *class_name; /* info->nclasses names; NULL without classes */
} cvy_writer_args;

typedef struct cvy_writer_def {
    const char *name, *summary;
    const cvy_option *options; /* NULL: none */
    size_t options_size;
    int in_turn; /* one rank writes all pieces, in their order (a data base has one writer); else any rank any piece */
    /* On every rank, before anything is written: refuses what the format cannot hold (naming it), touches no file. */
    cvy_status (*open)(const cvy_writer_args *args, void **state_out);
    /* Whether a piece is there, whole, from an earlier conversion of the same source. */
    int (*has_piece)(void *state, int64_t piece);
    /* A piece under way: of at most count samples. One at a time on a rank. */
    cvy_status (*begin_piece)(void *state, int64_t piece, int64_t count);
    /* number: in the source. raw: encoded pictures stay encoded; plain x is info's dtype unless raw says otherwise. */
    cvy_status (*write)(void *state, int64_t number, const cvy_raw *raw);
    /* Makes the piece durable and gives it its name. */
    cvy_status (*end_piece)(void *state);
    /* On one rank, when all pieces are there. nsamples: all that were written. */
    cvy_status (*finish)(void *state, int64_t *nsamples_out, int64_t *bytes_out);
    /* Also after a fault, with a piece under way: what has no name yet is removed. */
    void (*close)(void *state);
} cvy_writer_def;

#define CVY_WRITER_DEFINE(id) const cvy_writer_def cvy_writer_##id##_def
const cvy_writer_def *const *cvy_writer_table(int *count_out);
/* The writer of this name, or CVY_E_CONFIG naming the nearest and all. */
cvy_status cvy_writer_by_name(const char *name, const cvy_writer_def **out);

/* ---- services for writers ---- */

/* A file that gets its name when it is whole: written as NAME.partial, synced, renamed. */
typedef struct cvy_new_file {
    int fd; /* -1: none */
    const char *path, *partial;
    int64_t bytes; /* written so far */
} cvy_new_file;
cvy_status cvy_new_file_begin(cvy_pool *pool, const char *path, cvy_new_file *out);
cvy_status cvy_new_file_write(cvy_new_file *f, const void *data, size_t bytes);
cvy_status cvy_new_file_end(cvy_new_file *f);
void cvy_new_file_drop(cvy_new_file *f); /* after a fault: removes it; fine where there is none */

#endif
