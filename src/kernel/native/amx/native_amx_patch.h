/*
 * native_amx_patch.h: convolutions with few source channels on tiles (im2col).
 *
 * A product of tiles sums over 32 channels, which is wasteful for the three channels of an image. So the patch of a
 * position, [row][column][channel] of the filter, becomes its channels, and the filter becomes a filter of one tap.
 * First, the source rows of a band are copied with zero padding around them. Each row of a filter is then contiguous in
 * memory, so the same few masked loads make a line of 32 lanes of every patch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_AMX_PATCH_H
#define CVY_NATIVE_AMX_PATCH_H

#include "kernel/native/amx/native_amx_window.h"

enum { CVY_AMX_PATCH_CHANNELS = 15, CVY_AMX_LINES_MAX = CVY_AMX_TAPS_MAX * CVY_AMX_PATCH_CHANNELS / CVY_AMX_BLOCK };

typedef struct cvy_amx_patches {
    cvy_window plain;
    int64_t channels, lanes;                 /* channels of the source; elements of a patch, in whole lines */
    int64_t width;                           /* elements of a padded source row */
    int nline, first[CVY_AMX_LINES_MAX + 2]; /* pieces of line i: first[i] .. first[i + 1] - 1 */
    cvy_amx_piece piece[CVY_AMX_TAPS_MAX + CVY_AMX_LINES_MAX];
} cvy_amx_patches;

static inline int cvy_amx_is_patched(const cvy_window_channels *c)
{
    return c->nsrc <= CVY_AMX_PATCH_CHANNELS;
}

/* Also changes *w, which cvy_amx_window_make made for forward, to the window of patches. */
void cvy_amx_patches_make(const cvy_window *plain, const cvy_window_channels *c, cvy_amx_patches *out,
                          cvy_amx_window *w);
/* Elements of the padded copy that is needed to stage a band. */
int64_t cvy_amx_patches_padded(const cvy_amx_patches *p, const cvy_amx_window *w);
/* Stages a band as [row][w][lanes]. padded: scratch memory for the padded copy. */
void cvy_amx_stage_patches(const cvy_amx *amx, const cvy_amx_patches *p, const cvy_amx_window *w, const cvy_bf16 *src,
                           int64_t sample, int64_t band, cvy_bf16 *padded, cvy_bf16 *to);
/* Makes a table of offsets of weights in a layout: first the offset in filter 0 of each element of a patch, then the
 * offset of each filter. The caller frees it. */
cvy_status cvy_amx_patched_offsets(const cvy_layout *layout, const cvy_shape *weight, int64_t **at_out);

#endif
