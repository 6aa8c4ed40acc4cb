/*
 * native_amx_patch.c: the patches of native_amx_patch.h: how they are read, and where their weights are stored.
 *
 * Patches are staged once for each band of the first convolution, in forward and for the gradient of its weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/amx/native_amx_patch.h"

#include <string.h>

static void window_of_patches(const cvy_window *w, cvy_amx_window *out)
{
    out->n *= out->dst_h * out->dst_w / w->dst_elems; /* undoes the single column of a filter of one tap */
    out->h = out->dst_h = w->dst[0];
    out->w = out->dst_w = out->pitch = w->dst[1];
    out->src_channels *= w->taps;
    out->nplane = out->nphase = out->ntap = 1;
    out->reach = 0;
    out->phase[0] = (cvy_amx_phase){.h = out->h, .w = out->w, .ntap = 1};
    out->tap[0] = (cvy_amx_tap){0};
}

/* Adds the pieces for `count` lanes from `lane` on, which are contiguous from element `from` of the padded source on. A
 * piece ends at the end of its line. */
static void add_run(cvy_amx_patches *p, int *npiece, int64_t lane, int64_t from, int64_t count)
{
    for (int64_t end = lane + count; lane < end;) {
        const int64_t line = lane / CVY_AMX_BLOCK, in_line = lane % CVY_AMX_BLOCK,
                      n = CVY_MIN(end - lane, CVY_AMX_BLOCK - in_line);
        while (p->nline <= line)
            p->first[p->nline++] = *npiece;
        p->piece[(*npiece)++] = (cvy_amx_piece){from - in_line, (uint32_t)(((1ull << n) - 1) << in_line)};
        lane += n;
        from += n;
    }
}

void cvy_amx_patches_make(const cvy_window *plain, const cvy_window_channels *c, cvy_amx_patches *out,
                          cvy_amx_window *w)
{
    const int64_t channels = c->nsrc, *kernel = plain->kernel, *dilation = plain->dilation;
    int npiece = 0;
    window_of_patches(plain, w);
    out->plain = *plain;
    out->channels = channels;
    out->lanes = (w->src_channels + CVY_AMX_BLOCK - 1) / CVY_AMX_BLOCK * CVY_AMX_BLOCK;
    out->width = ((plain->dst[1] - 1) * plain->stride[1] + (kernel[1] - 1) * dilation[1] + 1) * channels;
    out->nline = 0;
    for (int64_t r = 0; r < kernel[0]; r++) {
        const int64_t row = r * dilation[0] * out->width, lane = r * kernel[1] * channels;
        if (dilation[1] == 1)
            add_run(out, &npiece, lane, row, kernel[1] * channels);
        for (int64_t s = 0; dilation[1] > 1 && s < kernel[1]; s++)
            add_run(out, &npiece, lane + s * channels, row + s * dilation[1] * channels, channels);
    }
    out->first[out->nline] = npiece;
}

static int64_t padded_rows(const cvy_amx_patches *p, int64_t rows)
{
    return (rows - 1) * p->plain.stride[0] + (p->plain.kernel[0] - 1) * p->plain.dilation[0] + 1;
}

int64_t cvy_amx_patches_padded(const cvy_amx_patches *p, const cvy_amx_window *w)
{
    return (padded_rows(p, w->rows) * p->width + CVY_AMX_BLOCK - 1) / CVY_AMX_BLOCK * CVY_AMX_BLOCK;
}

/* Copies the rows which a band of `rows` rows, from destination row `first` on, reads. Padding is zero. */
static void pad_band(const cvy_amx_patches *p, const cvy_bf16 *plane, int64_t first, int64_t rows, cvy_bf16 *to)
{
    const cvy_window *w = &p->plain;
    const int64_t row = w->src[1] * p->channels, begin = CVY_MIN(p->width, w->pad[1] * p->channels),
                  count = CVY_MIN(row, p->width - begin), y0 = first * w->stride[0] - w->pad[0];
    for (int64_t i = 0; i < padded_rows(p, rows); i++, to += p->width) {
        const int exists = y0 + i >= 0 && y0 + i < w->src[0];
        const int64_t end = exists ? begin + count : begin;
        memset(to, 0, (size_t)begin * sizeof *to);
        if (exists)
            memcpy(to + begin, plane + (y0 + i) * row, (size_t)count * sizeof *to);
        memset(to + end, 0, (size_t)(p->width - end) * sizeof *to);
    }
}

void cvy_amx_stage_patches(const cvy_amx *amx, const cvy_amx_patches *p, const cvy_amx_window *w, const cvy_bf16 *src,
                           int64_t sample, int64_t band, cvy_bf16 *padded, cvy_bf16 *to)
{
    const int64_t first = band * w->rows, rows = CVY_MIN(w->rows, w->h - first),
                  step = p->plain.stride[1] * p->channels;
    pad_band(p, src + sample * p->plain.src_elems * p->channels, first, rows, padded);
    for (int64_t y = 0; y < rows; y++, to += w->w * p->lanes)
        for (int line = 0; line < p->nline; line++)
            amx->patch(p->piece + p->first[line], p->first[line + 1] - p->first[line],
                       padded + y * p->plain.stride[0] * p->width, step, w->w, to + line * CVY_AMX_BLOCK, p->lanes);
}

cvy_status cvy_amx_patched_offsets(const cvy_layout *layout, const cvy_shape *weight, int64_t **at_out)
{
    const int64_t filters = weight->dim[0], channels = weight->dim[1], have = cvy_shape_elems(weight) / filters;
    int64_t *at = NULL;
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(layout, weight, &b));
    CVY_TRY(cvy_mem_alloc((size_t)(have + filters) * sizeof *at, &at));
    for (int64_t i = 0; i < have; i++) {
        const int64_t tap = i / channels;
        at[i] = cvy_blocking_offset(
            &b, (const int64_t[CVY_NDIM_MAX]){0, i % channels, tap / weight->dim[3], tap % weight->dim[3]});
    }
    for (int64_t i = 0; i < filters; i++)
        at[have + i] = cvy_blocking_offset(&b, (const int64_t[CVY_NDIM_MAX]){i});
    *at_out = at;
    return CVY_OK;
}
