/*
 * native_amx_conv_weight.c: the gradient of a convolution's weights and bias in bf16 on tiles (AMX).
 *
 * In the step: a third of a bf16 network's arithmetic. The sum runs over positions, so these must lie side by side: the
 * source is turned, [channel][position], and ddst lies in tiles of pairs of positions. Both are made for a chunk of bands
 * (native_amx_window.h) by all threads; then each thread sums the weights that it owns over the chunk, so the result does
 * not depend on the number of threads. A tap's source is the same rows begun some positions later; positions of a row
 * that do not exist have ddst 0. The tiles of sums are those of the variable's layout, [16 c][16 k].
 */
#include <string.h>

#include "kernel/native/native_amx_window.h"

enum {
    BAND_POSITIONS = 1 << 11, /* staged, of a band: 128 KB of 32 channels */
    CHUNK_ELEMS_MIN = 1 << 19, /* of a chunk: 1 MB, half of a core's second cache */
    CHUNK_ELEMS_MAX = 1 << 23, /* 16 MB, where the weights are as large */
    LINE = 32                  /* bf16 of a cache line */
};

struct amx_weight {
    const cvy_amx *amx;
    cvy_amx_window x, d; /* of the source; of ddst, without taps */
    cvy_window plain;
    int64_t channels;
    int threads, has_bias, patched;
    int64_t x_lanes, d_lanes;     /* channels in whole blocks of 32 */
    int64_t x_each, d_each;       /* positions of a band, in whole blocks of 32 */
    int64_t rows, columns;        /* of tiles of sums */
    int64_t taps, chunk, bands;   /* bands of a chunk; all of them */
    int64_t x_row;                /* elements between channels of the turned source */
    int64_t staged_elems, x_elems, d_elems, sum_floats, weight_floats; /* scratch, in this order */
    int64_t shift[CVY_AMX_TAPS_MAX];
    int64_t *weight_at; /* patched: see cvy_amx_place_patched */
    /* of the running call */
    const cvy_bf16 *src, *ddst;
    float *dweight, *dbias, *sums, *packed;
    double *total;
    cvy_bf16 *staged, *turned, *pairs;
    int64_t first, count; /* bands of the chunk */
};

/* ---- a chunk's tiles ---- */

/* 32 channels of one band of the source, or of all channels of its patches. */
static void turn_band(const struct amx_weight *s, int64_t i, int64_t block, cvy_bf16 *staged)
{
    const int64_t band = s->first + i, lanes = s->patched ? s->x_lanes : CVY_AMX_BLOCK;
    const int64_t held = cvy_amx_window_staged(&s->x);
    if (s->patched)
        cvy_amx_stage_patches(s->amx, &s->plain, s->channels, &s->x, s->src, band / s->x.bands, band % s->x.bands, lanes,
                              staged);
    else
        cvy_amx_stage(&s->x, s->src, band / s->x.bands, band % s->x.bands, block * CVY_AMX_BLOCK, lanes, staged);
    memset(staged + held * lanes, 0, (size_t)((s->x_each - held) * lanes) * sizeof *staged);
    cvy_bf16 *to = s->turned + block * CVY_AMX_BLOCK * s->x_row + i * s->x_each;
    for (int64_t p = 0; p < s->x_each; p += CVY_AMX_BLOCK)
        for (int64_t c = 0; c < lanes; c += CVY_AMX_BLOCK)
            s->amx->turn(staged + p * lanes + c, lanes, to + c * s->x_row + p, s->x_row);
}

/* 32 channels of one band of ddst, and their sums. Tiles: [column][band][step]. */
static void pair_band(const struct amx_weight *s, int64_t i, int64_t block, cvy_bf16 *staged)
{
    const int64_t band = s->first + i, held = cvy_amx_window_staged(&s->d), column = s->chunk * s->d_each * CVY_AMX_ROWS;
    float *sums = s->sums + i * s->d_lanes + block * CVY_AMX_BLOCK;
    cvy_amx_stage(&s->d, s->ddst, band / s->x.bands, band % s->x.bands, block * CVY_AMX_BLOCK, CVY_AMX_BLOCK, staged);
    memset(staged + held * CVY_AMX_BLOCK, 0, (size_t)((s->d_each - held) * CVY_AMX_BLOCK) * sizeof *staged);
    memset(sums, 0, CVY_AMX_BLOCK * sizeof *sums);
    cvy_bf16 *to = s->pairs + 2 * block * column + i * s->d_each * CVY_AMX_ROWS;
    for (int64_t p = 0; p < s->d_each; p += CVY_AMX_BLOCK) {
        s->amx->pair(staged + p * CVY_AMX_BLOCK, to + p * CVY_AMX_ROWS, column);
        if (s->has_bias)
            s->amx->sum(staged + p * CVY_AMX_BLOCK, sums);
    }
}

static int64_t turns_of_band(const struct amx_weight *s)
{
    return s->patched ? 1 : s->x_lanes / CVY_AMX_BLOCK;
}

/* Work item: one thread. */
static void bands_of_thread(int64_t begin, int64_t end, void *arg)
{
    const struct amx_weight *s = arg;
    const int64_t turns = turns_of_band(s), each = turns + s->d_lanes / CVY_AMX_BLOCK, items = s->count * each;
    for (int64_t t = begin; t < end; t++)
        for (int64_t item = items * t / s->threads; item < items * (t + 1) / s->threads; item++) {
            cvy_bf16 *staged = s->staged + t * s->staged_elems;
            if (item % each < turns)
                turn_band(s, item / each, item % each, staged);
            else
                pair_band(s, item / each, item % each - turns, staged);
        }
}

/* ---- a chunk's sums ---- */

/* Work item: a block of 32 x 32 channels, one tap; taps follow each other, for they share what they read. */
static void sum_chunk(int64_t begin, int64_t end, void *arg)
{
    const struct amx_weight *s = arg;
    const int64_t across = (s->columns + 1) / 2, tile = CVY_AMX_ROWS * CVY_AMX_ROWS;
    s->amx->begin();
    for (int64_t item = begin; item < end; item++) {
        const int64_t tap = item % s->taps, row = item / s->taps / across, column = item / s->taps % across;
        const cvy_amx_outer sum = {
            .a = s->turned + row * CVY_AMX_BLOCK * s->x_row + s->shift[tap],
            .b = s->pairs + 2 * column * s->chunk * s->d_each * CVY_AMX_ROWS,
            .a_row = s->x_row,
            .b_column = s->chunk * s->d_each * CVY_AMX_ROWS,
            .parts = s->count,
            .a_part = s->x_each,
            .b_part = s->d_each * CVY_AMX_ROWS,
            .steps = s->d_each / CVY_AMX_DEPTH,
            .c = s->packed + ((2 * column * s->rows + 2 * row) * s->taps + tap) * tile,
            .c_row = s->taps * tile,
            .c_column = s->rows * s->taps * tile,
            .rows = (int)CVY_MIN(2, s->rows - 2 * row),
            .columns = (int)CVY_MIN(2, s->columns - 2 * column),
            .add = s->first > 0,
        };
        s->amx->outer(&sum);
    }
    s->amx->end();
}

static void add_bias_sums(const struct amx_weight *s)
{
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t k = 0; k < s->d.src_channels; k++)
            s->total[k] = (s->first + i ? s->total[k] : 0) + (double)s->sums[i * s->d_lanes + k];
}

/* Work item: a column of tiles of patched weights, to where the variable's elements lie. */
static void unpack_patched(int64_t begin, int64_t end, void *arg)
{
    const struct amx_weight *s = arg;
    const int64_t have = s->x.src_channels, *channel_at = s->weight_at + have;
    for (int64_t column = begin; column < end; column++)
        for (int64_t k = 0; k < have; k++)
            for (int64_t i = 0; i < CVY_MIN(CVY_AMX_ROWS, s->d.src_channels - column * CVY_AMX_ROWS); i++)
                s->dweight[s->weight_at[k] + channel_at[column * CVY_AMX_ROWS + i]] =
                    s->packed[(column * s->rows * CVY_AMX_ROWS + k) * CVY_AMX_ROWS + i];
}

/* ---- running ---- */

static void share_scratch(struct amx_weight *s, void *scratch)
{
    char *at = scratch;
    s->staged = scratch;
    at += (size_t)(s->threads * s->staged_elems) * sizeof *s->staged;
    s->turned = (cvy_bf16 *)at;
    at += (size_t)s->x_elems * sizeof *s->turned;
    s->pairs = (cvy_bf16 *)at;
    at += (size_t)s->d_elems * sizeof *s->pairs;
    s->total = (double *)at;
    at += (size_t)s->d_lanes * sizeof *s->total;
    s->sums = (float *)at;
    at += (size_t)s->sum_floats * sizeof *s->sums;
    s->packed = s->patched ? (float *)at : s->dweight;
}

static cvy_status weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct amx_weight *s = state;
    const int64_t blocks = (s->rows + 1) / 2 * ((s->columns + 1) / 2);
    s->src = src[0];
    s->ddst = src[1];
    s->dweight = dst[0];
    s->dbias = s->has_bias ? dst[1] : NULL;
    share_scratch(s, scratch);
    for (s->first = 0; s->first < s->bands; s->first += s->chunk) {
        s->count = CVY_MIN(s->chunk, s->bands - s->first);
        cvy_parallel_for(s->threads, s->threads, 1, bands_of_thread, s);
        cvy_parallel_for(s->threads, blocks * s->taps, 1, sum_chunk, s);
        if (s->dbias)
            add_bias_sums(s);
    }
    if (s->patched)
        cvy_parallel_for(s->threads, s->columns, 1, unpack_patched, s);
    for (int64_t k = 0; s->dbias && k < s->d.src_channels; k++)
        s->dbias[k] = (float)s->total[k];
    return CVY_OK;
}

/* ---- planning ---- */

static int64_t whole_blocks(int64_t count)
{
    return (count + CVY_AMX_BLOCK - 1) / CVY_AMX_BLOCK * CVY_AMX_BLOCK;
}

/* ddst as a window onto itself whose rows and bands are those of the source's. */
static void window_of_ddst(const cvy_amx_window *x, cvy_amx_window *d)
{
    *d = *x;
    d->src_h = x->dst_h;
    d->src_w = x->dst_w;
    d->src_channels = x->dst_channels;
    d->src_step = d->src_step_x = 1;
    d->src_base = d->src_base_x = 0;
    d->reach = 0;
    d->nplane = 1;
    d->plane[0].y = d->plane[0].x = 0;
}

/* A chunk's tiles stay in the caches; but the weights' sums are read and written once in each, so there are few chunks
 * where these are large. */
static void divide_work(struct amx_weight *s)
{
    cvy_amx_window *x = &s->x;
    cvy_amx_window_bands(x, BAND_POSITIONS, 1);
    window_of_ddst(x, &s->d);
    s->bands = x->n * x->bands;
    s->d_each = whole_blocks(x->rows * x->pitch);
    s->x_each = whole_blocks(cvy_amx_window_staged(x) + CVY_AMX_BLOCK + x->pitch - x->w);
    const int64_t each = s->x_lanes * s->x_each + s->d_lanes * s->d_each, weights = s->x_lanes * s->d_lanes * s->taps,
                  room = CVY_MAX(CHUNK_ELEMS_MIN, CVY_MIN(CHUNK_ELEMS_MAX, 4 * weights)) / each;
    const int64_t nchunk = CVY_MAX(1, (s->bands + CVY_MAX(1, room) - 1) / CVY_MAX(1, room));
    s->chunk = CVY_MAX(1, (s->bands + nchunk - 1) / nchunk);
    /* An odd number of cache lines, so that the rows of a tile fall into different sets of a cache. */
    s->x_row = s->chunk * s->x_each / LINE % 2 ? s->chunk * s->x_each : s->chunk * s->x_each + LINE;
    s->staged_elems = CVY_MAX(s->x_each * (s->patched ? s->x_lanes : CVY_AMX_BLOCK), s->d_each * CVY_AMX_BLOCK);
    s->x_elems = s->x_lanes * s->x_row;
    s->d_elems = s->d_lanes * s->chunk * s->d_each;
    s->sum_floats = s->chunk * s->d_lanes;
    s->weight_floats = s->patched ? s->rows * s->columns * CVY_AMX_ROWS * CVY_AMX_ROWS : 0;
    for (int t = 0; t < x->ntap; t++)
        s->shift[x->tap[t].weight] = cvy_amx_window_shift(x, &x->tap[t]);
}

static cvy_status fill_weight(const cvy_kernel_ask *ask, struct amx_weight *s)
{
    const cvy_node *node = ask->node;
    const cvy_conv_grad_opts *g = node->options;
    cvy_window_channels c;
    CVY_CHECK(node->src[0]->dtype == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE, "tiles hold bf16, the source is %s",
              cvy_dtype_text(node->src[0]->dtype));
    CVY_TRY(cvy_amx_get(&s->amx));
    CVY_TRY(cvy_conv_window(&g->conv, &g->src, &s->plain, &c));
    CVY_TRY(cvy_amx_window_make(&s->plain, &c, 0, &s->x));
    CVY_CHECK(c.n > 0, CVY_NOT_APPLICABLE, "no samples here");
    s->threads = CVY_MAX(1, ask->threads);
    s->has_bias = g->conv.bias;
    s->patched = cvy_amx_is_patched(&c);
    s->channels = c.nsrc;
    if (s->patched)
        cvy_amx_window_patch(&s->plain, &s->x);
    s->taps = s->x.ntap;
    s->x_lanes = whole_blocks(s->x.src_channels);
    s->d_lanes = whole_blocks(c.ndst);
    s->rows = (s->x.src_channels + CVY_AMX_ROWS - 1) / CVY_AMX_ROWS;
    s->columns = (c.ndst + CVY_AMX_ROWS - 1) / CVY_AMX_ROWS;
    divide_work(s);
    return CVY_OK;
}

static cvy_status weight_offer(cvy_kernel_ask *ask)
{
    struct amx_weight s = {0};
    CVY_TRY(fill_weight(ask, &s));
    ask->src[0] = ask->src[1] = cvy_layout_channels_last(4);
    ask->dst[0] = cvy_layout_make(s.patched ? "" : "ABcd16b16a");
    if (s.has_bias)
        ask->dst[1] = cvy_layout_plain();
    ask->scratch_bytes = (size_t)(s.threads * s.staged_elems + s.x_elems + s.d_elems) * sizeof(cvy_bf16) +
                         (size_t)s.d_lanes * sizeof(double) + (size_t)(s.sum_floats + s.weight_floats) * sizeof(float);
    return CVY_OK;
}

static void weight_destroy(void *state)
{
    struct amx_weight *s = state;
    if (s)
        cvy_mem_free(&s->weight_at);
    cvy_mem_free(&s);
}

static cvy_status weight_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct amx_weight *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    cvy_status status = fill_weight(ask, s);
    if (status == CVY_OK && s->patched)
        status = cvy_amx_place_patched(&ask->dst[0], cvy_node_dst(ask->node, 0), &s->weight_at);
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
    .offer = weight_offer,
    .create = weight_create,
    .run = weight_run,
    .destroy = weight_destroy,
};
