/*
 * data_resize.c: separable filters: a weighted sum of rows, then weighted sums along the resulting row.
 *
 * The loader's threads call it; after decoding it is the most expensive part of augmentation. Each row of results is
 * computed as a whole: the source rows it needs are summed into one row that stays in the L1 cache, and that row is
 * filtered along its length. Bytes are computed in integers, so that every processor gives the same result: weights
 * have 14 bits and a sum of exactly one, and values have 6 bits of fraction between the two passes. Reals are computed
 * in f32, and so are bytes that shrink so much that such weights would become zero.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/picture/data_resize.h"

#include <math.h>
#include <string.h>

#include "data/data_vector.h"

enum {
    UNIT_BITS = 14,  /* 1 << UNIT_BITS is the weight 1 */
    MORE_BITS = 6,   /* bits of fraction between the passes: 255 << 6 still fits into int16_t */
    LANES = 8,       /* the number of weights is a multiple of this, padded with zeros */
    FIXED_TAPS = 64, /* most weights per result for which integers are used */
    ALIGN = 64
};

struct taps { /* the weights of one axis: those of result i start at [i * per] and are for the source pixels from
               * first[i] on */
    int64_t per;
    int32_t *first, *count;
    float *real;
    int16_t *fixed;
};

/* ---- weights ---- */

static int64_t taps_per(cvy_filter filter, double step)
{
    const double most = filter == CVY_FILTER_TRIANGLE   ? 2 * CVY_MAX(step, 1.0) + 1
                        : filter == CVY_FILTER_BILINEAR ? 3
                        : filter == CVY_FILTER_NEAREST  ? 1
                                                        : step + 2;
    return ((int64_t)ceil(most) + LANES - 1) / LANES * LANES;
}

/* Half the width of the filter, in source pixels. */
static double radius_of(cvy_filter filter, double step)
{
    return filter == CVY_FILTER_TRIANGLE ? CVY_MAX(step, 1.0) : filter == CVY_FILTER_BILINEAR ? 1 : step / 2;
}

static double weight_of(cvy_filter filter, double center, double radius, int64_t source)
{
    if (filter == CVY_FILTER_AREA)
        return CVY_MIN((double)source + 1, center + radius) - CVY_MAX((double)source, center - radius);
    return 1 - fabs((double)source + 0.5 - center) / radius;
}

static int32_t fill_nearest(const cvy_resize_axis *a, double center, int64_t per, int32_t *first, float *weight)
{
    const double last = (double)a->hi - 1; /* clamped as a real, since a centre may be far outside */
    *first = (int32_t)CVY_MAX(CVY_MIN(floor(center), last), (double)a->lo);
    for (int64_t t = 0; t < per; t++)
        weight[t] = t == 0;
    return 1;
}

/* Computes the weights of one result. Returns how many there are up to the last nonzero one. */
static int32_t fill_result(cvy_filter filter, const cvy_resize_axis *a, double center, int64_t per, int32_t *first,
                           float *weight)
{
    const double radius = radius_of(filter, a->step);
    const int64_t nearest =
        filter == CVY_FILTER_AREA ? (int64_t)floor(center - radius) : (int64_t)ceil(center - radius - 0.5);
    const int64_t from = CVY_MAX(CVY_MIN(nearest, a->hi - 1), a->lo);
    const int64_t most = CVY_MIN(per, a->hi - from);
    int32_t count = 1;
    double sum = 0;
    for (int64_t t = 0; t < per; t++) {
        const double w = t < most ? weight_of(filter, center, radius, from + t) : 0;
        weight[t] = w > 0 ? (float)w : 0;
        sum += weight[t];
        count = w > 0 ? (int32_t)t + 1 : count;
    }
    if (sum <= 0) /* completely outside: take the nearest pixel */
        weight[0] = 1;
    const float factor = sum > 0 ? (float)(1 / sum) : 1;
    for (int32_t t = 0; t < count; t++)
        weight[t] *= factor;
    *first = (int32_t)from;
    return count;
}

/* Converts to integers whose sum is exactly one: the rounding error is added to the largest. */
static void to_fixed(const float *weight, int64_t per, int16_t *fixed)
{
    int sum = 0;
    int64_t largest = 0;
    for (int64_t t = 0; t < per; t++) {
        fixed[t] = (int16_t)lrintf(weight[t] * (1 << UNIT_BITS));
        sum += fixed[t];
        largest = fixed[t] > fixed[largest] ? t : largest;
    }
    fixed[largest] = (int16_t)(fixed[largest] + (1 << UNIT_BITS) - sum);
}

static void fill_taps(cvy_filter filter, const cvy_resize_axis *a, int is_fixed, struct taps *taps)
{
    for (int64_t i = 0; i < a->n; i++) {
        float *weight = taps->real + i * taps->per;
        const double center = a->start + ((double)i + 0.5) * a->step;
        taps->count[i] = filter == CVY_FILTER_NEAREST
                             ? fill_nearest(a, center, taps->per, &taps->first[i], weight)
                             : fill_result(filter, a, center, taps->per, &taps->first[i], weight);
        if (is_fixed)
            to_fixed(weight, taps->per, taps->fixed + i * taps->per);
    }
}

/* ---- bytes ---- */

CVY_VECTOR_PART int32_t four(const uint8_t *const r[4], const int32_t w[4], int64_t j)
{
    return r[0][j] * w[0] + r[1][j] * w[1] + r[2][j] * w[2] + r[3][j] * w[3];
}

/* Weighted sum of `count` rows of n columns, four rows at a time. `sum` is used if there are more than four. */
CVY_VECTOR static void resize_sum_byte_rows(const uint8_t *restrict rows, int64_t stride, int64_t n,
                                            const int16_t *restrict weight, int64_t count, int32_t *restrict sum,
                                            int16_t *restrict out)
{
    enum { SHIFT = UNIT_BITS - MORE_BITS, HALF = 1 << (SHIFT - 1) };
    for (int64_t t = 0; t < count; t += 4) {
        const uint8_t *r[4];
        int32_t w[4];
        for (int64_t k = 0; k < 4; k++) {
            r[k] = rows + CVY_MIN(t + k, count - 1) * stride;
            w[k] = t + k < count ? weight[t + k] : 0;
        }
        const int is_last = t + 4 >= count;
        if (t == 0 && is_last)
            for (int64_t j = 0; j < n; j++)
                out[j] = (int16_t)((four(r, w, j) + HALF) >> SHIFT);
        else if (t == 0)
            for (int64_t j = 0; j < n; j++)
                sum[j] = four(r, w, j);
        else if (!is_last)
            for (int64_t j = 0; j < n; j++)
                sum[j] += four(r, w, j);
        else
            for (int64_t j = 0; j < n; j++)
                out[j] = (int16_t)((sum[j] + four(r, w, j) + HALF) >> SHIFT);
    }
}

CVY_VECTOR_PART void filter_row(const int16_t *restrict row, int64_t n, const int32_t *restrict first,
                                const int16_t *restrict weight, int64_t per, uint8_t *restrict out)
{
    enum { SHIFT = UNIT_BITS + MORE_BITS, HALF = 1 << (SHIFT - 1) };
    for (int64_t i = 0; i < n; i++) {
        const int16_t *x = row + first[i], *w = weight + i * per;
        int32_t sum = HALF;
#pragma GCC unroll 1 /* so that eight products are one vector instruction, not eight scalar ones */
        for (int64_t t = 0; t < per; t++)
            sum += x[t] * w[t];
        out[i] = (uint8_t)(sum >> SHIFT);
    }
}

CVY_VECTOR static void resize_byte_row(const int16_t *restrict row, int64_t n, const int32_t *restrict first,
                                       const int16_t *restrict weight, int64_t per, uint8_t *restrict out)
{
    if (per == LANES)
        filter_row(row, n, first, weight, LANES, out);
    else
        filter_row(row, n, first, weight, per, out);
}

/* ---- reals ---- */

CVY_VECTOR static void resize_add_byte_row(const uint8_t *restrict row, int64_t n, float weight, float *restrict sum)
{
    for (int64_t j = 0; j < n; j++)
        sum[j] += weight * (float)row[j];
}

CVY_VECTOR static void resize_add_real_row(const float *restrict row, int64_t n, float weight, float *restrict sum)
{
    for (int64_t j = 0; j < n; j++)
        sum[j] += weight * row[j];
}

static float dot(const float *x, const float *w, int32_t count)
{
    float sum = 0;
    for (int32_t t = 0; t < count; t++)
        sum += x[t] * w[t];
    return sum;
}

/* ---- the picture ---- */

static void *carve(char **at, size_t bytes)
{
    void *p = *at;
    *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

static struct taps carve_taps(char **at, cvy_filter filter, const cvy_resize_axis *a)
{
    struct taps t = {.per = taps_per(filter, a->step)};
    t.first = carve(at, (size_t)a->n * sizeof *t.first);
    t.count = carve(at, (size_t)a->n * sizeof *t.count);
    t.real = carve(at, (size_t)(a->n * t.per) * sizeof *t.real);
    t.fixed = carve(at, (size_t)(a->n * t.per) * sizeof *t.fixed);
    return t;
}

struct work {
    struct taps y, x;
    int64_t column, columns; /* first source column, and number of columns, that the results need */
    float *real;             /* one row of sums */
    int32_t *sum;
    int16_t *narrow;
};

static struct work carve_work(char **at, cvy_filter filter, const cvy_resize_axis *y, const cvy_resize_axis *x)
{
    struct work w = {.y = carve_taps(at, filter, y), .x = carve_taps(at, filter, x)};
    const size_t room = (size_t)(x->hi - x->lo + w.x.per);
    w.real = carve(at, room * sizeof *w.real);
    w.sum = carve(at, room * sizeof *w.sum);
    w.narrow = carve(at, room * sizeof *w.narrow);
    return w;
}

size_t cvy_resize_scratch(cvy_filter filter, const cvy_resize_axis *y, const cvy_resize_axis *x)
{
    const int64_t py = taps_per(filter, y->step), px = taps_per(filter, x->step), row = x->hi - x->lo + px;
    const int64_t bytes = (y->n * py + x->n * px) * 6 + (y->n + x->n) * 8 + row * 10;
    return (size_t)bytes + 11 * ALIGN;
}

static void bytes_by_integers(const struct work *w, const cvy_picture *from, const cvy_picture *to)
{
    for (int64_t i = 0; i < from->C * to->H; i++) {
        const int64_t c = i / to->H, y = i % to->H;
        const uint8_t *rows = (const uint8_t *)from->data + (c * from->H + w->y.first[y]) * from->W + w->column;
        resize_sum_byte_rows(rows, from->W, w->columns, w->y.fixed + y * w->y.per, w->y.count[y], w->sum, w->narrow);
        resize_byte_row(w->narrow, to->W, w->x.first, w->x.fixed, w->x.per, (uint8_t *)to->data + i * to->W);
    }
}

static void by_reals(const struct work *w, const cvy_picture *from, const cvy_picture *to)
{
    const int is_bytes = from->dtype == CVY_DTYPE_U8;
    for (int64_t i = 0; i < from->C * to->H; i++) {
        const int64_t c = i / to->H, y = i % to->H;
        memset(w->real, 0, (size_t)w->columns * sizeof *w->real);
        for (int32_t t = 0; t < w->y.count[y]; t++) {
            const int64_t at = (c * from->H + w->y.first[y] + t) * from->W + w->column;
            const float weight = w->y.real[y * w->y.per + t];
            if (is_bytes)
                resize_add_byte_row((const uint8_t *)from->data + at, w->columns, weight, w->real);
            else
                resize_add_real_row((const float *)from->data + at, w->columns, weight, w->real);
        }
        for (int64_t x = 0; x < to->W; x++) {
            const float sum = dot(w->real + w->x.first[x], w->x.real + x * w->x.per, w->x.count[x]);
            if (is_bytes)
                ((uint8_t *)to->data)[i * to->W + x] = (uint8_t)lrintf(CVY_MIN(CVY_MAX(sum, 0), 255));
            else
                ((float *)to->data)[i * to->W + x] = sum;
        }
    }
}

void cvy_resize(cvy_filter filter, const cvy_picture *from, const cvy_resize_axis *y, const cvy_resize_axis *x,
                void *scratch, const cvy_picture *to)
{
    char *at = scratch;
    struct work w = carve_work(&at, filter, y, x);
    const int by_integers = from->dtype == CVY_DTYPE_U8 && CVY_MAX(w.y.per, w.x.per) <= FIXED_TAPS;
    fill_taps(filter, y, by_integers, &w.y);
    fill_taps(filter, x, by_integers, &w.x);
    w.column = w.x.first[0];
    w.columns = w.x.first[x->n - 1] + w.x.count[x->n - 1] - w.column;
    for (int64_t i = 0; i < x->n; i++)
        w.x.first[i] -= (int32_t)w.column;
    memset(w.narrow + w.columns, 0, (size_t)w.x.per * sizeof *w.narrow); /* padding for weights of zero */
    if (by_integers)
        bytes_by_integers(&w, from, to);
    else
        by_reals(&w, from, to);
}
