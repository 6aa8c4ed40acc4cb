/*
 * data_reader.h: what a reader is: one data format in one file, with a descriptor at the end of the file.
 *
 * The data set calls a reader from the loader's threads. A reader knows where samples are stored and returns each one
 * as it is stored: encoded pictures stay encoded, so that `convoy pack` can copy them. The data set decodes and
 * augments. Samples have numbers 0 .. nsamples-1, and several threads may read them at once in any order: read() keeps
 * no position and writes only to the caller's cvy_raw.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_READER_H
#define CVY_DATA_READER_H

#include "base/base_hash.h"
#include "data/data.h"
#include "data/data_groups.h"

struct cvy_text;

/* A buffer that only grows. Each thread has its own. */
typedef struct cvy_bytes {
    void *data;
    size_t bytes, room;
} cvy_bytes;
/* Makes room for `bytes` bytes and sets b->bytes. The old content may be lost. */
cvy_status cvy_bytes_need(cvy_bytes *b, size_t bytes);

/* How x is stored. Packed files store these values, so only append. */
typedef enum { CVY_CODING_PLAIN = 0, CVY_CODING_JPEG = 1, CVY_CODING_PNG = 2 } cvy_coding;

/* One sample as it is stored. */
typedef struct cvy_raw {
    cvy_coding coding; /* of x */
    cvy_dtype dtype;   /* of a plain x; any dtype */
    cvy_shape shape;   /* of a plain x */
    cvy_bytes x;
    cvy_bytes y;    /* f32, with the y_shape of info */
    cvy_bytes mask; /* f32, with the weight_shape of info, if that has axes */
    cvy_bytes part; /* the reader's working memory for parts */
    int32_t label;
    float weight;
} cvy_raw;
void cvy_raw_free(cvy_raw *raw);

/* Runs of samples that are stored together, for example in a chunk: to read one of them, all must be read. */
typedef struct cvy_blocks {
    int64_t *first; /* [count]: the number of each block's first sample, ascending from 0 */
    int64_t count;  /* 0: samples are stored one by one */
} cvy_blocks;
enum { CVY_BLOCK_DEFAULT = 256 }; /* samples of a block if the format has no blocks */

/* Adds a block that begins at this sample; b->first must have room. If several blocks begin at the same sample, all but
 * the last are empty, so only one is added. */
static inline void cvy_blocks_add(cvy_blocks *b, int64_t number)
{
    if (b->count == 0 || number > b->first[b->count - 1])
        b->first[b->count++] = number;
}

/* Attributes of the CF conventions that predictions keep. */
typedef enum {
    CVY_CF_UNITS,
    CVY_CF_CALENDAR,
    CVY_CF_STANDARD_NAME,
    CVY_CF_LONG_NAME,
    CVY_CF_AXIS,     /* X, Y, Z or T */
    CVY_CF_POSITIVE, /* up or down */
    CVY_CF_COUNT
} cvy_cf;
extern const char *const cvy_cf_name[CVY_CF_COUNT]; /* "units", .. */

/* Columns of a table by their names, in the order of the numbers of x and y. */
typedef struct cvy_columns {
    int64_t nx, ny;
    const char *const *x, *const *y; /* x NULL: no names are known */
    const char *label, *weight;      /* NULL: there is none */
} cvy_columns;

/* An axis of a field as its file describes it. Strings and numbers are in the pool of who asked. */
typedef struct cvy_coordinates {
    const char *name;             /* NULL: it has none, and nothing else is known */
    const char *cf[CVY_CF_COUNT]; /* NULL: not known */
    int64_t n;                    /* length of the axis */
    const double *value;          /* [n], or those that are kept (data_described.h); NULL: only the name is known */
    int64_t nkept;                /* 0: value has all */
    const char *of;               /* the variable that these values are of, if the axis has none itself; else NULL */
    int is_mixed;                 /* 1: files that are joined have other ones, or none, so value is NULL */
} cvy_coordinates;
/* Copies coordinates first .. first + n - 1 of one file to their place in an axis of several files, in its units.
 * Returns 0 if the file has no such coordinates, or their name, calendar or units have another meaning. */
int cvy_coordinates_append(const cvy_coordinates *own, const cvy_coordinates *whole, int64_t first, int64_t n,
                           double *to);
/* Whether these are the same calendar; NULL: the standard one. Calendars that are not known differ from all others. */
int cvy_calendars_are_same(const char *a, const char *b);
/* Converts n times in units such as "hours since 2000-01-01" to the units of another axis. to may be value. 0: one of
 * them has other units than these, or they have different calendars. */
int cvy_times_convert(const cvy_coordinates *own, const cvy_coordinates *wanted, int64_t n, const double *value,
                      double *to);

/* What a file says of a variable beside its numbers, as the reader gives them out: of one variable of x or y. */
typedef struct cvy_described {
    const char *name, *file;      /* of the variable, and of the file that was asked; NULL: not known */
    const char *cf[CVY_CF_COUNT]; /* attributes, such as its units; NULL: not known */
    int ndim;                     /* axes of its samples: for x as in its shape, so the first one counts channels */
    cvy_coordinates axis[CVY_NDIM_MAX]; /* no name: not known, or an axis of channels that the file does not have */
    cvy_coordinates samples;            /* the axis that counts the samples, without values */
    cvy_coordinates height;             /* of all numbers, such as 2 m or 850 hPa; no name: not known */
} cvy_described;
/* That of all variables that are joined as x and as y, in their order. nx 0: nothing is known. */
typedef struct cvy_descriptions {
    int nx, ny;
    cvy_described *x, *y;
} cvy_descriptions;

typedef struct cvy_reader_info {
    cvy_pool *pool; /* set by the caller; holds what the other members point to; lives as long as the data set */
    int64_t nsamples;
    cvy_dtype dtype; /* of x before augmentation: u8 (a picture, 0 .. 255) or f32 (anything else, converted) */
    cvy_shape shape; /* of x; of the first picture if sizes vary */
    int varying;     /* 1: encoded pictures, whose sizes are not known before they are decoded */
    int has_label, has_y, has_weight;
    cvy_shape y_shape;
    cvy_shape weight_shape;                    /* no axes: one number for each sample */
    const char *y_cf[CVY_CF_COUNT];            /* attributes of y, such as its units; NULL: not known */
    const char *y_name, *y_axis[CVY_NDIM_MAX]; /* its name and those of its axes in the file; NULL: not known */
    int64_t nclasses;                          /* if has_label */
    const char *const *class_name;             /* NULL: "0", "1", ... */
    cvy_columns columns;                       /* of a table */
    cvy_descriptions described;                /* what the files say of the variables of x and y */
    cvy_blocks blocks;                         /* a window shuffle does not split them; in pool */
    const char *note; /* sentences for the log about how the source is read, a line each; NULL: none */
} cvy_reader_info;

/* The rule for bytes, the same in all formats: x of bytes is a picture if it is encoded, or if its samples have two or
 * more axes that are longer than 1. Bytes of pictures are divided by 255 on their way to f32. Other bytes (a row of a
 * table, a vector) are numbers and stay as they are. Booleans are no bytes: they are f32, 0 and 1. */
int cvy_bytes_are_picture(const cvy_reader_info *info);

/* Adds a sentence to info->note, on a line of its own. */
cvy_status cvy_reader_note(cvy_reader_info *info, const char *fmt, ...) CVY_PRINTF(2, 3);

/* Writes the date of a time in units such as "days since 2000-01-01": "2000-03-01T06:00:00". calendar NULL: the usual
 * one. 0: the units are something else. (data_coordinates.c) */
int cvy_time_text(const char *units, const char *calendar, double value, char *text, size_t room);
typedef enum { CVY_ALONG_SAMPLES, CVY_ALONG_X, CVY_ALONG_Y } cvy_along;

typedef struct cvy_reader_args {
    const char *path;        /* NULL if the source has no path */
    const void *options;     /* filled from the option table; strings are in info's pool */
    const cvy_columns *like; /* columns of the training data, to be found by their names; NULL: none are known */
    const cvy_descriptions *described; /* what the numbers are to be like; NULL: not known */
    const char *of_described;          /* what has them, for messages: "in the training data" */
    int64_t like_elems;                /* numbers of x of the training data, as they are stored; 0: not known */
} cvy_reader_args;

typedef struct cvy_reader_def {
    const char *name, *summary;
    const cvy_option *options; /* NULL: none */
    size_t options_size;
    int mends; /* open() brings the numbers into agreement with args->described */
    /* How sure the reader is that path has its format: 0 no, 100 certain. It looks at names and first bytes, and never
     * sets an error. */
    int (*probe)(const char *path);
    cvy_status (*open)(const cvy_reader_args *args, cvy_reader_info *info, void **state_out);
    cvy_status (*read)(void *state, int64_t number, cvy_raw *raw);
    /* The same for a part of x and of y; NULL or is_part 0: the whole. raw->shape and raw->y.bytes say what was read:
     * the part, or the whole if this part is not cheaper. NULL: the reader reads whole samples only. */
    cvy_status (*read_part)(void *state, int64_t number, const cvy_field_part *x, const cvy_field_part *y,
                            cvy_raw *raw);
    /* Reads the label alone; NULL if this is not cheaper than read(). */
    cvy_status (*label)(void *state, int64_t number, int32_t *label_out);
    /* Where a sample is stored, for messages: "data_batch_1.bin, record 17". */
    void (*where)(void *state, int64_t number, char *text, size_t room);
    /* The file, or the key, that a sample is known by, for patterns of it. NULL: what is before the last comma of
     * where(). */
    void (*name_sample)(void *state, int64_t number, char *text, size_t room);
    /* Adds the value that the option `group` names, for each sample. NULL: the format has no such option. */
    cvy_status (*groups)(void *state, cvy_groups *to);
    /* Describes the axis that counts the samples (axis 0), or an axis of x or y before augmentation. NULL: the format
     * has no names of axes. */
    cvy_status (*coordinates)(void *state, cvy_along along, int axis, cvy_pool *pool, cvy_coordinates *out);
    /* Adds what identifies this source (names, sizes, seeds) to the hash; may be NULL. */
    void (*hash)(void *state, cvy_hasher *h);
    void (*close)(void *state);
} cvy_reader_def;

#define CVY_READER_DEFINE(id) const cvy_reader_def cvy_reader_##id##_def
const cvy_reader_def *const *cvy_reader_table(int *count_out);
/* Finds the reader of this name. CVY_E_CONFIG if there is none; the message names the nearest and all. */
cvy_status cvy_reader_by_name(const char *name, const cvy_reader_def **out);
/* Finds the reader that is surest of path. CVY_E_FORMAT or CVY_E_IO if there is none; the message says what path is. */
cvy_status cvy_reader_detect(const char *path, const cvy_reader_def **out);

/* The file or the key of a sample, as messages name it, without its place in the file. */
void cvy_reader_name_sample(const cvy_reader_def *reader, void *state, int64_t number, char *text, size_t room);
/* CVY_E_CONFIG: readers of this format have no option `group`. source: for the message. */
cvy_status cvy_reader_check_groups(const cvy_reader_def *reader, const char *source);
/* Adds the values of the option `group` of this source, in the order of its samples. CVY_E_CONFIG: its format has no
 * such option. */
cvy_status cvy_reader_groups(const cvy_reader_def *reader, void *state, const char *source, cvy_groups *to);

/* The fault that says what a file is, or the files of a folder, that no reader takes, and what to do. CVY_OK: it is not
 * known. (data_foreign.c) */
cvy_status cvy_foreign_check(const char *path);

/* ---- services for readers ---- */
typedef struct cvy_data_file {
    int fd;
    int64_t bytes;
    const char *path;
} cvy_data_file;
/* Opens a regular file for reads at given offsets; path is copied into pool. If pool is NULL, path is borrowed and
 * messages do not name it; the caller does. */
cvy_status cvy_data_file_open(cvy_pool *pool, const char *path, cvy_data_file *out);
void cvy_data_file_close(cvy_data_file *f); /* fd may be -1 */
cvy_status cvy_data_path_join(cvy_pool *pool, const char *folder, const char *name, const char **out);
/* The folder that contains path; "." if path has no folder part. */
cvy_status cvy_data_folder_of(cvy_pool *pool, const char *path, const char **out);
int cvy_data_has_suffix(const char *name, const char *suffix); /* ignores letter case */
/* Reads the first bytes of a file, for probes. Returns how many were read (0 on any error). */
size_t cvy_data_peek(const char *path, void *bytes, size_t count);
/* Whether a path of so many bytes has a component "..", which leads out of its folder. */
int cvy_data_goes_up(const char *path, size_t bytes);
/* Whether folder/name exists. */
int cvy_data_has_file(const char *folder, const char *name);
/* Whether a folder, or one of its sub-folders, has a file whose name is accepted. *is_empty_out: it has no entries. */
int cvy_data_has_such_files(const char *folder, int (*is_accepted)(const char *name), int *is_empty_out);

/* ---- what a reader passes over (data_passed.c) ---- */
typedef struct cvy_passed { /* start with zeros */
    int64_t count;
    char names[400];
} cvy_passed;
/* Counts a thing that is not read, such as a file; hidden files are not counted. folder: put before its name; NULL:
 * none. */
void cvy_passed_add(cvy_passed *p, const char *folder, const char *name);
/* Adds a sentence to info's note, unless nothing was counted: "WHERE: 2 WHATs are not read (a, b): WHY". */
cvy_status cvy_passed_note(const cvy_passed *p, const char *where, const char *what, const char *why,
                           cvy_reader_info *info);
/* The split whose word is in the name of a file or an array: 1 training, 2 validation, 3 test; 0: none. */
int cvy_split_of(const char *name);
/* Adds a sentence to info's note if the names have words of different splits ("train", "test"), although all are read.
 * how: "as one set". */
cvy_status cvy_splits_note(const char *where, const char *how, const char *const *path, int64_t n,
                           cvy_reader_info *info);

/* ---- parts of samples (data_part.c) ---- */
static inline int cvy_is_part(const cvy_field_part *part)
{
    return part && part->is_part;
}
/* Gives the runs of a part in the whole, which is row-major: run i of them has n elements, which are consecutive in
 * both. Start with *at 0; returns 0 after the last run. */
typedef struct cvy_part_run {
    int64_t in_whole, in_part, n;
} cvy_part_run;
int cvy_part_next(const cvy_field_part *part, int64_t *at, cvy_part_run *run_out);
/* Copies a part out of the whole; elements have `elem` bytes. `to` may be the memory of the whole. */
void cvy_part_cut(const cvy_field_part *part, size_t elem, const void *whole, void *to);
/* Reads a part of a record of a file, whose elements lie at `offset` row-major. If its runs are short, it reads all
 * from the first to the last one into `work`, which has cvy_part_work_bytes(), and cuts them out. */
size_t cvy_part_work_bytes(const cvy_field_part *part, size_t elem);
cvy_status cvy_part_read(const cvy_field_part *part, size_t elem, int fd, int64_t offset, const char *what, void *work,
                         void *to);

/* ---- for files of this folder ---- */
/* The file with the labels that belong to an IDX file of pictures, found by its name; NULL if there is none. */
cvy_status cvy_idx_labels_path(cvy_pool *pool, const char *images, const char **out);
/* Reads one sample as it is stored; d may be a part or a part of a part. Error messages name file and record. */
cvy_status cvy_dataset_read_raw(cvy_dataset *d, int64_t number, cvy_raw *raw);
/* Mean number of bytes of x as stored, over `probes` samples; damaged samples are skipped. */
cvy_status cvy_dataset_stored_bytes(cvy_dataset *d, int64_t probes, double *mean_out);
/* Where a sample is stored: "data_batch_1.bin, record 17". */
void cvy_dataset_where(const cvy_dataset *d, int64_t number, char *text, size_t room);
/* The file, or the key, that a sample is known by. */
void cvy_dataset_file(const cvy_dataset *d, int64_t number, char *text, size_t room);
/* Puts file and record before the message of an error with a raw sample. */
cvy_status cvy_dataset_name_sample(const cvy_dataset *d, int64_t number, cvy_status status);
/* Describes the axis that counts the samples (axis 0), or an axis of x or y, if augmentation leaves its length as it
 * is. out->name NULL: the file does not say. */
cvy_status cvy_dataset_coordinates(const cvy_dataset *d, cvy_along along, int axis, cvy_pool *pool,
                                   cvy_coordinates *out);
cvy_status cvy_dataset_label(cvy_dataset *d, int64_t number, int32_t *label_out);
const cvy_reader_info *cvy_dataset_reader_info(const cvy_dataset *d);
/* The reader's blocks in the numbers of d, which may be a part. The caller frees out->first. */
cvy_status cvy_dataset_blocks(const cvy_dataset *d, cvy_blocks *out);

/* ---- pictures and augmentation ---- */
typedef struct cvy_picture { /* planar, [C, H, W]; samples of other shapes have C = elements, H = W = 1 */
    cvy_dtype dtype;         /* u8 or f32 */
    int64_t C, H, W;
    void *data; /* in a buffer of the thread, or in the raw sample */
    /* For a partly decoded picture: it holds the pixels from (top, left) on, after the whole picture of whole_h x
     * whole_w is reduced to eighths / 8 of its size. eighths 0: the picture is whole. */
    int64_t whole_h, whole_w, top, left;
    int eighths;
} cvy_picture;

/* The part of an encoded picture that is needed: the pixels of a window, at `scale` of the full size or more. */
typedef struct cvy_picture_window {
    int64_t top, left, height, width;
    double scale;
} cvy_picture_window;

typedef struct cvy_augment cvy_augment;
/* Memory of one caller that applies steps, zero at first. */
typedef struct cvy_augment_scratch {
    cvy_bytes picture[2], affine;
} cvy_augment_scratch;
void cvy_augment_scratch_free(cvy_augment_scratch *s);
/* steps: the job's list, or NULL. random 0 keeps only the deterministic part. info: dtype and shape of x before
 * augmentation. */
cvy_status cvy_augment_create(const cvy_tree *steps, int random, uint64_t seed, const cvy_reader_info *info,
                              cvy_augment **out);
/* Shape of x after augmentation. If pictures vary in size and no step fixes their size, it is info's shape. */
const cvy_shape *cvy_augment_shape(const cvy_augment *a);
typedef struct cvy_target_info { /* the target y after augmentation */
    cvy_dtype dtype;             /* f32, or i32 for a map of labels */
    cvy_shape shape;
    int64_t nchannels; /* channels of a map, or numbers of a vector; 0: there is no y */
    int64_t nclasses;  /* of a map of labels; else 0 */
    cvy_scaling scaling;
    int is_input;    /* 1: the target is x; the other members speak of y nevertheless, but for the scaling */
    int may_be_left; /* pixels of x move, and nobody has said whether the numbers of y go with them */
} cvy_target_info;
const cvy_target_info *cvy_augment_target(const cvy_augment *a);
/* A sentence about a random step that changes nothing; empty: there is none. */
const char *cvy_augment_idle(const cvy_augment *a);
/* Sentences on vectors that random steps do not turn with the picture, a line each; NULL: there are none. */
const char *cvy_augment_left(const cvy_augment *a);
/* Whether the role of x or y ("x" or "y") in a list of operations does not mean an order of columns: components of
 * points and vectors are given by name, if there are any. */
int cvy_role_has_names(const cvy_tree *steps, const char *of);
/* Which part of a picture of H x W the steps will use. It is a pure function of its arguments; 0: the whole picture. */
int cvy_augment_window(const cvy_augment *a, uint64_t epoch, int64_t number, int64_t H, int64_t W,
                       cvy_picture_window *out);
/* Applies all steps and writes f32 of the final shape; CVY_E_SHAPE if the result has another shape. The picture is
 * whole, or the part that cvy_augment_window() asked for. Its data are not changed. */
cvy_status cvy_augment_apply(const cvy_augment *a, cvy_picture picture, uint64_t epoch, int64_t number,
                             cvy_augment_scratch *scratch, float *x_out);
/* The same for x and the target y, which follows x as its role says. y_out has the dtype of cvy_augment_target(). */
cvy_status cvy_augment_apply_both(const cvy_augment *a, cvy_picture picture, const float *y, uint64_t epoch,
                                  int64_t number, cvy_augment_scratch *scratch, float *x_out, void *y_out);
/* The same for a mask, too, which has the weight_shape of the reader and goes with the pixels of x. NULL: there is
 * none. */
cvy_status cvy_augment_apply_all(const cvy_augment *a, cvy_picture picture, const float *y, const float *mask,
                                 uint64_t epoch, int64_t number, cvy_augment_scratch *scratch, float *x_out,
                                 void *y_out, float *mask_out);
/* Shape of the weight after augmentation. */
const cvy_shape *cvy_augment_weight_shape(const cvy_augment *a);
/* Whether samples of this form are divided by 255: bytes of pictures are, unless the steps scale them. */
int cvy_augment_divides(const cvy_augment *a, const cvy_reader_info *info);
/* Whether it has no step: f32 data pass through it as they are. */
int cvy_augment_changes_nothing(const cvy_augment *a);
/* Whether the steps compute each element from itself alone, so that they may be applied to a part of a sample. */
int cvy_augment_is_pointwise(const cvy_augment *a);
/* For such steps: the same for a part of x, and for y or a part of it, [y_elems]. */
cvy_status cvy_augment_apply_parts(const cvy_augment *a, cvy_picture picture, const float *y, int64_t y_elems,
                                   uint64_t epoch, int64_t number, cvy_augment_scratch *scratch, float *x_out,
                                   void *y_out);
/* What the operations do to the values of x, for programs that apply the network without convoy (ONNX files). */
typedef enum {
    CVY_CURVE_AFFINE, /* (x - shift) * by, for each channel, or one number for all */
    CVY_CURVE_LOG,    /* sign(x) ln(1 + |x| * by) */
    CVY_CURVE_ASINH,  /* asinh(x * by) */
} cvy_curve;
typedef struct cvy_value_step { /* affine: (x - shift) * by */
    cvy_curve curve;
    int64_t n;          /* 1, or the number of channels */
    double *shift, *by; /* [n]; shift: of AFFINE only, else 0 */
} cvy_value_step;
/* Lists these steps, for stored bytes or for reals. step_out: [CVY_VALUE_STEPS_MAX]; its lists live as long as a.
 * moves_out: 1: there are operations that move pixels, too, which are not in the list. CVY_E_UNSUPPORTED: the values
 * are bent before pixels are moved. */
enum { CVY_VALUE_STEPS_MAX = 33 };
cvy_status cvy_augment_value_steps(const cvy_augment *a, int is_bytes, cvy_value_step *step_out, int *nstep_out,
                                   int *moves_out);
/* Compares these steps of two lists. *channel_out: the first channel of x for which they differ, with what each makes
 * of it, as in "(x - 0.5) * 2"; -1: none. CVY_E_UNSUPPORTED: a step has no such form. */
cvy_status cvy_augment_compare_values(const cvy_augment *a, int a_bytes, const cvy_augment *b, int b_bytes,
                                      struct cvy_text *a_out, struct cvy_text *b_out, int64_t *channel_out);
void cvy_augment_destroy(cvy_augment **a);

/* The label of pixels that no class has, such as those that a pad adds around a map of labels. */
#define CVY_LABEL_OUTSIDE (-1)

/* Limits that protect against hostile files. */
#define CVY_PICTURE_SIDE_MAX 65500
#define CVY_PICTURE_PIXELS_MAX ((int64_t)1 << 26)
/* The format by the first bytes: JPEG, PNG, or PLAIN for neither. */
cvy_coding cvy_picture_coding(const void *bytes, size_t count);
/* Size and channels (1 or 3) from the header. */
cvy_status cvy_picture_read_header(cvy_coding coding, const void *bytes, size_t count, int64_t *C_out, int64_t *H_out,
                                   int64_t *W_out);
/* Decodes to planes: u8, or f32 from 0 to 255 for a PNG of 16 bits. channels: 1 (colour becomes luma) or 3 (grey is
 * copied to all three). */
cvy_status cvy_picture_decode(cvy_coding coding, const void *bytes, size_t count, int64_t channels, cvy_bytes *room,
                              cvy_bytes *rows, cvy_picture *out);
/* The decoder calls it when it knows the size; 0: the whole picture is needed. */
typedef int (*cvy_window_fn)(void *user, int64_t H, int64_t W, cvy_picture_window *out);
/* Decodes the part that `choose_window` asks for; the result may be larger, up to the whole picture. Bytes after the
 * window in the file are not read, so damage there is not noticed. */
cvy_status cvy_picture_decode_part(cvy_coding coding, const void *bytes, size_t count, int64_t channels,
                                   cvy_window_fn choose_window, void *user, cvy_bytes *room, cvy_bytes *rows,
                                   cvy_picture *out);
/* Rounds such an f32 picture to bytes, in place; u8 stays. For pictures that are shown. */
void cvy_picture_to_bytes(cvy_picture *p);
/* A plain sample as planes; they point into the raw sample's memory. */
cvy_picture cvy_raw_planes(const cvy_raw *raw);
/* Any stored sample as planes: a plain one in place, an encoded one decoded whole. */
cvy_status cvy_raw_picture(const cvy_raw *raw, int64_t channels, cvy_bytes *room, cvy_bytes *rows, cvy_picture *out);

#endif
