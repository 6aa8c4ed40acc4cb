/*
 * native_amx_window.h: a convolution as shifted sums over rows of positions, the form that suits tiles.
 *
 * A band of source rows is staged, that is, copied with zero padding around it. Then position p of the result needs the
 * staged positions p + shift of each tap, and all p of the band form one run. A row of this run is as long as a staged
 * row; the few positions after the end of the real row are computed and dropped. If the filter has a stride, the rows
 * and columns of the source are distributed over planes, one for each remainder modulo the stride, so that the filter
 * moves by one in each plane. If the result is the gradient of a strided source, its rows and columns are distributed
 * over phases in the same way; each phase has the taps that reach it.
 *
 * A filter of one tap (stride 1, no padding) has no neighbours. Then the window is one column: each position of each
 * sample is a row.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_AMX_WINDOW_H
#define CVY_NATIVE_AMX_WINDOW_H

#include "kernel/native/amx/native_amx.h"
#include "op/conv/op_conv.h"

enum { CVY_AMX_TAPS_MAX = 128, CVY_AMX_PLANES_MAX = 16 };

typedef struct cvy_amx_tap {
    int plane, y, x; /* y, x: rows, positions after those of the result */
    int64_t weight;  /* index of the tap in the filter */
} cvy_amx_tap;

typedef struct cvy_amx_phase {
    int64_t y, x, h, w; /* first position of the result; number of rows and columns */
    int tap, ntap;
} cvy_amx_phase;

typedef struct cvy_amx_window {
    int64_t n;
    int64_t src_h, src_w, src_channels;
    int64_t dst_h, dst_w, dst_channels;
    int64_t src_step, src_step_x; /* source rows, columns from one to the next of a plane */
    int64_t src_base, src_base_x; /* source row, column of plane (0, 0) for position (0, 0) of the result */
    int64_t dst_step, dst_step_x; /* result rows, columns from one to the next of a phase */
    int nplane, nphase, ntap;
    struct {
        int y, x;
    } plane[CVY_AMX_PLANES_MAX];
    cvy_amx_phase phase[CVY_AMX_PLANES_MAX];
    cvy_amx_tap tap[CVY_AMX_TAPS_MAX];
    int64_t h, w;         /* rows and columns of the largest phase */
    int64_t reach, pitch; /* extra rows of a plane after those of a band; positions of a staged row */
    int64_t bands, rows;  /* number of bands of h; rows of each band (the last may have fewer) */
} cvy_amx_window;

/* Makes the window of a node (conv, conv_grad_src, conv_grad_weight): from src to dst or, if backward, from ddst to
 * dsrc. Returns CVY_NOT_APPLICABLE if tiles cannot compute it. */
cvy_status cvy_amx_window_make(const cvy_window *w, const cvy_window_channels *c, int backward, cvy_amx_window *out);
/* Sets the bands: each has about `positions` staged positions, and all samples together have at least `least` bands if
 * there are enough rows. */
void cvy_amx_window_bands(cvy_amx_window *w, int64_t positions, int64_t least);
/* If the window is one column, makes each band a whole number of blocks of positions. */
void cvy_amx_window_whole_blocks(cvy_amx_window *w);
/* Makes a window for reading ddst itself, with the rows and bands of the source's window. */
void cvy_amx_window_of_ddst(const cvy_amx_window *source, cvy_amx_window *out);
/* `count` rounded up to whole blocks. */
static inline int64_t cvy_amx_whole_blocks(int64_t count)
{
    return (count + CVY_AMX_BLOCK - 1) / CVY_AMX_BLOCK * CVY_AMX_BLOCK;
}
/* Positions in all planes of a band. */
int64_t cvy_amx_window_staged(const cvy_amx_window *w);
/* Offset of a tap, in staged positions. */
int64_t cvy_amx_window_shift(const cvy_amx_window *w, const cvy_amx_tap *tap);
/* Stages channels [first, first + lanes) of the planes of a band: [plane][row][pitch][lanes]. Padding is zero. */
void cvy_amx_stage(const cvy_amx_window *w, const cvy_bf16 *src, int64_t sample, int64_t band, int64_t first,
                   int64_t lanes, cvy_bf16 *to);
/* Stages all channels of the planes of a band in blocks of 32: [block][plane][row][pitch][32]. */
void cvy_amx_stage_blocks(const cvy_amx *amx, const cvy_amx_window *w, const cvy_bf16 *src, int64_t sample,
                          int64_t band, cvy_bf16 *to);

#endif
