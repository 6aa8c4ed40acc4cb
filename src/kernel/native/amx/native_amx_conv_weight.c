/*
 * native_amx_conv_weight.c: the gradient of a convolution's weights and bias in bf16 on tiles (AMX).
 *
 * This is a third of the arithmetic of a bf16 network. The sum runs over positions, so these must be adjacent in the
 * tiles: ddst is transposed to blocks of [32 channels][32 positions], and the source is made into tiles of pairs of
 * positions. Both are made for one chunk of bands (native_amx_window.h) at a time. Each tap reads the same pairs of the
 * source from another start. Taps that are an odd number of positions away read a second set of pairs, which begins one
 * position later. So each tile is in whole cache lines. (When the source was transposed instead, tiles crossed cache
 * lines, and 3x3 filters were half as fast.) ddst is 0 for positions of a row that do not exist. The tiles of sums are
 * those of the variable's layout, [16 k][16 c].
 *
 * If the weights are small, each thread makes and sums its own chunks of bands, and the sums of the threads are added
 * in order; only these sums move between cores. If they are large, all threads share a chunk, and each owns a part of
 * the weights. In both cases a result depends only on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/amx/native_amx_patch.h"

enum {
    BAND_POSITIONS = 1 << 10,  /* staged positions of a band: a strip of them is 256 KB */
    STRIP = 4 * CVY_AMX_BLOCK, /* channels that are staged together */
    CHUNK_ELEMS_MIN = 1 << 18, /* of a chunk: 512 KB, a quarter of a core's second-level cache */
    CHUNK_ELEMS_MAX = 1 << 23, /* 16 MB, if the weights are large too */
    OWN_FLOATS = 1 << 18       /* up to this size of weights each thread has its own sums: 1 MB */
};

struct amx_weight;

/* Bands begin .. end - 1 and the sums over them. */
struct part {
    const struct amx_weight *s;
    int64_t begin, end;
    int64_t first, count; /* the bands of the chunk */
    cvy_bf16 *transposed, *pairs;
    float *sums, *packed; /* sums of ddst, for each band of the chunk; sums of the weights */
    double *total;        /* sums of ddst over all bands */
};

struct amx_weight {
    const cvy_amx *amx;
    cvy_amx_window x, d; /* of the source; of ddst (without taps) */
    cvy_window plain;
    cvy_amx_patches patches;
    int threads, has_bias, patched;
    int x_direct, d_direct;     /* the positions of a band are contiguous in the activation */
    int64_t x_lanes, d_lanes;   /* channels in whole blocks of 32 */
    int64_t x_each, d_each;     /* positions of a band, in whole blocks of 32 */
    int64_t rows, columns;      /* of tiles of sums: for channels of ddst, of the source */
    int64_t taps, chunk, bands; /* chunk: bands of a chunk; bands: all bands */
    int64_t sets;               /* sets of pairs: 2 if a tap may be an odd number of positions away */
    int64_t d_block, x_set;     /* elements between blocks of channels of transposed ddst; between sets of pairs */
    /* Scratch memory: the first of a thread, the others of a part. */
    int64_t staged_elems, x_elems, d_elems, sum_floats, weight_floats;
    int64_t shift[CVY_AMX_TAPS_MAX];
    int64_t *weight_at; /* patched: see cvy_amx_patched_offsets */
    int nparts;
    struct part *part;
    /* Of the running call. */
    const cvy_bf16 *src, *ddst;
    float *dweight;
    cvy_bf16 *staged;
};

/* ---- a chunk's tiles ---- */

/* Some channels of a band. The first `held` positions exist; they are `row` elements apart. */
struct strip {
    const cvy_bf16 *from;
    int64_t row, held;
};

static struct strip strip_of(const cvy_amx_window *w, int direct, const cvy_bf16 *src, int64_t band, int64_t first,
                             int64_t lanes, cvy_bf16 *staged)
{
    const int64_t sample = band / w->bands, y = band % w->bands * w->rows;
    if (direct)
        return (struct strip){src + (sample * w->src_h + y) * w->src_w * w->src_channels + first, w->src_channels,
                              CVY_MIN(w->rows, w->src_h - y) * w->src_w};
    cvy_amx_stage(w, src, sample, band % w->bands, first, lanes, staged);
    return (struct strip){staged, lanes, cvy_amx_window_staged(w)};
}

/* Returns the 32 positions from p on; if fewer exist, a copy that is filled up with zeros. */
static const cvy_bf16 *positions_of(const struct strip *v, int64_t p, int64_t channel, cvy_bf16 *copy, int64_t *row_out)
{
    const int64_t have = CVY_MAX(0, CVY_MIN(CVY_AMX_BLOCK, v->held - p));
    *row_out = have == CVY_AMX_BLOCK ? v->row : CVY_AMX_BLOCK;
    if (have == CVY_AMX_BLOCK)
        return v->from + p * v->row + channel;
    for (int64_t i = 0; i < have; i++)
        memcpy(copy + i * CVY_AMX_BLOCK, v->from + (p + i) * v->row + channel, CVY_AMX_BLOCK * sizeof *copy);
    memset(copy + have * CVY_AMX_BLOCK, 0, (size_t)((CVY_AMX_BLOCK - have) * CVY_AMX_BLOCK) * sizeof *copy);
    return copy;
}

/* Prefetches the next block of positions of a strip that is read from the activation itself: its rows are too far apart
 * for the hardware prefetcher. */
static void prefetch_next(const struct amx_weight *s, const struct strip *v, int64_t p, int64_t lanes)
{
    if (p + 2 * CVY_AMX_BLOCK <= v->held)
        s->amx->prefetch(v->from + (p + CVY_AMX_BLOCK) * v->row, v->row, lanes);
}

/* Transposes a strip of ddst and sums it. */
static void transpose_strip(const struct part *part, int64_t i, int64_t first, int64_t lanes, cvy_bf16 *staged)
{
    const struct amx_weight *s = part->s;
    const struct strip v = strip_of(&s->d, s->d_direct, s->ddst, part->first + i, first, lanes, staged);
    cvy_bf16 copy[CVY_AMX_BLOCK * CVY_AMX_BLOCK],
        *to = part->transposed + first / CVY_AMX_BLOCK * s->d_block + i * s->d_each * CVY_AMX_BLOCK;
    float *sums = part->sums + i * s->d_lanes + first;
    memset(sums, 0, (size_t)lanes * sizeof *sums);
    for (int64_t p = 0; p < s->d_each; p += CVY_AMX_BLOCK) {
        if (s->d_direct)
            prefetch_next(s, &v, p, lanes);
        for (int64_t c = 0; c < lanes; c += CVY_AMX_BLOCK) {
            int64_t row = 0;
            const cvy_bf16 *from = positions_of(&v, p, c, copy, &row);
            s->amx->transpose(from, row, to + c / CVY_AMX_BLOCK * s->d_block + p * CVY_AMX_BLOCK, CVY_AMX_BLOCK);
            if (s->has_bias)
                s->amx->sum(from, row, sums + c);
        }
    }
}

/* Makes the pairs of a strip of the source, or of all its patches. The tiles are [column][set][band][step]. */
static void pair_strip(const struct part *part, int64_t i, int64_t first, int64_t lanes, cvy_bf16 *staged)
{
    const struct amx_weight *s = part->s;
    const int64_t band = part->first + i, column = s->sets * s->x_set;
    cvy_bf16 copy[CVY_AMX_BLOCK * CVY_AMX_BLOCK],
        *to = part->pairs + first / CVY_AMX_ROWS * column + i * s->x_each * CVY_AMX_ROWS;
    struct strip v = {staged, lanes, CVY_MIN(s->x.rows, s->x.h - band % s->x.bands * s->x.rows) * s->x.pitch};
    if (s->patched)
        cvy_amx_stage_patches(s->amx, &s->patches, &s->x, s->src, band / s->x.bands, band % s->x.bands,
                              staged + s->staged_elems - cvy_amx_patches_padded(&s->patches, &s->x), staged);
    else
        v = strip_of(&s->x, s->x_direct, s->src, band, first, lanes, staged);
    for (int64_t p = 0; p < s->x_each; p += CVY_AMX_BLOCK) {
        if (s->x_direct)
            prefetch_next(s, &v, p, lanes);
        for (int64_t c = 0; c < lanes; c += CVY_AMX_BLOCK)
            for (int64_t set = 0; set < s->sets; set++) {
                int64_t row = 0;
                const cvy_bf16 *from = positions_of(&v, p + set, c, copy, &row);
                s->amx->pair(from, row, to + c / CVY_AMX_ROWS * column + set * s->x_set + p * CVY_AMX_ROWS, column);
            }
    }
}

static int64_t strips(int64_t lanes)
{
    return (lanes + STRIP - 1) / STRIP;
}

static int64_t strips_of_chunk(const struct part *part)
{
    const struct amx_weight *s = part->s;
    return part->count * ((s->patched ? 1 : strips(s->x_lanes)) + strips(s->d_lanes));
}

/* Makes strips begin .. end - 1 of a chunk, in one thread. */
static void make_strips(const struct part *part, int64_t begin, int64_t end, cvy_bf16 *staged)
{
    const struct amx_weight *s = part->s;
    const int64_t of_x = s->patched ? 1 : strips(s->x_lanes), each = of_x + strips(s->d_lanes);
    for (int64_t item = begin; item < end; item++) {
        const int64_t i = item / each, x = item % each, d = (x - of_x) * STRIP;
        if (x < of_x)
            pair_strip(part, i, x * STRIP, s->patched ? s->x_lanes : CVY_MIN(STRIP, s->x_lanes - x * STRIP), staged);
        else
            transpose_strip(part, i, d, CVY_MIN(STRIP, s->d_lanes - d), staged);
    }
}

/* Work item: one thread. */
static void strips_of_thread(int64_t begin, int64_t end, void *arg)
{
    const struct part *part = arg;
    const struct amx_weight *s = part->s;
    const int64_t items = strips_of_chunk(part);
    for (int64_t t = begin; t < end; t++)
        make_strips(part, items * t / s->threads, items * (t + 1) / s->threads, s->staged + t * s->staged_elems);
}

/* ---- a chunk's sums ---- */

static int64_t sums_of_chunk(const struct amx_weight *s)
{
    return (s->rows + 1) / 2 * ((s->columns + 1) / 2) * s->taps;
}

/* Work item: a block of 32 x 32 channels and one tap. The taps of a block are successive items, because they read the
 * same data. */
static void sum_chunk(int64_t begin, int64_t end, void *arg)
{
    const struct part *part = arg;
    const struct amx_weight *s = part->s;
    const int64_t across = (s->columns + 1) / 2, tile = CVY_AMX_ROWS * CVY_AMX_ROWS;
    s->amx->begin();
    for (int64_t item = begin; item < end; item++) {
        const int64_t tap = item % s->taps, row = item / s->taps / across, column = item / s->taps % across;
        const cvy_amx_outer sum = {
            .a = part->transposed + row * s->d_block,
            .b = part->pairs + 2 * column * s->sets * s->x_set + s->shift[tap],
            .a_row = CVY_AMX_DEPTH,
            .a_step = CVY_AMX_BLOCK * CVY_AMX_DEPTH,
            .b_column = s->sets * s->x_set,
            .parts = part->count,
            .a_part = s->d_each * CVY_AMX_BLOCK,
            .b_part = s->x_each * CVY_AMX_ROWS,
            .steps = s->d_each / CVY_AMX_DEPTH,
            .c = part->packed + ((2 * row * s->columns + 2 * column) * s->taps + tap) * tile,
            .c_row = s->columns * s->taps * tile,
            .c_column = s->taps * tile,
            .rows = (int)CVY_MIN(2, s->rows - 2 * row),
            .columns = (int)CVY_MIN(2, s->columns - 2 * column),
            .add = part->first > part->begin,
        };
        s->amx->outer(&sum);
    }
    s->amx->end();
}

static void add_bias_sums(const struct part *part)
{
    const struct amx_weight *s = part->s;
    for (int64_t i = 0; i < part->count; i++)
        for (int64_t k = 0; k < s->d.src_channels; k++)
            part->total[k] =
                (part->first + i > part->begin ? part->total[k] : 0) + (double)part->sums[i * s->d_lanes + k];
}

/* ---- running ---- */

static int next_chunk(struct part *part)
{
    part->first = part->count ? part->first + part->count : part->begin;
    part->count = CVY_MIN(part->s->chunk, part->end - part->first);
    return part->count > 0;
}

static void run_shared(struct part *part)
{
    const struct amx_weight *s = part->s;
    while (next_chunk(part)) {
        cvy_parallel_for(s->threads, s->threads, 1, strips_of_thread, part);
        cvy_parallel_for(s->threads, sums_of_chunk(s), 1, sum_chunk, part);
        add_bias_sums(part);
    }
}

/* Work item: one part. */
static void run_parts(int64_t begin, int64_t end, void *arg)
{
    const struct amx_weight *s = arg;
    for (int64_t t = begin; t < end; t++)
        for (struct part *part = &s->part[t]; next_chunk(part);) {
            make_strips(part, 0, strips_of_chunk(part), s->staged + t * s->staged_elems);
            sum_chunk(0, sums_of_chunk(s), part);
            add_bias_sums(part);
        }
}

/* Work item: one element of the weights. */
static void add_parts(int64_t begin, int64_t end, void *arg)
{
    const struct amx_weight *s = arg;
    float *to = s->part[0].packed;
    for (int p = 1; p < s->nparts; p++)
        for (int64_t i = begin; i < end; i++)
            to[i] += s->part[p].packed[i];
}

/* Work item: a row of tiles of patched weights. Copies its sums to the elements of the variable. */
static void unpack_patched(int64_t begin, int64_t end, void *arg)
{
    const struct amx_weight *s = arg;
    const int64_t have = s->x.src_channels, *channel_at = s->weight_at + have;
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < CVY_MIN(CVY_AMX_ROWS, s->d.src_channels - row * CVY_AMX_ROWS); i++)
            for (int64_t k = 0; k < have; k++)
                s->dweight[s->weight_at[k] + channel_at[row * CVY_AMX_ROWS + i]] =
                    s->part[0].packed[((row * s->columns + k / CVY_AMX_ROWS) * CVY_AMX_ROWS + i) * CVY_AMX_ROWS +
                                      k % CVY_AMX_ROWS];
}

static void share_scratch(struct amx_weight *s, void *scratch)
{
    char *at = scratch;
    s->staged = scratch;
    at += (size_t)(s->threads * s->staged_elems) * sizeof *s->staged;
    for (int p = 0; p < s->nparts; p++) {
        struct part *part = &s->part[p];
        *part = (struct part){.s = s, .begin = s->bands * p / s->nparts, .end = s->bands * (p + 1) / s->nparts};
        part->transposed = (cvy_bf16 *)at;
        at += (size_t)s->d_elems * sizeof *part->transposed;
        part->pairs = (cvy_bf16 *)at;
        at += (size_t)s->x_elems * sizeof *part->pairs;
        part->total = (double *)at;
        at += (size_t)s->d_lanes * sizeof *part->total;
        part->sums = (float *)at;
        at += (size_t)s->sum_floats * sizeof *part->sums;
        part->packed = s->patched || p > 0 ? (float *)at : s->dweight;
        at += part->packed == s->dweight ? 0 : (size_t)s->weight_floats * sizeof *part->packed;
    }
}

static cvy_status weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct amx_weight *s = state;
    float *dbias = s->has_bias ? dst[1] : NULL;
    s->src = src[0];
    s->ddst = src[1];
    s->dweight = dst[0];
    share_scratch(s, scratch);
    if (s->nparts > 1) {
        cvy_parallel_for(s->threads, s->nparts, 1, run_parts, s);
        cvy_parallel_for(s->threads, s->weight_floats, 1 << 12, add_parts, s);
    } else {
        run_shared(&s->part[0]);
    }
    if (s->patched)
        cvy_parallel_for(s->threads, s->rows, 1, unpack_patched, s);
    for (int64_t k = 0; dbias && k < s->d.src_channels; k++) {
        double total = 0;
        for (int p = 0; p < s->nparts; p++)
            total += s->part[p].total[k];
        dbias[k] = (float)total;
    }
    return CVY_OK;
}

/* ---- planning ---- */

/* The tiles of a chunk should stay in the caches. But each chunk reads and writes the sums of the weights once, so
 * there are few chunks if the weights are large. */
static void divide_work(struct amx_weight *s)
{
    cvy_amx_window *x = &s->x;
    cvy_amx_window_bands(x, BAND_POSITIONS, s->threads);
    cvy_amx_window_of_ddst(x, &s->d);
    s->bands = x->n * x->bands;
    s->weight_floats = s->rows * s->columns * s->taps * CVY_AMX_ROWS * CVY_AMX_ROWS;
    s->nparts = s->weight_floats <= OWN_FLOATS ? (int)CVY_MIN(s->threads, s->bands) : 1;
    s->d_each = cvy_amx_whole_blocks(x->rows * x->pitch);
    s->x_each = cvy_amx_whole_blocks(cvy_amx_window_staged(x) + CVY_AMX_BLOCK + x->pitch - x->w);
    s->sets = s->taps > 1 ? 2 : 1;
    const int64_t each = s->sets * s->x_lanes * s->x_each + s->d_lanes * s->d_each,
                  bands = (s->bands + s->nparts - 1) / s->nparts,
                  least = CHUNK_ELEMS_MIN * (s->nparts > 1 ? 1 : s->threads),
                  room = CVY_MAX(1, CVY_MAX(least, CVY_MIN(CHUNK_ELEMS_MAX, 4 * s->weight_floats)) / each);
    const int64_t nchunk = (bands + room - 1) / room;
    s->chunk = CVY_MAX(1, (bands + nchunk - 1) / nchunk);
    s->x_set = s->chunk * s->x_each * CVY_AMX_ROWS;
    s->d_block = s->chunk * s->d_each * CVY_AMX_BLOCK;
    s->staged_elems = s->patched
                          ? CVY_MAX(s->x_each * s->x_lanes + cvy_amx_patches_padded(&s->patches, x), s->d_each * STRIP)
                          : CVY_MAX(s->x_each, s->d_each) * STRIP;
    s->x_elems = s->x_lanes / CVY_AMX_ROWS * s->sets * s->x_set;
    s->d_elems = s->d_lanes / CVY_AMX_BLOCK * s->d_block;
    s->sum_floats = s->chunk * s->d_lanes;
    s->d_direct = x->pitch == s->d.src_w && s->d_lanes == s->d.src_channels;
    s->x_direct = !s->patched && x->nplane == 1 && x->ntap == 1 && x->pitch == x->src_w && x->src_h == x->h &&
                  x->src_step == 1 && x->src_step_x == 1 && x->src_base == 0 && x->src_base_x == 0 &&
                  s->x_lanes == x->src_channels;
    for (int t = 0; t < x->ntap; t++) {
        const int64_t away = cvy_amx_window_shift(x, &x->tap[t]), odd = away % 2;
        s->shift[x->tap[t].weight] = odd * s->x_set + (away - odd) * CVY_AMX_ROWS;
    }
}

static cvy_status fill_weight(const cvy_kernel_ask *ask, struct amx_weight *s)
{
    const cvy_node *node = ask->node;
    const cvy_conv_grad_opts *g = node->options;
    cvy_window_channels c;
    CVY_CHECK(node->src[0]->dtype == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE,
              "this kernel computes in bf16; the source is %s", cvy_dtype_text(node->src[0]->dtype));
    CVY_TRY(cvy_amx_get(&s->amx));
    CVY_TRY(cvy_conv_window(&g->conv, &g->src, &s->plain, &c));
    CVY_TRY(cvy_amx_window_make(&s->plain, &c, 0, &s->x));
    CVY_CHECK(c.n > 0, CVY_NOT_APPLICABLE, "the batch is empty");
    s->threads = CVY_MAX(1, ask->threads);
    s->has_bias = g->conv.bias;
    s->patched = cvy_amx_is_patched(&c);
    if (s->patched)
        cvy_amx_patches_make(&s->plain, &c, &s->patches, &s->x);
    s->taps = s->x.ntap;
    s->x_lanes = cvy_amx_whole_blocks(s->x.src_channels);
    s->d_lanes = cvy_amx_whole_blocks(c.ndst);
    s->rows = (c.ndst + CVY_AMX_ROWS - 1) / CVY_AMX_ROWS;
    s->columns = (s->x.src_channels + CVY_AMX_ROWS - 1) / CVY_AMX_ROWS;
    divide_work(s);
    return CVY_OK;
}

static cvy_status weight_offer(cvy_kernel_ask *ask)
{
    struct amx_weight s = {0};
    CVY_TRY(fill_weight(ask, &s));
    ask->src[0] = ask->src[1] = cvy_layout_channels_last(4);
    ask->dst[0] = cvy_layout_make(s.patched ? "" : "ABcd16a16b");
    if (s.has_bias)
        ask->dst[1] = cvy_layout_plain();
    const size_t part = (size_t)(s.x_elems + s.d_elems) * sizeof(cvy_bf16) + (size_t)s.d_lanes * sizeof(double) +
                        (size_t)s.sum_floats * sizeof(float);
    ask->scratch_bytes = (size_t)(s.threads * s.staged_elems) * sizeof(cvy_bf16) + (size_t)s.nparts * part +
                         (size_t)((s.nparts - !s.patched) * s.weight_floats) * sizeof(float);
    return CVY_OK;
}

static void weight_destroy(void *state)
{
    struct amx_weight *s = state;
    if (s) {
        cvy_mem_free(&s->weight_at);
        cvy_mem_free(&s->part);
    }
    cvy_mem_free(&s);
}

static cvy_status weight_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct amx_weight *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    cvy_status status = fill_weight(ask, s);
    if (status == CVY_OK)
        status = cvy_mem_alloc((size_t)s->nparts * sizeof *s->part, &s->part);
    if (status == CVY_OK && s->patched)
        status = cvy_amx_patched_offsets(&ask->dst[0], cvy_node_dst(ask->node, 0), &s->weight_at);
    if (status != CVY_OK) {
        weight_destroy(s);
        return status;
    }
    *state_out = s;
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_conv_amx_grad_weight) = {
    .name = "native.conv_amx_grad_weight",
    .op = "conv_grad_weight",
    .preference = 130,
    .thread_dependent = 1,
    .offer = weight_offer,
    .create = weight_create,
    .run = weight_run,
    .destroy = weight_destroy,
};
