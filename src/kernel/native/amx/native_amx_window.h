/*
 * native_amx_window.h: a convolution as shifted sums over rows of positions, which is how tiles take it.
 *
 * A band of rows of the source is staged: copied with its zeros around it, so that position p of the result needs the
 * staged positions p + shift of tap, for all p of the band in one run. A row of the run is as long as a staged row: the
 * few positions behind the last one that exists are computed and dropped. Where the filter steps over the source
 * (stride), the source's rows and columns are dealt to planes, one for each remainder, in which the filter steps by
 * one. Where the result is the gradient of a strided source, its rows and columns are dealt to phases in the same way,
 * each with those taps that reach it.
 *
 * A filter of one tap sees no neighbours: then all positions of all samples are rows of one.
 */
#ifndef CVY_NATIVE_AMX_WINDOW_H
#define CVY_NATIVE_AMX_WINDOW_H

#include "kernel/native/amx/native_amx.h"
#include "op/conv/op_conv.h"

enum { CVY_AMX_TAPS_MAX = 128, CVY_AMX_PLANES_MAX = 16 };

typedef struct cvy_amx_tap {
    int plane, y, x; /* y, x: rows, positions from the result's */
    int64_t weight;  /* its place in the filter */
} cvy_amx_tap;

typedef struct cvy_amx_phase {
    int64_t y, x, h, w; /* the first position of the result, and how many rows and columns */
    int tap, ntap;
} cvy_amx_phase;

typedef struct cvy_amx_window {
    int64_t n;
    int64_t src_h, src_w, src_channels;
    int64_t dst_h, dst_w, dst_channels;
    int64_t src_step, src_step_x; /* between rows and columns of a plane */
    int64_t src_base, src_base_x; /* of plane (0, 0) beside position (0, 0) of the result */
    int64_t dst_step, dst_step_x; /* between rows and columns of a phase */
    int nplane, nphase, ntap;
    struct {
        int y, x;
    } plane[CVY_AMX_PLANES_MAX];
    cvy_amx_phase phase[CVY_AMX_PLANES_MAX];
    cvy_amx_tap tap[CVY_AMX_TAPS_MAX];
    int64_t h, w;         /* rows and columns of the largest phase */
    int64_t reach, pitch; /* rows of a plane beyond a band's; positions of a staged row */
    int64_t bands, rows;  /* of h, each as many rows but the last */
} cvy_amx_window;

/* The convolution of a node (conv, conv_grad_src, conv_grad_weight): from src to dst, or for the gradient of the source
 * from ddst to dsrc. CVY_NOT_APPLICABLE where tiles do not do it. */
cvy_status cvy_amx_window_make(const cvy_window *w, const cvy_window_channels *c, int backward, cvy_amx_window *out);
/* Bands of which one channel takes about `positions` staged positions, n times bands of them at least `least`. */
void cvy_amx_window_bands(cvy_amx_window *w, int64_t positions, int64_t least);
/* Where all positions of all samples are rows of one: bands of whole blocks of positions. */
void cvy_amx_window_whole_blocks(cvy_amx_window *w);
/* The result's gradient as a window onto itself, whose rows and bands are those of the source's window. */
void cvy_amx_window_of_ddst(const cvy_amx_window *source, cvy_amx_window *out);
/* `count` rounded up to whole blocks. */
static inline int64_t cvy_amx_whole_blocks(int64_t count)
{
    return (count + CVY_AMX_BLOCK - 1) / CVY_AMX_BLOCK * CVY_AMX_BLOCK;
}
/* Positions that a band's planes hold. */
int64_t cvy_amx_window_staged(const cvy_amx_window *w);
/* Where a tap begins, in staged positions. */
int64_t cvy_amx_window_shift(const cvy_amx_window *w, const cvy_amx_tap *tap);
/* Stages channels [first, first + lanes) of a band's planes: [plane][row][pitch][lanes], zeros where there is nothing.
 */
void cvy_amx_stage(const cvy_amx_window *w, const cvy_bf16 *src, int64_t sample, int64_t band, int64_t first,
                   int64_t lanes, cvy_bf16 *to);
/* Stages all channels of a band's planes in blocks of 32: [block][plane][row][pitch][32]. */
void cvy_amx_stage_blocks(const cvy_amx *amx, const cvy_amx_window *w, const cvy_bf16 *src, int64_t sample,
                          int64_t band, cvy_bf16 *to);

#endif
