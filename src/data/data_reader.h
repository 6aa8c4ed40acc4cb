/*
 * data_reader.h: what a reader is: one data format, one file, one descriptor at the file's end.
 *
 * In the step: below the data set. A reader knows where samples lie and hands each over as it is stored (encoded
 * pictures stay encoded, so that `convoy pack` can copy them); decoding and augmentation are the data set's. Samples
 * are known by number, 0 .. nsamples-1, and may be read in any order by several threads at once: read() keeps no
 * position and puts everything into the caller's cvy_raw.
 */
#ifndef CVY_DATA_READER_H
#define CVY_DATA_READER_H

#include "base/base_hash.h"
#include "data/data.h"

/* A block that only grows: the buffers of one thread. */
typedef struct cvy_bytes {
    void *data;
    size_t bytes, room;
} cvy_bytes;
/* Makes room for `bytes` and sets b->bytes; the content is not kept. */
cvy_status cvy_bytes_need(cvy_bytes *b, size_t bytes);

/* How x is stored. The values stand in packed files: only append. */
typedef enum { CVY_CODING_PLAIN = 0, CVY_CODING_JPEG = 1, CVY_CODING_PNG = 2 } cvy_coding;

/* One sample as it is stored. */
typedef struct cvy_raw {
    cvy_coding coding; /* of x */
    cvy_dtype dtype;   /* of a plain x: any */
    cvy_shape shape;   /* of a plain x */
    cvy_bytes x;
    cvy_bytes y; /* f32, info's y_shape */
    int32_t label;
    float weight;
} cvy_raw;
void cvy_raw_free(cvy_raw *raw);

/* Runs of samples that are stored together, such as in a chunk: reading one is reading all. */
typedef struct cvy_blocks {
    int64_t *first; /* [count]: the number of each block's first sample, ascending from 0 */
    int64_t count;  /* 0: samples lie by themselves */
} cvy_blocks;
enum { CVY_BLOCK_USUAL = 256 }; /* samples of a block where the format has none */

/* A block begins at this sample; first has room. Of blocks that begin at the same one, all but the last are empty. */
static inline void cvy_blocks_add(cvy_blocks *b, int64_t number)
{
    if (b->count == 0 || number > b->first[b->count - 1])
        b->first[b->count++] = number;
}

typedef struct cvy_reader_info {
    cvy_pool *pool; /* given: holds what the rest points to, as long as the data set lives */
    int64_t nsamples;
    cvy_dtype dtype; /* of x before augmentation: u8 (a picture, 0 .. 255) or f32 (anything else, converted) */
    cvy_shape shape; /* of x; where pictures vary in size, of the first one */
    int varying;     /* encoded pictures, sizes not known before they are decoded */
    int has_label, has_y, has_weight;
    cvy_shape y_shape;
    int64_t nclasses;              /* with has_label */
    const char *const *class_name; /* NULL: "0", "1", ... */
    cvy_blocks blocks;             /* which a window shuffle keeps whole; in pool */
} cvy_reader_info;

typedef struct cvy_reader_args {
    const char *path;    /* NULL where the source has none */
    const void *options; /* filled from the table; strings live in info's pool */
} cvy_reader_args;

typedef struct cvy_reader_def {
    const char *name, *summary;
    const cvy_option *options; /* NULL: none */
    size_t options_size;
    /* How sure the reader is that path is its format: 0 no, 100 certain. A look at names and first bytes; never a
     * fault. */
    int (*probe)(const char *path);
    cvy_status (*open)(const cvy_reader_args *args, cvy_reader_info *info, void **state_out);
    cvy_status (*read)(void *state, int64_t number, cvy_raw *raw);
    /* The label alone, where that is cheaper than read(); NULL otherwise. */
    cvy_status (*label)(void *state, int64_t number, int32_t *label_out);
    /* Where a sample lies, for messages: "data_batch_1.bin, record 17". */
    void (*where)(void *state, int64_t number, char *text, size_t room);
    /* Adds what tells this source from another (names, sizes, seeds); may be NULL. */
    void (*hash)(void *state, cvy_hasher *h);
    void (*close)(void *state);
} cvy_reader_def;

#define CVY_READER_DEFINE(id) const cvy_reader_def cvy_reader_##id##_def
const cvy_reader_def *const *cvy_reader_table(int *count_out);
/* The reader of this name, or CVY_E_CONFIG naming the nearest and all. */
cvy_status cvy_reader_by_name(const char *name, const cvy_reader_def **out);
/* The reader that is surest of path, or CVY_E_FORMAT / CVY_E_IO saying what is there. */
cvy_status cvy_reader_by_look(const char *path, const cvy_reader_def **out);

/* ---- services for readers ---- */
typedef struct cvy_data_file {
    int fd;
    int64_t bytes;
    const char *path;
} cvy_data_file;
/* Opens a regular file for reading by position; path is copied into pool. pool NULL: path is borrowed, and messages
 * leave it to the caller. */
cvy_status cvy_data_file_open(cvy_pool *pool, const char *path, cvy_data_file *out);
void cvy_data_file_close(cvy_data_file *f); /* fd -1 is fine */
cvy_status cvy_data_path_join(cvy_pool *pool, const char *folder, const char *name, const char **out);
/* The folder that path lies in, "." where it names none. */
cvy_status cvy_data_folder_of(cvy_pool *pool, const char *path, const char **out);
const char *cvy_data_base_name(const char *path);
int cvy_data_has_suffix(const char *name, const char *suffix); /* letter case does not matter */
/* First bytes of a file, for probes: how many were read (0 on any fault). */
size_t cvy_data_peek(const char *path, void *bytes, size_t count);
/* Whether folder/name exists. */
int cvy_data_has_file(const char *folder, const char *name);

/* ---- between the files of this folder ---- */
/* The file of the labels beside an IDX file of pictures, by its name; NULL where there is none. */
cvy_status cvy_idx_labels_beside(cvy_pool *pool, const char *images, const char **out);
/* One sample as its reader stores it, whatever parts lie between; faults name file and record. */
cvy_status cvy_dataset_read_raw(cvy_dataset *d, int64_t number, cvy_raw *raw);
/* Bytes of x as it is stored, on average over `probes` samples; damaged ones are passed by. */
cvy_status cvy_dataset_stored_bytes(cvy_dataset *d, int64_t probes, double *mean_out);
/* Puts file and record before the message of a fault found with a raw sample. */
cvy_status cvy_dataset_name_sample(const cvy_dataset *d, int64_t number, cvy_status status);
cvy_status cvy_dataset_label(cvy_dataset *d, int64_t number, int32_t *label_out);
const cvy_reader_info *cvy_dataset_reader_info(const cvy_dataset *d);
/* The reader's blocks, by the numbers of d, which may be a part; out->first is the caller's to free. */
cvy_status cvy_dataset_blocks(const cvy_dataset *d, cvy_blocks *out);

/* ---- pictures and augmentation ---- */
typedef struct cvy_picture { /* planar, [C, H, W]; other shapes are carried as C = elements, H = W = 1 */
    cvy_dtype dtype;         /* u8 or f32 */
    int64_t C, H, W;
    void *data; /* in one of the thread's buffers, or the raw sample's */
    /* Decoded in part: the pixels from (top, left) on of a picture of whole_h x whole_w at eighths / 8 of its size.
     * eighths 0: the picture itself. */
    int64_t whole_h, whole_w, top, left;
    int eighths;
} cvy_picture;

/* What is wanted of an encoded picture: the pixels of a window, at `scale` of their size or more. */
typedef struct cvy_picture_window {
    int64_t top, left, height, width;
    double scale;
} cvy_picture_window;

typedef struct cvy_augment cvy_augment;
/* steps: the job's list, or NULL. random 0 keeps the deterministic part. dtype and shape: of x before. */
cvy_status cvy_augment_create(const cvy_tree *steps, int random, uint64_t seed, const cvy_reader_info *info,
                              cvy_augment **out);
/* Shape of x afterwards; varying pictures without a step that fixes their size keep info's shape. */
const cvy_shape *cvy_augment_shape(const cvy_augment *a);
/* What the steps will use of a picture of H x W, a pure function of its arguments; 0: all of it. */
int cvy_augment_want(const cvy_augment *a, uint64_t epoch, int64_t number, int64_t H, int64_t W,
                     cvy_picture_window *out);
/* Applies all steps and writes f32 of the final shape; CVY_E_SHAPE where the picture does not lead there. The picture
 * is whole, or what cvy_augment_want() asked for; its data are left as they are. */
cvy_status cvy_augment_apply(const cvy_augment *a, cvy_picture picture, uint64_t epoch, int64_t number,
                             cvy_bytes scratch[2], float *x_out);
void cvy_augment_destroy(cvy_augment **a);

/* Limits on hostile files. */
#define CVY_PICTURE_SIDE_MAX 65500
#define CVY_PICTURE_PIXELS_MAX ((int64_t)1 << 26)
/* What the first bytes say: JPEG, PNG, or PLAIN for neither. */
cvy_coding cvy_picture_coding(const void *bytes, size_t count);
/* Size and channels (1 or 3) from the header. */
cvy_status cvy_picture_look(cvy_coding coding, const void *bytes, size_t count, int64_t *C_out, int64_t *H_out,
                            int64_t *W_out);
/* Decodes to u8 planes; channels 1 or 3 (grey is spread, colour becomes luma). */
cvy_status cvy_picture_decode(cvy_coding coding, const void *bytes, size_t count, int64_t channels, cvy_bytes *room,
                              cvy_bytes *rows, cvy_picture *out);
/* Asked when the size is known; 0: the whole picture is wanted. */
typedef int (*cvy_want_fn)(void *user, int64_t H, int64_t W, cvy_picture_window *out);
/* The same for what `want` asks for; more may come, the whole picture too. What lies behind the window in the file is
 * not looked at, so damage there stays unnoticed. */
cvy_status cvy_picture_decode_part(cvy_coding coding, const void *bytes, size_t count, int64_t channels,
                                   cvy_want_fn want, void *user, cvy_bytes *room, cvy_bytes *rows, cvy_picture *out);
/* A plain sample as planes, in the raw sample's memory. */
cvy_picture cvy_raw_planes(const cvy_raw *raw);
/* Any stored sample as planes: plain ones in place, encoded ones decoded whole. */
cvy_status cvy_raw_picture(const cvy_raw *raw, int64_t channels, cvy_bytes *room, cvy_bytes *rows, cvy_picture *out);

#endif
