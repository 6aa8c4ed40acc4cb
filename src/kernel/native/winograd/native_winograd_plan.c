/*
 * native_winograd_plan.c: plans a Winograd convolution: which layers the kernels take, and how the work is cut so that
 * chunks of tiles stay in a core's cache. Called at planning time only.
 *
 * Filters of stride 1 have 3x3, 5x5, 1x3, 3x1, 1x7 or 7x1 positions in a picture and in each slice of a volume, and 3,
 * 5 or 7 in a series. Filters of stride 2 have 4x4, or 5 to 6 rows and columns, or 9 to 10.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/winograd/native_winograd_plan.h"
#include "op/conv/op_conv.h"

enum {
    CHUNK_FLOATS = 1 << 18,  /* of one thread's transformed tiles: 1 MB, half of a core's cache */
    PANEL_FLOATS = 3 << 16,  /* at most, of a panel of weights that stays in the cache too */
    WEIGHT_FLOATS = 1 << 22, /* larger transformed weights get larger chunks, so that they are read less often */
    HELD_FLOATS = 1 << 25,   /* of transformed weights at a time; with more, source tiles are transformed again */
    SUM_TILES = 64,          /* tiles in a chunk of CVY_LAYER_GRAD_WEIGHT; twice as many if the weights are large */
    SUM_POINTS = 64 * 36,    /* at least, in such a chunk: it has more tiles if these have few points */
    COPY_FLOATS = 1 << 20,   /* at most, of the transformed weights of one thread, which stay near its core */
    COPIES_FLOATS = 1 << 24, /* at most, of those of all threads */
    COPY_TILES = 64          /* about, in the chunks of such a thread */
};

/* ---- geometry ---- */

const cvy_winograd_isa *cvy_winograd_find(int lanes)
{
    const cvy_winograd_isa *const table[] = {cvy_winograd_avx512(), cvy_winograd_avx2(), cvy_winograd_sve512(),
                                             cvy_winograd_sve256()};
    for (int i = 0; i < CVY_COUNT(table); i++)
        if (table[i] && table[i]->lanes <= lanes)
            return table[i];
    return cvy_winograd_plain();
}

/* Chooses the widest vectors. If the source is in blocks of eight channels, vectors of eight are used; a library that
 * is limited to AVX2 makes such blocks. */
static const cvy_winograd_isa *choose_isa(const cvy_layout *src, int ndim, int pairs)
{
    return pairs ? cvy_winograd_avx512_bf16()
                 : cvy_winograd_find(cvy_layout_channel_block(src, ndim) == 8 ? 8 : CVY_WINOGRAD_LANES_MAX);
}

/* Finds the tile for filters of r[0] x r[1] taps: the one with m results along the longer side if there are three taps
 * or more, and as many points for fewer. NULL: none exists. */
static const cvy_winograd_tile *choose_tile(const cvy_winograd_isa *isa, const int64_t r[2], int m)
{
    const int results = CVY_MAX(r[0], r[1]) == 2 ? m + 1 : m;
    for (int i = 0; i < isa->ntile; i++) {
        const cvy_winograd_tile *tile = &isa->tile[i];
        if (CVY_MAX(tile->m[0], tile->m[1]) == results && tile->r[0] == r[0] && tile->r[1] == r[1])
            return tile;
    }
    return NULL;
}

/* Whether Winograd takes the window: stride 1, or a filter of 4 or more rows and columns of stride 2 in a picture. The
 * four filters of one with three rows would be half zeros. */
static int fits_window(const cvy_window *w)
{
    const int is_half =
        w->nspace == 2 && w->stride[0] == 2 && w->stride[1] == 2 && w->kernel[0] >= 4 && w->kernel[1] >= 4;
    for (int d = 0; d < w->nspace; d++)
        if ((w->stride[d] != 1 && !is_half) || w->dilation[d] != 1 || w->pad[d] >= w->kernel[d])
            return 0;
    return 1;
}

/* The window of the convolution that the node computes, or whose transpose it is, and the rest that its options say. */
static cvy_status read_options(const cvy_node *node, cvy_winograd *s, cvy_window *w, cvy_window_channels *c)
{
    const int is_forward = node->op->pass == CVY_LAYER_FORWARD;
    s->transposed = node->op->transposed;
    s->pass = node->op->pass;
    if (s->transposed) {
        const cvy_deconv_grad_opts *g = node->options;
        const cvy_deconv_opts *o = is_forward ? node->options : &g->deconv;
        s->pass = is_forward                             ? CVY_LAYER_GRAD_SRC
                  : node->op->pass == CVY_LAYER_GRAD_SRC ? CVY_LAYER_FORWARD
                                                         : CVY_LAYER_GRAD_WEIGHT;
        s->has_bias = o->bias && node->op->pass != CVY_LAYER_GRAD_SRC;
        CVY_CHECK(!s->has_bias || is_forward, CVY_NOT_APPLICABLE, "this kernel computes no bias of a deconvolution");
        return cvy_deconv_window(o, is_forward ? cvy_node_src(node, 0) : &g->src, w, c);
    }
    const cvy_conv_grad_opts *g = node->options;
    const cvy_conv_opts *o = is_forward ? node->options : &g->conv;
    s->relu = is_forward && o->relu;
    s->has_bias = o->bias && node->op->pass != CVY_LAYER_GRAD_SRC;
    return cvy_conv_window(o, is_forward ? cvy_node_src(node, 0) : &g->src, w, c);
}

/* The side of the convolution's source, or of its result. o: the first dimension of a plane. */
static cvy_winograd_side side_of(const cvy_winograd *s, const cvy_window *w, const cvy_window_channels *c, int is_src,
                                 int o)
{
    const int64_t *size = is_src ? w->src : w->dst;
    cvy_winograd_side side = {
        .channels = is_src ? c->nsrc : c->ndst, .depth = o ? size[0] : 1, .h = size[o], .w = size[o + 1]};
    side.step = is_src ? (int)w->stride[o] : 1;
    side.planes = (side.channels + s->lanes - 1) / s->lanes;
    side.parts = side.step * side.step;
    side.blocks = side.planes * side.parts;
    return side;
}

static void make_sides(cvy_winograd *s, const cvy_window *w, const cvy_window_channels *c)
{
    const int backward = s->pass == CVY_LAYER_GRAD_SRC, o = w->nspace == 3;
    const int64_t step = w->stride[o];
    s->in = side_of(s, w, c, !backward, o);
    s->out = side_of(s, w, c, backward, o);
    s->slices = o ? w->kernel[0] : 1;
    s->slice_shift = !o ? 0 : backward ? w->kernel[0] - 1 - w->pad[0] : w->pad[0];
    s->in.parts *= s->slices;
    s->in.blocks *= s->slices;
    for (int d = 0; d < 2; d++) {
        s->kernel[d] = w->kernel[o + d];
        s->n[d] = s->tile->m[d] + s->tile->r[d] - 1;
        s->in.shift[d] = backward ? s->tile->r[d] - 1 - w->pad[o + d] / step : w->pad[o + d];
        s->out.shift[d] = backward ? w->pad[o + d] % step : 0;
    }
    s->samples = c->n * s->out.depth;
}

static cvy_status geometry(const cvy_kernel_ask *ask, int m, int pairs, cvy_winograd *s)
{
    const cvy_node *node = ask->node;
    cvy_window w;
    cvy_window_channels c;
    CVY_CHECK(!node->graph->precise, CVY_NOT_APPLICABLE,
              "train.precise excludes Winograd, which rounds more than a plain sum");
    CVY_TRY(read_options(node, s, &w, &c));
    s->nspace = w.nspace;
    s->half = node->src[0]->dtype == CVY_DTYPE_BF16;
    s->isa = choose_isa(&ask->src[0], 2 + w.nspace, pairs);
    CVY_CHECK(s->half >= pairs && s->isa, CVY_NOT_APPLICABLE, "this kernel needs bf16, and a CPU with AVX512_BF16");
    const int o = w.nspace == 3;
    const int64_t step = w.stride[o], r[2] = {(w.kernel[o] + step - 1) / step, (w.kernel[o + 1] + step - 1) / step};
    s->tile = fits_window(&w) && c.groups == 1 ? choose_tile(s->isa, r, m) : NULL;
    CVY_CHECK(
        s->tile, CVY_NOT_APPLICABLE,
        "this kernel takes filters of %s with stride 1, and in pictures those of 4x4, of 5 to 6%s rows and columns "
        "with stride 2; it needs no dilation, no groups and a padding below the filter's size",
        m == 4 ? "3x3, 5x5, 1x3, 3x1, 3 and 5" : "3x3, 1x7, 7x1 and 7", m == 4 ? " and of 9 to 10" : "");
    CVY_CHECK(!pairs || CVY_MIN(s->tile->m[0] + s->tile->r[0], s->tile->m[1] + s->tile->r[1]) <= 7, CVY_NOT_APPLICABLE,
              "products in bf16 round too much for tiles of 8x8 points");
    s->lanes = s->isa->lanes;
    CVY_CHECK(c.nsrc >= s->lanes && c.ndst >= s->lanes, CVY_NOT_APPLICABLE,
              "Winograd needs at least %lld channels; this layer has %lld and %lld", (long long)s->lanes,
              (long long)c.nsrc, (long long)c.ndst);
    make_sides(s, &w, &c);
    return CVY_OK;
}

/* ---- tiles and weights in memory ---- */

/* Divides the panels into equal parts, so that u of one part has about `floats` floats. */
static void hold_panels(cvy_winograd *s, int64_t floats)
{
    const int64_t parts = (s->u_floats + floats - 1) / floats;
    s->u_panels = (s->panels + parts - 1) / parts;
    s->u_floats = s->points * cvy_winograd_u_step(s);
}

/* If the transformed weights are large compared with all transformed tiles, the tiles are transformed once, and the
 * sums of a few panels at a time are finished. Otherwise tiles are computed in chunks, and each chunk adds to the sums
 * of all panels. */
static void measure_shared(cvy_winograd *s, int64_t tile_floats)
{
    const int large = s->u_floats > WEIGHT_FLOATS, whole = large && 2 * s->tiles * tile_floats <= 3 * s->u_floats;
    const int64_t some = CVY_MAX(SUM_TILES, SUM_POINTS / s->points);
    s->chunk = CVY_MIN(s->tiles, whole ? s->tiles : large ? 2 * some : some);
    s->chunk += s->chunk % s->isa->per_word;
    if (whole)
        hold_panels(s, WEIGHT_FLOATS);
}

/* Each thread computes some chunks from start to end, and the sums of all threads are added last. */
static void measure_copies(cvy_winograd *s)
{
    const int64_t most = CVY_MAX(COPY_TILES, SUM_POINTS / s->points) * s->threads,
                  chunks = (s->tiles + most - 1) / most * s->threads;
    s->copies = s->threads;
    s->chunk = (s->tiles + chunks - 1) / chunks;
    s->chunk += s->chunk % s->isa->per_word;
}

/* Threads that share chunks read what others have transformed. That is slow between cores without a common cache, so
 * each thread has its own, unless the transformed weights are large, or sums must not depend on the threads. */
static void measure_grad_weight(cvy_winograd *s, int64_t tile_floats, int deterministic)
{
    s->copies = 1;
    if (!deterministic && s->threads > 1 && s->u_floats <= COPY_FLOATS && s->threads * s->u_floats <= COPIES_FLOATS &&
        2 * s->tiles >= s->threads * COPY_TILES)
        measure_copies(s);
    else
        measure_shared(s, tile_floats);
    s->nchunk = (s->tiles + s->chunk - 1) / s->chunk;
    s->v_floats = s->points * cvy_winograd_chunk_step(s, &s->in);
    s->m_floats = s->points * cvy_winograd_chunk_step(s, &s->out);
    s->bias_floats = (s->chunk + CVY_WINOGRAD_PIECE - 1) / CVY_WINOGRAD_PIECE * s->out.blocks * s->lanes;
}

/* Chooses the number of tiles in a chunk. If a panel of weights is small, it stays in the core's cache with the source
 * tiles of the chunk, and the strips are finished one after the other. Otherwise the products of all panels are
 * computed point by point, and the products of the whole chunk are kept too. */
static void measure_tiles(cvy_winograd *s, int64_t tile_floats, int64_t out_floats)
{
    const int64_t rows = s->rows;
    const int few = tile_floats * 2 * s->lanes <= PANEL_FLOATS;
    const int64_t room = few ? CHUNK_FLOATS / tile_floats
                             : (s->u_floats <= WEIGHT_FLOATS ? 2 : 20) * CHUNK_FLOATS / (tile_floats + out_floats),
                  most = CVY_MAX(2 * rows, room / rows * rows), least = (s->tiles + most - 1) / most;
    s->nchunk = (least + s->threads - 1) / s->threads * s->threads;
    s->chunk = ((s->tiles + s->nchunk - 1) / s->nchunk + rows - 1) / rows * rows;
    s->v_floats = s->points * cvy_winograd_strip_step(s) * (s->chunk / rows);
    hold_panels(s, HELD_FLOATS);
    s->group = few ? 1 : s->u_panels;
    s->strips = few ? 1 : s->chunk / rows;
    s->m_floats = s->group * 2 * s->lanes * s->points * s->strips * rows;
}

/* The number of tiles of the busiest thread, with the tiles that fill up its last product. */
static int64_t busiest(const cvy_winograd *s)
{
    int64_t most = 0;
    for (int64_t t = 0; t < s->threads; t++) {
        const int64_t first = CVY_MIN(s->tiles, s->nchunk * t / s->threads * s->chunk),
                      end = CVY_MIN(s->tiles, s->nchunk * (t + 1) / s->threads * s->chunk),
                      whole = (end - first) / s->chunk, rest = (end - first) % s->chunk;
        most = CVY_MAX(most, whole * s->chunk + (rest + s->rows - 1) / s->rows * s->rows);
    }
    return most;
}

static void measure(cvy_winograd *s, int deterministic)
{
    const int *m = s->tile->m;
    s->points = s->n[0] * s->n[1];
    const int64_t rows = (s->out.h - 1 + s->out.shift[0]) / s->out.step + 1, /* of results, of the fullest parity */
        columns = (s->out.w - 1 + s->out.shift[1]) / s->out.step + 1;
    s->tiles_w = (columns + m[1] - 1) / m[1];
    s->sample_tiles = s->tiles_w * ((rows + m[0] - 1) / m[0]);
    s->tiles = s->samples * s->sample_tiles;
    s->panels = (s->out.blocks + 1) / 2;
    s->u_panels = s->panels;
    s->u_floats = s->points * cvy_winograd_u_step(s);
    const int64_t tile_floats = s->points * s->in.blocks * s->lanes / s->isa->per_word,
                  out_floats = s->points * s->out.blocks * s->lanes;
    s->rows = s->isa->rows_most;
    if (s->pass == CVY_LAYER_GRAD_WEIGHT) {
        measure_grad_weight(s, tile_floats + out_floats / s->isa->per_word, deterministic);
        return;
    }
    /* Choose the number of rows that leaves the least work to the busiest thread; if there are several, the largest. */
    cvy_winograd best = {0};
    for (; s->rows >= s->isa->rows_least; s->rows--) {
        cvy_winograd trial = *s;
        measure_tiles(&trial, tile_floats, out_floats);
        if (!best.chunk || busiest(&trial) < busiest(&best))
            best = trial;
    }
    *s = best;
}

static cvy_status fill_winograd(const cvy_kernel_ask *ask, int m, int pairs, cvy_winograd *s)
{
    CVY_TRY(geometry(ask, m, pairs, s));
    s->threads = CVY_MAX(1, ask->threads);
    measure(s, ask->deterministic);
    return CVY_OK;
}

cvy_status cvy_winograd_offer(cvy_kernel_ask *ask, int m, int pairs)
{
    cvy_winograd s = {0};
    const cvy_node *node = ask->node;
    CVY_TRY(cvy_native_f32_or_bf16(node));
    CVY_TRY(fill_winograd(ask, m, pairs, &s));
    static const char *const weights[][3] = {{"ABc16b16a", "ABcd16b16a", "ABcde16b16a"},
                                             {"ABc8b8a", "ABcd8b8a", "ABcde8b8a"}};
    const cvy_layout activation = cvy_layout_channels(2 + s.nspace, s.lanes),
                     weight = cvy_layout_make(weights[s.lanes != 16][s.nspace - 1]);
    ask->src[0] = activation;
    if (s.pass == CVY_LAYER_GRAD_WEIGHT) {
        ask->src[1] = activation;
        if (!ask->dst_fixed[0])
            ask->dst[0] = weight;
    } else {
        ask->dst[0] = activation;
        if (ask->src_free[1])
            ask->src[1] = weight;
    }
    if (node->op->pass == CVY_LAYER_FORWARD && s.has_bias)
        ask->src[2] = cvy_layout_plain();
    if (s.pass == CVY_LAYER_GRAD_WEIGHT && s.has_bias)
        ask->dst[1] = cvy_layout_plain();
    const int64_t all = s.pass == CVY_LAYER_GRAD_WEIGHT
                            ? s.copies * (s.u_floats + s.v_floats + s.m_floats + s.bias_floats)
                            : s.u_floats + s.threads * (s.v_floats + s.m_floats);
    ask->scratch_bytes = (size_t)all * sizeof(float);
    return CVY_OK;
}

/* ---- offsets of weights ---- */

/* The offset of tap number `tap` of a part, or -1. The gradient of the source has the filter rotated by 180 degrees. */
static int64_t tap_offset(const cvy_winograd *s, const cvy_blocking *b, int64_t part, int64_t tap)
{
    const int backward = s->pass == CVY_LAYER_GRAD_SRC, o = s->nspace == 3;
    const int64_t taps = s->tile->r[0] * s->tile->r[1], turned = backward ? taps - 1 - tap : tap,
                  step = CVY_MAX(s->in.step, s->out.step), phase = step > 1 ? part : 0,
                  place[2] = {step * (turned / s->tile->r[1]) + phase / 2, step * (turned % s->tile->r[1]) + phase % 2};
    int64_t at[CVY_NDIM_MAX] = {0};
    if (place[0] >= s->kernel[0] || place[1] >= s->kernel[1])
        return -1;
    if (o)
        at[2] = backward ? s->slices - 1 - part : part;
    at[2 + o] = place[0];
    if (s->nspace > 1)
        at[3 + o] = place[1];
    return cvy_blocking_offset(b, at);
}

/* The offset of a channel along dimension `dim` of the weight, or -1. */
static int64_t channel_offset(const cvy_winograd *s, const cvy_winograd_side *side, const cvy_blocking *b, int dim,
                              int64_t c)
{
    int64_t at[CVY_NDIM_MAX] = {0};
    at[dim] = c % (side->planes * s->lanes);
    return at[dim] < side->channels ? cvy_blocking_offset(b, at) : -1;
}

/* Fills the tables of offsets of weights. Forward and CVY_LAYER_GRAD_WEIGHT have C as `in`; CVY_LAYER_GRAD_SRC has K.
 */
static cvy_status make_weight_offsets(const cvy_kernel_ask *ask, cvy_winograd *s)
{
    const int grad_weight = s->pass == CVY_LAYER_GRAD_WEIGHT, in_dim = s->pass == CVY_LAYER_GRAD_SRC ? 0 : 1;
    const cvy_shape *shape = grad_weight ? cvy_node_dst(ask->node, 0) : cvy_node_src(ask->node, 1);
    const int64_t in = s->in.blocks * s->lanes, out = s->out.blocks * s->lanes, taps = s->tile->r[0] * s->tile->r[1],
                  parts = CVY_MAX(s->in.parts, s->out.parts);
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(grad_weight ? &ask->dst[0] : &ask->src[1], shape, &b));
    CVY_TRY(cvy_mem_alloc((size_t)(in + out + parts * taps) * sizeof *s->in_at, &s->in_at));
    s->out_at = s->in_at + in;
    s->tap_at = s->out_at + out;
    s->weight_floats = b.elems;
    s->weight_padded = b.elems != cvy_shape_elems(shape);
    for (int64_t c = 0; c < in; c++)
        s->in_at[c] = channel_offset(s, &s->in, &b, in_dim, c);
    for (int64_t c = 0; c < out; c++)
        s->out_at[c] = channel_offset(s, &s->out, &b, 1 - in_dim, c);
    for (int64_t t = 0; t < parts * taps; t++)
        s->tap_at[t] = tap_offset(s, &b, t / taps, t % taps);
    return CVY_OK;
}

void cvy_winograd_destroy(void *state)
{
    cvy_winograd *s = state;
    if (s)
        cvy_mem_free(&s->in_at);
    cvy_mem_free(&s);
}

cvy_status cvy_winograd_create(const cvy_kernel_ask *ask, int m, int pairs, void **state_out)
{
    cvy_winograd *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    cvy_status status = fill_winograd(ask, m, pairs, s);
    if (status == CVY_OK)
        status = make_weight_offsets(ask, s);
    if (status != CVY_OK) {
        cvy_winograd_destroy(s);
        return status;
    }
    *state_out = s;
    return CVY_OK;
}
