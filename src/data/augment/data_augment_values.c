/*
 * data_augment_values.c: steps that change values: scale, mean, std, normalize, log, asinh, cutout.
 *
 * They run in the loader's threads. Linear steps are only recorded, for each channel, and are applied in the one pass
 * that turns bytes into the batch's f32. So pixels are moved as bytes and touched once as reals. That pass also divides
 * bytes of pictures by 255, unless the list has a `scale` step, which expects 0 .. 255.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "data/augment/data_augment.h"

#include <math.h>
#include <string.h>

#include "data/data_vector.h"

static const cvy_option scale_opts[] = {
    {"by", CVY_TYPE_REAL, CVY_FIELD(cvy_operation_opts, factor), NULL, "", "", "factor"},
    {0},
};
static const cvy_option log_opts[] = {
    {"by", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, by), "1", "", "",
     "x becomes sign(x) ln(1 + |x| / by), one number, or one per channel"},
    {0},
};
static const cvy_option asinh_opts[] = {
    {"by", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, by), "1", "", "",
     "x becomes asinh(x / by), one number, or one per channel"},
    {0},
};
static const cvy_option mean_opts[] = {
    {"values", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, mean), NULL, "", "",
     "subtracted, one number, or one per channel"},
    {0},
};
static const cvy_option std_opts[] = {
    {"values", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, std), NULL, "", "",
     "divided by, one number, or one per channel"},
    {0},
};
static const cvy_option normalize_opts[] = {
    {"mean", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, mean), "0", "", "",
     "subtracted first, one number, or one per channel"},
    {"std", CVY_TYPE_TREE, CVY_FIELD(cvy_operation_opts, std), "1", "", "",
     "then divided by, one number, or one per channel"},
    {0},
};
static const cvy_option cutout_opts[] = {
    {"size", CVY_TYPE_INTS, CVY_FIELD(cvy_operation_opts, size), NULL, "1..", "pixels",
     "height and width of a hole, one number for both"},
    {"count", CVY_TYPE_INT, CVY_FIELD(cvy_operation_opts, count), "1", "1..1000", "", "holes"},
    {"value", CVY_TYPE_REAL, CVY_FIELD(cvy_operation_opts, value), "0", "", "",
     "value of the hole, in the units that the values have at this step of the list"},
    {"share", CVY_TYPE_REAL, CVY_FIELD(cvy_operation_opts, share), "1", "0..1", "", "share of samples that get holes"},
    {0},
};

/* ---- bytes and reals to reals ---- */

CVY_VECTOR static void augment_bytes_to_reals(const uint8_t *restrict in, int64_t n, float shift, float by,
                                              float *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = ((float)in[i] - shift) * by;
}

CVY_VECTOR static void augment_shift_and_scale(float *x, int64_t n, float shift, float by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (x[i] - shift) * by;
}

/* The shift has two parts, and the first difference is exact. */
CVY_VECTOR static void augment_shift_twice(float *x, int64_t n, float shift, float rest, float by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = ((x[i] - shift) - rest) * by;
}

/* What is lost of a shift that is rounded to f32, if it matters in the result: a mean of 101325.03 becomes 101325.031,
 * and values that vary by 0.05 around it get another mean. */
static float rest_of(double shift, double by)
{
    const double rest = shift - (double)(float)shift;
    return fabs(rest * by) > 0x1p-12 ? (float)rest : 0;
}

/* If the picture is reals, `out` may be the picture itself. */
void cvy_augment_write(const cvy_augment_work *w, float *out)
{
    const cvy_picture *p = &w->pic;
    const cvy_affine *f = &w->affine;
    const int is_bytes = p->dtype == CVY_DTYPE_U8;
    const double unit = is_bytes && !w->a->keeps_bytes ? 255 : 1;
    if (!is_bytes && out != p->data)
        memcpy(out, p->data, cvy_augment_bytes(p));
    if (!is_bytes && f->n == 0)
        return;
    const int64_t runs = f->n > 1 ? p->C : 1, n = p->C * p->H * p->W / CVY_MAX(runs, 1);
    for (int64_t c = 0; c < runs; c++) {
        const float shift = f->n > 0 ? (float)(f->shift[c] * unit) : 0, by = (float)((f->n > 0 ? f->by[c] : 1) / unit);
        const float rest = f->n > 0 && !is_bytes ? rest_of(f->shift[c], f->by[c]) : 0;
        if (is_bytes)
            augment_bytes_to_reals((const uint8_t *)p->data + c * n, n, shift, by, out + c * n);
        else if (rest != 0)
            augment_shift_twice(out + c * n, n, shift, rest, by);
        else
            augment_shift_and_scale(out + c * n, n, shift, by);
    }
}

/* ---- linear steps: only recorded ---- */

/* The lists have as much room at each step of a sample, so they stay where they are. */
cvy_status cvy_augment_widen(cvy_augment_work *w, int64_t n)
{
    cvy_affine *f = &w->affine;
    const int64_t channels = w->a->shape.ndim > 0 ? w->a->shape.dim[0] : 1, room = CVY_MAX(channels, w->pic.C);
    CVY_TRY(cvy_bytes_need(&w->scratch->affine, 2 * sizeof(double) * (size_t)room));
    f->shift = w->scratch->affine.data;
    f->by = f->shift + room;
    for (int64_t c = f->n; c < n; c++) {
        f->shift[c] = f->n == 1 ? f->shift[0] : 0;
        f->by[c] = f->n == 1 ? f->by[0] : 1;
    }
    f->n = n;
    return CVY_OK;
}

/* Records (x - m) * f after what is recorded already; m is 0 and f is 1 if their lists are empty. A factor of 0
 * followed by a shift cannot be recorded in this form, so the record is applied first. */
static cvy_status record_affine(cvy_augment_work *w, const cvy_numbers *mean, const cvy_numbers *std, double factor)
{
    cvy_affine *f = &w->affine;
    int has_zero = 0;
    for (int64_t c = 0; c < f->n; c++)
        has_zero |= f->by[c] == 0;
    if (has_zero)
        CVY_TRY(cvy_augment_reals(w));
    const int64_t n = CVY_MAX(CVY_MAX(f->n, 1), CVY_MAX(mean->count, std->count));
    CVY_TRY(cvy_augment_widen(w, n));
    for (int64_t c = 0; c < n; c++) { /* ((x - a) b - m) k = (x - (a + m / b)) b k */
        f->shift[c] += cvy_numbers_at(mean, c, 0) / f->by[c];
        f->by[c] *= factor / cvy_numbers_at(std, c, 1);
    }
    return CVY_OK;
}

static cvy_status scale_apply(const cvy_operation *s, cvy_augment_work *w)
{
    return record_affine(w, &s->mean, &s->std, s->o.factor); /* the lists are empty */
}

static cvy_status normalize_apply(const cvy_operation *s, cvy_augment_work *w)
{
    return record_affine(w, &s->mean, &s->std, 1);
}

/* ---- steps that need the reals ---- */

/* x becomes curve(x / by); curve(0) must be 0. */
static inline cvy_status bend(const cvy_operation *s, cvy_augment_work *w, float (*curve)(float))
{
    CVY_TRY(cvy_augment_reals(w));
    const int64_t plane = w->pic.H * w->pic.W;
    for (int64_t c = 0; c < w->pic.C; c++) {
        float *x = (float *)w->pic.data + c * plane;
        const float by = (float)(1 / cvy_numbers_at(&s->by, c, 1));
        for (int64_t i = 0; i < plane; i++)
            if (x[i] != 0) /* detector images are mostly empty */
                x[i] = curve(x[i] * by);
    }
    return CVY_OK;
}

static float signed_log(float x)
{
    return copysignf(log1pf(fabsf(x)), x);
}

static cvy_status log_apply(const cvy_operation *s, cvy_augment_work *w)
{
    return bend(s, w, signed_log);
}

static cvy_status asinh_apply(const cvy_operation *s, cvy_augment_work *w)
{
    return bend(s, w, asinhf);
}

/* Holes are centred anywhere in the picture and end at its edges (DeVries and Taylor 2017). Holes of value 0 are
 * written into bytes without conversion. */
static cvy_status cutout_apply(const cvy_operation *s, cvy_augment_work *w)
{
    const cvy_rng rng = cvy_operation_rng(w->a, s, w->epoch, w->number);
    const int64_t h = cvy_ints_at(&s->o.size, 0, 0), wd = cvy_ints_at(&s->o.size, 1, 0);
    const float value = (float)s->o.value;
    if (cvy_rng_uniform(&rng, 0) >= s->o.share)
        return CVY_OK;
    if (!w->owned || w->affine.n > 0 || s->o.value != 0)
        CVY_TRY(cvy_augment_reals(w));
    cvy_picture *p = &w->pic;
    const size_t elem = cvy_dtype_bytes(p->dtype);
    for (int64_t k = 0; k < s->o.count; k++) {
        const int64_t top = (int64_t)cvy_rng_below(&rng, 1 + 2 * (uint64_t)k, (uint64_t)p->H) - h / 2;
        const int64_t left = (int64_t)cvy_rng_below(&rng, 2 + 2 * (uint64_t)k, (uint64_t)p->W) - wd / 2;
        const int64_t y0 = CVY_MAX(top, 0), y1 = CVY_MIN(top + h, p->H);
        const int64_t x0 = CVY_MAX(left, 0), x1 = CVY_MIN(left + wd, p->W);
        for (int64_t c = 0; c < p->C; c++) {
            for (int64_t y = y0; y < y1; y++) {
                const int64_t at = (c * p->H + y) * p->W + x0;
                if (s->o.value == 0)
                    memset((char *)p->data + (size_t)at * elem, 0, (size_t)(x1 - x0) * elem);
                else
                    for (int64_t i = 0; i < x1 - x0; i++)
                        ((float *)p->data)[at + i] = value;
            }
        }
    }
    return CVY_OK;
}

/* ---- what they do, for other programs (data_augment_steps.c) ---- */

static cvy_status describe_linear(const cvy_operation *s, double factor, cvy_pool *pool, cvy_value_step *out)
{
    const int64_t n = CVY_MAX(CVY_MAX(s->mean.count, s->std.count), 1);
    CVY_TRY(cvy_value_step_make(pool, CVY_CURVE_AFFINE, n, out));
    for (int64_t c = 0; c < n; c++) {
        out->shift[c] = cvy_numbers_at(&s->mean, c, 0);
        out->by[c] = factor / cvy_numbers_at(&s->std, c, 1);
    }
    return CVY_OK;
}

static cvy_status scale_describe(const cvy_operation *s, cvy_pool *pool, cvy_value_step *out)
{
    return describe_linear(s, s->o.factor, pool, out);
}

static cvy_status normalize_describe(const cvy_operation *s, cvy_pool *pool, cvy_value_step *out)
{
    return describe_linear(s, 1, pool, out);
}

static cvy_status describe_curve(const cvy_operation *s, cvy_curve curve, cvy_pool *pool, cvy_value_step *out)
{
    CVY_TRY(cvy_value_step_make(pool, curve, CVY_MAX(s->by.count, 1), out));
    for (int64_t c = 0; c < out->n; c++)
        out->by[c] = 1 / cvy_numbers_at(&s->by, c, 1);
    return CVY_OK;
}

static cvy_status log_describe(const cvy_operation *s, cvy_pool *pool, cvy_value_step *out)
{
    return describe_curve(s, CVY_CURVE_LOG, pool, out);
}

static cvy_status asinh_describe(const cvy_operation *s, cvy_pool *pool, cvy_value_step *out)
{
    return describe_curve(s, CVY_CURVE_ASINH, pool, out);
}

CVY_AUGMENT_DEFINE(cutout) = {
    .name = "cutout",
    .options = cutout_opts,
    .short_key = "size",
    .spatial = 1,
    .only_random = 1,
    .apply = cutout_apply,
};

CVY_AUGMENT_DEFINE(scale) = {
    .name = "scale",
    .options = scale_opts,
    .short_key = "by",
    .keeps_bytes = 1,
    .pointwise = 1,
    .apply = scale_apply,
    .describe = scale_describe,
};

CVY_AUGMENT_DEFINE(log) = {
    .name = "log",
    .options = log_opts,
    .short_key = "by",
    .pointwise = 1,
    .apply = log_apply,
    .describe = log_describe,
};

CVY_AUGMENT_DEFINE(asinh) = {
    .name = "asinh",
    .options = asinh_opts,
    .short_key = "by",
    .pointwise = 1,
    .apply = asinh_apply,
    .describe = asinh_describe,
};

CVY_AUGMENT_DEFINE(mean) = {
    .name = "mean",
    .options = mean_opts,
    .short_key = "values",
    .pointwise = 1,
    .apply = normalize_apply,
    .describe = normalize_describe,
};

CVY_AUGMENT_DEFINE(std) = {
    .name = "std",
    .options = std_opts,
    .short_key = "values",
    .pointwise = 1,
    .apply = normalize_apply,
    .describe = normalize_describe,
};

CVY_AUGMENT_DEFINE(normalize) = {
    .name = "normalize",
    .options = normalize_opts,
    .pointwise = 1,
    .apply = normalize_apply,
    .describe = normalize_describe,
};
