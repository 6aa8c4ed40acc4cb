/*
 * native_amx_window.c: the geometry of native_amx_window.h, and the copies that stage a band.
 *
 * The geometry is made at planning time; staging runs once for each band of each convolution.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/amx/native_amx_window.h"

#include <string.h>

/* ---- geometry ---- */

/* What each tap reads in one spatial dimension. */
struct axis {
    int64_t step, base, dst_step, count; /* count: positions of the largest phase */
    int nplane, nphase, reach;
    int plane_of[CVY_AMX_TAPS_MAX], phase_of[CVY_AMX_TAPS_MAX], shift[CVY_AMX_TAPS_MAX];
};

/* For result row y, tap r reads source row y stride - pad + r dilation. That is row y + shift of the plane with the
 * same remainder. */
static void forward_axis(const cvy_window *w, int d, struct axis *a)
{
    const int64_t stride = w->stride[d];
    *a = (struct axis){.step = stride, .base = -w->pad[d], .dst_step = 1, .count = w->dst[d], .nphase = 1};
    for (int64_t r = 0; r < w->kernel[d]; r++) {
        a->plane_of[r] = (int)(r * w->dilation[d] % stride);
        a->shift[r] = (int)(r * w->dilation[d] / stride);
        a->reach = CVY_MAX(a->reach, a->shift[r]);
        a->nplane = CVY_MAX(a->nplane, a->plane_of[r] + 1);
    }
}

/* Source row y = q stride + phase is read by tap r for result row q + (phase + pad - r dilation) / stride, if the
 * division is exact. */
static void backward_axis(const cvy_window *w, int d, struct axis *a)
{
    const int64_t stride = w->stride[d], count = (w->src[d] + stride - 1) / stride;
    *a = (struct axis){.step = 1, .dst_step = stride, .count = count, .nplane = 1, .nphase = (int)stride};
    int64_t from[CVY_AMX_TAPS_MAX], least = INT64_MAX;
    for (int64_t r = 0; r < w->kernel[d]; r++) {
        const int64_t offset = w->pad[d] - r * w->dilation[d], phase = ((-offset) % stride + stride) % stride;
        a->phase_of[r] = (int)phase;
        from[r] = (phase + offset) / stride;
        least = CVY_MIN(least, from[r]);
    }
    a->base = least;
    for (int64_t r = 0; r < w->kernel[d]; r++) {
        a->shift[r] = (int)(from[r] - least);
        a->reach = CVY_MAX(a->reach, a->shift[r]);
    }
}

static void combine(const cvy_window *w, const struct axis *y, const struct axis *x, cvy_amx_window *out)
{
    out->nplane = y->nplane * x->nplane;
    for (int p = 0; p < out->nplane; p++) {
        out->plane[p].y = p / x->nplane;
        out->plane[p].x = p % x->nplane;
    }
    out->nphase = y->nphase * x->nphase;
    for (int p = 0; p < out->nphase; p++) {
        cvy_amx_phase *phase = &out->phase[p];
        const int64_t at_y = p / x->nphase, at_x = p % x->nphase;
        *phase = (cvy_amx_phase){.y = at_y,
                                 .x = at_x,
                                 .tap = out->ntap,
                                 .h = (out->dst_h - at_y + y->dst_step - 1) / y->dst_step,
                                 .w = (out->dst_w - at_x + x->dst_step - 1) / x->dst_step};
        for (int r = 0; r < w->kernel[0]; r++)
            for (int s = 0; s < w->kernel[1]; s++)
                if (y->phase_of[r] == at_y && x->phase_of[s] == at_x)
                    out->tap[out->ntap++] = (cvy_amx_tap){y->plane_of[r] * x->nplane + x->plane_of[s], y->shift[r],
                                                          x->shift[s], r * w->kernel[1] + s};
        phase->ntap = out->ntap - phase->tap;
    }
    out->src_step = y->step;
    out->src_step_x = x->step;
    out->src_base = y->base;
    out->src_base_x = x->base;
    out->dst_step = y->dst_step;
    out->dst_step_x = x->dst_step;
    out->h = y->count;
    out->w = x->count;
    out->reach = y->reach;
    out->pitch = x->count + x->reach;
}

cvy_status cvy_amx_window_make(const cvy_window *w, const cvy_window_channels *c, int backward, cvy_amx_window *out)
{
    CVY_CHECK(w->nspace == 2 && c->groups == 1, CVY_NOT_APPLICABLE,
              "tile convolutions need 2 spatial dimensions and 1 group; this one has %d and %lld", w->nspace,
              (long long)c->groups);
    CVY_CHECK(w->stride[0] * w->stride[1] <= CVY_AMX_PLANES_MAX && w->taps <= CVY_AMX_TAPS_MAX, CVY_NOT_APPLICABLE,
              "tile convolutions need at most %d taps and a product of strides up to %d; this one has %lld and %lld",
              CVY_AMX_TAPS_MAX, CVY_AMX_PLANES_MAX, (long long)w->taps, (long long)(w->stride[0] * w->stride[1]));
    struct axis y, x;
    cvy_window plain = *w;
    *out = (cvy_amx_window){.n = c->n};
    if (w->taps == 1 && w->stride[0] * w->stride[1] == 1 && w->pad[0] + w->pad[1] == 0) {
        plain.src[0] = plain.dst[0] = c->n * w->src_elems;
        plain.src[1] = plain.dst[1] = 1;
        out->n = 1;
    }
    const int64_t *src = backward ? plain.dst : plain.src, *dst = backward ? plain.src : plain.dst;
    out->src_h = src[0];
    out->src_w = src[1];
    out->src_channels = backward ? c->ndst : c->nsrc;
    out->dst_h = dst[0];
    out->dst_w = dst[1];
    out->dst_channels = backward ? c->nsrc : c->ndst;
    (backward ? backward_axis : forward_axis)(&plain, 0, &y);
    (backward ? backward_axis : forward_axis)(&plain, 1, &x);
    combine(&plain, &y, &x, out);
    out->bands = 1;
    out->rows = out->h;
    return CVY_OK;
}

void cvy_amx_window_bands(cvy_amx_window *w, int64_t positions, int64_t least)
{
    const int64_t most = CVY_MAX(1, positions / (w->nplane * w->pitch) - w->reach), n = CVY_MAX(1, w->n);
    w->bands = (w->h + most - 1) / most;
    w->bands = CVY_MAX(w->bands, CVY_MIN(w->h, (least + n - 1) / n));
    w->bands = CVY_MAX(1, w->bands);
    w->rows = (w->h + w->bands - 1) / w->bands;
    w->bands = w->rows ? (w->h + w->rows - 1) / w->rows : 0;
}

void cvy_amx_window_whole_blocks(cvy_amx_window *w)
{
    if (w->pitch != 1 || w->h <= CVY_AMX_BLOCK)
        return;
    w->rows = cvy_amx_whole_blocks(w->rows);
    w->bands = (w->h + w->rows - 1) / w->rows;
}

void cvy_amx_window_of_ddst(const cvy_amx_window *source, cvy_amx_window *out)
{
    *out = *source;
    out->src_h = source->dst_h;
    out->src_w = source->dst_w;
    out->src_channels = source->dst_channels;
    out->src_step = out->src_step_x = 1;
    out->src_base = out->src_base_x = 0;
    out->reach = 0;
    out->nplane = 1;
    out->plane[0].y = out->plane[0].x = 0;
}

int64_t cvy_amx_window_staged(const cvy_amx_window *w)
{
    return w->nplane * (w->rows + w->reach) * w->pitch;
}

int64_t cvy_amx_window_shift(const cvy_amx_window *w, const cvy_amx_tap *tap)
{
    return (tap->plane * (w->rows + w->reach) + tap->y) * w->pitch + tap->x;
}

/* ---- staging ---- */

/* Copies `count` positions, `step` elements apart in the source. `have` channels become `lanes`; the rest is zero. */
static void copy_positions(const cvy_bf16 *from, int64_t step, int64_t count, int64_t have, int64_t lanes, cvy_bf16 *to)
{
    if (step == lanes && have == lanes) {
        memcpy(to, from, (size_t)(count * lanes) * sizeof *to);
        return;
    }
    if (have == CVY_AMX_BLOCK && lanes == CVY_AMX_BLOCK) {
        for (int64_t i = 0; i < count; i++, from += step, to += CVY_AMX_BLOCK)
            memcpy(to, from, CVY_AMX_BLOCK * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++, from += step, to += lanes) {
        memcpy(to, from, (size_t)have * sizeof *to);
        memset(to + have, 0, (size_t)(lanes - have) * sizeof *to);
    }
}

/* A staged row: zeros before position `begin`, positions of the source before `end`, then zeros. from: NULL if all are
 * zero. */
struct staged_row {
    const cvy_bf16 *from;
    int64_t begin, end, step; /* step: elements between positions of the source */
};

static struct staged_row row_of(const cvy_amx_window *w, const cvy_bf16 *src, int64_t sample, int64_t band, int plane,
                                int64_t i)
{
    const int64_t x0 = w->src_base_x + w->plane[plane].x, step = w->src_step_x;
    const int64_t y = (band * w->rows + i) * w->src_step + w->plane[plane].y + w->src_base;
    struct staged_row row = {.step = step * w->src_channels};
    row.begin = CVY_MIN(w->pitch, x0 >= 0 ? 0 : (-x0 + step - 1) / step);
    row.end = CVY_MIN(w->pitch, CVY_MAX(row.begin, (w->src_w - x0 + step - 1) / step));
    if (y >= 0 && y < w->src_h && row.begin < row.end)
        row.from = src + ((sample * w->src_h + y) * w->src_w + x0 + row.begin * step) * w->src_channels;
    else
        row.begin = row.end = 0;
    return row;
}

void cvy_amx_stage(const cvy_amx_window *w, const cvy_bf16 *src, int64_t sample, int64_t band, int64_t first,
                   int64_t lanes, cvy_bf16 *to)
{
    const int64_t have = CVY_MIN(lanes, w->src_channels - first);
    for (int p = 0; p < w->nplane; p++)
        for (int64_t i = 0; i < w->rows + w->reach; i++, to += w->pitch * lanes) {
            const struct staged_row row = row_of(w, src, sample, band, p, i);
            memset(to, 0, (size_t)(row.begin * lanes) * sizeof *to);
            if (row.from)
                copy_positions(row.from + first, row.step, row.end - row.begin, have, lanes, to + row.begin * lanes);
            memset(to + row.end * lanes, 0, (size_t)((w->pitch - row.end) * lanes) * sizeof *to);
        }
}

void cvy_amx_stage_blocks(const cvy_amx *amx, const cvy_amx_window *w, const cvy_bf16 *src, int64_t sample,
                          int64_t band, cvy_bf16 *to)
{
    const int64_t block = cvy_amx_window_staged(w) * CVY_AMX_BLOCK;
    for (int p = 0; p < w->nplane; p++)
        for (int64_t i = 0; i < w->rows + w->reach; i++, to += w->pitch * CVY_AMX_BLOCK) {
            const struct staged_row row = row_of(w, src, sample, band, p, i);
            for (int64_t c = 0; c * CVY_AMX_BLOCK < w->src_channels; c++) {
                memset(to + c * block, 0, (size_t)(row.begin * CVY_AMX_BLOCK) * sizeof *to);
                memset(to + c * block + row.end * CVY_AMX_BLOCK, 0,
                       (size_t)((w->pitch - row.end) * CVY_AMX_BLOCK) * sizeof *to);
            }
            if (row.from)
                amx->distribute(row.from, row.step, row.end - row.begin, w->src_channels,
                                to + row.begin * CVY_AMX_BLOCK, block);
        }
}
