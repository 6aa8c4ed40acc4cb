/*
 * data_augment.h: for the files of augmentation: what an operation is, and the state of a picture that passes through
 * the operations.
 *
 * data_augment.c parses the list and runs it. Operations register themselves: data_augment_geometry.c has those that
 * move pixels, data_augment_values.c and data_augment_planes.c those that change values, data_augment_target.c and
 * data_augment_vector.c those that say what y and x are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_AUGMENT_H
#define CVY_DATA_AUGMENT_H

#include "base/number/base_rng.h"
#include "data/data_reader.h"

enum { CVY_AUGMENT_OPERATIONS_MAX = 32 };

/* One struct for the options of all operations; each table names the fields it uses. */
struct cvy_operation_opts {
    cvy_ints size, ignored;
    cvy_reals range, ratio;
    const char *file;
    const cvy_tree *mean, *std, *by; /* numbers: cvy_operation has those of x, which may be very many */
    const cvy_tree *components;
    int64_t pad, count, classes;
    double factor, share, center, value;
    int on, axis, about, fit, filter, decode, role, order, vertical, target;
};

/* x becomes (x - shift) * by, for each channel. n: number of channels in the lists; 0: x stays; 1: the same for all
 * channels. */
typedef struct cvy_affine {
    int64_t n;
    double *shift, *by; /* in the scratch */
} cvy_affine;

typedef struct cvy_numbers { /* a list of any length, in the pool */
    int64_t count;
    double *at;
} cvy_numbers;

/* Where pixels have gone: a point at (row, column) of the stored picture is at (row[0] * row + row[1] * column +
 * row[2], column[0] * row + column[1] * column + column[2]) now. The upper left corner of the picture is (0, 0), and
 * the centre of its first pixel is (0.5, 0.5). */
typedef struct cvy_move {
    double row[3], column[3];
} cvy_move;

/* The numbers, or channels, of points or vectors, two by two: the indices along the first axis of x or y. */
typedef struct cvy_pairs {
    int order;    /* of the two */
    int vertical; /* of vectors: which way the vertical one counts */
    cvy_ints at;
} cvy_pairs;

struct cvy_operation;
typedef struct cvy_augment_work { /* a picture, or a target with a value for each pixel, that is being augmented */
    const cvy_augment *a;
    cvy_picture pic;
    cvy_augment_scratch *scratch; /* the picture is in picture[1 - unused], or at first in neither */
    int unused, owned;            /* owned: 1: it is in scratch and may be changed in place */
    uint64_t epoch;
    int64_t number;
    cvy_affine affine; /* not applied yet: as long as pixels are bytes, moving them is cheaper */
    cvy_move move;
    int is_label_map; /* 1: the values are labels, which must not be mixed; pixels from outside are CVY_LABEL_OUTSIDE */
    const cvy_pairs *vectors; /* channels of x that turn with the picture; NULL: none */
    int64_t space[3];         /* of a volume: depth, height, width; of a series 1, 1 and its length */
} cvy_augment_work;

enum { CVY_TURN_NONE, CVY_TURN_SIGNS, CVY_TURN_EXCHANGE }; /* the signs of components; and exchanges them, too */
typedef struct cvy_augment_def {
    const char *name;
    const cvy_option *options;
    const char *short_key; /* `resize: 64` means `resize: {size: 64}` */
    int spatial;           /* 1: needs [C, H, W], or another number of positions if there is apply_space */
    int only_random;       /* 1: left out for test sets */
    int fixes_size;        /* 1: `size`, if given, is the picture's size afterwards */
    int any_size;          /* 1: accepts pictures of any size */
    int random_position;   /* 1: its position is random; for test sets it is the middle */
    int pointwise;         /* 1: each element of the result depends on this element alone */
    int scales_bytes;      /* 1: a step says by what to multiply bytes */
    int keeps_bytes;       /* 1: bytes of pictures stay 0 .. 255; they are not divided by 255 */
    int turns;             /* CVY_TURN_..: it changes the components of vectors along the axes of the picture */
    /* Whether the operation, with its options, moves pixels, so that a map of the target would no longer lie on x;
     * NULL: never. */
    int (*moves_pixels)(const struct cvy_operation *s);
    /* Operations that say what the target is, instead of changing x: called when the list is read. NULL for others. */
    cvy_status (*set_target)(struct cvy_augment *a, const struct cvy_operation *s, const cvy_tree *at);
    /* Prepares the operation when the list is read, after its options; a->shape is that of x before it. *known: whether
     * its height and width are those of all samples; the operation may set them. NULL: there is nothing to prepare. */
    cvy_status (*open)(struct cvy_augment *a, struct cvy_operation *s, int *known);
    cvy_status (*apply)(const struct cvy_operation *s, cvy_augment_work *w);
    /* The same for volumes and series; NULL: it moves pixels of pictures only. */
    cvy_status (*apply_space)(const struct cvy_operation *s, cvy_augment_work *w);
    /* What it does to values, in units of x before it, with lists in the pool; NULL: it moves pixels, is only_random,
     * or has no such form. */
    cvy_status (*describe)(const struct cvy_operation *s, cvy_pool *pool, cvy_value_step *out);
    /* As cvy_augment_window(), called if this is the first step; NULL: the step needs the whole picture. */
    int (*choose_window)(const cvy_augment *a, const struct cvy_operation *s, uint64_t epoch, int64_t number, int64_t H,
                         int64_t W, cvy_picture_window *out);
} cvy_augment_def;

#define CVY_AUGMENT_DEFINE(id) const cvy_augment_def cvy_augment_##id##_def
const cvy_augment_def *const *cvy_augment_table(int *count_out);

typedef struct cvy_operation {
    const cvy_augment_def *def;
    struct cvy_operation_opts o;
    cvy_numbers mean, std, by; /* one, or one per channel */
    uint64_t stream;
    const float *plane; /* of mean_file: the mean, and its shape */
    cvy_shape plane_shape;
    const struct cvy_operation *inner; /* of a resize: the next crop, which it does too; NULL: none */
} cvy_operation;

/* How the target follows operations that move the pixels of x. */
typedef enum {
    CVY_TARGET_NONE,      /* it does not depend on where pixels are */
    CVY_TARGET_FIELD,     /* a value for each pixel, which moves with it */
    CVY_TARGET_LABEL_MAP, /* a label for each pixel */
    CVY_TARGET_POINT,     /* positions in the picture */
    CVY_TARGET_VECTOR,    /* components along the axes of the picture: numbers, or channels of a field */
    CVY_TARGET_UNKNOWN    /* nobody has said */
} cvy_target_role;
#define CVY_TARGET_ROLE_WORDS "none|field|label_map|point|vector"
enum { CVY_ORDER_UNKNOWN, CVY_ORDER_ROW_COLUMN, CVY_ORDER_X_Y };
#define CVY_ORDER_WORDS "unknown|row_column|x_y"
enum { CVY_VERTICAL_UNKNOWN, CVY_VERTICAL_DOWN, CVY_VERTICAL_UP }; /* not said: with the rows; or against them */
#define CVY_VERTICAL_WORDS "unknown|down|up"
typedef enum { CVY_INPUT_TARGET, CVY_INPUT_VECTOR, CVY_INPUT_NONE, CVY_INPUT_UNKNOWN } cvy_input_role;
#define CVY_INPUT_ROLE_WORDS "target|vector|none"

typedef struct cvy_target {
    int exists;
    cvy_target_role role;
    cvy_pairs pairs;  /* of points or vectors; none if y is a list of points [K, 2] */
    cvy_ints ignored; /* labels of a map that count as CVY_LABEL_OUTSIDE */
    int is_map;       /* 1: [C, H, W] or [H, W], with the height and width of a picture x */
    cvy_shape stored; /* before augmentation */
    cvy_target_info info;
} cvy_target;

struct cvy_augment {
    cvy_pool *pool;
    cvy_operation operation[CVY_AUGMENT_OPERATIONS_MAX];
    int noperation, random, spatial, varying;
    int nspace; /* axes of positions of x: 2 of pictures, which are `spatial`, 3 of volumes, 1 of series; else 0 */
    int scales_bytes; /* 1: a step says by what to multiply bytes */
    int keeps_bytes;  /* 1: bytes of x stay 0 .. 255: they are no picture, or an operation says so */
    uint64_t seed;
    int was_varying;
    cvy_shape stored, shape; /* of x before and after augmentation */
    char idle[160];          /* a random step that changes nothing, and why; empty: there is none */
    cvy_dtype dtype;         /* of x before augmentation */
    cvy_columns columns;     /* names of the channels of x and of y, as far as the source has them */
    cvy_input_role input;
    cvy_pairs vectors; /* of x */
    const char *left;  /* sentences on vectors that stay as they are, a line each; NULL: none */
    cvy_target target;
    cvy_shape mask_stored, mask; /* the weight before and after augmentation; no axes: one number for each sample */
    int mask_fits, mask_moves;   /* it has the height and width of x; operations move it */
};

/* ---- data_augment.c: services for the steps ---- */
static inline cvy_rng cvy_operation_rng(const cvy_augment *a, const cvy_operation *s, uint64_t epoch, int64_t number)
{
    return cvy_rng_make_hashed(a->seed, s->stream, epoch, (uint64_t)number);
}
size_t cvy_augment_bytes(const cvy_picture *p);
/* Makes a picture in the scratch that the current one does not use. *extra_out (may be NULL) gets `extra` bytes after
 * the picture, 64-byte aligned. */
cvy_status cvy_augment_fresh(cvy_augment_work *w, cvy_dtype dtype, int64_t H, int64_t W, size_t extra, cvy_picture *out,
                             void **extra_out);
/* Converts the picture to reals in its own memory and applies w->affine. */
cvy_status cvy_augment_reals(cvy_augment_work *w);
/* Makes the record of linear steps one with a number for each of n channels. */
cvy_status cvy_augment_widen(cvy_augment_work *w, int64_t n);
/* Reads one number or a list of them. node NULL: an empty list. `what` is for messages. */
cvy_status cvy_augment_numbers(cvy_pool *pool, const char *what, const cvy_tree *node, cvy_numbers *out);
/* Value c of a list; one number counts for all channels. */
static inline double cvy_numbers_at(const cvy_numbers *list, int64_t c, double otherwise)
{
    return list->count == 0 ? otherwise : list->at[list->count == 1 ? 0 : c];
}
/* Makes a value step with room for n numbers: shift is 0. */
cvy_status cvy_value_step_make(cvy_pool *pool, cvy_curve curve, int64_t n, cvy_value_step *out);

/* Sets w up for a picture that nothing has been done to. */
void cvy_augment_begin(const cvy_augment *a, cvy_picture picture, uint64_t epoch, int64_t number,
                       cvy_augment_scratch *scratch, cvy_augment_work *w);
/* Runs the operations on w->pic; only_moves: only those that move pixels. */
cvy_status cvy_augment_run(const cvy_augment *a, cvy_augment_work *w, int only_moves);

/* ---- data_augment_target.c ---- */
void cvy_target_begin(cvy_augment *a, const cvy_reader_info *info);
/* Returns an error if the operation, which moves pixels, would move x away from a target whose role is not known.
 * Otherwise follows the shape of the target. */
cvy_status cvy_target_follow(cvy_augment *a, const cvy_operation *s, const cvy_tree *at);
/* If the target is x: notes how the operations on its values are undone. */
cvy_status cvy_target_scale_input(cvy_augment *a, int is_bytes);
/* Writes a part of the target, y [elems], of a sample whose pixels have not moved. */
cvy_status cvy_target_apply_part(const cvy_augment *a, const float *y, int64_t elems, void *y_out);
/* Writes the mask of a sample whose x has been augmented by w. */
cvy_status cvy_mask_apply(const cvy_augment *a, const cvy_augment_work *w, const float *mask, float *mask_out);
/* Writes the target y of a sample whose x has been augmented by w. */
cvy_status cvy_target_apply(const cvy_augment *a, const cvy_augment_work *w, const float *y, void *y_out);

/* ---- data_augment_vector.c ---- */
/* Reads `components`, a list of indices along the first axis of a field, or of names of its numbers or channels. of:
 * "x" or "y". list NULL: they are the only two. */
cvy_status cvy_pairs_read(const cvy_augment *a, const char *of, const char *role, const cvy_shape *shape,
                          const char *const *name, int64_t nname, const cvy_tree *list, const cvy_tree *at,
                          cvy_ints *out);
/* Turns vectors, whose components are planes of `plane` numbers, as m has turned the picture. */
void cvy_pairs_turn(const cvy_pairs *v, const cvy_move *m, int64_t plane, float *y);
/* Turns the vectors of x after an operation that has moved the picture by m. */
cvy_status cvy_vectors_turn(cvy_augment_work *w, const cvy_move *m);
/* Returns an error if an operation before s, which turns x, has changed the components of its vectors in such a way
 * that they cannot be turned afterwards. */
cvy_status cvy_vectors_follow(cvy_augment *a, const cvy_operation *s, const cvy_tree *at);
/* When the list is complete: says which vectors the operations do not turn, by roles and by names. */
cvy_status cvy_vectors_note(cvy_augment *a, const cvy_reader_info *info);

/* ---- data_augment_geometry.c ---- */
/* Checks that a crop of h x wd fits into H x W with pad. The error message names the step. */
cvy_status cvy_crop_fits(const char *name, int64_t H, int64_t W, int64_t pad, int64_t h, int64_t wd);

/* ---- data_augment_space.c: volumes and series ---- */
cvy_status cvy_space_mirror(const cvy_operation *s, cvy_augment_work *w);
cvy_status cvy_space_rotate90(const cvy_operation *s, cvy_augment_work *w);
cvy_status cvy_space_crop(const cvy_operation *s, cvy_augment_work *w);
/* The last nspace axes of a shape; those before are 1. */
void cvy_space_of(const cvy_shape *shape, int nspace, int64_t space[3]);
cvy_status cvy_space_crop_fits(const cvy_operation *s, int nspace, const int64_t whole[3]);

/* ---- data_augment_values.c ---- */
/* Writes the picture as reals to `out`, with w->affine applied. */
void cvy_augment_write(const cvy_augment_work *w, float *out);

#endif
