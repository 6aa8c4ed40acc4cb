/*
 * native_amx_conv.c: bf16 convolution and the gradient of its source on tiles (AMX).
 *
 * Together with the gradient of the weights (native_amx_conv_weight.c), this is nearly all arithmetic of a bf16
 * network. Activations have channels last, so a row of a tile is 32 channels of one position, contiguous in memory.
 * Weights are read from a bf16 copy that consists of tiles. A work item is a band of rows by a group of channels of the
 * result, whose weights stay in the cache. The band is staged in the core's cache (native_amx_window.h) in blocks of 32
 * channels, so that the rows of a tile are adjacent and fall into different sets of the first-level cache. A filter of
 * one tap needs no staging. The gradient of the source is the same sum over ddst with source and result channels
 * exchanged.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/amx/native_amx_patch.h"

enum {
    STAGED_ELEMS = 1 << 18, /* at most, of a band: 512 KB */
    WEIGHT_ELEMS = 1 << 19, /* at most, of a group: 1 MB */
    STREAM_ELEMS = 1 << 21, /* larger results are written with non-temporal stores: 4 MB */
    LINE_BYTES = 64,
    ITEMS_PER_THREAD = 4
};

struct amx_conv {
    const cvy_amx *amx;
    cvy_amx_window w;
    cvy_window plain; /* of the operator, before the window of tiles changes it */
    cvy_amx_patches patches;
    int backward, threads, relu, has_bias, patched, direct;
    int streamable;                     /* the result is larger than the cores' caches and has whole cache lines */
    int64_t lanes, columns;             /* staged channels; columns of tiles for the channels of the result */
    int64_t b_block, b_column;          /* elements between tiles of weights */
    int64_t pairs, group, ngroup;       /* pairs of columns; pairs in a group; groups */
    int64_t staged_elems, weight_elems; /* scratch memory: of each thread; of patched weights */
    int64_t padded_elems;               /* part of staged_elems, at its end, if patched */
    cvy_amx_shift shift[CVY_AMX_TAPS_MAX];
    int64_t *weight_at; /* patched: see cvy_amx_patched_offsets */
    /* Of the running call. */
    const cvy_bf16 *src, *weight;
    const float *bias, *plain_weight;
    cvy_bf16 *dst, *scratch;
    int stream;
};

/* ---- running ---- */

/* a_row, a_block: elements between positions, and between blocks of 32 channels, of `staged`. */
static void one_band(const struct amx_conv *s, const cvy_bf16 *staged, int64_t a_row, int64_t a_block, int64_t sample,
                     int64_t band, int64_t group)
{
    const cvy_amx_window *w = &s->w;
    const int64_t c = w->dst_channels, q = band * w->rows, first = group * s->group * CVY_AMX_BLOCK;
    for (int p = 0; p < w->nphase; p++) {
        const cvy_amx_phase *phase = &w->phase[p];
        const int64_t rows = CVY_MIN(w->rows, phase->h - q), count = rows > 0 ? (rows - 1) * w->pitch + phase->w : 0;
        const int64_t y = q * w->dst_step + phase->y, x = phase->x;
        const cvy_amx_sum sum = {.a = staged,
                                 .b = s->weight + first / CVY_AMX_ROWS * s->b_column,
                                 .a_row = a_row,
                                 .a_block = a_block,
                                 .b_block = s->b_block,
                                 .b_column = s->b_column,
                                 .blocks = s->lanes / CVY_AMX_DEPTH,
                                 .taps = phase->ntap,
                                 .tap = s->shift + phase->tap};
        const cvy_amx_store store = {.to = s->dst + ((sample * w->dst_h + y) * w->dst_w + x) * c + first,
                                     .row = w->dst_step * w->dst_w * c,
                                     .position = w->dst_step_x * c,
                                     .pitch = w->pitch,
                                     .width = phase->w,
                                     .channels = CVY_MIN(s->group * CVY_AMX_BLOCK, c - first),
                                     .bias = s->bias ? s->bias + first : NULL,
                                     .relu = s->relu,
                                     .stream = s->stream};
        s->amx->positions(&sum, &store, count);
    }
}

static void one_item(const struct amx_conv *s, int64_t item, cvy_bf16 *staged)
{
    const cvy_amx_window *w = &s->w;
    const int64_t all = w->n * w->bands, group = item / all, sample = item % all / w->bands, band = item % w->bands;
    const int whole = (band + 1) * w->rows <= w->h;
    if (s->direct && whole) {
        one_band(s, s->src + band * w->rows * s->lanes, s->lanes, CVY_AMX_DEPTH, sample, band, group);
    } else if (s->patched) {
        cvy_amx_stage_patches(s->amx, &s->patches, w, s->src, sample, band, staged + s->staged_elems - s->padded_elems,
                              staged);
        one_band(s, staged, s->lanes, CVY_AMX_DEPTH, sample, band, group);
    } else {
        cvy_amx_stage_blocks(s->amx, w, s->src, sample, band, staged);
        one_band(s, staged, CVY_AMX_DEPTH, cvy_amx_window_staged(w) * CVY_AMX_DEPTH, sample, band, group);
    }
}

/* Work item: one thread. It does adjacent items, which use the same weights. */
static void items_of_thread(int64_t first, int64_t end, void *arg)
{
    const struct amx_conv *s = arg;
    const int64_t items = s->ngroup * s->w.n * s->w.bands;
    s->amx->begin();
    for (int64_t t = first; t < end; t++)
        for (int64_t i = items * t / s->threads; i < items * (t + 1) / s->threads; i++)
            one_item(s, i, s->scratch + s->weight_elems + t * s->staged_elems);
    s->amx->end();
}

/* Work item: one column of tiles of patched weights, made from f32. */
static void pack_patched(int64_t first, int64_t end, void *arg)
{
    const struct amx_conv *s = arg;
    const int64_t have = s->w.src_channels, *channel_at = s->weight_at + have;
    for (int64_t column = first; column < end; column++)
        for (int64_t k = 0; k < s->lanes; k++)
            for (int64_t i = 0; i < CVY_AMX_ROWS; i++) {
                const int64_t channel = column * CVY_AMX_ROWS + i;
                const int exists = k < have && channel < s->w.dst_channels;
                cvy_bf16 *to = s->scratch + column * s->b_column + k / 2 * CVY_AMX_DEPTH + 2 * i + k % 2;
                *to = exists ? cvy_bf16_of(s->plain_weight[s->weight_at[k] + channel_at[channel]]) : 0;
            }
}

static cvy_status amx_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct amx_conv *s = state;
    s->src = src[0];
    s->weight = s->patched ? scratch : src[1];
    s->plain_weight = src[1];
    s->bias = s->has_bias ? src[2] : NULL;
    s->dst = dst[0];
    s->scratch = scratch;
    s->stream = s->streamable && (uintptr_t)s->dst % LINE_BYTES == 0;
    if (s->patched)
        cvy_parallel_for(s->threads, s->columns, 1, pack_patched, s);
    cvy_parallel_for(s->threads, s->threads, 1, items_of_thread, s);
    return CVY_OK;
}

/* ---- planning ---- */

/* Chooses bands and groups that fit into a core's second-level cache together, and enough of them for all threads. */
static void divide_work(struct amx_conv *s)
{
    cvy_amx_window *w = &s->w;
    cvy_amx_window_bands(w, STAGED_ELEMS / s->lanes, ITEMS_PER_THREAD * (int64_t)s->threads);
    cvy_amx_window_whole_blocks(w);
    const int64_t taps = s->patched ? 1 : s->plain.taps, items = CVY_MAX(1, w->n * w->bands),
                  pair_elems = 2 * s->lanes / CVY_AMX_DEPTH * taps * CVY_AMX_TILE,
                  most = CVY_MAX(1, WEIGHT_ELEMS / pair_elems);
    s->pairs = (s->columns + 1) / 2;
    s->ngroup = CVY_MAX((s->pairs + most - 1) / most, CVY_MIN(s->pairs, (s->threads + items - 1) / items));
    s->group = (s->pairs + s->ngroup - 1) / s->ngroup;
    s->ngroup = (s->pairs + s->group - 1) / s->group;
    /* The last block of positions reads beyond the last position. */
    const int64_t behind = CVY_AMX_BLOCK + w->pitch;
    s->padded_elems = s->patched ? cvy_amx_patches_padded(&s->patches, w) : 0;
    s->staged_elems = (cvy_amx_window_staged(w) + behind) * s->lanes + s->padded_elems;
}

static cvy_status fill_amx(const cvy_kernel_ask *ask, struct amx_conv *s)
{
    const cvy_node *node = ask->node;
    cvy_window_channels c;
    s->backward = node->op->pass == CVY_LAYER_GRAD_SRC;
    const cvy_conv_grad_opts *g = node->options;
    const cvy_conv_opts *o = s->backward ? &g->conv : node->options;
    CVY_CHECK(node->src[0]->dtype == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE,
              "this kernel computes in bf16; the source is %s", cvy_dtype_text(node->src[0]->dtype));
    CVY_TRY(cvy_amx_get(&s->amx));
    CVY_TRY(cvy_conv_window(o, s->backward ? &g->src : &node->src[0]->shape, &s->plain, &c));
    CVY_TRY(cvy_amx_window_make(&s->plain, &c, s->backward, &s->w));
    s->threads = CVY_MAX(1, ask->threads);
    s->relu = !s->backward && o->relu;
    s->has_bias = !s->backward && o->bias;
    s->patched = !s->backward && cvy_amx_is_patched(&c);
    if (s->patched)
        cvy_amx_patches_make(&s->plain, &c, &s->patches, &s->w);
    cvy_amx_window *w = &s->w;
    s->lanes = (w->src_channels + CVY_AMX_DEPTH - 1) / CVY_AMX_DEPTH * CVY_AMX_DEPTH;
    s->columns = (w->dst_channels + CVY_AMX_ROWS - 1) / CVY_AMX_ROWS;
    const int64_t blocks = s->lanes / CVY_AMX_DEPTH, tiles = (s->patched ? 1 : s->plain.taps) * CVY_AMX_TILE;
    s->b_block = s->backward ? s->columns * tiles : tiles;
    s->b_column = s->backward ? tiles : blocks * tiles;
    s->weight_elems = s->patched ? s->columns * s->b_column : 0;
    divide_work(s);
    s->streamable =
        w->dst_channels % CVY_AMX_BLOCK == 0 && w->n * w->dst_h * w->dst_w * w->dst_channels >= STREAM_ELEMS;
    s->direct = !s->patched && w->pitch == 1 && s->plain.taps == 1 && w->src_step == 1 && w->dst_step == 1 &&
                w->src_h == w->h && w->src_w == 1 && w->src_base == 0 && w->rows % CVY_AMX_BLOCK == 0 &&
                s->lanes == w->src_channels;
    for (int t = 0; t < w->ntap; t++)
        s->shift[t] =
            (cvy_amx_shift){cvy_amx_window_shift(w, &w->tap[t]) * CVY_AMX_DEPTH, w->tap[t].weight * CVY_AMX_TILE};
    return CVY_OK;
}

static cvy_status amx_offer(cvy_kernel_ask *ask)
{
    struct amx_conv s = {0};
    CVY_TRY(fill_amx(ask, &s));
    ask->src[0] = ask->dst[0] = cvy_layout_channels_last(4);
    if (s.patched) {
        if (ask->src_free[1])
            ask->src[1] = cvy_layout_plain();
    } else {
        ask->src_dtype[1] = CVY_DTYPE_BF16;
        ask->src[1] = cvy_layout_make(s.backward ? "ABcd16a16b2a" : "ABcd16b16a2b");
        if (ask->src_free[1])
            ask->src_canonical[1] = cvy_layout_make("ABcd16a16b");
    }
    if (s.has_bias)
        ask->src[2] = cvy_layout_plain();
    ask->scratch_bytes = (size_t)(s.weight_elems + s.threads * s.staged_elems) * sizeof(cvy_bf16);
    return CVY_OK;
}

static void amx_destroy(void *state)
{
    struct amx_conv *s = state;
    if (s)
        cvy_mem_free(&s->weight_at);
    cvy_mem_free(&s);
}

static cvy_status amx_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct amx_conv *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    cvy_status status = fill_amx(ask, s);
    if (status == CVY_OK && s->patched)
        status = cvy_amx_patched_offsets(&ask->src[1], cvy_node_src(ask->node, 1), &s->weight_at);
    if (status != CVY_OK) {
        amx_destroy(s);
        return status;
    }
    *state_out = s;
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_conv_amx) = {
    .name = "native.conv_amx",
    .op = "conv",
    .preference = 130,
    .offer = amx_offer,
    .create = amx_create,
    .run = amx_run,
    .destroy = amx_destroy,
};

CVY_KERNEL_DEFINE(native_conv_amx_grad_src) = {
    .name = "native.conv_amx_grad_src",
    .op = "conv_grad_src",
    .preference = 130,
    .offer = amx_offer,
    .create = amx_create,
    .run = amx_run,
    .destroy = amx_destroy,
};
