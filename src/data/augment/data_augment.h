/*
 * data_augment.h: between the files of augmentation: what an operation is, and a picture on its way through them.
 *
 * data_augment.c parses the list and runs it. Operations register themselves: those of data_augment_geometry.c move
 * pixels, those of data_augment_values.c change values.
 */
#ifndef CVY_DATA_AUGMENT_H
#define CVY_DATA_AUGMENT_H

#include "base/base_rng.h"
#include "data/data_reader.h"

enum { CVY_AUGMENT_OPERATIONS_MAX = 32 };

/* One struct for the options of all operations; each table names the fields it uses. */
struct cvy_operation_opts {
    cvy_ints size;
    cvy_reals mean, std, by, range, ratio;
    int64_t pad, count;
    double factor, share, center, value;
    int on, axis, fit, filter, decode;
};

/* x becomes (x - shift) * by, by channel; n 0: x stays, n 1: all channels alike. */
typedef struct cvy_affine {
    int n;
    double shift[CVY_LIST_MAX], by[CVY_LIST_MAX];
} cvy_affine;

struct cvy_operation;
typedef struct cvy_augment_work { /* a picture on its way */
    const cvy_augment *a;
    cvy_picture pic;
    cvy_bytes *scratch; /* two; the picture lies in scratch[1 - turn], or at first in neither */
    int turn, owned;    /* owned: it lies in scratch, and may be changed in place */
    uint64_t epoch;
    int64_t number;
    cvy_affine affine; /* still to be applied; until then what moves pixels moves fewer bytes */
} cvy_augment_work;

typedef struct cvy_augment_def {
    const char *name;
    const cvy_option *options;
    const char *short_key; /* `resize: 64` means `resize: {size: 64}` */
    int spatial;           /* needs [C, H, W] */
    int only_random;       /* left out for test sets */
    int fixes_size;        /* `size`, if given, is the picture's size afterwards */
    int any_size;          /* it takes pictures of any size */
    int draws;             /* it draws its place, which is the middle for test sets */
    int keeps_bytes;       /* bytes of pictures stay 0 .. 255: they are not divided by 255 */
    cvy_status (*apply)(const struct cvy_operation *s, cvy_augment_work *w);
    /* As cvy_augment_want(), where this is the first step; NULL: all of the picture. */
    int (*want)(const cvy_augment *a, const struct cvy_operation *s, uint64_t epoch, int64_t number, int64_t H,
                int64_t W, cvy_picture_window *out);
} cvy_augment_def;

#define CVY_AUGMENT_DEFINE(id) const cvy_augment_def cvy_augment_##id##_def
const cvy_augment_def *const *cvy_augment_table(int *count_out);

typedef struct cvy_operation {
    const cvy_augment_def *def;
    struct cvy_operation_opts o;
    uint64_t stream;
    const struct cvy_operation *inner; /* of a resize: the crop right behind it, which it carries out */
} cvy_operation;

struct cvy_augment {
    cvy_pool *pool;
    cvy_operation operation[CVY_AUGMENT_OPERATIONS_MAX];
    int noperation, random, spatial, varying, keeps_bytes;
    uint64_t seed;
    cvy_shape shape; /* afterwards */
};

/* ---- data_augment.c: services of the steps ---- */
static inline cvy_rng cvy_operation_rng(const cvy_augment *a, const cvy_operation *s, uint64_t epoch, int64_t number)
{
    return cvy_rng_make_hashed(a->seed, s->stream, epoch, (uint64_t)number);
}
size_t cvy_augment_bytes(const cvy_picture *p);
/* A picture in the scratch that the current one does not use, `extra` 64-byte aligned bytes behind it. */
cvy_status cvy_augment_fresh(cvy_augment_work *w, cvy_dtype dtype, int64_t H, int64_t W, size_t extra, cvy_picture *out,
                             void **extra_out);
/* The picture as reals of its own memory, with all that was still to be applied. */
cvy_status cvy_augment_reals(cvy_augment_work *w);

/* ---- data_augment_geometry.c ---- */
/* Whether a crop of h x wd fits into H x W with pad, or a fault that names the step. */
cvy_status cvy_crop_fits(const char *name, int64_t H, int64_t W, int64_t pad, int64_t h, int64_t wd);

/* ---- data_augment_values.c ---- */
/* The picture as reals at `out`, with what was still to be applied. */
void cvy_augment_write(const cvy_augment_work *w, float *out);

#endif
