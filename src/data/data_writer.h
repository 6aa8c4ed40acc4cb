/*
 * data_writer.h: what a writer is: one data format in one file, with a descriptor at the end of the file.
 *
 * `convoy convert` cuts a data set into pieces of consecutive samples, and one rank writes each piece. The output does
 * not depend on the number of ranks. A piece gets its name only when it is complete, so a killed conversion can
 * continue with the missing pieces. finish() comes last, on one rank, and makes the data set out of the pieces; until
 * then no reader may accept them as a data set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_WRITER_H
#define CVY_DATA_WRITER_H

#include "data/data_reader.h"

typedef struct cvy_writer_args {
    cvy_pool *pool;      /* lives until close() */
    const char *path;    /* the output folder; it exists when the first piece begins */
    const void *options; /* filled from the option table; strings are in pool */
    int64_t npieces;
    /* Describes the samples to write: shapes, dtypes, classes. nsamples is an upper bound: bad ones may be left out. */
    const cvy_reader_info *info;
    const char *const *class_name; /* info->nclasses names; NULL if there are no classes */
    const cvy_dataset *from;       /* what is converted, for the names of its files */
} cvy_writer_args;

typedef struct cvy_writer_def {
    const char *name, *summary;
    const cvy_option *options; /* NULL: none */
    size_t options_size;
    int in_turn; /* 1: one rank writes all pieces in order (a database has one writer); 0: any rank may write any piece
                  */
    /* Called on every rank before anything is written. Rejects what the format cannot hold and names it; touches no
     * file. */
    cvy_status (*open)(const cvy_writer_args *args, void **state_out);
    /* Whether a complete piece exists, from an earlier conversion of the same source. */
    int (*has_piece)(void *state, int64_t piece);
    /* Begins a piece of at most count samples. A rank writes one piece at a time. */
    cvy_status (*begin_piece)(void *state, int64_t piece, int64_t count);
    /* number: of the sample in the source. raw: encoded pictures stay encoded; a plain x has info's dtype unless
     * raw->dtype differs. */
    cvy_status (*write)(void *state, int64_t number, const cvy_raw *raw);
    /* Makes the piece durable and gives it its name. */
    cvy_status (*end_piece)(void *state);
    /* Called on one rank when all pieces exist. nsamples: all samples that were written. */
    cvy_status (*finish)(void *state, int64_t *nsamples_out, int64_t *bytes_out);
    /* Also called after an error, in the middle of a piece: files that do not have their final name yet are removed. */
    void (*close)(void *state);
} cvy_writer_def;

#define CVY_WRITER_DEFINE(id) const cvy_writer_def cvy_writer_##id##_def
const cvy_writer_def *const *cvy_writer_table(int *count_out);
/* Finds the writer of this name. CVY_E_CONFIG if there is none; the message names the nearest and all. */
cvy_status cvy_writer_by_name(const char *name, const cvy_writer_def **out);

/* ---- services for writers ---- */

/* A file that gets its name when it is complete: it is written as NAME.partial, synced and renamed. */
typedef struct cvy_new_file {
    int fd; /* -1: none */
    const char *path, *partial;
    int64_t bytes; /* written so far */
} cvy_new_file;
cvy_status cvy_new_file_begin(cvy_pool *pool, const char *path, cvy_new_file *out);
cvy_status cvy_new_file_write(cvy_new_file *f, const void *data, size_t bytes);
cvy_status cvy_new_file_end(cvy_new_file *f);
void cvy_new_file_drop(cvy_new_file *f); /* after an error: removes it; allowed if there is none */
/* Writes labels.txt into the folder, a class a line, such as "0:daisy", and adds its size; nothing without labels. */
cvy_status cvy_labels_file_write(const cvy_writer_args *args, int64_t *bytes);

#endif
