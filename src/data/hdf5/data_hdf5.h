/*
 * data_hdf5.h: what the files of the HDF5 reader and writer share.
 *
 * data_hdf5.c is the reader; data_hdf5_open.c makes the set out of files and names, data_hdf5_index.c says which rows
 * are samples and what their labels are; data_hdf5_file.c is all that they ask the library for: files, data sets, kinds
 * of numbers, messages; data_hdf5_block.c reads rows. The library has one lock for the whole process, so as little as
 * possible goes through it: rows of plain data sets are read by position, and chunks are unpacked here, by as many
 * threads as there are.
 */
#ifndef CVY_DATA_HDF5_H
#define CVY_DATA_HDF5_H

#include "data/data_reader.h"

struct hdf5_opts { /* of the reader */
    const cvy_tree *x, *y;
    const char *label, *weight, *mask, *where, *axes;
    int64_t classes, cache_mb;
    int class_per_file, channels;
};
/* Whether a file's name says that it is HDF5. */
int cvy_h5_is_file_name(const char *name);

#if CVY_HAVE_HDF5
#include <hdf5.h>
#include <pthread.h>

/* ---- the library ---- */

/* Every call of the library stands between these two: one lock for the process, and silence on standard error. */
void cvy_h5_enter(void);
void cvy_h5_leave(void);
/* Records our message with the library's innermost one behind it. Between enter and leave. */
cvy_status cvy_h5_fault(cvy_status code, const char *fmt, ...) CVY_PRINTF(2, 3);
/* Closes a property list and keeps the message of the call before. */
void cvy_h5_close_list(hid_t list);
/* How files are opened: without locks, which shared file systems often refuse. The caller closes it. */
hid_t cvy_h5_access(void);
/* A data set, opened without leaving the folder of its file; negative on a fault. */
hid_t cvy_h5_open_set(hid_t file, const char *name);

/* How a number is stored. */
typedef enum {
    CVY_H5_U8,
    CVY_H5_I8,
    CVY_H5_U16,
    CVY_H5_I16,
    CVY_H5_U32,
    CVY_H5_I32,
    CVY_H5_U64,
    CVY_H5_I64,
    CVY_H5_F16,
    CVY_H5_BF16,
    CVY_H5_F32,
    CVY_H5_F64
} cvy_h5_kind;
typedef struct cvy_h5_number {
    cvy_h5_kind kind;
    int bytes, big_endian;
    int fast_half;
    int is_byte; /* a plain u8, no truth and no enumeration: pictures are made of them */
} cvy_h5_number;
/* 0: not a number, or one of a strange form. */
int cvy_h5_number_of(hid_t type, cvy_h5_number *out);
/* Rows of bytes of any length. */
int cvy_h5_is_encoded(hid_t type);
/* "float16", "text", "compound", .. */
void cvy_h5_type_text(hid_t type, char *text, size_t room);
/* Puts count numbers into this machine's byte order. */
void cvy_h5_swap(const cvy_h5_number *n, void *data, int64_t count);
void cvy_h5_to_f32(const cvy_h5_number *n, const void *in, int64_t count, float *out);
void cvy_h5_to_f64(const cvy_h5_number *n, const void *in, int64_t count, double *out);

/* A data set that a file holds. */
typedef struct cvy_h5_found {
    const char *name;
    cvy_shape shape; /* ndim -1: more axes than we know */
    char type[24];
    int whole;   /* integers */
    int encoded; /* rows of bytes of any length */
} cvy_h5_found;
enum { CVY_H5_FOUND_MAX = 256 };
/* All data sets of a file, in the order of their names; texts in pool. Between enter and leave. */
cvy_status cvy_h5_list(cvy_pool *pool, hid_t file, cvy_h5_found *found, int *count_out);
/* "x 100x16x64x64 float16, y 100x3 float32", for messages. */
void cvy_h5_list_text(const cvy_h5_found *found, int count, char *text, size_t room);

/* ---- the set ---- */

enum { CVY_H5_COLUMNS = 64 };

/* A data set that is read for each sample; it is alike in all files but for its number of rows. */
typedef struct cvy_h5_column {
    const char *name;
    cvy_h5_number number;
    int encoded;
    int ndim, axis; /* of the data set; which axis counts the samples */
    int64_t dim[CVY_NDIM_MAX];
    int64_t elems; /* of one row */
    size_t row_bytes;
    cvy_shape shape; /* what a row becomes */
    int turned;      /* its axes stand in another order than in the row: stride[i] in the row belongs to shape.dim[i] */
    int64_t stride[CVY_NDIM_MAX];
} cvy_h5_column;

typedef enum {
    CVY_H5_PLAIN,  /* rows lie one after the other in the file: read by position */
    CVY_H5_CHUNKS, /* chunks that we read by position and unpack ourselves */
    CVY_H5_LIBRARY /* anything else */
} cvy_h5_way;

/* A column in one file. */
typedef struct cvy_h5_place {
    cvy_h5_way way;
    int shuffled, deflated; /* CHUNKS: their filters, in this order */
    int64_t offset;         /* PLAIN: of the first row */
    int64_t block_rows;     /* else: rows that are read and kept together */
    int64_t chunk[CVY_NDIM_MAX];
} cvy_h5_place;

typedef struct cvy_h5_file {
    const char *path;
    int64_t bytes, rows, first; /* first: number of its first row among those of all files */
    cvy_h5_place *place;        /* [ncolumn] */
    /* While it is open; files are closed when others need their place. */
    int fd;
    hid_t id, *set; /* negative: not open; set: [ncolumn] */
    int pins;
    int64_t used;
} cvy_h5_file;

struct cvy_h5_block;
struct cvy_h5_scratch;
enum { CVY_H5_BUCKETS = 1024 };

typedef struct cvy_hdf5 {
    cvy_pool *pool;
    const struct hdf5_opts *o;
    cvy_h5_file *file;
    int64_t nfile, nrows;
    cvy_h5_column column[CVY_H5_COLUMNS]; /* x, then y, then one each of those below, -1 where there is none */
    int ncolumn, nx, ny, weight, coding, extent;
    cvy_dtype dtype;
    cvy_shape shape;
    int64_t y_elems;
    int64_t nsamples, *kept; /* numbers of the rows that are samples; NULL: all */
    int32_t *label;          /* [nsamples], or NULL */
    /* Open files and blocks at hand, under one lock. The library's lock is taken within it, never the other way. */
    pthread_mutex_t lock;
    pthread_cond_t filled;
    int lock_made, filled_made, nopen;
    int64_t tick;
    struct cvy_h5_block *bucket[CVY_H5_BUCKETS], *newest, *oldest;
    struct cvy_h5_scratch *idle;
    size_t held, limit; /* bytes of blocks */
} cvy_hdf5;

/* data_hdf5_open.c: files, names, shapes, labels, conditions. */
cvy_status cvy_h5_load(cvy_hdf5 *h, const char *path, cvy_reader_info *info);
/* data_hdf5_index.c: which rows are samples, and their labels (label NULL: none, or one class a file). */
cvy_status cvy_h5_index(cvy_hdf5 *h, const char *label, cvy_reader_info *info);

/* data_hdf5_file.c: open files. A pinned file stays open. */
cvy_status cvy_h5_pin(cvy_hdf5 *h, int64_t file);
void cvy_h5_unpin(cvy_hdf5 *h, int64_t file);
/* The file and a column's data set as the library knows them; pinned, between enter and leave. Negative on a fault. */
hid_t cvy_h5_file_id(cvy_h5_file *f);
hid_t cvy_h5_set_id(cvy_hdf5 *h, cvy_h5_file *f, int column);
void cvy_h5_close_files(cvy_hdf5 *h);
/* Rows first .. first + n - 1 as they are stored, by the library; data has room. Between enter and leave. */
cvy_status cvy_h5_read_rows(hid_t set, int axis, int64_t first, int64_t n, void *data);

/* data_hdf5_block.c: a row, in this machine's byte order. room: of row_bytes, where the row comes from no block. */
typedef struct cvy_h5_row {
    const void *data;
    struct cvy_h5_block *block;
} cvy_h5_row;
cvy_status cvy_h5_row_get(cvy_hdf5 *h, int64_t file, int column, int64_t row, void *room, cvy_h5_row *out);
void cvy_h5_row_put(cvy_hdf5 *h, cvy_h5_row *row);
/* A row of bytes of its own length. */
cvy_status cvy_h5_encoded_get(cvy_hdf5 *h, int64_t file, int column, int64_t row, cvy_bytes *out);
void cvy_h5_free_blocks(cvy_hdf5 *h);

#endif
#endif
