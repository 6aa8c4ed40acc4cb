/*
 * native_amx_split_side.c: where the positions of a band, and the weights, are stored in blocks of 16 channels: the
 * geometry of native_amx_split.h. cvy_split_run_at is called once for each run of positions that is staged.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/amx/native_amx_split.h"

cvy_split_side cvy_split_side_make(const cvy_shape *shape, const cvy_layout *layout, const cvy_window *w)
{
    cvy_split_side s = {.channels = shape->dim[1],
                        .blocks = (shape->dim[1] + CVY_AMX_ROWS - 1) / CVY_AMX_ROWS,
                        .positions = shape->dim[2] * shape->dim[3]};
    const int64_t whole = cvy_layout_whole(layout);
    s.plane = s.positions * CVY_AMX_ROWS;
    s.sample = (whole > 0 ? whole / CVY_AMX_ROWS : s.blocks) * s.plane;
    s.flat = w->taps == 1 && w->stride[0] * w->stride[1] == 1 && w->pad[0] + w->pad[1] == 0;
    return s;
}

static cvy_split_run flat_run(const cvy_amx_window *w, const cvy_split_side *side, int64_t position)
{
    if (position >= w->src_h)
        return (cvy_split_run){.count = INT64_MAX, .from = -1};
    const int64_t in_sample = position % side->positions;
    return (cvy_split_run){side->positions - in_sample,
                           position / side->positions * side->sample + in_sample * CVY_AMX_ROWS, CVY_AMX_ROWS};
}

cvy_split_run cvy_split_run_at(const cvy_amx_window *w, const cvy_split_side *side, int64_t sample, int64_t band,
                               int64_t at)
{
    if (side->flat)
        return flat_run(w, side, band * w->rows + at);
    const int64_t row = at / w->pitch, x = at % w->pitch, rows = w->rows + w->reach, p = row / rows,
                  step = w->src_step_x;
    const int64_t from_y = (band * w->rows + row % rows) * w->src_step + w->plane[p].y + w->src_base,
                  x0 = w->src_base_x + w->plane[p].x;
    const int64_t begin = CVY_MIN(w->pitch, x0 >= 0 ? 0 : (-x0 + step - 1) / step),
                  end = CVY_MIN(w->pitch, CVY_MAX(begin, (w->src_w - x0 + step - 1) / step));
    if (from_y < 0 || from_y >= w->src_h || x >= end)
        return (cvy_split_run){.count = w->pitch - x, .from = -1};
    if (x < begin)
        return (cvy_split_run){.count = begin - x, .from = -1};
    return (cvy_split_run){end - x, sample * side->sample + (from_y * w->src_w + x0 + x * step) * CVY_AMX_ROWS,
                           step * CVY_AMX_ROWS};
}

cvy_status cvy_split_offsets_make(const cvy_layout *layout, const cvy_shape *weight, cvy_split_offsets *out)
{
    const int64_t k = (weight->dim[0] + CVY_AMX_BLOCK - 1) / CVY_AMX_BLOCK * CVY_AMX_BLOCK,
                  c = (weight->dim[1] + CVY_AMX_BLOCK - 1) / CVY_AMX_BLOCK * CVY_AMX_BLOCK,
                  taps = weight->dim[2] * weight->dim[3];
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(layout, weight, &b));
    CVY_TRY(cvy_mem_alloc((size_t)(k + c + taps) * sizeof *out->k, &out->k));
    out->c = out->k + k;
    out->tap = out->c + c;
    out->floats = b.elems;
    for (int64_t i = 0; i < k; i++)
        out->k[i] = i < weight->dim[0] ? cvy_blocking_offset(&b, (const int64_t[CVY_NDIM_MAX]){i}) : -1;
    for (int64_t i = 0; i < c; i++)
        out->c[i] = i < weight->dim[1] ? cvy_blocking_offset(&b, (const int64_t[CVY_NDIM_MAX]){0, i}) : -1;
    for (int64_t i = 0; i < taps; i++)
        out->tap[i] =
            cvy_blocking_offset(&b, (const int64_t[CVY_NDIM_MAX]){0, 0, i / weight->dim[3], i % weight->dim[3]});
    return CVY_OK;
}

int cvy_split_is_even(const int64_t *at, int64_t *step_out)
{
    int even = at[0] >= 0;
    *step_out = at[1] - at[0];
    for (int i = 0; i < CVY_AMX_ROWS; i++)
        even &= at[i] == at[0] + i * *step_out;
    return even && *step_out > 0;
}
