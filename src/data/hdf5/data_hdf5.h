/*
 * data_hdf5.h: what the files of the HDF5 reader and writer share.
 *
 * data_hdf5.c is the reader. data_hdf5_open.c makes one data set out of files, data_hdf5_names.c chooses data sets by
 * their names, and data_hdf5_index.c finds which rows are samples, and their labels. data_hdf5_block.c reads rows,
 * data_hdf5_chunk.c reads chunks, and data_hdf5_packing.c unpacks their numbers. data_hdf5_file.c has the calls of the
 * HDF5 library about files, data sets, number types and messages, data_hdf5_found.c lists data sets, data_hdf5_axes.c
 * says what their axes are, data_hdf5_coordinates.c reads the coordinates along them, data_hdf5_described.c brings them
 * into the order and the units of the first file, and data_hdf5_library.c has what the library is asked while samples
 * are read. The library has one lock for the whole process, so as little as possible
 * goes through it: rows of contiguous data sets are read by position, and chunks are decompressed here, by as many
 * threads as there are.
 *
 * The library may run in a process of its own (sandbox), because damaged files crash it. data_hdf5_remote.c asks that
 * process, data_hdf5_serve.c is its loop, data_hdf5_wire.c carries the data set from one to the other, and
 * data_hdf5_process.c starts the process and watches it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_HDF5_H
#define CVY_DATA_HDF5_H

#include "data/data_described.h"
#include "data/data_missing.h"
#include "data/data_reader.h"

struct hdf5_opts { /* options of the reader */
    const cvy_tree *x, *y;
    const char *label, *weight, *mask, *where, *axes, *sample_axis, *missing, *group;
    int64_t classes, cache_mb, sandbox_limit;
    int class_per_file, channels, sandbox, metadata;
};
enum { CVY_H5_METADATA_CHECK, CVY_H5_METADATA_IGNORE };
enum { CVY_H5_SANDBOX_AUTO, CVY_H5_SANDBOX_OFF, CVY_H5_SANDBOX_ON };
/* Whether the name has a suffix of HDF5 files. */
int cvy_h5_is_file_name(const char *name);
/* Whether MATLAB wrote the file, in its format 7.3, which is HDF5. */
int cvy_h5_is_matlab(const char *path);

#if CVY_HAVE_HDF5
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <pthread.h>

/* ---- the library ---- */

/* Every call of the library is made between these two. They hold one lock for the process, and keep the library from
 * printing to stderr. */
void cvy_h5_enter(void);
void cvy_h5_leave(void);
/* Sets the error to our message, followed by the library's innermost one. Call it between enter and leave. */
cvy_status cvy_h5_fault(cvy_status code, const char *fmt, ...) CVY_PRINTF(2, 3);
/* Closes a property list, a data space, an attribute or the like, and keeps the error message of the call before.
 * Negative: there is none. */
void cvy_h5_release(hid_t id);
/* The access properties with which files are opened: without locks, which shared file systems often refuse. The caller
 * closes the list. */
hid_t cvy_h5_access(void);
/* The fault that the library cannot open this file, and what to do. Call it between enter and leave. */
cvy_status cvy_h5_cannot_open(const char *path);
/* The axes of a data set, as far as a shape has room for them, each at most INT64_MAX. Returns how many it has;
 * negative on an error. */
int cvy_h5_shape_of(hid_t space, cvy_shape *out);
/* Opens an object of any kind, as the next function opens a data set. */
hid_t cvy_h5_open_object(hid_t group, const char *name);
/* Opens a data set. Links to files outside the folder of its file are refused. Negative on an error. */
hid_t cvy_h5_open_set(hid_t file, const char *name);
/* Whether `name`, by which the file `from` names another one, is in the folder of `from` or below. */
int cvy_h5_stays_in_folder(const char *from, const char *name);
/* Returns an error if the library lacks a filter of the data set. */
cvy_status cvy_h5_check_filters(hid_t set, const char *name);
/* Returns an error if the numbers are in other files (external storage), or a virtual data set has parts in files that
 * are missing, or not in the folder of its file or below. The library would fill missing parts with fill values. */
cvy_status cvy_h5_check_parts(hid_t set, const char *name);

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
    int is_byte; /* a plain u8, not a boolean or an enumeration: pictures may be made of it */
} cvy_h5_number;
/* Returns 0 if the type is not a number, or has an unusual form. */
int cvy_h5_number_of(hid_t type, cvy_h5_number *out);
/* Whether each row is a list of bytes of any length (encoded pictures). */
int cvy_h5_is_encoded(hid_t type);
/* Writes "float16", "text", "compound", ... */
void cvy_h5_type_text(hid_t type, char *text, size_t room);
/* Converts `count` numbers in place to this machine's byte order. */
void cvy_h5_swap(const cvy_h5_number *n, void *data, int64_t count);
void cvy_h5_to_f32(const cvy_h5_number *n, const void *in, int64_t count, float *out);
void cvy_h5_to_f64(const cvy_h5_number *n, const void *in, int64_t count, double *out);

/* A data set found in a file. */
typedef struct cvy_h5_found {
    const char *name;
    cvy_shape shape;         /* ndim -1: more axes than CVY_NDIM_MAX */
    char type[24], axes[80]; /* axes: their names, "(time, lat, lon)"; "": they have none */
    int whole;               /* its type is an integer */
    int encoded;             /* each row is a list of bytes of any length */
    int is_axis;             /* the coordinates of an axis of other data sets (a dimension scale) */
    int is_alias;            /* a soft link to a data set that has another name, too */
    /* for what is no data set that can be opened, as a link that leads nowhere or a format that this libhdf5 does not
     * know: what it is, for messages; otherwise NULL */
    const char *trouble;
} cvy_h5_found;
enum { CVY_H5_FOUND_MAX = 256 };
/* Lists the data sets of a file and its links to others, sorted by name; the strings are in pool. more_out: how many
 * there are beyond CVY_H5_FOUND_MAX, of which those with usual names are listed nevertheless. Call it between enter and
 * leave. */
cvy_status cvy_h5_list(cvy_pool *pool, hid_t file, cvy_h5_found *found, int *count_out, int64_t *more_out);
/* Writes "x 100x16x64x64 float16, y 100x3 float32", for messages. */
void cvy_h5_list_text(const cvy_h5_found *found, int count, char *text, size_t room);
/* The fault that a file has no such data set; its message has the nearest one, and all. Call it between enter and
 * leave. */
cvy_status cvy_h5_no_set(cvy_pool *pool, hid_t file, const char *name);

/* ---- writing (data_hdf5_put.c); call these, except publish, between enter and leave ---- */

/* Creates a file without timestamps, so that equal contents give equal bytes. in_order: it keeps the order in which its
 * objects are made, as the netCDF library wants it. Negative on an error. */
hid_t cvy_h5_make_file(const char *path, int in_order);
/* How many writes to files that were made so have failed in this process. libhdf5 is not told, because it cannot close
 * such a file; a file is lost if the number has changed since it was made. Between cvy_h5_enter() and leave. */
int64_t cvy_h5_nfailed(void);
/* The error of a file that is lost, with the cause of the last failure. */
cvy_status cvy_h5_lost(const char *path);
/* Writes rows first .. first + n - 1 of a data set of the shape dim[ndim]; type: of a number in memory. Returns 0 on an
 * error of the library. */
int cvy_h5_put_rows(hid_t set, hid_t type, int ndim, const hsize_t *dim, int64_t first, int64_t n, const void *rows);
/* Adds an attribute of `count` numbers or texts; 0: a single one, without an axis. Returns 0 on an error. */
int cvy_h5_put_attribute(hid_t object, const char *name, hid_t stored, hid_t memory, int64_t count, const void *data);
/* Brings a closed file to the disk, and gives it its name. */
cvy_status cvy_h5_publish(const char *partial, const char *path);

/* ---- axes with names (data_hdf5_axes.c); call these between enter and leave ---- */

enum { CVY_H5_AXIS_NAME = 128 };
/* Opens the dimension scale of an axis, and gives the name of the axis. The caller closes it by H5Oclose(). Negative:
 * the axis has none, and name is "". */
hid_t cvy_h5_open_scale(hid_t set, int axis, char name[CVY_H5_AXIS_NAME]);
/* The label of an axis that has no dimension scale (h5py: dims[0].label); "": it has none. */
void cvy_h5_axis_label(hid_t set, int axis, char name[CVY_H5_AXIS_NAME]);
/* Reads the attributes that predictions keep; texts are in pool. */
cvy_status cvy_h5_attributes(hid_t object, cvy_pool *pool, const char *cf[CVY_CF_COUNT]);
/* Reads an attribute of text; 0: there is none, or it is not a text that fits. */
int cvy_h5_text_attribute(hid_t object, const char *name, char *text, size_t room);
/* Writes "(time, lat, lon)"; "" if no axis has a name. */
void cvy_h5_axes_text(hid_t set, int ndim, char *text, size_t room);

/* ---- the data set of all files ---- */

enum { CVY_H5_COLUMNS = 64 };

/* A data set of which each sample reads a row. It has the same type and shape in all files, except for its number of
 * rows. */
typedef struct cvy_h5_column {
    const char *name;
    char type[24]; /* of its numbers, for messages: "float16" */
    cvy_h5_number number;
    int encoded;           /* rows are lists of bytes: row_bytes and number.bytes are those of a reference to a list */
    int ndim, axis;        /* of the data set; axis: the one that counts the samples */
    int ends_in_positions; /* its last axis has a name or attributes of a position on a map */
    int64_t dim[CVY_NDIM_MAX];
    int64_t elems; /* numbers in one row */
    size_t row_bytes;
    cvy_shape shape;        /* of the row as the reader returns it */
    int from[CVY_NDIM_MAX]; /* its axis i is axis from[i] of the data set; -1: an axis of one element that it lacks */
    /* True if the numbers have another order in the stored row: element k of axis i is stride[i] * ((k + roll[i]) %
     * shape.dim[i]) after number `base`. An axis that is read backwards has a negative stride. */
    int permuted;
    int64_t stride[CVY_NDIM_MAX], roll[CVY_NDIM_MAX], base;
} cvy_h5_column;

/* What the attributes of a data set in one file say about its numbers; those of NetCDF's conventions. */
enum { CVY_H5_MISSING_MAX = 16 };
typedef struct cvy_h5_packing {
    int is_on;                 /* 0: the numbers are as they are stored, and none is missing */
    int is_scaled, is_shifted; /* value = stored * scale + offset */
    int in_f32;                /* it is computed in f32; 0: in f64 */
    int sign_bytes;            /* > 0: stored as signed numbers of so many bytes, but meant as unsigned */
    double scale, offset;
    double missing[CVY_H5_MISSING_MAX]; /* stored numbers that mean "no measurement" */
    uint64_t bits[CVY_H5_MISSING_MAX];  /* the same, for integers of 64 bits, which a double does not hold exactly */
    int nmissing, by_bits;
    double least, largest; /* numbers outside of this range mean the same */
    int range_is_unpacked; /* 1: it is that of unpacked numbers; 0: of stored ones */
    int is_converted;      /* to other units, after all this: value * factor + shift */
    double factor, shift;
} cvy_h5_packing;

typedef enum {
    CVY_H5_PLAIN,  /* rows are contiguous in the file: read by position */
    CVY_H5_CHUNKS, /* chunks that we read by position and decompress ourselves */
    CVY_H5_LIBRARY /* anything else: the library reads it */
} cvy_h5_access_kind;

/* Storage of a column in one file. */
typedef struct cvy_h5_storage {
    cvy_h5_access_kind kind;
    int shuffled, deflated, summed; /* CHUNKS: whether they have these filters, in this order; summed: fletcher32 */
    int64_t offset;                 /* PLAIN: of the first row, in bytes from the start of the file */
    int64_t block_rows;             /* otherwise: rows that are read and cached together */
    int64_t chunk[CVY_NDIM_MAX];
    cvy_h5_packing packing;
    const cvy_h5_column
        *own; /* the column as it is in this file, if its axes are other ones there; NULL: they are not */
} cvy_h5_storage;

typedef struct cvy_h5_file {
    const char *path;
    int64_t bytes, rows, first; /* first: global number of its first row, over all files */
    cvy_h5_storage *storage;    /* [ncolumn] */
    /* These are valid while the file is open. A file is closed when another one needs its slot. */
    int fd;
    hid_t id, *set; /* negative: not open; set is [ncolumn] */
    int pins;
    int64_t used;
} cvy_h5_file;

struct cvy_h5_block;
struct cvy_h5_scratch;
struct cvy_h5_remote;
struct cvy_h5_located;
enum { CVY_H5_BUCKETS = 1024 };

/* Open files and cached blocks, under one lock. A thread may take the library's lock while it holds this one, but not
 * the other way round. */
typedef struct cvy_h5_cache {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    int lock_made, filled_made, nopen;
    int64_t tick;
    struct cvy_h5_block *bucket[CVY_H5_BUCKETS], *newest, *oldest;
    struct cvy_h5_scratch *idle;
    struct cvy_h5_located *located; /* [nfile * ncolumn]: places of chunks that are known; NULL: none yet */
    size_t held, limit;             /* bytes of cached blocks, and their limit */
} cvy_h5_cache;

typedef struct cvy_hdf5 {
    cvy_pool *pool;
    const struct hdf5_opts *o;
    cvy_h5_file *file;
    int64_t nfile, nrows;
    cvy_h5_column column[CVY_H5_COLUMNS]; /* x, then y, then weight, coding and extent, whose index is below; -1: there
                                           * is none */
    int ncolumn, nx, ny, weight, coding, extent;
    cvy_dtype dtype;
    cvy_shape shape;
    int64_t y_elems;
    const float *instead;        /* of the missing numbers of x; NULL: they are faults */
    cvy_missing missing;         /* if it is the mean, they become NaN at first */
    int64_t nsamples, *selected; /* selected: the global numbers of the rows that are samples; NULL: all rows */
    int32_t *label;              /* [nsamples], or NULL */
    cvy_groups groups;           /* of the samples, by the option `group`; else empty */
    cvy_h5_cache cache;
    char sample_axis[CVY_H5_AXIS_NAME]; /* while the files are opened: its name; "": not known */
    const cvy_descriptions *like;       /* what the numbers are to be like; NULL: not known */
    const char *of_like;                /* what has them, for messages */
    cvy_descriptions described;         /* what the files say; in info, too, unless `metadata: ignore` */
    struct cvy_h5_said *said;           /* while the files are opened */
    int64_t noted[3];                   /* shape of encoded pictures as the writer noted it; zeros: it did not */
    struct cvy_h5_remote *remote;       /* the process that calls the library; NULL: this one does */
    char *at_work;                      /* in that process: CVY_H5_AT_WORK bytes for the path of the file at work */
} cvy_hdf5;
enum { CVY_H5_AT_WORK = 4096 };
/* The column as it is in this file. */
static inline const cvy_h5_column *cvy_h5_column_in(const cvy_hdf5 *h, int64_t file, int column)
{
    const cvy_h5_column *own = h->file[file].storage[column].own;
    return own ? own : &h->column[column];
}

/* data_hdf5_names.c: chooses data sets by the job or by usual names, and makes them columns. label_out: the data set of
 * the labels, or NULL. info gets a note about those that cannot be opened. */
cvy_status cvy_h5_choose_names(cvy_hdf5 *h, const char **label_out, cvy_reader_info *info);
/* Says which data sets were chosen without the job, and how the axes of x are read, when the files have been looked at.
 */
cvy_status cvy_h5_note_names(const cvy_hdf5 *h, const char *label, cvy_reader_info *info);
/* Whether data sets of this name are chosen without the job. */
int cvy_h5_is_usual_name(const char *name);
/* Returns an error if the file, not the first one, has a usual target, label or weight that the first file lacks. Call
 * it between enter and leave. */
cvy_status cvy_h5_check_names(const cvy_hdf5 *h, hid_t file, const char *label);
/* data_hdf5_open.c: finds files, shapes and storage, then labels and conditions. */
cvy_status cvy_h5_load(cvy_hdf5 *h, const char *path, cvy_reader_info *info);
/* data_hdf5_axes.c: finds the axis of a data set that counts the samples, by its name, and whether the last axis is
 * known to have positions. c: its name and ndim are set. Call it between enter and leave. */
cvy_status cvy_h5_sample_axis(cvy_hdf5 *h, hid_t set, cvy_h5_column *c, int *axis_out);
/* Checks the option `axes`. */
cvy_status cvy_h5_check_axes(const char *axes);
/* Sets shape and strides of a row from the data set's axes. samples: the axis that counts them, unless the option
 * `axes` says so. */
cvy_status cvy_h5_shape_column(const cvy_hdf5 *h, cvy_h5_column *c, int samples, int is_x);
/* Sets shape and strides anew, from the axes c->from and how they are read. */
cvy_status cvy_h5_lay_out(cvy_h5_column *c, int ndim, const int turned[CVY_NDIM_MAX], const int64_t roll[CVY_NDIM_MAX]);
/* Writes the shape of the data set, for messages. */
const char *cvy_h5_column_text(const cvy_h5_column *c);
/* data_hdf5_described.c: what files say of their data sets, while they are opened. Call _column between enter and
 * leave.
 */
cvy_status cvy_h5_described_begin(cvy_hdf5 *h);
/* Describes a column of a file, and brings it into the order, direction and units of the first one that it is joined
 * with, or of h->like. c: of the first file, the column; of others, a copy for this file, with ndim and dim. */
cvy_status cvy_h5_described_column(cvy_hdf5 *h, hid_t set, int64_t file, int column, cvy_h5_column *c,
                                   cvy_h5_packing *packing);
/* Ends it, and says what was mended. */
cvy_status cvy_h5_described_end(cvy_hdf5 *h, cvy_reader_info *info);
/* Reads the name of an axis, its attributes and, if n is not 0, its n coordinates, out of its dimension scale. */
cvy_status cvy_h5_describe_scale(hid_t scale, const char *name, int64_t n, cvy_pool *pool, cvy_coordinates *out);
/* data_hdf5_index.c: finds which rows are samples, and their labels. label NULL: there are none, or each file is a
 * class. */
cvy_status cvy_h5_index(cvy_hdf5 *h, const char *label, cvy_reader_info *info);
/* data_hdf5_groups.c: reads what each sample belongs to, by the option `group`. */
cvy_status cvy_h5_read_groups(cvy_hdf5 *h);

/* data_hdf5_packing.c: reads the attributes of a data set, whose name is for messages. The kind of its numbers becomes
 * unsigned if an attribute says so. CVY_E_FORMAT: an attribute makes no sense. Call it between enter and leave. */
cvy_status cvy_h5_find_packing(hid_t set, const char *name, cvy_h5_number *number, cvy_h5_packing *out);
/* Converts stored numbers to f64; missing ones become NaN. */
void cvy_h5_unpack_f64(const cvy_h5_packing *p, const cvy_h5_number *number, const void *stored, int64_t n,
                       double *out);
/* Converts a row as it is stored to f32. Missing numbers become *instead; if it is NULL, they are CVY_E_FORMAT, and the
 * message has the element. */
cvy_status cvy_h5_unpack(const cvy_h5_packing *p, const cvy_h5_column *c, const void *stored, const float *instead,
                         float *out);

/* data_hdf5_file.c: open files. A file stays open while it is pinned. */
cvy_status cvy_h5_pin(cvy_hdf5 *h, int64_t file);
void cvy_h5_unpin(cvy_hdf5 *h, int64_t file);
/* The library's handles of the file and of a column's data set. Call them between enter and leave, with the file
 * pinned. Negative on an error. */
hid_t cvy_h5_file_id(cvy_h5_file *f);
hid_t cvy_h5_set_id(cvy_hdf5 *h, cvy_h5_file *f, int column);
void cvy_h5_close_files(cvy_hdf5 *h);
/* The library reads rows first .. first + n - 1 as they are stored; data has room for them. Call it between enter and
 * leave. */
cvy_status cvy_h5_read_rows(hid_t set, int axis, int64_t first, int64_t n, void *data);

/* ---- data_hdf5_library.c: what the library is asked while samples are read ---- */

/* Where a chunk is stored. */
#define CVY_H5_NOWHERE UINT64_MAX /* it was never written */
typedef struct cvy_h5_place {
    uint64_t address, bytes;
    int64_t skipped; /* it was written without some of its filters */
} cvy_h5_place;

/* Goes on to the next chunk of rows first .. first + rows - 1; at: the coordinates of its first number. 0: there is
 * none. */
int cvy_h5_next_chunk(const cvy_h5_column *c, const cvy_h5_storage *p, int64_t first, int64_t rows, int64_t *at);
/* Bytes of the places of all chunks of so many rows. */
cvy_status cvy_h5_places_bytes(const cvy_h5_column *c, const cvy_h5_storage *p, int64_t rows, size_t *out);
/* Finds all chunks of these rows, in that order; out becomes an array of cvy_h5_place. */
cvy_status cvy_h5_ask_places(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, cvy_bytes *out);
/* Reads these rows as they are stored; out has room for them. */
cvy_status cvy_h5_ask_rows(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, void *out);
enum { CVY_H5_ENCODED_MAX = 1 << 30 }; /* bytes of a list */
/* Reads a row that is a list of bytes of its own length. */
cvy_status cvy_h5_encoded_get(cvy_hdf5 *h, int64_t file, int column, int64_t row, cvy_bytes *out);
/* Describes an axis of a data set by its dimension scale. */
cvy_status cvy_h5_ask_scale(cvy_hdf5 *h, int64_t file, int column, int axis, cvy_pool *pool, cvy_coordinates *out);
/* The same by calls of the library in this process. room gives memory of so many bytes. */
typedef cvy_status (*cvy_h5_room_fn)(void *user, size_t bytes, void **out);
cvy_status cvy_h5_library_places(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, cvy_bytes *out);
cvy_status cvy_h5_library_rows(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, void *out);
cvy_status cvy_h5_library_scale(cvy_hdf5 *h, int64_t file, int column, int axis, cvy_pool *pool, cvy_coordinates *out);
cvy_status cvy_h5_library_encoded(cvy_hdf5 *h, int64_t file, int column, int64_t row, cvy_h5_room_fn room, void *user);

/* data_hdf5_coordinates.c: the function `coordinates` of the reader. */
cvy_status cvy_h5_coordinates(void *state, cvy_along along, int axis, cvy_pool *pool, cvy_coordinates *out);

/* data_hdf5_places.c: finds all chunks of the rows of one block, which are in that order in *out. own: memory that they
 * may be in; otherwise they stay until cvy_h5_places_free(). */
cvy_status cvy_h5_places_get(cvy_hdf5 *h, int64_t file, int column, int64_t first, int64_t rows, cvy_bytes *own,
                             const cvy_h5_place **out);
void cvy_h5_places_free(cvy_hdf5 *h);

/* What to do with a data set that unpacks to far more than its bytes. */
#define CVY_H5_UNPACK "write it without compression (h5repack -f NONE IN OUT)"
/* data_hdf5_chunk.c: reads chunks by position and undoes their filters. The file is pinned meanwhile. */
typedef struct cvy_h5_chunks { /* those of a column in a file */
    const cvy_h5_file *file;
    const cvy_h5_column *column;
    const cvy_h5_storage *storage;
    int64_t elems;
    size_t bytes;              /* of a chunk as it is read */
    cvy_bytes *packed, *plain; /* working memory, which the caller sets */
    const cvy_h5_place *place; /* of the first chunk that is to be read; set by the caller */
} cvy_h5_chunks;
cvy_h5_chunks cvy_h5_chunks_of(const cvy_hdf5 *h, int64_t file, int column);
/* Reads and decompresses a chunk; out has room for its bytes. CVY_NOT_APPLICABLE: the library has to read it, because
 * it was never written, or lacks some of its filters. */
cvy_status cvy_h5_chunk_read(const cvy_h5_chunks *c, const cvy_h5_place *place, void *out);

/* data_hdf5_lists.c: reads a list of bytes by position. CVY_NOT_APPLICABLE: the library has to do it. */
enum { CVY_H5_REFERENCE_BYTES = 16 }; /* what a row of such a data set stores */
cvy_status cvy_h5_list_read(cvy_hdf5 *h, int64_t file, int column, int64_t row, cvy_bytes *out);

/* data_hdf5_block.c: gets one row in this machine's byte order. room has row_bytes; it holds the row if the row is not
 * part of a cached block. cvy_h5_row_put() releases the block. */
typedef struct cvy_h5_row {
    const void *data;
    struct cvy_h5_block *block;
} cvy_h5_row;
cvy_status cvy_h5_row_get(cvy_hdf5 *h, int64_t file, int column, int64_t row, void *room, cvy_h5_row *out);
void cvy_h5_row_put(cvy_hdf5 *h, cvy_h5_row *row);
/* Reads a part of a row, in this machine's byte order; part: a part of the column's shape. Only the chunks that the
 * part touches are read. CVY_NOT_APPLICABLE: the row must be read whole, because its axes are permuted, or it is stored
 * together with other rows, or the library has to read it. */
cvy_status cvy_h5_row_part(cvy_hdf5 *h, int64_t file, int column, int64_t row, const cvy_field_part *part,
                           cvy_bytes *work, void *out);
void cvy_h5_free_blocks(cvy_hdf5 *h);

#endif
#endif
