/*
 * native_winograd.c: convolution and its gradients by Winograd's minimal filtering, for 3x3, 5x5, 1x3, 3x1, 1x7 and 7x1
 * filters of stride 1.
 *
 * These kernels run most of the convolutions of most networks. Activations are blocked by channels, with blocks of one
 * CPU vector, in f32 or bf16 (all arithmetic is in f32). Weights have the layout of the variable; each call transforms
 * them again, because they change with every step. Forward and the gradient of the source compute tiles in chunks that
 * stay in a core's cache from the source to the destination. The gradient of the weights computes chunks that all
 * threads share. native_winograd.h has the mathematics and the references.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/winograd/native_winograd.h"
#include "op/conv/op_conv.h"

enum {
    CHUNK_FLOATS = 1 << 18,  /* of one thread's transformed tiles: 1 MB, half of a core's cache */
    PANEL_FLOATS = 3 << 16,  /* at most, of a panel of weights that stays in the cache too */
    WEIGHT_FLOATS = 1 << 22, /* larger transformed weights get larger chunks, so that they are read less often */
    HELD_FLOATS = 1 << 25,   /* of transformed weights at a time; with more, source tiles are transformed again */
    SUM_TILES = 64,          /* tiles in a chunk of CVY_LAYER_GRAD_WEIGHT; twice as many if the weights are large */
    SUM_POINTS = 64 * 36,    /* at least, in such a chunk: it has more tiles if these have few points */
    PIECE = 16,              /* tiles of one work item that transforms such a chunk */
    LOCAL = CVY_WINOGRAD_N_MAX * CVY_WINOGRAD_N_MAX * CVY_WINOGRAD_LANES_MAX
};

struct side { /* an activation: [samples, blocks, h, w, lanes] */
    int64_t channels, blocks, h, w;
};

struct winograd {
    const cvy_winograd_isa *isa;
    const cvy_winograd_tile *tile;
    cvy_layer_pass pass;
    int threads, relu, has_bias;
    int half;                /* activations are bf16 */
    int64_t samples, pad[2]; /* pad: of `in` */
    struct side in, out;     /* products sum over the channels of `in`; CVY_LAYER_GRAD_WEIGHT: src and ddst */
    int n[2], points;        /* points of a tile: in a row and a column; in total */
    int64_t rows;            /* tiles in one product */
    int64_t lanes, tiles_w, sample_tiles, tiles;
    int64_t chunk, nchunk; /* tiles in a chunk; chunks */
    int64_t panels;        /* pairs of blocks of out; the last may be one block */
    int64_t strips, group; /* strips of tiles and panels of channels between two transforms of the destination */
    int64_t u_panels;      /* panels that u has room for; a call handles so many at a time */
    int64_t *in_at, *out_at, *tap_at; /* the offset of a weight is the sum of the three; -1: padding of a block */
    int64_t weight_floats;            /* size of the variable, with padding */
    /* Scratch memory, in floats. Forward: u, then v and m of each thread; CVY_LAYER_GRAD_WEIGHT: u, v, d, ddst sums. */
    int64_t u_floats, v_floats, m_floats, bias_floats;
    /* Of the running call. */
    const void *in_data;
    void *out_data; /* CVY_LAYER_GRAD_WEIGHT: ddst, which is only read */
    const float *weight, *bias;
    float *dweight, *dbias, *u, *rest;
    int64_t chunk_first, chunk_tiles; /* CVY_LAYER_GRAD_WEIGHT: the chunk that all threads work on */
    int64_t panel_first, panel_end;   /* the panels that u holds now */
};

/* ---- tiles ---- */

struct place {            /* where one tile is */
    int64_t sample, y, x; /* in tiles */
};

static struct place place_of(const struct winograd *s, int64_t tile)
{
    const int64_t in_sample = tile % s->sample_tiles;
    return (struct place){tile / s->sample_tiles, in_sample / s->tiles_w, in_sample % s->tiles_w};
}

static size_t plane_bytes(const struct winograd *s, const struct side *side)
{
    return (size_t)(side->h * side->w * s->lanes) * (s->half ? sizeof(cvy_bf16) : sizeof(float));
}

/* Returns the n[0] x n[1] values of a tile at (y0, x0): a pointer into the activation if all exist and are f32, else a
 * copy in `local`. */
static const float *tile_values(const struct winograd *s, const void *data, const struct side *side, int64_t sample,
                                int64_t block, int64_t y0, int64_t x0, const int *n, float *local, int64_t *row_out)
{
    const void *plane = (const char *)data + (size_t)(sample * side->blocks + block) * plane_bytes(s, side);
    if (!s->half && y0 >= 0 && x0 >= 0 && y0 + n[0] <= side->h && x0 + n[1] <= side->w) {
        *row_out = side->w * s->lanes;
        return (const float *)plane + (y0 * side->w + x0) * s->lanes;
    }
    s->isa->load[s->half](plane, side->h, side->w, y0, x0, n, local);
    *row_out = n[1] * s->lanes;
    return local;
}

static void transform_in(const struct winograd *s, int64_t tile, int64_t block, float *to, int64_t step)
{
    const struct place p = place_of(s, tile);
    float local[LOCAL];
    int64_t row = 0;
    const float *from = tile_values(s, s->in_data, &s->in, p.sample, block, p.y * s->tile->m[0] - s->pad[0],
                                    p.x * s->tile->m[1] - s->pad[1], s->n, local, &row);
    s->tile->src(from, row, s->lanes, to, step);
}

/* ---- weights ---- */

static int64_t panel_blocks(const struct winograd *s, int64_t panel)
{
    return CVY_MIN(2, s->out.blocks - 2 * panel);
}

/* These return the distance between points, in floats: of u, of a strip of source tiles, and of a chunk of source or
 * ddst tiles of CVY_LAYER_GRAD_WEIGHT. It is an odd number of vectors, so that the points of one tile fall into
 * different sets of a cache. */
static int64_t u_step(const struct winograd *s)
{
    const int64_t blocks = CVY_MIN(2 * s->u_panels, s->out.blocks);
    return s->in.blocks * blocks * s->lanes * s->lanes + s->lanes;
}

static int64_t strip_step(const struct winograd *s)
{
    return (s->in.blocks * s->rows | 1) * s->lanes;
}

static int64_t chunk_step(const struct winograd *s, const struct side *side)
{
    return (side->blocks * s->chunk | 1) * s->lanes;
}

/* Where u begins for a block of channels of out and channel c of in; points are u_step apart. */
static float *u_at(const struct winograd *s, int64_t block, int64_t c)
{
    const int64_t panel = block / 2, width = panel_blocks(s, panel) * s->lanes;
    return s->u + (panel - s->panel_first) * 2 * s->lanes * s->in.blocks * s->lanes + c * width + block % 2 * s->lanes;
}

/* Loads the taps of one channel of in and one block of out; each tap is one vector. */
static void load_weights(const struct winograd *s, int64_t c, const int64_t *out_at, float *to)
{
    const int64_t lanes = s->lanes, taps = s->tile->r[0] * s->tile->r[1], in_at = s->in_at[c];
    const int side_by_side = in_at >= 0 && out_at[lanes - 1] == out_at[0] + lanes - 1;
    for (int64_t t = 0; t < taps; t++, to += lanes)
        if (side_by_side)
            memcpy(to, s->weight + in_at + out_at[0] + s->tap_at[t], (size_t)lanes * sizeof *to);
        else
            for (int64_t l = 0; l < lanes; l++)
                to[l] = in_at < 0 || out_at[l] < 0 ? 0 : s->weight[in_at + out_at[l] + s->tap_at[t]];
}

/* Work item: one channel of in, for the panels that u holds. */
static void transform_weights(int64_t first, int64_t end, void *arg)
{
    const struct winograd *s = arg;
    const int64_t lanes = s->lanes, last = CVY_MIN(2 * s->panel_end, s->out.blocks);
    float local[LOCAL];
    for (int64_t c = first; c < end; c++)
        for (int64_t block = 2 * s->panel_first; block < last; block++) {
            load_weights(s, c, s->out_at + block * lanes, local);
            s->tile->weight(local, s->tile->r[1] * lanes, lanes, u_at(s, block, c), u_step(s));
        }
}

/* ---- forward and the gradient of the source: one thread computes a chunk of tiles from start to end ---- */

/* Makes v [strip of `rows` tiles][point][block][rows][lanes]. */
static void chunk_in(const struct winograd *s, int64_t first, int64_t count, float *v)
{
    const int64_t rows = s->rows, lanes = s->lanes, step = strip_step(s), strip = s->points * step;
    if (count % rows != 0)
        memset(v + count / rows * strip, 0, (size_t)strip * sizeof *v);
    for (int64_t block = 0; block < s->in.blocks; block++)
        for (int64_t i = 0; i < count; i++)
            transform_in(s, first + i, block, v + i / rows * strip + (block * rows + i % rows) * lanes, step);
}

/* Makes m [panel][strip][point][rows][one or two vectors] of panels p0 .. p1-1 and the first `strips` strips of v. */
static void chunk_products(const struct winograd *s, int64_t p0, int64_t p1, int64_t strips, const float *v, float *m)
{
    const int64_t rows = s->rows, lanes = s->lanes, step = strip_step(s), part = rows * 2 * lanes * s->points;
    for (int64_t point = 0; point < s->points; point++)
        for (int64_t p = p0; p < p1; p++) {
            const int64_t blocks = panel_blocks(s, p);
            const float *u = u_at(s, 2 * p, 0) + point * u_step(s);
            for (int64_t strip = 0; strip < strips; strip++)
                s->isa->products[s->rows - s->isa->rows_least][blocks - 1](
                    s->in.blocks, v + (strip * s->points + point) * step, u,
                    m + ((p - p0) * strips + strip) * part + point * rows * blocks * lanes);
        }
}

static void chunk_out(const struct winograd *s, int64_t block, int64_t first, int64_t count, const float *m)
{
    const int64_t rows = s->rows, lanes = s->lanes, width = panel_blocks(s, block / 2) * lanes,
                  part = rows * 2 * lanes * s->points;
    const float *bias = s->bias ? s->bias + block * lanes : NULL;
    const int *size = s->tile->m;
    float local[LOCAL], padded[CVY_WINOGRAD_LANES_MAX] = {0};
    if (bias && (block + 1) * lanes > s->out.channels) {
        memcpy(padded, bias, (size_t)(s->out.channels - block * lanes) * sizeof *bias);
        bias = padded;
    }
    for (int64_t i = 0; i < count; i++) {
        const struct place p = place_of(s, first + i);
        const int64_t y = p.y * size[0], x = p.x * size[1];
        void *plane = (char *)s->out_data + (size_t)(p.sample * s->out.blocks + block) * plane_bytes(s, &s->out);
        s->tile->dst(m + i / rows * part + i % rows * width + block % 2 * lanes, s->n[1] * rows * width, rows * width,
                     local, lanes);
        s->isa->store[s->half](local, size[1], (int)CVY_MIN(size[0], s->out.h - y), (int)CVY_MIN(size[1], s->out.w - x),
                               bias, s->relu, plane, s->out.w, y, x);
    }
}

static void one_chunk(const struct winograd *s, int64_t first, int64_t count, float *v, float *m)
{
    const int64_t rows = s->rows, all = (count + rows - 1) / rows, width = 2 * s->lanes,
                  strip_floats = s->points * strip_step(s);
    chunk_in(s, first, count, v);
    for (int64_t p = s->panel_first; p < s->panel_end; p += s->group)
        for (int64_t strip = 0; strip < all; strip += s->strips) {
            const int64_t p_end = CVY_MIN(s->panel_end, p + s->group), strips = CVY_MIN(s->strips, all - strip),
                          tiles = CVY_MIN(count - strip * rows, strips * rows);
            chunk_products(s, p, p_end, strips, v + strip * strip_floats, m);
            for (int64_t block = 2 * p; block < CVY_MIN(2 * p_end, s->out.blocks); block++)
                chunk_out(s, block, first + strip * rows, tiles,
                          m + (block / 2 - p) * strips * rows * width * s->points);
        }
}

/* Work item: one thread, for the panels that u holds. */
static void chunks_of_thread(int64_t begin, int64_t end, void *arg)
{
    const struct winograd *s = arg;
    for (int64_t t = begin; t < end; t++) {
        float *v = s->rest + t * (s->v_floats + s->m_floats), *m = v + s->v_floats;
        for (int64_t c = s->nchunk * t / s->threads; c < s->nchunk * (t + 1) / s->threads; c++)
            if (c * s->chunk < s->tiles)
                one_chunk(s, c * s->chunk, CVY_MIN(s->chunk, s->tiles - c * s->chunk), v, m);
    }
}

/* ---- the gradient of the weights: chunks of tiles that all threads share ---- */

static int64_t pieces(const struct winograd *s)
{
    return (s->chunk_tiles + PIECE - 1) / PIECE;
}

/* Transforms ddst of one tile and block, and adds it to the sums for dbias. d is [point][panel][tile][one or two
 * vectors]. */
static void transform_ddst(const struct winograd *s, int64_t i, int64_t block, float *d, float *sum)
{
    const struct place p = place_of(s, s->chunk_first + i);
    const int64_t lanes = s->lanes, panel = block / 2, width = panel_blocks(s, panel) * lanes;
    const int *m = s->tile->m;
    float local[LOCAL];
    int64_t row = 0;
    const float *from = tile_values(s, s->out_data, &s->out, p.sample, block, p.y * m[0], p.x * m[1], m, local, &row);
    if (s->has_bias)
        s->isa->add_up(from, row, m, sum);
    s->tile->ddst(from, row, lanes, d + panel * 2 * lanes * s->chunk + i * width + block % 2 * lanes,
                  chunk_step(s, &s->out));
}

/* Work item: one block of in or out, and one piece of the chunk. v is [point][block][tile][lanes]. */
static void transform_piece(int64_t begin, int64_t end, void *arg)
{
    const struct winograd *s = arg;
    const int64_t lanes = s->lanes, npieces = pieces(s);
    float *v = s->rest, *d = v + s->v_floats, *sums = d + s->m_floats;
    for (int64_t item = begin; item < end; item++) {
        const int64_t block = item / npieces, piece = item % npieces,
                      last = CVY_MIN(s->chunk_tiles, (piece + 1) * PIECE);
        for (int64_t i = piece * PIECE; i < last; i++)
            if (block < s->in.blocks)
                transform_in(s, s->chunk_first + i, block, v + (block * s->chunk + i) * lanes, chunk_step(s, &s->in));
            else
                transform_ddst(s, i, block - s->in.blocks, d,
                               sums + (piece * s->out.blocks + block - s->in.blocks) * lanes);
    }
}

/* Work item: one point, and one of the panels that u holds. */
static void sum_chunk(int64_t begin, int64_t end, void *arg)
{
    const struct winograd *s = arg;
    const int64_t lanes = s->lanes, sum_rows = s->isa->sum_rows, panels = s->panel_end - s->panel_first;
    const float *v = s->rest, *d = v + s->v_floats;
    for (int64_t item = begin; item < end; item++) {
        const int64_t point = item / panels, panel = s->panel_first + item % panels, blocks = panel_blocks(s, panel);
        const float *a = v + point * chunk_step(s, &s->in),
                    *b = d + point * chunk_step(s, &s->out) + panel * 2 * lanes * s->chunk;
        float *u = u_at(s, 2 * panel, 0) + point * u_step(s);
        for (int64_t c = 0; c < s->in.blocks * lanes; c += sum_rows)
            s->isa->sum[blocks - 1](s->chunk_tiles, a + c / lanes * s->chunk * lanes + c % lanes, b, s->chunk_first > 0,
                                    u + c * blocks * lanes);
    }
}

/* Work item: one channel of in, for the panels that u holds. */
static void transform_dweight(int64_t first, int64_t end, void *arg)
{
    const struct winograd *s = arg;
    const int64_t lanes = s->lanes, taps = s->tile->r[0] * s->tile->r[1],
                  last = CVY_MIN(2 * s->panel_end, s->out.blocks);
    float local[LOCAL];
    for (int64_t c = first; c < end; c++)
        for (int64_t block = 2 * s->panel_first; block < last; block++) {
            const int64_t *out_at = s->out_at + block * lanes;
            s->tile->dweight(u_at(s, block, c), s->n[1] * u_step(s), u_step(s), local, lanes);
            for (int64_t t = 0; t < taps; t++)
                for (int64_t l = 0; l < lanes; l++)
                    if (out_at[l] >= 0)
                        s->dweight[s->in_at[c] + out_at[l] + s->tap_at[t]] = local[t * lanes + l];
        }
}

static void add_sums(const struct winograd *s, const float *sums)
{
    const int64_t padded = s->out.blocks * s->lanes;
    for (int64_t k = 0; k < s->out.channels; k++) {
        double total = 0;
        for (int64_t at = k; at < s->bias_floats; at += padded)
            total += sums[at];
        s->dbias[k] = (float)total;
    }
}

/* ---- planning ---- */

/* Chooses the widest vectors. If the source is in blocks of eight channels, vectors of eight are used; a library that
 * is limited to AVX2 makes such blocks. */
static const cvy_winograd_isa *choose_isa(const cvy_layout *src)
{
    const cvy_winograd_isa *isa = cvy_layout_channel_block(src, 4) == 8 ? NULL : cvy_winograd_avx512();
    if (!isa)
        isa = cvy_winograd_avx2();
    return isa ? isa : cvy_winograd_plain();
}

/* Finds F(m x m, ..) for a square filter; for a filter of one row or column, m results along it. NULL: none exists. */
static const cvy_winograd_tile *choose_tile(const cvy_winograd_isa *isa, const cvy_window *w, int m)
{
    for (int i = 0; i < isa->ntile; i++) {
        const cvy_winograd_tile *tile = &isa->tile[i];
        if (CVY_MAX(tile->m[0], tile->m[1]) == m && tile->r[0] == w->kernel[0] && tile->r[1] == w->kernel[1])
            return tile;
    }
    return NULL;
}

static cvy_status geometry(const cvy_kernel_ask *ask, int m, struct winograd *s)
{
    const cvy_node *node = ask->node;
    cvy_window w;
    cvy_window_channels c;
    CVY_CHECK(!node->graph->precise, CVY_NOT_APPLICABLE,
              "train.precise excludes Winograd, which rounds more than a plain sum");
    s->pass = node->op->pass;
    const cvy_conv_grad_opts *g = node->options;
    const cvy_conv_opts *o = s->pass == CVY_LAYER_FORWARD ? node->options : &g->conv;
    CVY_TRY(cvy_conv_window(o, s->pass == CVY_LAYER_FORWARD ? &node->src[0]->shape : &g->src, &w, &c));
    s->isa = choose_isa(&ask->src[0]);
    CVY_CHECK(s->isa, CVY_NOT_APPLICABLE, "Winograd needs a compiler with vector extensions (gcc or clang)");
    s->tile = w.nspace == 2 ? choose_tile(s->isa, &w, m) : NULL;
    int fits = s->tile && c.groups == 1;
    for (int d = 0; d < w.nspace; d++)
        fits = fits && w.stride[d] == 1 && w.dilation[d] == 1 && w.pad[d] < w.kernel[d];
    CVY_CHECK(fits, CVY_NOT_APPLICABLE,
              "this kernel needs a %s filter, stride 1, no dilation, no groups, and a padding below the filter's size",
              m == 4 ? "3x3, 5x5, 1x3 or 3x1" : "3x3, 1x7 or 7x1");
    s->lanes = s->isa->lanes;
    CVY_CHECK(c.nsrc >= s->lanes && c.ndst >= s->lanes, CVY_NOT_APPLICABLE,
              "Winograd needs at least %lld channels; this layer has %lld and %lld", (long long)s->lanes,
              (long long)c.nsrc, (long long)c.ndst);
    const struct side src = {c.nsrc, (c.nsrc + s->lanes - 1) / s->lanes, w.src[0], w.src[1]},
                      dst = {c.ndst, (c.ndst + s->lanes - 1) / s->lanes, w.dst[0], w.dst[1]};
    s->in = s->pass == CVY_LAYER_GRAD_SRC ? dst : src;
    s->out = s->pass == CVY_LAYER_GRAD_SRC ? src : dst;
    for (int d = 0; d < 2; d++) {
        s->n[d] = s->tile->m[d] + s->tile->r[d] - 1;
        s->pad[d] = s->pass == CVY_LAYER_GRAD_SRC ? s->tile->r[d] - 1 - w.pad[d] : w.pad[d];
    }
    s->samples = c.n;
    s->half = node->src[0]->dtype == CVY_DTYPE_BF16;
    s->relu = s->pass == CVY_LAYER_FORWARD && o->relu;
    s->has_bias = o->bias && s->pass != CVY_LAYER_GRAD_SRC;
    return CVY_OK;
}

/* Divides the panels into equal parts, so that u of one part has about `floats` floats. */
static void hold_panels(struct winograd *s, int64_t floats)
{
    const int64_t parts = (s->u_floats + floats - 1) / floats;
    s->u_panels = (s->panels + parts - 1) / parts;
    s->u_floats = s->points * u_step(s);
}

/* If the transformed weights are large compared with all transformed tiles, the tiles are transformed once, and the
 * sums of a few panels at a time are finished. Otherwise tiles are computed in chunks, and each chunk adds to the sums
 * of all panels. */
static void measure_grad_weight(struct winograd *s, int64_t tile_floats)
{
    const int large = s->u_floats > WEIGHT_FLOATS, whole = large && 2 * s->tiles * tile_floats <= 3 * s->u_floats;
    const int64_t some = CVY_MAX(SUM_TILES, SUM_POINTS / s->points);
    s->chunk = CVY_MIN(s->tiles, whole ? s->tiles : large ? 2 * some : some);
    s->nchunk = (s->tiles + s->chunk - 1) / s->chunk;
    if (whole)
        hold_panels(s, WEIGHT_FLOATS);
    s->v_floats = s->points * chunk_step(s, &s->in);
    s->m_floats = s->points * chunk_step(s, &s->out);
    s->bias_floats = (s->chunk + PIECE - 1) / PIECE * s->out.blocks * s->lanes;
}

/* Chooses the number of tiles in a chunk. If a panel of weights is small, it stays in the core's cache with the source
 * tiles of the chunk, and the strips are finished one after the other. Otherwise the products of all panels are
 * computed point by point, and the products of the whole chunk are kept too. */
static void measure_tiles(struct winograd *s, int64_t tile_floats, int64_t out_floats)
{
    const int64_t rows = s->rows;
    const int few = tile_floats * 2 * s->lanes <= PANEL_FLOATS;
    const int64_t room = few ? CHUNK_FLOATS / tile_floats
                             : (s->u_floats <= WEIGHT_FLOATS ? 2 : 20) * CHUNK_FLOATS / (tile_floats + out_floats),
                  most = CVY_MAX(2 * rows, room / rows * rows), least = (s->tiles + most - 1) / most;
    s->nchunk = (least + s->threads - 1) / s->threads * s->threads;
    s->chunk = ((s->tiles + s->nchunk - 1) / s->nchunk + rows - 1) / rows * rows;
    s->v_floats = s->points * strip_step(s) * (s->chunk / rows);
    hold_panels(s, HELD_FLOATS);
    s->group = few ? 1 : s->u_panels;
    s->strips = few ? 1 : s->chunk / rows;
    s->m_floats = s->group * 2 * s->lanes * s->points * s->strips * rows;
}

/* The number of tiles of the busiest thread, with the tiles that fill up its last product. */
static int64_t busiest(const struct winograd *s)
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

static void measure(struct winograd *s)
{
    const int *m = s->tile->m;
    s->points = s->n[0] * s->n[1];
    s->tiles_w = (s->out.w + m[1] - 1) / m[1];
    s->sample_tiles = s->tiles_w * ((s->out.h + m[0] - 1) / m[0]);
    s->tiles = s->samples * s->sample_tiles;
    s->panels = (s->out.blocks + 1) / 2;
    s->u_panels = s->panels;
    s->u_floats = s->points * u_step(s);
    const int64_t tile_floats = s->points * s->in.blocks * s->lanes, out_floats = s->points * s->out.blocks * s->lanes;
    s->rows = s->isa->rows_most;
    if (s->pass == CVY_LAYER_GRAD_WEIGHT) {
        measure_grad_weight(s, tile_floats + out_floats);
        return;
    }
    /* Choose the number of rows that leaves the least work to the busiest thread; if there are several, the largest. */
    struct winograd best = {0};
    for (; s->rows >= s->isa->rows_least; s->rows--) {
        struct winograd trial = *s;
        measure_tiles(&trial, tile_floats, out_floats);
        if (!best.chunk || busiest(&trial) < busiest(&best))
            best = trial;
    }
    *s = best;
}

static cvy_status fill_winograd(const cvy_kernel_ask *ask, int m, struct winograd *s)
{
    CVY_TRY(geometry(ask, m, s));
    s->threads = CVY_MAX(1, ask->threads);
    measure(s);
    return CVY_OK;
}

static cvy_status winograd_offer(cvy_kernel_ask *ask, int m)
{
    struct winograd s = {0};
    const cvy_node *node = ask->node;
    CVY_TRY(cvy_native_f32_or_bf16(node));
    CVY_TRY(fill_winograd(ask, m, &s));
    const cvy_layout activation = cvy_layout_channels(4, s.lanes),
                     weight = cvy_layout_make(s.lanes == 16 ? "ABcd16b16a" : "ABcd8b8a");
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
    if (s.pass == CVY_LAYER_FORWARD && s.has_bias)
        ask->src[2] = cvy_layout_plain();
    if (s.pass == CVY_LAYER_GRAD_WEIGHT && s.has_bias)
        ask->dst[1] = cvy_layout_plain();
    const int64_t each = s.pass == CVY_LAYER_GRAD_WEIGHT ? 1 : s.threads;
    ask->scratch_bytes = (size_t)(s.u_floats + each * (s.v_floats + s.m_floats) + s.bias_floats) * sizeof(float);
    return CVY_OK;
}

/* Fills the tables of offsets of weights. Forward and CVY_LAYER_GRAD_WEIGHT have C as `in`; CVY_LAYER_GRAD_SRC has K as
 * `in` and the filter rotated by 180 degrees. */
static cvy_status make_weight_offsets(const cvy_kernel_ask *ask, struct winograd *s)
{
    const int grad_weight = s->pass == CVY_LAYER_GRAD_WEIGHT, in_dim = s->pass == CVY_LAYER_GRAD_SRC ? 0 : 1;
    const cvy_shape *shape = grad_weight ? cvy_node_dst(ask->node, 0) : cvy_node_src(ask->node, 1);
    const int64_t in = s->in.blocks * s->lanes, out = s->out.blocks * s->lanes, taps = s->tile->r[0] * s->tile->r[1];
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(grad_weight ? &ask->dst[0] : &ask->src[1], shape, &b));
    CVY_TRY(cvy_mem_alloc((size_t)(in + out + taps) * sizeof *s->in_at, &s->in_at));
    s->out_at = s->in_at + in;
    s->tap_at = s->out_at + out;
    s->weight_floats = b.elems;
    for (int64_t i = 0; i < in + out + taps; i++) {
        const int64_t tap = i - in - out, rotated = s->pass == CVY_LAYER_GRAD_SRC ? taps - 1 - tap : tap;
        int64_t at[CVY_NDIM_MAX] = {0};
        if (i < in)
            at[in_dim] = i;
        else if (i < in + out)
            at[1 - in_dim] = i - in;
        else {
            at[2] = rotated / s->tile->r[1];
            at[3] = rotated % s->tile->r[1];
        }
        const int exists = at[0] < shape->dim[0] && at[1] < shape->dim[1];
        s->in_at[i] = exists ? cvy_blocking_offset(&b, at) : -1;
    }
    return CVY_OK;
}

static void winograd_destroy(void *state)
{
    struct winograd *s = state;
    if (s)
        cvy_mem_free(&s->in_at);
    cvy_mem_free(&s);
}

static cvy_status winograd_create(const cvy_kernel_ask *ask, int m, void **state_out)
{
    struct winograd *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    cvy_status status = fill_winograd(ask, m, s);
    if (status == CVY_OK)
        status = make_weight_offsets(ask, s);
    if (status != CVY_OK) {
        winograd_destroy(s);
        return status;
    }
    *state_out = s;
    return CVY_OK;
}

/* ---- running ---- */

static cvy_status tiles_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct winograd *s = state;
    s->in_data = src[0];
    s->weight = src[1];
    s->bias = s->has_bias ? src[2] : NULL;
    s->out_data = dst[0];
    s->u = scratch;
    s->rest = s->u + s->u_floats;
    for (s->panel_first = 0; s->panel_first < s->panels; s->panel_first += s->u_panels) {
        s->panel_end = CVY_MIN(s->panels, s->panel_first + s->u_panels);
        cvy_parallel_for(s->threads, s->in.blocks * s->lanes, 1, transform_weights, s);
        cvy_parallel_for(s->threads, s->threads, 1, chunks_of_thread, s);
    }
    return CVY_OK;
}

static cvy_status grad_weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct winograd *s = state;
    s->in_data = src[0];
    s->out_data = src[1];
    s->dweight = dst[0];
    s->dbias = s->has_bias ? dst[1] : NULL;
    s->u = scratch;
    s->rest = s->u + s->u_floats;
    float *sums = s->rest + s->v_floats + s->m_floats;
    memset(sums, 0, (size_t)s->bias_floats * sizeof *sums);
    if (s->in.channels % s->lanes != 0 || s->out.channels % s->lanes != 0)
        memset(s->dweight, 0, (size_t)s->weight_floats * sizeof *s->dweight);
    for (s->chunk_first = 0; s->chunk_first < s->tiles; s->chunk_first += s->chunk) {
        s->chunk_tiles = CVY_MIN(s->chunk, s->tiles - s->chunk_first);
        cvy_parallel_for(s->threads, (s->in.blocks + s->out.blocks) * pieces(s), 1, transform_piece, s);
        for (s->panel_first = 0; s->panel_first < s->panels; s->panel_first += s->u_panels) {
            s->panel_end = CVY_MIN(s->panels, s->panel_first + s->u_panels);
            cvy_parallel_for(s->threads, s->points * (s->panel_end - s->panel_first), 1, sum_chunk, s);
            if (s->chunk_first + s->chunk >= s->tiles)
                cvy_parallel_for(s->threads, s->in.channels, 1, transform_dweight, s);
        }
    }
    if (s->dbias)
        add_sums(s, sums);
    return CVY_OK;
}

static cvy_status offer_4(cvy_kernel_ask *ask)
{
    return winograd_offer(ask, 4);
}

static cvy_status offer_6(cvy_kernel_ask *ask)
{
    return winograd_offer(ask, 6);
}

static cvy_status create_4(const cvy_kernel_ask *ask, void **state_out)
{
    return winograd_create(ask, 4, state_out);
}

static cvy_status create_6(const cvy_kernel_ask *ask, void **state_out)
{
    return winograd_create(ask, 6, state_out);
}

#define WINOGRAD(pass, m, order, how)                                                                                  \
    {                                                                                                                  \
        .name = "native.conv_winograd" #m pass, .op = "conv" pass, .preference = order, .winograd = 1,                 \
        .offer = offer_##m, .create = create_##m, .run = how, .destroy = winograd_destroy                              \
    }

CVY_KERNEL_DEFINE(native_conv_winograd4) = WINOGRAD("", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd4_grad_src) = WINOGRAD("_grad_src", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd4_grad_weight) = WINOGRAD("_grad_weight", 4, 125, grad_weight_run);
CVY_KERNEL_DEFINE(native_conv_winograd6) = WINOGRAD("", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd6_grad_src) = WINOGRAD("_grad_src", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd6_grad_weight) = WINOGRAD("_grad_weight", 6, 108, grad_weight_run);
