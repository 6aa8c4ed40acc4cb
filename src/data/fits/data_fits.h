/*
 * data_fits.h: what the files of the FITS reader share.
 *
 * data_fits.c is the reader. data_fits_described.c compares what the headers of its files say. data_fits_files.c finds
 * the files of a set and their classes. data_fits_library.c has the calls of CFITSIO: it opens files, looks at images
 * and tables, and reads numbers. data_fits_cards.c looks at headers before CFITSIO does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_FITS_H
#define CVY_DATA_FITS_H

#include <pthread.h>

#include "data/data_described.h"
#include "data/data_index.h"
#include "data/data_missing.h"

struct fits_opts { /* options of the reader */
    const cvy_tree *x, *y;
    const char *hdu, *label, *weight, *missing, *group;
    int64_t classes;
    int cube, outside, metadata;
};
enum { CVY_FITS_METADATA_CHECK, CVY_FITS_METADATA_IGNORE };

enum { CVY_FITS_COLUMNS = 64 };

/* How numbers are converted to the units of the first file. */
typedef struct cvy_fits_scale {
    double factor, offset;
} cvy_fits_scale;

typedef struct cvy_fits_file {
    const char *path;
    int64_t rows, first;         /* samples in it, and the number of the first one */
    const cvy_fits_scale *scale; /* of the image, or of each column; NULL: numbers stay as they are */
    int is_compared;             /* its header was compared when the set was opened */
} cvy_fits_file;

/* A column of a table, or a number of the header of an image. */
typedef struct cvy_fits_column {
    const char *name;
    int64_t elems; /* numbers in one row */
    int is_truth;  /* booleans, which become 0 and 1 */
    cvy_shape shape;
} cvy_fits_column;

/* The part of a file (header and data unit) that samples come from. */
typedef struct cvy_fits_unit {
    int is_table;
    cvy_shape shape; /* of an image: slowest axis first */
    int64_t rows;    /* of a table */
} cvy_fits_unit;

struct cvy_fits_handle;

typedef struct cvy_fits {
    cvy_pool *pool;
    const struct fits_opts *o;
    cvy_fits_file *file;
    int64_t nfile, room, nsamples;
    int is_table;
    cvy_shape shape; /* of x */
    int64_t elems;
    cvy_fits_column column[CVY_FITS_COLUMNS]; /* x (of a table), then y, then weight */
    int nx, ny, weight;                       /* weight: its column; -1: there is none */
    int64_t y_elems;
    cvy_missing missing;
    const cvy_descriptions *like; /* what the numbers are to be like; NULL: not known */
    const char *of_like;          /* what has them, for messages */
    cvy_descriptions described;   /* of the first file */
    cvy_remarks remarks;
    cvy_passed passed;  /* other files in the folders */
    cvy_entries labels; /* one for each sample, if there are any */
    cvy_classes classes;
    /* Open files, of which each is used by one thread at a time. */
    pthread_mutex_t lock;
    int lock_made, nidle;
    struct cvy_fits_handle *idle;
} cvy_fits;

/* data_fits_files.c: whether the name is that of a FITS file: *.fits, *.fit, *.fts, also *.fits.gz and *.fits.fz. */
int cvy_fits_is_file_name(const char *name);
/* Whether the file begins as a FITS file does, or is compressed by gzip and named like one. */
int cvy_fits_is_file(const char *path);
/* Whether the path is that of a text file with a list, by its name. */
int cvy_fits_is_list(const char *path);
/* Finds the files: one, a folder, a folder of classes, a pattern, or a text file with a list. Files have the labels of
 * their folders or of the list, one label for each file in `labels`. */
cvy_status cvy_fits_find_files(cvy_fits *f, const char *path);

/* data_fits_cards.c: refuses a file of which CFITSIO would not survive the headers. */
cvy_status cvy_fits_check_headers(const cvy_data_file *file);

/* data_fits_described.c: describes the first file, and compares the others with it, or the first with f->like. Messages
 * do not name the file. */
cvy_status cvy_fits_describe(cvy_fits *f, struct cvy_fits_handle *h, int64_t file);
/* The same for an image that was not looked at when the set was opened: other units are a fault. */
cvy_status cvy_fits_check_described(const cvy_fits *f, struct cvy_fits_handle *h, int64_t file);
/* data_fits_library.c. Messages do not name the file. */
/* Gets a file that no other thread uses, at the unit of the samples. wants_table: the unit is a table. */
cvy_status cvy_fits_borrow(cvy_fits *f, int64_t file, int wants_table, struct cvy_fits_handle **out);
void cvy_fits_return(cvy_fits *f, struct cvy_fits_handle *h);
void cvy_fits_close_files(cvy_fits *f);
/* Describes the unit, after a check that the file is long enough for it. */
cvy_status cvy_fits_look(struct cvy_fits_handle *h, cvy_fits_unit *out);
/* Reads n numbers of an image from number `first` on, as f32; blank ones are NaN. */
cvy_status cvy_fits_read_image(struct cvy_fits_handle *h, int64_t first, int64_t n, float *out);
/* Finds a column of a table, and its shape. The message of an error has the nearest column, and all. */
cvy_status cvy_fits_find_column(struct cvy_fits_handle *h, const char *name, cvy_fits_column *out);
/* Reads one row of a column as f32; index: of the column in cvy_fits.column. */
cvy_status cvy_fits_read_row(struct cvy_fits_handle *h, int index, const cvy_fits_column *c, int64_t row, float *out);
/* Reads a number of the header. */
cvy_status cvy_fits_read_keyword(struct cvy_fits_handle *h, const char *name, double *out);
enum { CVY_FITS_TEXT = 72 };
/* Finds a text or a number of the header; 0: there is none. */
int cvy_fits_find_text(struct cvy_fits_handle *h, const char *name, char text[CVY_FITS_TEXT]);
int cvy_fits_find_number(struct cvy_fits_handle *h, const char *name, double *out);
/* The number of a column of a table, from 1 on; 0: there is none. */
int cvy_fits_column_number(struct cvy_fits_handle *h, const char *name);
/* Reads the label of a row of a table, or of an image from its header, as text. */
cvy_status cvy_fits_read_label(struct cvy_fits_handle *h, int is_table, const char *name, int64_t row,
                               char text[CVY_FITS_TEXT]);

#endif
