/*
 * data_augment_space.c: the steps that move positions, for volumes [C, D, H, W] and series [C, T]: mirror, rotate90 and
 * the crops. data_augment_geometry.c has them for pictures.
 *
 * A step runs in the loader's threads. A series is treated as a volume of one row. The mirror and the turns copy each
 * channel with other strides, which may be negative. Random numbers are drawn as for pictures, one more for the depth.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "data/augment/data_augment.h"

#include <string.h>

enum { DEPTH, HEIGHT, WIDTH };

/* Makes room for samples of another size. */
static cvy_status begin(cvy_augment_work *w, const int64_t n[3], cvy_picture *out)
{
    const int is_series = w->a->nspace == 1;
    CVY_TRY(cvy_augment_fresh(w, w->pic.dtype, is_series ? n[WIDTH] : n[DEPTH], is_series ? 1 : n[HEIGHT] * n[WIDTH], 0,
                              out, NULL));
    return CVY_OK;
}

static void end(cvy_augment_work *w, const int64_t n[3], const cvy_picture *out)
{
    w->pic = *out;
    memcpy(w->space, n, sizeof w->space);
}

static void copy_row(const char *from, int64_t n, int64_t stride, size_t elem, char *to)
{
    if (stride == 1)
        memcpy(to, from, (size_t)n * elem);
    else if (elem == 1)
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i * stride];
    else
        for (int64_t i = 0; i < n; i++)
            ((float *)(void *)to)[i] = ((const float *)(const void *)from)[i * stride];
}

/* Copies each channel so that position (z, y, x) is what was at first + z stride[0] + y stride[1] + x stride[2]. */
static cvy_status copy(cvy_augment_work *w, const int64_t n[3], const int64_t stride[3], int64_t first)
{
    const cvy_picture from = w->pic;
    const size_t elem = cvy_dtype_bytes(from.dtype);
    const int64_t plane = from.H * from.W;
    cvy_picture to;
    CVY_TRY(begin(w, n, &to));
    char *at = to.data;
    for (int64_t c = 0; c < from.C; c++) {
        for (int64_t z = 0; z < n[DEPTH]; z++) {
            for (int64_t y = 0; y < n[HEIGHT]; y++, at += (size_t)n[WIDTH] * elem) {
                const int64_t row = c * plane + first + z * stride[DEPTH] + y * stride[HEIGHT];
                copy_row((const char *)from.data + row * (int64_t)elem, n[WIDTH], stride[WIDTH], elem, at);
            }
        }
    }
    end(w, n, &to);
    return CVY_OK;
}

cvy_status cvy_space_mirror(const cvy_operation *s, cvy_augment_work *w)
{
    const cvy_rng rng = cvy_operation_rng(w->a, s, w->epoch, w->number);
    const int64_t *n = w->space;
    const int axis = WIDTH - s->o.axis; /* width is 0 in the option */
    int64_t stride[3] = {n[HEIGHT] * n[WIDTH], n[WIDTH], 1};
    if (!s->o.on || cvy_rng_uniform(&rng, 0) >= s->o.share)
        return CVY_OK;
    const int64_t first = (n[axis] - 1) * stride[axis];
    stride[axis] = -stride[axis];
    return copy(w, (const int64_t[]){n[0], n[1], n[2]}, stride, first);
}

cvy_status cvy_space_rotate90(const cvy_operation *s, cvy_augment_work *w)
{
    /* The two axes that a turn about depth, height or width exchanges. */
    static const int pair[3][2] = {{HEIGHT, WIDTH}, {DEPTH, WIDTH}, {DEPTH, HEIGHT}};
    const cvy_rng rng = cvy_operation_rng(w->a, s, w->epoch, w->number);
    const int a = pair[s->o.about][0], b = pair[s->o.about][1];
    int64_t n[3] = {w->space[0], w->space[1], w->space[2]};
    const int64_t plain[3] = {n[HEIGHT] * n[WIDTH], n[WIDTH], 1};
    int64_t stride[3] = {plain[0], plain[1], plain[2]}, first = 0;
    if (!s->o.on || cvy_rng_uniform(&rng, 0) >= s->o.share)
        return CVY_OK;
    const int quarters = n[a] == n[b] ? 1 + (int)cvy_rng_below(&rng, 1, 3) : 2;
    if (quarters == 2) {
        first = (n[a] - 1) * plain[a] + (n[b] - 1) * plain[b];
        stride[a] = -plain[a];
        stride[b] = -plain[b];
    } else { /* 1: (i, j) is what was at (j, last - i), a turn to the left */
        const int from_a = quarters == 1 ? 1 : -1;
        first = quarters == 1 ? (n[b] - 1) * plain[b] : (n[a] - 1) * plain[a];
        stride[a] = -from_a * plain[b];
        stride[b] = from_a * plain[a];
    }
    return copy(w, n, stride, first);
}

/* ---- crops ---- */

/* The size of an axis after the crop: 0 is the depth. */
static int64_t size_of(const cvy_operation *s, int nspace, int axis, int64_t whole)
{
    return axis < 3 - nspace ? whole : cvy_ints_at(&s->o.size, axis - (3 - nspace), whole);
}

static int64_t pad_of(const cvy_operation *s, int nspace, int axis)
{
    return axis < 3 - nspace ? 0 : s->o.pad;
}

void cvy_space_of(const cvy_shape *shape, int nspace, int64_t space[3])
{
    for (int i = 0; i < 3; i++)
        space[i] = i < 3 - nspace ? 1 : shape->dim[shape->ndim - 3 + i];
}

cvy_status cvy_space_crop_fits(const cvy_operation *s, int nspace, const int64_t whole[3])
{
    for (int i = 0; i < 3; i++)
        CVY_CHECK(whole[i] + 2 * pad_of(s, nspace, i) >= size_of(s, nspace, i, whole[i]), CVY_E_SHAPE,
                  "%s to %lld does not fit into an axis of %lld with pad %lld", s->def->name,
                  (long long)size_of(s, nspace, i, whole[i]), (long long)whole[i], (long long)s->o.pad);
    return CVY_OK;
}

static void fill(const cvy_augment_work *w, char *row, int64_t n, size_t elem)
{
    memset(row, 0, (size_t)n * elem);
    for (int64_t i = 0; i < n && w->is_label_map; i++)
        ((float *)(void *)row)[i] = CVY_LABEL_OUTSIDE;
}

/* Copies the box that begins at `at`, which may be outside in part. */
static cvy_status cut(cvy_augment_work *w, const int64_t at[3], const int64_t n[3])
{
    const cvy_picture from = w->pic;
    const int64_t *m = w->space;
    const int64_t x0 = CVY_MAX(at[WIDTH], 0), x1 = CVY_MIN(at[WIDTH] + n[WIDTH], m[WIDTH]);
    const size_t elem = cvy_dtype_bytes(from.dtype);
    cvy_picture to;
    CVY_TRY(begin(w, n, &to));
    char *row = to.data;
    for (int64_t i = 0; i < from.C * n[DEPTH] * n[HEIGHT]; i++, row += (size_t)n[WIDTH] * elem) {
        const int64_t c = i / (n[DEPTH] * n[HEIGHT]), z = at[DEPTH] + i / n[HEIGHT] % n[DEPTH],
                      y = at[HEIGHT] + i % n[HEIGHT];
        const int is_in = z >= 0 && z < m[DEPTH] && y >= 0 && y < m[HEIGHT];
        if (!is_in || x0 > at[WIDTH] || x1 < at[WIDTH] + n[WIDTH])
            fill(w, row, n[WIDTH], elem);
        if (is_in && x1 > x0)
            memcpy(row + (size_t)(x0 - at[WIDTH]) * elem,
                   (const char *)from.data + (size_t)(((c * m[DEPTH] + z) * m[HEIGHT] + y) * m[WIDTH] + x0) * elem,
                   (size_t)(x1 - x0) * elem);
    }
    end(w, n, &to);
    return CVY_OK;
}

cvy_status cvy_space_crop(const cvy_operation *s, cvy_augment_work *w)
{
    const cvy_augment *a = w->a;
    const cvy_rng rng = cvy_operation_rng(a, s, w->epoch, w->number);
    int64_t at[3], n[3];
    int is_padded = 0, is_same = 1;
    CVY_TRY(cvy_space_crop_fits(s, a->nspace, w->space));
    for (int i = 0; i < 3; i++) {
        const int64_t pad = pad_of(s, a->nspace, i), whole = w->space[i];
        n[i] = size_of(s, a->nspace, i, whole);
        const int64_t places = whole + 2 * pad - n[i];
        at[i] = places / 2 - pad;
        if (a->random && s->def->random_position)
            at[i] = (int64_t)cvy_rng_below(&rng, (uint64_t)i, (uint64_t)places + 1) - pad;
        is_padded |= at[i] < 0 || at[i] + n[i] > whole;
        is_same &= at[i] == 0 && n[i] == whole;
    }
    if (is_padded && w->affine.n > 0)
        CVY_TRY(cvy_augment_reals(w));
    return is_same ? CVY_OK : cut(w, at, n);
}
