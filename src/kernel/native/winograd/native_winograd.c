/*
 * native_winograd.c: convolution, deconvolution and their gradients by Winograd's minimal filtering, for 3x3, 5x5, 1x3,
 * 3x1, 1x7 and 7x1 filters of stride 1, for those of 4 to 6 rows and columns of stride 2, for series with filters of 3,
 * 5 or 7, and for volumes with such filters in each slice.
 *
 * A deconvolution is the gradient of a convolution for its source, and its own gradients are a convolution and the
 * gradient of that convolution's weight. So `pass` below is always that of the convolution.
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

/* An activation, [samples, planes, depth, h, w, lanes]; pictures have a depth of 1, and series a width of 1. Some count
 * as several parts with as many planes, whose blocks of channels follow each other, so that a block is in plane b %
 * planes:
 *   - under stride 2 the longer side has four, one for each parity of rows and columns: a tile's value (y, x) is at
 * (step y + row - shift[0], step x + column - shift[1]), where row and column are 0 or 1, see phase_of();
 *   - of a volume `in` has one for each slice of the filter, since the results of a slice are sums over several slices.
 */
struct side {
    int64_t channels, planes, parts, blocks, depth, h, w;
    int64_t shift[2];
    int step;
};

struct winograd {
    const cvy_winograd_isa *isa;
    const cvy_winograd_tile *tile;
    cvy_layer_pass pass;
    int threads, relu, has_bias;
    int half;            /* activations are bf16 */
    int transposed;      /* a deconvolution */
    int nspace;          /* spatial dimensions */
    int64_t samples;     /* slices of out */
    struct side in, out; /* products sum over the channels of `in`; CVY_LAYER_GRAD_WEIGHT: src and ddst */
    int n[2], points;    /* points of a tile: in a row and a column; in total */
    int64_t kernel[2], slices, slice_shift; /* slices: of the filter; the first one reaches slice z - slice_shift */
    int64_t rows;                           /* tiles in one product */
    int64_t lanes, tiles_w, sample_tiles, tiles;
    int64_t chunk, nchunk; /* tiles in a chunk; chunks */
    int64_t panels;        /* pairs of blocks of out; the last may be one block */
    int64_t strips, group; /* strips of tiles and panels of channels between two transforms of the destination */
    int64_t u_panels;      /* panels that u has room for; a call handles so many at a time */
    /* The offset of a weight is the sum of the three; -1: padding of a block, or a tap that the filter has not. tap_at:
     * [parts, taps] */
    int64_t *in_at, *out_at, *tap_at;
    int64_t weight_floats; /* size of the variable, with padding */
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

/* The parity of a block's rows, then that of its columns. */
static int64_t phase_of(const struct side *side, int64_t block, int d)
{
    const int64_t phase = side->step == 1 ? 0 : block / side->planes;
    return d == 0 ? phase / 2 : phase % 2;
}

/* Where the first value of a tile is, that has number `at` along dimension d. */
static int64_t place_in(const struct winograd *s, const struct side *side, int64_t block, int64_t at, int d)
{
    return side->step * at * s->tile->m[d] + phase_of(side, block, d) - side->shift[d];
}

/* The plane of a block for a slice of out, or NULL if the filter's slice lies outside of the volume. */
static char *plane_of(const struct winograd *s, const void *data, const struct side *side, int64_t slice, int64_t block)
{
    const int64_t sample = slice / s->out.depth, at = slice % s->out.depth,
                  z = side == &s->in && s->slices > 1 ? at + block / side->planes - s->slice_shift : at;
    return z < 0 || z >= side->depth
               ? NULL
               : (char *)(uintptr_t)data +
                     (size_t)((sample * side->planes + block % side->planes) * side->depth + z) * plane_bytes(s, side);
}

/* Returns the n[0] x n[1] values of a tile: a pointer into the activation if all exist and are f32, else a copy in
 * `local`. distance[2]: between rows and between columns, in floats. */
static const float *tile_values(const struct winograd *s, const void *data, const struct side *side, struct place p,
                                int64_t block, const int *n, float *local, int64_t distance[2])
{
    const void *plane = plane_of(s, data, side, p.sample, block);
    const int64_t y = place_in(s, side, block, p.y, 0), x = place_in(s, side, block, p.x, 1), step = side->step;
    if (plane && !s->half && y >= 0 && x >= 0 && y + step * (n[0] - 1) < side->h && x + step * (n[1] - 1) < side->w) {
        distance[0] = step * side->w * s->lanes;
        distance[1] = step * s->lanes;
        return (const float *)plane + (y * side->w + x) * s->lanes;
    }
    if (plane)
        s->isa->load[s->half](plane, side->h, side->w, y, x, side->step, n, local);
    else
        memset(local, 0, sizeof *local * (size_t)(n[0] * n[1] * s->lanes));
    distance[0] = n[1] * s->lanes;
    distance[1] = s->lanes;
    return local;
}

static void transform_in(const struct winograd *s, int64_t tile, int64_t block, float *to, int64_t step)
{
    float local[LOCAL];
    int64_t distance[2];
    const float *from = tile_values(s, s->in_data, &s->in, place_of(s, tile), block, s->n, local, distance);
    s->tile->src(from, distance[0], distance[1], to, step);
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

/* The offsets of the taps for a channel of in and a block of out, one of which says the part. */
static const int64_t *taps_of(const struct winograd *s, int64_t c, int64_t block)
{
    const int64_t part = s->in.parts > 1 ? c / s->lanes / s->in.planes : block / s->out.planes;
    return s->tap_at + part * s->tile->r[0] * s->tile->r[1];
}

/* Loads the taps of one channel of in and one block of out; each tap is one vector. */
static void load_weights(const struct winograd *s, int64_t c, int64_t block, float *to)
{
    const int64_t lanes = s->lanes, taps = s->tile->r[0] * s->tile->r[1], in_at = s->in_at[c],
                  *out_at = s->out_at + block * lanes, *tap_at = taps_of(s, c, block);
    const int side_by_side = in_at >= 0 && out_at[lanes - 1] == out_at[0] + lanes - 1;
    for (int64_t t = 0; t < taps; t++, to += lanes)
        if (side_by_side && tap_at[t] >= 0)
            memcpy(to, s->weight + in_at + out_at[0] + tap_at[t], (size_t)lanes * sizeof *to);
        else
            for (int64_t l = 0; l < lanes; l++)
                to[l] = in_at < 0 || out_at[l] < 0 || tap_at[t] < 0 ? 0 : s->weight[in_at + out_at[l] + tap_at[t]];
}

/* Work item: one channel of in, for the panels that u holds. */
static void transform_weights(int64_t first, int64_t end, void *arg)
{
    const struct winograd *s = arg;
    const int64_t lanes = s->lanes, last = CVY_MIN(2 * s->panel_end, s->out.blocks);
    float local[LOCAL];
    for (int64_t c = first; c < end; c++)
        for (int64_t block = 2 * s->panel_first; block < last; block++) {
            load_weights(s, c, block, local);
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

/* The results of a tile that exist in plane `block` of out. */
static cvy_winograd_area area_of(const struct winograd *s, int64_t block, struct place p)
{
    const struct side *out = &s->out;
    const int64_t at[2] = {place_in(s, out, block, p.y, 0), place_in(s, out, block, p.x, 1)},
                  size[2] = {out->h, out->w};
    cvy_winograd_area area = {.m = s->tile->m[1], .step = out->step, .y = at[0], .x = at[1]};
    for (int d = 0; d < 2; d++) {
        area.first[d] = at[d] < 0;
        area.end[d] = (int)CVY_MIN(s->tile->m[d], (size[d] - at[d] + out->step - 1) / out->step);
    }
    return area;
}

static void chunk_out(const struct winograd *s, int64_t block, int64_t first, int64_t count, const float *m)
{
    const int64_t rows = s->rows, lanes = s->lanes, width = panel_blocks(s, block / 2) * lanes,
                  part = rows * 2 * lanes * s->points, channel = block % s->out.planes * lanes;
    const float *bias = s->bias ? s->bias + channel : NULL;
    float local[LOCAL], padded[CVY_WINOGRAD_LANES_MAX] = {0};
    if (bias && channel + lanes > s->out.channels) {
        memcpy(padded, bias, (size_t)(s->out.channels - channel) * sizeof *bias);
        bias = padded;
    }
    for (int64_t i = 0; i < count; i++) {
        const struct place p = place_of(s, first + i);
        const cvy_winograd_area area = area_of(s, block, p);
        void *plane = plane_of(s, s->out_data, &s->out, p.sample, block);
        s->tile->dst(m + i / rows * part + i % rows * width + block % 2 * lanes, s->n[1] * rows * width, rows * width,
                     local, lanes);
        s->isa->store[s->half](local, &area, bias, s->relu, plane, s->out.w);
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
    const int64_t lanes = s->lanes, panel = block / 2, width = panel_blocks(s, panel) * lanes;
    float local[LOCAL];
    int64_t distance[2];
    const float *from =
        tile_values(s, s->out_data, &s->out, place_of(s, s->chunk_first + i), block, s->tile->m, local, distance);
    if (s->has_bias)
        s->isa->add_up(from, distance[0], distance[1], s->tile->m, sum);
    s->tile->ddst(from, distance[0], distance[1], d + panel * 2 * lanes * s->chunk + i * width + block % 2 * lanes,
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
            const int64_t *out_at = s->out_at + block * lanes, *tap_at = taps_of(s, c, block);
            s->tile->dweight(u_at(s, block, c), s->n[1] * u_step(s), u_step(s), local, lanes);
            for (int64_t t = 0; t < taps; t++)
                for (int64_t l = 0; l < lanes; l++)
                    if (s->in_at[c] >= 0 && out_at[l] >= 0 && tap_at[t] >= 0)
                        s->dweight[s->in_at[c] + out_at[l] + tap_at[t]] = local[t * lanes + l];
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
static const cvy_winograd_isa *choose_isa(const cvy_layout *src, int ndim)
{
    const cvy_winograd_isa *isa = cvy_layout_channel_block(src, ndim) == 8 ? NULL : cvy_winograd_avx512();
    if (!isa)
        isa = cvy_winograd_avx2();
    return isa ? isa : cvy_winograd_plain();
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
static cvy_status read_options(const cvy_node *node, struct winograd *s, cvy_window *w, cvy_window_channels *c)
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
static struct side side_of(const struct winograd *s, const cvy_window *w, const cvy_window_channels *c, int is_src,
                           int o)
{
    const int64_t *size = is_src ? w->src : w->dst;
    struct side side = {
        .channels = is_src ? c->nsrc : c->ndst, .depth = o ? size[0] : 1, .h = size[o], .w = size[o + 1]};
    side.step = is_src ? (int)w->stride[o] : 1;
    side.planes = (side.channels + s->lanes - 1) / s->lanes;
    side.parts = side.step * side.step;
    side.blocks = side.planes * side.parts;
    return side;
}

static void make_sides(struct winograd *s, const cvy_window *w, const cvy_window_channels *c)
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

static cvy_status geometry(const cvy_kernel_ask *ask, int m, struct winograd *s)
{
    const cvy_node *node = ask->node;
    cvy_window w;
    cvy_window_channels c;
    CVY_CHECK(!node->graph->precise, CVY_NOT_APPLICABLE,
              "train.precise excludes Winograd, which rounds more than a plain sum");
    CVY_TRY(read_options(node, s, &w, &c));
    s->nspace = w.nspace;
    s->isa = choose_isa(&ask->src[0], 2 + w.nspace);
    CVY_CHECK(s->isa, CVY_NOT_APPLICABLE, "Winograd needs a compiler with vector extensions (gcc or clang)");
    const int o = w.nspace == 3;
    const int64_t step = w.stride[o], r[2] = {(w.kernel[o] + step - 1) / step, (w.kernel[o + 1] + step - 1) / step};
    s->tile = fits_window(&w) && c.groups == 1 ? choose_tile(s->isa, r, m) : NULL;
    CVY_CHECK(
        s->tile, CVY_NOT_APPLICABLE,
        "this kernel needs a %s filter of stride 1, or one of 4 to 6 rows and columns of stride 2, no dilation, no "
        "groups, and a padding below the filter's size",
        m == 4 ? "3x3, 5x5, 1x3 or 3x1" : "3x3, 1x7 or 7x1");
    s->lanes = s->isa->lanes;
    CVY_CHECK(c.nsrc >= s->lanes && c.ndst >= s->lanes, CVY_NOT_APPLICABLE,
              "Winograd needs at least %lld channels; this layer has %lld and %lld", (long long)s->lanes,
              (long long)c.nsrc, (long long)c.ndst);
    make_sides(s, &w, &c);
    s->half = node->src[0]->dtype == CVY_DTYPE_BF16;
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
    const int64_t rows = (s->out.h - 1 + s->out.shift[0]) / s->out.step + 1, /* of results, of the fullest parity */
        columns = (s->out.w - 1 + s->out.shift[1]) / s->out.step + 1;
    s->tiles_w = (columns + m[1] - 1) / m[1];
    s->sample_tiles = s->tiles_w * ((rows + m[0] - 1) / m[0]);
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
    const int64_t each = s.pass == CVY_LAYER_GRAD_WEIGHT ? 1 : s.threads;
    ask->scratch_bytes = (size_t)(s.u_floats + each * (s.v_floats + s.m_floats) + s.bias_floats) * sizeof(float);
    return CVY_OK;
}

/* The offset of tap number `tap` of a part, or -1. The gradient of the source has the filter rotated by 180 degrees. */
static int64_t tap_offset(const struct winograd *s, const cvy_blocking *b, int64_t part, int64_t tap)
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
static int64_t channel_offset(const struct winograd *s, const struct side *side, const cvy_blocking *b, int dim,
                              int64_t c)
{
    int64_t at[CVY_NDIM_MAX] = {0};
    at[dim] = c % (side->planes * s->lanes);
    return at[dim] < side->channels ? cvy_blocking_offset(b, at) : -1;
}

/* Fills the tables of offsets of weights. Forward and CVY_LAYER_GRAD_WEIGHT have C as `in`; CVY_LAYER_GRAD_SRC has K.
 */
static cvy_status make_weight_offsets(const cvy_kernel_ask *ask, struct winograd *s)
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
    for (int64_t c = 0; c < in; c++)
        s->in_at[c] = channel_offset(s, &s->in, &b, in_dim, c);
    for (int64_t c = 0; c < out; c++)
        s->out_at[c] = channel_offset(s, &s->out, &b, 1 - in_dim, c);
    for (int64_t t = 0; t < parts * taps; t++)
        s->tap_at[t] = tap_offset(s, &b, t / taps, t % taps);
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
    s->in_data = src[s->transposed]; /* a deconvolution's result is the source of the convolution */
    s->out_data = src[1 - s->transposed];
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
                cvy_parallel_for(s->threads, s->in.blocks * s->lanes, 1, transform_dweight, s);
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

#define WINOGRAD(layer, pass, m, order, how)                                                                           \
    {                                                                                                                  \
        .name = "native." layer "_winograd" #m pass, .op = layer pass, .preference = order, .winograd = 1,             \
        .offer = offer_##m, .create = create_##m, .run = how, .destroy = winograd_destroy                              \
    }

CVY_KERNEL_DEFINE(native_conv_winograd4) = WINOGRAD("conv", "", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd4_grad_src) = WINOGRAD("conv", "_grad_src", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd4_grad_weight) = WINOGRAD("conv", "_grad_weight", 4, 125, grad_weight_run);
CVY_KERNEL_DEFINE(native_conv_winograd6) = WINOGRAD("conv", "", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd6_grad_src) = WINOGRAD("conv", "_grad_src", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd6_grad_weight) = WINOGRAD("conv", "_grad_weight", 6, 108, grad_weight_run);
CVY_KERNEL_DEFINE(native_deconv_winograd4) = WINOGRAD("deconv", "", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd4_grad_src) = WINOGRAD("deconv", "_grad_src", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd4_grad_weight) = WINOGRAD("deconv", "_grad_weight", 4, 125, grad_weight_run);
CVY_KERNEL_DEFINE(native_deconv_winograd6) = WINOGRAD("deconv", "", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd6_grad_src) = WINOGRAD("deconv", "_grad_src", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd6_grad_weight) = WINOGRAD("deconv", "_grad_weight", 6, 108, grad_weight_run);
