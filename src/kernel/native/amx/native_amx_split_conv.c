/*
 * native_amx_split_conv.c: f32 convolution and the gradient of its source on tiles (AMX), each value in three parts of
 * bf16.
 *
 * This kernel runs f32 convolutions that Winograd does not take: 1x1, strided, long filters. Activations are in blocks
 * of 16 channels, weights in the layout of the variable. First, all threads make tiles of the weights. A work item is a
 * run of bands of rows (native_amx_window.h), which is staged as tiles in the core's cache: the 16 channel pairs of two
 * blocks of channels, once for each part. The item is then multiplied by all weights of its group. A tile of sums is 16
 * positions of a block of channels. The result has the same layout, so most tiles are stored directly into it. The
 * gradient of the source is the same sum over ddst with source and result channels exchanged. The arithmetic is
 * described in native_amx_split.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/amx/native_amx_split.h"
#include "kernel/native/native_common.h"

enum {
    STAGED_VALUES = 1 << 17, /* of an item: 768 KB */
    DEPTH_BLOCKS = 32,       /* blocks of 32 channels summed in one step; further steps add to the result */
    ITEMS_PER_THREAD = 4,
    STREAM_BYTES = 1 << 24, /* a larger result does not stay in a cache until it is read */
    ROWS = CVY_AMX_ROWS,
    BLOCK = CVY_AMX_BLOCK,
    SUMS = BLOCK * BLOCK,
    PACKED = CVY_SPLIT_PARTS * 2 * CVY_AMX_TILE /* elements of one block of 32 x 32 weights */
};

struct split_conv {
    const cvy_amx *tiles;
    const cvy_amx_split *split;
    cvy_amx_window w;
    cvy_split_side src, dst;
    int backward, threads, relu, has_bias, stream;
    int64_t taps;                          /* of the filter */
    int64_t blocks, depth;                 /* blocks of 32 channels of the source; those of a step */
    int64_t columns, pairs, group, ngroup; /* of 16 result channels; of 32; pairs of an item; groups */
    int64_t staged, item_bands, nband;     /* positions of a band; bands of an item; all bands */
    int64_t part;                          /* elements between parts of a staged block */
    int64_t weight_elems, bias_floats, staged_elems, sum_floats; /* of scratch memory; the last two: each thread */
    cvy_split_offsets at;
    cvy_amx_shift shift[CVY_AMX_TAPS_MAX];
    /* Of the running call. */
    const float *src_data, *weight, *bias;
    float *dst_data;
    cvy_bf16 *packed, *scratch;
};

/* ---- weights ---- */

/* Returns 16 x 16 weights of one tap, with a row for each channel of the source: a pointer into the variable if its
 * layout has this form, else a copy in `local`. */
static const float *weight_rows(const struct split_conv *s, int64_t in, int64_t out, int64_t tap, float *local,
                                int64_t *row_out)
{
    const int64_t *in_at = (s->backward ? s->at.k : s->at.c) + in, *out_at = (s->backward ? s->at.c : s->at.k) + out;
    const float *from = s->weight + s->at.tap[tap];
    int64_t row = 0, column = 0;
    const int even = cvy_split_is_even(in_at, &row) & cvy_split_is_even(out_at, &column);
    *row_out = ROWS;
    if (even && column == 1) {
        *row_out = row;
        return from + in_at[0] + out_at[0];
    }
    if (even && row == 1) {
        s->split->transpose(from + in_at[0] + out_at[0], column, local, ROWS);
        return local;
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++)
            local[i * ROWS + j] = in_at[i] < 0 || out_at[j] < 0 ? 0 : from[in_at[i] + out_at[j]];
    return local;
}

/* Work item: a pair of columns and a block. The tiles are [pair][block][tap][part][column]. */
static void pack_weights(int64_t first, int64_t end, void *arg)
{
    const struct split_conv *s = arg;
    float low_local[ROWS * ROWS], high_local[ROWS * ROWS];
    for (int64_t item = first; item < end; item++) {
        const int64_t pair = item / s->blocks, block = item % s->blocks;
        for (int64_t tap = 0; tap < s->taps; tap++)
            for (int64_t column = 0; column < CVY_MIN(2, s->columns - 2 * pair); column++) {
                const int64_t out = (2 * pair + column) * ROWS, in = block * BLOCK;
                int64_t low_row = 0, high_row = 0;
                const float *low = weight_rows(s, in, out, tap, low_local, &low_row),
                            *high = weight_rows(s, in + ROWS, out, tap, high_local, &high_row);
                if (low_row != high_row) { /* one of them is a copy */
                    s->split->store(low, low_row, ROWS, 0, 0, low_local, ROWS);
                    s->split->store(high, high_row, ROWS, 0, 0, high_local, ROWS);
                    low = low_local;
                    high = high_local;
                    low_row = ROWS;
                }
                s->split->split(low, high, low_row, ROWS,
                                s->packed + (item * s->taps + tap) * PACKED + column * CVY_AMX_TILE,
                                (int64_t)2 * CVY_AMX_TILE);
            }
    }
}

/* ---- an item ---- */

/* Stages blocks first .. first + count - 1 of a band. The tiles are [block][part][band of the item][position]. */
static void stage(const struct split_conv *s, int64_t band, int64_t first, int64_t count, cvy_bf16 *to)
{
    const int64_t sample = band / s->w.bands, sample_band = band % s->w.bands;
    for (int64_t at = 0; at < s->staged;) {
        cvy_split_run run = cvy_split_run_at(&s->w, &s->src, sample, sample_band, at);
        run.count = CVY_MIN(run.count, s->staged - at);
        for (int64_t i = 0; i < count; i++) {
            cvy_bf16 *tiles = to + i * CVY_SPLIT_PARTS * s->part + at * BLOCK;
            const float *low = s->src_data + run.from + 2 * (first + i) * s->src.plane;
            if (run.from >= 0)
                s->split->split(low, 2 * (first + i) + 1 < s->src.blocks ? low + s->src.plane : NULL, run.step,
                                run.count, tiles, s->part);
            else
                for (int p = 0; p < CVY_SPLIT_PARTS; p++)
                    memset(tiles + p * s->part, 0, (size_t)(run.count * BLOCK) * sizeof *tiles);
        }
        at += run.count;
    }
}

/* The positions of the result that belong to one phase of a band, as an iterator. */
struct place {
    float *to; /* address of row 0, position 0, block 0 */
    int64_t row, position, pitch,
        width;    /* floats between rows, between positions; positions of a row; those that exist */
    int64_t y, x; /* the next position */
};

/* Whether the next 32 positions have the same distance in memory. */
static int is_even(const struct place *p)
{
    return p->x + BLOCK <= p->width || (p->pitch == p->width && p->row == p->pitch * p->position);
}

/* Copies sums that were not stored directly from `sums` to the result, tile by tile. */
static void store_sums(const struct split_conv *s, const struct place *p, int64_t count, const float *sums, float *to,
                       int64_t column)
{
    int64_t y = p->y, x = p->x;
    for (int64_t i = 0; i < count;) {
        const int64_t run = CVY_MIN(count - i, CVY_MIN(p->pitch - x, ROWS - i % ROWS)),
                      have = CVY_MIN(run, p->width - x);
        if (have > 0)
            s->split->store(sums + (i / ROWS * 2 + column) * ROWS * ROWS + i % ROWS * ROWS, ROWS, have, s->relu,
                            s->stream, to + y * p->row + x * p->position, p->position);
        i += run;
        x += run;
        if (x == p->pitch) {
            x = 0;
            y++;
        }
    }
}

/* What is staged next: it is prefetched into the core's cache while the tiles work. */
struct prefetch {
    int64_t band, end, at;      /* bands `band` .. end - 1; position in the band */
    int64_t block, first, last; /* blocks of 16 channels */
    int64_t done, quota;        /* positions of the run that are done; positions to prefetch during 32 x 32 sums */
    cvy_split_run run;
};

struct step { /* one step of a sum over blocks: the blocks that are staged */
    int64_t first, count;
    const cvy_bf16 *staged;
    struct prefetch prefetch;
};

static void add_prefetch(const struct split_conv *s, struct prefetch *p, cvy_split_sum *sum)
{
    while (p->band < p->end && p->block == p->last) {
        p->at += p->run.count;
        p->block = p->first;
        if (p->at >= s->staged) {
            p->at = 0;
            p->band++;
        }
        p->run.count = 0;
    }
    if (p->band >= p->end)
        return;
    if (p->run.count == 0) {
        p->run = cvy_split_run_at(&s->w, &s->src, p->band / s->w.bands, p->band % s->w.bands, p->at);
        p->run.count = CVY_MIN(p->run.count, s->staged - p->at);
        p->done = 0;
    }
    const int64_t count = CVY_MIN(p->quota, p->run.count - p->done), products = 6 * CVY_MAX(1, sum->blocks * sum->taps);
    if (p->run.from >= 0) {
        sum->prefetch = s->src_data + p->run.from + p->block * s->src.plane + p->done * p->run.step;
        sum->prefetch_step = p->run.step;
        sum->prefetch_count = (int)((count + products - 1) / products);
    }
    p->done += count;
    if (p->done >= p->run.count || p->run.from < 0) {
        p->done = 0;
        p->block = p->run.from < 0 ? p->last : p->block + 1;
    }
}

static void one_block(const struct split_conv *s, struct step *step, const struct place *place,
                      const cvy_amx_phase *phase, int64_t position, int64_t count, int64_t pair, float *sums)
{
    float *to = place->to + 2 * pair * s->dst.plane;
    const int direct = !s->relu && !s->stream && count == BLOCK && is_even(place);
    cvy_split_sum sum = {.a = step->staged + position * BLOCK,
                         .b = s->packed + (pair * s->blocks + step->first) * s->taps * PACKED,
                         .a_block = CVY_SPLIT_PARTS * s->part,
                         .a_part = s->part,
                         .a_row = CVY_AMX_TILE,
                         .b_block = s->taps * PACKED,
                         .b_part = (int64_t)2 * CVY_AMX_TILE,
                         .b_column = CVY_AMX_TILE,
                         .blocks = step->count,
                         .taps = phase->ntap,
                         .tap = s->shift + phase->tap,
                         .c = direct ? to + place->y * place->row + place->x * place->position : sums,
                         .c_line = direct ? place->position : ROWS,
                         .c_row = direct ? ROWS * place->position : 2 * ROWS * ROWS,
                         .c_column = direct ? s->dst.plane : ROWS * ROWS,
                         .rows = count > ROWS ? 2 : 1,
                         .columns = (int)CVY_MIN(2, s->columns - 2 * pair),
                         .add = step->first > 0,
                         .begin = s->bias ? s->bias + pair * BLOCK : NULL};
    add_prefetch(s, &step->prefetch, &sum);
    s->split->products(&sum);
    for (int64_t column = 0; !direct && step->first + step->count == s->blocks && column < sum.columns; column++)
        store_sums(s, place, count, sums, to + column * s->dst.plane, column);
}

static struct place place_of(const struct split_conv *s, int64_t band, const cvy_amx_phase *phase)
{
    const cvy_amx_window *w = &s->w;
    const int64_t sample = band / w->bands, q = band % w->bands * w->rows, y = q * w->dst_step + phase->y;
    if (s->dst.flat)
        return (struct place){.to = s->dst_data,
                              .row = s->dst.sample,
                              .position = ROWS,
                              .pitch = s->dst.positions,
                              .width = s->dst.positions,
                              .y = q / s->dst.positions,
                              .x = q % s->dst.positions};
    return (struct place){.to = s->dst_data + sample * s->dst.sample + (y * w->dst_w + phase->x) * ROWS,
                          .row = w->dst_step * w->dst_w * ROWS,
                          .position = w->dst_step_x * ROWS,
                          .pitch = w->pitch,
                          .width = phase->w};
}

/* Computes a pair of columns for all positions of one band. Returns the address after the sums that it used. */
static float *one_band(const struct split_conv *s, struct step *step, int64_t band, int64_t at, int64_t pair,
                       float *sums)
{
    const cvy_amx_window *w = &s->w;
    const int64_t q = band % w->bands * w->rows, kept = s->depth < s->blocks ? SUMS : 0;
    for (int p = 0; p < w->nphase; p++) {
        const cvy_amx_phase *phase = &w->phase[p];
        const int64_t rows = CVY_MIN(w->rows, phase->h - q), count = rows > 0 ? (rows - 1) * w->pitch + phase->w : 0;
        struct place place = place_of(s, band, phase);
        for (int64_t i = 0; i < count; i += BLOCK, sums += kept) {
            one_block(s, step, &place, phase, at * s->staged + i, CVY_MIN(BLOCK, count - i), pair, sums);
            place.x += BLOCK;
            place.y += place.x / place.pitch;
            place.x %= place.pitch;
        }
    }
    return sums;
}

/* What follows the step of an item that begins with block `first`: its next blocks, or the first blocks of the next
 * item. */
static struct prefetch prefetch_of(const struct split_conv *s, int64_t item, int64_t end, int64_t first)
{
    const int64_t runs = (s->nband + s->item_bands - 1) / s->item_bands,
                  next = first + s->depth < s->blocks ? first + s->depth : 0;
    const int64_t band = (next ? item : item + 1) % runs * s->item_bands;
    struct prefetch p = {
        .band = band, .end = CVY_MIN(s->nband, band + s->item_bands), .first = 2 * next, .block = 2 * next};
    if (!next && item + 1 == end)
        p.end = band;
    p.last = CVY_MIN(s->src.blocks, 2 * (next + s->depth));
    p.quota = CVY_MAX(1, BLOCK * (p.last - p.first) / s->group);
    return p;
}

static void one_item(const struct split_conv *s, int64_t item, int64_t end, cvy_bf16 *staged, float *sums)
{
    const int64_t runs = (s->nband + s->item_bands - 1) / s->item_bands, group = item / runs,
                  band = item % runs * s->item_bands;
    const int64_t bands = CVY_MIN(s->item_bands, s->nband - band), pair_end = CVY_MIN(s->pairs, (group + 1) * s->group);
    for (int64_t first = 0; first < s->blocks; first += s->depth) {
        struct step step = {first, CVY_MIN(s->depth, s->blocks - first), staged,
                            .prefetch = prefetch_of(s, item, end, first)};
        float *next = sums;
        for (int64_t b = 0; b < bands; b++)
            stage(s, band + b, first, step.count, staged + b * s->staged * BLOCK);
        for (int64_t pair = group * s->group; pair < pair_end; pair++)
            for (int64_t b = 0; b < bands; b++)
                next = one_band(s, &step, band + b, b, pair, next);
    }
}

/* Work item: one thread. */
static void items_of_thread(int64_t first, int64_t end, void *arg)
{
    const struct split_conv *s = arg;
    const int64_t items = s->ngroup * ((s->nband + s->item_bands - 1) / s->item_bands);
    s->tiles->begin();
    for (int64_t t = first; t < end; t++) {
        cvy_bf16 *staged = s->scratch + t * (s->staged_elems + 2 * s->sum_floats);
        for (int64_t i = items * t / s->threads; i < items * (t + 1) / s->threads; i++)
            one_item(s, i, items * (t + 1) / s->threads, staged, (float *)(void *)(staged + s->staged_elems));
    }
    s->tiles->end();
}

static cvy_status split_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct split_conv *s = state;
    float *bias = scratch;
    s->src_data = src[0];
    s->weight = src[1];
    s->dst_data = dst[0];
    s->packed = (cvy_bf16 *)scratch + 2 * s->bias_floats;
    s->scratch = s->packed + s->weight_elems;
    s->bias = s->has_bias ? bias : NULL;
    if (s->has_bias) {
        memset(bias, 0, (size_t)s->bias_floats * sizeof *bias);
        memcpy(bias, src[2], (size_t)s->dst.channels * sizeof *bias);
    }
    cvy_parallel_for(s->threads, s->pairs * s->blocks, 1, pack_weights, s);
    cvy_parallel_for(s->threads, s->threads, 1, items_of_thread, s);
    return CVY_OK;
}

/* ---- planning ---- */

/* Chooses bands that fit into a core's second-level cache, and enough items for all threads. An item has the bands of
 * several samples if these are small. */
static void divide_work(struct split_conv *s)
{
    cvy_amx_window *w = &s->w;
    const int64_t threads = s->threads;
    s->depth = CVY_MIN(s->blocks, DEPTH_BLOCKS);
    const int64_t room = STAGED_VALUES / (s->depth * BLOCK);
    cvy_amx_window_bands(w, room, ITEMS_PER_THREAD * threads);
    cvy_amx_window_whole_blocks(w);
    s->nband = w->n * w->bands;
    s->staged = cvy_amx_window_staged(w);
    s->item_bands = CVY_MAX(1, CVY_MIN(room / CVY_MAX(1, s->staged), s->nband / threads));
    const int64_t runs = CVY_MAX(1, (s->nband + s->item_bands - 1) / s->item_bands);
    s->ngroup = CVY_MAX(1, CVY_MIN(s->pairs, (threads + runs - 1) / runs));
    s->group = (s->pairs + s->ngroup - 1) / s->ngroup;
    s->ngroup = (s->pairs + s->group - 1) / s->group;
    /* The last block of positions reads beyond the last position. */
    s->part = (s->item_bands * s->staged + BLOCK + w->pitch) * BLOCK;
    s->staged_elems = s->depth * CVY_SPLIT_PARTS * s->part;
    int64_t sums = 0;
    for (int p = 0; p < w->nphase; p++)
        sums += (w->rows * w->pitch + BLOCK - 1) / BLOCK;
    s->sum_floats = s->depth < s->blocks ? s->item_bands * s->group * sums * SUMS : SUMS;
}

static cvy_status geometry(const cvy_kernel_ask *ask, struct split_conv *s)
{
    const cvy_node *node = ask->node;
    cvy_window plain;
    cvy_window_channels c;
    s->backward = node->op->pass == CVY_LAYER_GRAD_SRC;
    const cvy_conv_grad_opts *g = node->options;
    const cvy_conv_opts *o = s->backward ? &g->conv : node->options;
    CVY_TRY(cvy_native_f32(node));
    CVY_TRY(cvy_amx_split_get(&s->tiles, &s->split));
    CVY_TRY(cvy_conv_window(o, s->backward ? &g->src : &node->src[0]->shape, &plain, &c));
    CVY_TRY(cvy_amx_window_make(&plain, &c, s->backward, &s->w));
    CVY_CHECK(c.nsrc >= ROWS && c.ndst >= ROWS, CVY_NOT_APPLICABLE,
              "split tiles need at least %d channels; this layer has %lld and %lld", ROWS, (long long)c.nsrc,
              (long long)c.ndst);
    s->src = cvy_split_side_make(&node->src[0]->shape, &ask->src[0], &plain);
    s->dst = cvy_split_side_make(&node->dst[0]->shape, &ask->dst[0], &plain);
    s->threads = CVY_MAX(1, ask->threads);
    s->relu = !s->backward && o->relu;
    s->has_bias = !s->backward && o->bias;
    s->taps = plain.taps;
    s->blocks = (s->src.blocks + 1) / 2;
    s->columns = s->dst.blocks;
    s->pairs = (s->columns + 1) / 2;
    s->stream = c.n * s->dst.blocks * s->dst.plane * (int64_t)sizeof(float) > STREAM_BYTES;
    s->bias_floats = s->has_bias ? s->pairs * BLOCK : 0;
    s->weight_elems = s->pairs * s->blocks * s->taps * PACKED;
    divide_work(s);
    for (int t = 0; t < s->w.ntap; t++)
        s->shift[t] = (cvy_amx_shift){cvy_amx_window_shift(&s->w, &s->w.tap[t]) * BLOCK, s->w.tap[t].weight * PACKED};
    return CVY_OK;
}

static cvy_status split_offer(cvy_kernel_ask *ask)
{
    struct split_conv s = {0};
    ask->src[0] = ask->dst[0] = cvy_layout_channels(4, ROWS);
    CVY_TRY(geometry(ask, &s));
    if (ask->src_free[1])
        ask->src[1] = cvy_layout_make("ABcd16b16a");
    if (s.has_bias)
        ask->src[2] = cvy_layout_plain();
    ask->scratch_bytes =
        (size_t)(2 * s.bias_floats + s.weight_elems + s.threads * (s.staged_elems + 2 * s.sum_floats)) *
        sizeof(cvy_bf16);
    return CVY_OK;
}

static void split_destroy(void *state)
{
    struct split_conv *s = state;
    if (s)
        cvy_mem_free(&s->at.k);
    cvy_mem_free(&s);
}

static cvy_status split_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct split_conv *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    cvy_status status = geometry(ask, s);
    if (status == CVY_OK)
        status = cvy_split_offsets_make(&ask->src[1], cvy_node_src(ask->node, 1), &s->at);
    if (status != CVY_OK) {
        split_destroy(s);
        return status;
    }
    *state_out = s;
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_conv_split) = {
    .name = "native.conv_split",
    .op = "conv",
    .preference = 90,
    .slice_src = 1,
    .slice_dst = 1,
    .offer = split_offer,
    .create = split_create,
    .run = split_run,
    .destroy = split_destroy,
};

CVY_KERNEL_DEFINE(native_conv_split_grad_src) = {
    .name = "native.conv_split_grad_src",
    .op = "conv_grad_src",
    .preference = 90,
    .slice_src = 1,
    .slice_dst = 1,
    .offer = split_offer,
    .create = split_create,
    .run = split_run,
    .destroy = split_destroy,
};
