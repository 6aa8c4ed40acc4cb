/*
 * native_amx_patch.h: convolutions from few channels on tiles: all taps of all channels of a position side by side.
 *
 * A product of tiles sums over 32 channels; of three, as images have, that would be waste. So a position's patch, [row]
 * [column][channel] of the filter, becomes its channels, and the filter one of one tap. A band's rows of the source are
 * first copied with zeros around them. Then a line of 32 lanes of each patch is the same few masked loads, for the rows
 * of a filter lie as runs in memory.
 */
#ifndef CVY_NATIVE_AMX_PATCH_H
#define CVY_NATIVE_AMX_PATCH_H

#include "kernel/native/amx/native_amx_window.h"

enum { CVY_AMX_PATCH_CHANNELS = 15, CVY_AMX_LINES_MAX = CVY_AMX_TAPS_MAX * CVY_AMX_PATCH_CHANNELS / CVY_AMX_BLOCK };

typedef struct cvy_amx_patches {
    cvy_window plain;
    int64_t channels, lanes;                 /* of the source; of a patch, in whole lines */
    int64_t width;                           /* elements of a padded row */
    int nline, first[CVY_AMX_LINES_MAX + 2]; /* pieces of each line */
    cvy_amx_piece piece[CVY_AMX_TAPS_MAX + CVY_AMX_LINES_MAX];
} cvy_amx_patches;

static inline int cvy_amx_is_patched(const cvy_window_channels *c)
{
    return c->nsrc <= CVY_AMX_PATCH_CHANNELS;
}

/* Also puts the window of patches in place of the one that was made forward. */
void cvy_amx_patches_make(const cvy_window *plain, const cvy_window_channels *c, cvy_amx_patches *out,
                          cvy_amx_window *w);
/* Elements of the copy with zeros around it that staging a band needs. */
int64_t cvy_amx_patches_padded(const cvy_amx_patches *p, const cvy_amx_window *w);
/* Stages a band as [row][w][lanes]. */
void cvy_amx_stage_patches(const cvy_amx *amx, const cvy_amx_patches *p, const cvy_amx_window *w, const cvy_bf16 *src,
                           int64_t sample, int64_t band, cvy_bf16 *padded, cvy_bf16 *to);
/* Where patched weights lie in a layout: for element k of a patch its offset in filter 0, behind them the offset of
 * each filter. */
cvy_status cvy_amx_place_patched(const cvy_layout *layout, const cvy_shape *weight, int64_t **at_out);

#endif
