/*
 * data_augment.h: between the files of augmentation: what a step is, and a picture on its way through the steps.
 *
 * data_augment.c parses the list and runs it; data_augment_geometry.c moves pixels, data_augment_values.c changes
 * values.
 */
#ifndef CVY_DATA_AUGMENT_H
#define CVY_DATA_AUGMENT_H

#include "data/data_reader.h"

enum { CVY_AUGMENT_STEPS_MAX = 32 };

/* One struct for the options of all steps; each table names the fields it uses. */
struct cvy_step_opts {
    cvy_ints size;
    cvy_reals mean, std, by, range, ratio;
    int64_t pad, count;
    double factor, share, center, value;
    int on, axis, fit, filter, decode;
};

/* Tables close to what they configure. */
extern const cvy_option cvy_mirror_opts[], cvy_rotate90_opts[], cvy_random_crop_opts[], cvy_center_crop_opts[],
    cvy_resize_opts[], cvy_random_resized_crop_opts[], cvy_cutout_opts[], cvy_scale_opts[], cvy_log_opts[],
    cvy_asinh_opts[], cvy_mean_opts[], cvy_std_opts[], cvy_normalize_opts[];

/* x becomes (x - shift) * by, by channel; n 0: x stays, n 1: all channels alike. */
typedef struct cvy_affine {
    int n;
    double shift[CVY_LIST_MAX], by[CVY_LIST_MAX];
} cvy_affine;

struct cvy_step;
typedef struct cvy_work { /* a picture on its way */
    const cvy_augment *a;
    cvy_picture pic;
    cvy_bytes *scratch; /* two; the picture lies in scratch[1 - turn], or at first in neither */
    int turn, owned;    /* owned: it lies in scratch, and may be changed in place */
    uint64_t epoch;
    int64_t number;
    cvy_affine affine; /* still to be applied; until then what moves pixels moves fewer bytes */
} cvy_work;

typedef struct cvy_step_def {
    const char *name;
    const cvy_option *options;
    const char *short_key; /* `resize: 64` means `resize: {size: 64}` */
    int spatial;           /* needs [C, H, W] */
    int only_random;       /* falls away for test sets */
    int fixes_size;        /* `size`, where given, is the picture's size afterwards */
    int any_size;          /* it takes pictures of any size */
    cvy_status (*apply)(const struct cvy_step *s, cvy_work *w);
    /* As cvy_augment_want(), where this is the first step; NULL: all of the picture. */
    int (*want)(const cvy_augment *a, const struct cvy_step *s, uint64_t epoch, int64_t number, int64_t H, int64_t W,
                cvy_window *out);
} cvy_step_def;

typedef struct cvy_step {
    const cvy_step_def *def;
    struct cvy_step_opts o;
    uint64_t stream;
    const struct cvy_step *inner; /* of a resize: the crop right behind it, which it carries out */
} cvy_step;

struct cvy_augment {
    cvy_pool *pool;
    cvy_step step[CVY_AUGMENT_STEPS_MAX];
    int nstep, random, spatial, varying, has_scale;
    uint64_t seed;
    cvy_shape shape; /* afterwards */
};

/* ---- data_augment.c: services of the steps ---- */
static inline cvy_rng cvy_step_rng(const cvy_augment *a, const cvy_step *s, uint64_t epoch, int64_t number)
{
    return cvy_rng_make_hashed(a->seed, s->stream, epoch, (uint64_t)number);
}
size_t cvy_work_bytes(const cvy_picture *p);
/* A picture in the scratch that the current one does not use, `extra` 64-byte aligned bytes behind it. */
cvy_status cvy_work_fresh(cvy_work *w, cvy_dtype dtype, int64_t H, int64_t W, size_t extra, cvy_picture *out,
                          void **extra_out);
/* The picture as reals of its own memory, with all that was still to be applied. */
cvy_status cvy_work_reals(cvy_work *w);

/* ---- data_augment_geometry.c ---- */
cvy_status cvy_mirror_apply(const cvy_step *s, cvy_work *w);
cvy_status cvy_rotate90_apply(const cvy_step *s, cvy_work *w);
cvy_status cvy_random_crop_apply(const cvy_step *s, cvy_work *w);
cvy_status cvy_center_crop_apply(const cvy_step *s, cvy_work *w);
cvy_status cvy_resize_apply(const cvy_step *s, cvy_work *w);
cvy_status cvy_random_resized_crop_apply(const cvy_step *s, cvy_work *w);
int cvy_random_crop_want(const cvy_augment *a, const cvy_step *s, uint64_t epoch, int64_t number, int64_t H, int64_t W,
                         cvy_window *out);
int cvy_center_crop_want(const cvy_augment *a, const cvy_step *s, uint64_t epoch, int64_t number, int64_t H, int64_t W,
                         cvy_window *out);
int cvy_resize_want(const cvy_augment *a, const cvy_step *s, uint64_t epoch, int64_t number, int64_t H, int64_t W,
                    cvy_window *out);
int cvy_random_resized_crop_want(const cvy_augment *a, const cvy_step *s, uint64_t epoch, int64_t number, int64_t H,
                                 int64_t W, cvy_window *out);
/* Whether a crop of h x wd fits into H x W with pad, or a fault that names the step. */
cvy_status cvy_crop_fits(const char *name, int64_t H, int64_t W, int64_t pad, int64_t h, int64_t wd);

/* ---- data_augment_values.c ---- */
cvy_status cvy_scale_apply(const cvy_step *s, cvy_work *w);
cvy_status cvy_normalize_apply(const cvy_step *s, cvy_work *w);
cvy_status cvy_log_apply(const cvy_step *s, cvy_work *w);
cvy_status cvy_asinh_apply(const cvy_step *s, cvy_work *w);
cvy_status cvy_cutout_apply(const cvy_step *s, cvy_work *w);
/* The picture as reals at `out`, with what was still to be applied. */
void cvy_work_write(const cvy_work *w, float *out);

#endif
