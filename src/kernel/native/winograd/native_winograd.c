/*
 * native_winograd.c: convolution, deconvolution and their gradients by Winograd's minimal filtering.
 *
 * These kernels run most of the convolutions of most networks. Activations are blocked by channels, with blocks of one
 * CPU vector, in f32 or bf16. Transforms and
 * sums are in f32, and products in f32 or of pairs of bf16. Weights have the layout of the variable; each call
 * transforms them again, because they change with every step. Forward and the gradient of the source compute tiles in
 * chunks that stay in a core's cache from the source to the destination. So does the gradient of the weights, unless
 * the transformed weights are large; then all threads share each chunk. native_winograd.h has the mathematics and the
 * references; native_winograd_plan.c says which layers are taken, and how the work is cut.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/winograd/native_winograd_plan.h"

enum { LOCAL = CVY_WINOGRAD_N_MAX * CVY_WINOGRAD_N_MAX * CVY_WINOGRAD_LANES_MAX };

/* ---- tiles ---- */

struct place {            /* where one tile is */
    int64_t sample, y, x; /* in tiles */
};

static struct place place_of(const cvy_winograd *s, int64_t tile)
{
    const int64_t in_sample = tile % s->sample_tiles;
    return (struct place){tile / s->sample_tiles, in_sample / s->tiles_w, in_sample % s->tiles_w};
}

static size_t plane_bytes(const cvy_winograd *s, const cvy_winograd_side *side)
{
    return (size_t)(side->h * side->w * s->lanes) * (s->half ? sizeof(cvy_bf16) : sizeof(float));
}

/* The parity of a block's rows, then that of its columns. */
static int64_t phase_of(const cvy_winograd_side *side, int64_t block, int d)
{
    const int64_t phase = side->step == 1 ? 0 : block / side->planes;
    return d == 0 ? phase / 2 : phase % 2;
}

/* Where the first value of a tile is, that has number `at` along dimension d. */
static int64_t place_in(const cvy_winograd *s, const cvy_winograd_side *side, int64_t block, int64_t at, int d)
{
    return side->step * at * s->tile->m[d] + phase_of(side, block, d) - side->shift[d];
}

/* The plane of a block for a slice of out, or NULL if the filter's slice lies outside of the volume. */
static char *plane_of(const cvy_winograd *s, const void *data, const cvy_winograd_side *side, int64_t slice,
                      int64_t block)
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
static const float *tile_values(const cvy_winograd *s, const void *data, const cvy_winograd_side *side, struct place p,
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

static void transform_in(const cvy_winograd *s, int64_t tile, int64_t block, float *to, int64_t step)
{
    float local[LOCAL];
    int64_t distance[2];
    const float *from = tile_values(s, s->call.in_data, &s->in, place_of(s, tile), block, s->n, local, distance);
    s->tile->src(from, distance[0], distance[1], to, step);
}

/* ---- weights ---- */

static int64_t panel_blocks(const cvy_winograd *s, int64_t panel)
{
    return CVY_MIN(2, s->out.blocks - 2 * panel);
}

/* Where u begins for a block of channels of out and channel c of in, the first of its word; points are u_step apart. */
static float *u_at(const cvy_winograd *s, int64_t block, int64_t c)
{
    const int64_t panel = block / 2, width = panel_blocks(s, panel) * s->lanes, per_word = cvy_winograd_u_per_word(s);
    return s->call.u + (panel - s->call.panel_first) * 2 * s->lanes * s->in.blocks * s->lanes / per_word +
           c / per_word * width + block % 2 * s->lanes;
}

/* The offsets of the taps for a channel of in and a block of out, one of which says the part. */
static const int64_t *taps_of(const cvy_winograd *s, int64_t c, int64_t block)
{
    const int64_t part = s->in.parts > 1 ? c / s->lanes / s->in.planes : block / s->out.planes;
    return s->tap_at + part * s->tile->r[0] * s->tile->r[1];
}

/* Loads the taps of one channel of in and one block of out; each tap is one vector. */
static void load_weights(const cvy_winograd *s, int64_t c, int64_t block, float *to)
{
    const int64_t lanes = s->lanes, taps = s->tile->r[0] * s->tile->r[1], in_at = s->in_at[c],
                  *out_at = s->out_at + block * lanes, *tap_at = taps_of(s, c, block);
    const int side_by_side = in_at >= 0 && out_at[lanes - 1] == out_at[0] + lanes - 1;
    for (int64_t t = 0; t < taps; t++, to += lanes)
        if (side_by_side && tap_at[t] >= 0)
            memcpy(to, s->call.weight + in_at + out_at[0] + tap_at[t], (size_t)lanes * sizeof *to);
        else
            for (int64_t l = 0; l < lanes; l++)
                to[l] = in_at < 0 || out_at[l] < 0 || tap_at[t] < 0 ? 0 : s->call.weight[in_at + out_at[l] + tap_at[t]];
}

static void transform_weight(const cvy_winograd *s, int64_t c, int64_t block, float *to, int64_t step)
{
    float local[LOCAL];
    load_weights(s, c, block, local);
    s->tile->weight(local, s->tile->r[1] * s->lanes, s->lanes, to, step);
}

/* Work item: the channels of in of one word, for the panels that u holds. */
static void transform_weights(int64_t first, int64_t end, void *arg)
{
    const cvy_winograd *s = arg;
    const int64_t half = s->lanes / 2, last = CVY_MIN(2 * s->call.panel_end, s->out.blocks),
                  per_word = s->isa->per_word;
    float lower[LOCAL / 2], upper[LOCAL / 2];
    for (int64_t c = first * per_word; c < end * per_word; c += per_word)
        for (int64_t block = 2 * s->call.panel_first; block < last; block++) {
            if (per_word == 1) {
                transform_weight(s, c, block, u_at(s, block, c), cvy_winograd_u_step(s));
                continue;
            }
            transform_weight(s, c, block, lower, half);
            transform_weight(s, c + 1, block, upper, half);
            s->isa->interleave(s->points, lower, upper, u_at(s, block, c), cvy_winograd_u_step(s));
        }
}

/* ---- forward and the gradient of the source: one thread computes a chunk of tiles from start to end ---- */

/* Makes v [strip of `rows` tiles][point][block][rows][words]. */
static void chunk_in(const cvy_winograd *s, int64_t first, int64_t count, float *v)
{
    const int64_t rows = s->rows, words = s->lanes / s->isa->per_word, step = cvy_winograd_strip_step(s),
                  strip = s->points * step;
    if (count % rows != 0)
        memset(v + count / rows * strip, 0, (size_t)strip * sizeof *v);
    for (int64_t block = 0; block < s->in.blocks; block++)
        for (int64_t i = 0; i < count; i++)
            transform_in(s, first + i, block, v + i / rows * strip + (block * rows + i % rows) * words, step);
}

/* Makes m [panel][strip][point][rows][one or two vectors] of panels p0 .. p1-1 and the first `strips` strips of v. */
static void chunk_products(const cvy_winograd *s, int64_t p0, int64_t p1, int64_t strips, const float *v, float *m)
{
    const int64_t rows = s->rows, lanes = s->lanes, step = cvy_winograd_strip_step(s),
                  part = rows * 2 * lanes * s->points;
    for (int64_t point = 0; point < s->points; point++)
        for (int64_t p = p0; p < p1; p++) {
            const int64_t blocks = panel_blocks(s, p);
            const float *u = u_at(s, 2 * p, 0) + point * cvy_winograd_u_step(s);
            for (int64_t strip = 0; strip < strips; strip++)
                s->isa->products[s->rows - s->isa->rows_least][blocks - 1](
                    s->in.blocks, v + (strip * s->points + point) * step, u,
                    m + ((p - p0) * strips + strip) * part + point * rows * blocks * lanes);
        }
}

/* The results of a tile that exist in plane `block` of out. */
static cvy_winograd_area area_of(const cvy_winograd *s, int64_t block, struct place p)
{
    const cvy_winograd_side *out = &s->out;
    const int64_t at[2] = {place_in(s, out, block, p.y, 0), place_in(s, out, block, p.x, 1)},
                  size[2] = {out->h, out->w};
    cvy_winograd_area area = {.m = s->tile->m[1], .step = out->step, .y = at[0], .x = at[1]};
    for (int d = 0; d < 2; d++) {
        area.first[d] = at[d] < 0;
        area.end[d] = (int)CVY_MIN(s->tile->m[d], (size[d] - at[d] + out->step - 1) / out->step);
    }
    return area;
}

static void chunk_out(const cvy_winograd *s, int64_t block, int64_t first, int64_t count, const float *m)
{
    const int64_t rows = s->rows, lanes = s->lanes, width = panel_blocks(s, block / 2) * lanes,
                  part = rows * 2 * lanes * s->points, channel = block % s->out.planes * lanes;
    const float *bias = s->call.bias ? s->call.bias + channel : NULL;
    float local[LOCAL], padded[CVY_WINOGRAD_LANES_MAX] = {0};
    if (bias && channel + lanes > s->out.channels) {
        memcpy(padded, bias, (size_t)(s->out.channels - channel) * sizeof *bias);
        bias = padded;
    }
    for (int64_t i = 0; i < count; i++) {
        const struct place p = place_of(s, first + i);
        const cvy_winograd_area area = area_of(s, block, p);
        void *plane = plane_of(s, s->call.out_data, &s->out, p.sample, block);
        s->tile->dst(m + i / rows * part + i % rows * width + block % 2 * lanes, s->n[1] * rows * width, rows * width,
                     local, lanes);
        s->isa->store[s->half](local, &area, bias, s->relu, plane, s->out.w);
    }
}

static void one_chunk(const cvy_winograd *s, int64_t first, int64_t count, float *v, float *m)
{
    const int64_t rows = s->rows, all = (count + rows - 1) / rows, width = 2 * s->lanes,
                  strip_floats = s->points * cvy_winograd_strip_step(s);
    chunk_in(s, first, count, v);
    for (int64_t p = s->call.panel_first; p < s->call.panel_end; p += s->group)
        for (int64_t strip = 0; strip < all; strip += s->strips) {
            const int64_t p_end = CVY_MIN(s->call.panel_end, p + s->group), strips = CVY_MIN(s->strips, all - strip),
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
    const cvy_winograd *s = arg;
    for (int64_t t = begin; t < end; t++) {
        float *v = s->call.rest + t * (s->v_floats + s->m_floats), *m = v + s->v_floats;
        for (int64_t c = s->nchunk * t / s->threads; c < s->nchunk * (t + 1) / s->threads; c++)
            if (c * s->chunk < s->tiles)
                one_chunk(s, c * s->chunk, CVY_MIN(s->chunk, s->tiles - c * s->chunk), v, m);
    }
}

/* ---- the gradient of the weights: chunks of tiles, which a thread computes alone or all threads share ---- */

static int64_t pieces(const cvy_winograd *s)
{
    return (s->call.chunk_tiles + CVY_WINOGRAD_PIECE - 1) / CVY_WINOGRAD_PIECE;
}

/* Transforms ddst of one tile and block, and adds it to the sums for dbias. */
static void transform_ddst(const cvy_winograd *s, int64_t tile, int64_t block, float *sum, float *to, int64_t step)
{
    float local[LOCAL];
    int64_t distance[2];
    const float *from =
        tile_values(s, s->call.out_data, &s->out, place_of(s, tile), block, s->tile->m, local, distance);
    if (s->has_bias)
        s->isa->add_up(from, distance[0], distance[1], s->tile->m, sum);
    s->tile->ddst(from, distance[0], distance[1], to, step);
}

/* Transforms tile i of the chunk for a block of in or out: first those of in. */
static void transform_one(const cvy_winograd *s, int64_t i, int64_t block, float *sum, float *to, int64_t step)
{
    if (block < s->in.blocks)
        transform_in(s, s->call.chunk_first + i, block, to, step);
    else
        transform_ddst(s, s->call.chunk_first + i, block - s->in.blocks, sum, to, step);
}

/* The same for the tiles of the word that begins with tile i. A tile that is missing is zero. */
static void transform_word(const cvy_winograd *s, int64_t i, int64_t block, float *sum, float *to, int64_t step)
{
    const int64_t half = s->lanes / 2;
    float lower[LOCAL / 2], upper[LOCAL / 2];
    if (s->isa->per_word == 1) {
        transform_one(s, i, block, sum, to, step);
        return;
    }
    transform_one(s, i, block, sum, lower, half);
    if (i + 1 < s->call.chunk_tiles)
        transform_one(s, i + 1, block, sum, upper, half);
    else
        memset(upper, 0, sizeof *upper * (size_t)(s->points * half));
    s->isa->interleave(s->points, lower, upper, to, step);
}

/* Where the transformed tile i is. v is [point][block][word of tiles][lanes], and d [point][panel][word of tiles][one
 * or two vectors]. */
static float *tile_at(const cvy_winograd *s, int64_t i, int64_t block)
{
    const int64_t lanes = s->lanes, words = s->chunk / s->isa->per_word, word = i / s->isa->per_word,
                  k = block - s->in.blocks;
    if (block < s->in.blocks)
        return s->call.rest + (block * words + word) * lanes;
    return s->call.rest + s->v_floats + k / 2 * 2 * lanes * words + word * panel_blocks(s, k / 2) * lanes +
           k % 2 * lanes;
}

/* Work item: one block of in or out, and one piece of the chunk. */
static void transform_piece(int64_t begin, int64_t end, void *arg)
{
    const cvy_winograd *s = arg;
    const int64_t npieces = pieces(s), in = s->in.blocks;
    for (int64_t item = begin; item < end; item++) {
        const int64_t block = item / npieces, piece = item % npieces,
                      last = CVY_MIN(s->call.chunk_tiles, (piece + 1) * CVY_WINOGRAD_PIECE),
                      step = cvy_winograd_chunk_step(s, block < in ? &s->in : &s->out);
        float *sum = block < in ? NULL : s->call.sums + (piece * s->out.blocks + block - in) * s->lanes;
        for (int64_t i = piece * CVY_WINOGRAD_PIECE; i < last; i += s->isa->per_word)
            transform_word(s, i, block, sum, tile_at(s, i, block), step);
    }
}

/* Work item: one point, and one of the panels that u holds. */
static void sum_chunk(int64_t begin, int64_t end, void *arg)
{
    const cvy_winograd *s = arg;
    const int64_t lanes = s->lanes, sum_rows = s->isa->sum_rows, panels = s->call.panel_end - s->call.panel_first,
                  words = s->chunk / s->isa->per_word,
                  k = (s->call.chunk_tiles + s->isa->per_word - 1) / s->isa->per_word;
    const float *v = s->call.rest, *d = v + s->v_floats;
    for (int64_t item = begin; item < end; item++) {
        const int64_t point = item / panels, panel = s->call.panel_first + item % panels,
                      blocks = panel_blocks(s, panel);
        const float *a = v + point * cvy_winograd_chunk_step(s, &s->in),
                    *b = d + point * cvy_winograd_chunk_step(s, &s->out) + panel * 2 * lanes * words;
        float *u = u_at(s, 2 * panel, 0) + point * cvy_winograd_u_step(s);
        for (int64_t c = 0; c < s->in.blocks * lanes; c += sum_rows)
            s->isa->sum[blocks - 1](k, a + c / lanes * words * lanes + c % lanes, b, s->call.adds,
                                    u + c * blocks * lanes);
    }
}

static int64_t items_in(const cvy_winograd *s)
{
    return (s->in.blocks + s->out.blocks) * pieces(s);
}

/* Work item: the chunks of one thread, which has u, v, d and sums of its own. */
static void sum_chunks_of_thread(int64_t begin, int64_t end, void *arg)
{
    const cvy_winograd *s = arg;
    for (int64_t t = begin; t < end; t++) {
        const int64_t first = s->nchunk * t / s->copies, last = s->nchunk * (t + 1) / s->copies;
        cvy_winograd mine = *s;
        mine.call.u += t * s->u_floats;
        mine.call.rest += t * (s->v_floats + s->m_floats);
        mine.call.sums += t * s->bias_floats;
        if (first == last)
            memset(mine.call.u, 0, (size_t)s->u_floats * sizeof *mine.call.u);
        for (int64_t c = first; c < last; c++) {
            mine.call.chunk_first = c * s->chunk;
            mine.call.chunk_tiles = CVY_MIN(s->chunk, s->tiles - mine.call.chunk_first);
            mine.call.adds = c > first;
            transform_piece(0, items_in(&mine), &mine);
            sum_chunk(0, s->points * s->panels, &mine);
        }
    }
}

/* Adds the u of all copies for channel c of in and a block of out. Returns one point after the other, `step` apart. */
static const float *add_copies(const cvy_winograd *s, int64_t c, int64_t block, float *local, int64_t *step)
{
    const float *u = u_at(s, block, c);
    *step = cvy_winograd_u_step(s);
    if (s->copies == 1)
        return u;
    for (int64_t point = 0; point < s->points; point++)
        for (int64_t l = 0; l < s->lanes; l++) {
            float sum = 0;
            for (int t = 0; t < s->copies; t++)
                sum += u[t * s->u_floats + point * *step + l];
            local[point * s->lanes + l] = sum;
        }
    *step = s->lanes;
    return local;
}

/* Work item: one channel of in, for the panels that u holds. */
static void transform_dweight(int64_t first, int64_t end, void *arg)
{
    const cvy_winograd *s = arg;
    const int64_t lanes = s->lanes, taps = s->tile->r[0] * s->tile->r[1],
                  last = CVY_MIN(2 * s->call.panel_end, s->out.blocks);
    float local[LOCAL], dw[LOCAL];
    for (int64_t c = first; c < end; c++)
        for (int64_t block = 2 * s->call.panel_first; block < last; block++) {
            const int64_t *out_at = s->out_at + block * lanes, *tap_at = taps_of(s, c, block);
            int64_t step = 0;
            const float *u = add_copies(s, c, block, local, &step);
            s->tile->dweight(u, s->n[1] * step, step, dw, lanes);
            for (int64_t t = 0; t < taps; t++)
                for (int64_t l = 0; l < lanes; l++)
                    if (s->in_at[c] >= 0 && out_at[l] >= 0 && tap_at[t] >= 0)
                        s->call.dweight[s->in_at[c] + out_at[l] + tap_at[t]] = dw[t * lanes + l];
        }
}

static void add_sums(const cvy_winograd *s)
{
    const int64_t padded = s->out.blocks * s->lanes;
    for (int64_t k = 0; k < s->out.channels; k++) {
        double total = 0;
        for (int64_t at = k; at < s->copies * s->bias_floats; at += padded)
            total += s->call.sums[at];
        s->call.dbias[k] = (float)total;
    }
}

/* ---- running ---- */

static cvy_status tiles_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_winograd *s = state;
    s->call.in_data = src[0];
    s->call.weight = src[1];
    s->call.bias = s->has_bias ? src[2] : NULL;
    s->call.out_data = dst[0];
    s->call.u = scratch;
    s->call.rest = s->call.u + s->u_floats;
    for (s->call.panel_first = 0; s->call.panel_first < s->panels; s->call.panel_first += s->u_panels) {
        s->call.panel_end = CVY_MIN(s->panels, s->call.panel_first + s->u_panels);
        cvy_parallel_for(s->threads, s->in.blocks * s->lanes / s->isa->per_word, 1, transform_weights, s);
        cvy_parallel_for(s->threads, s->threads, 1, chunks_of_thread, s);
    }
    return CVY_OK;
}

static void share_chunks(cvy_winograd *s)
{
    for (s->call.chunk_first = 0; s->call.chunk_first < s->tiles; s->call.chunk_first += s->chunk) {
        s->call.chunk_tiles = CVY_MIN(s->chunk, s->tiles - s->call.chunk_first);
        s->call.adds = s->call.chunk_first > 0;
        cvy_parallel_for(s->threads, items_in(s), 1, transform_piece, s);
        for (s->call.panel_first = 0; s->call.panel_first < s->panels; s->call.panel_first += s->u_panels) {
            s->call.panel_end = CVY_MIN(s->panels, s->call.panel_first + s->u_panels);
            cvy_parallel_for(s->threads, s->points * (s->call.panel_end - s->call.panel_first), 1, sum_chunk, s);
            if (s->call.chunk_first + s->chunk >= s->tiles)
                cvy_parallel_for(s->threads, s->in.blocks * s->lanes, 1, transform_dweight, s);
        }
    }
}

static cvy_status grad_weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_winograd *s = state;
    s->call.in_data = src[s->transposed]; /* a deconvolution's result is the source of the convolution */
    s->call.out_data = src[1 - s->transposed];
    s->call.dweight = dst[0];
    s->call.dbias = s->has_bias ? dst[1] : NULL;
    s->call.u = scratch;
    s->call.rest = s->call.u + s->copies * s->u_floats;
    s->call.sums = s->call.rest + s->copies * (s->v_floats + s->m_floats);
    s->call.panel_first = 0;
    s->call.panel_end = s->u_panels;
    memset(s->call.sums, 0, (size_t)(s->copies * s->bias_floats) * sizeof *s->call.sums);
    if (s->weight_padded)
        memset(s->call.dweight, 0, (size_t)s->weight_floats * sizeof *s->call.dweight);
    if (s->copies > 1) {
        cvy_parallel_for(s->threads, s->copies, 1, sum_chunks_of_thread, s);
        cvy_parallel_for(s->threads, s->in.blocks * s->lanes, 1, transform_dweight, s);
    } else {
        share_chunks(s);
    }
    if (s->call.dbias)
        add_sums(s);
    return CVY_OK;
}

/* ---- the kernels: of m results along a tile; _bf16: with products in bf16 ---- */

#define WINOGRAD_FUNCTIONS(id, m, pairs)                                                                               \
    enum { bf16_products_##id = pairs };                                                                               \
    static cvy_status offer_##id(cvy_kernel_ask *ask)                                                                  \
    {                                                                                                                  \
        return cvy_winograd_offer(ask, m, pairs);                                                                      \
    }                                                                                                                  \
    static cvy_status create_##id(const cvy_kernel_ask *ask, void **state_out)                                         \
    {                                                                                                                  \
        return cvy_winograd_create(ask, m, pairs, state_out);                                                          \
    }

WINOGRAD_FUNCTIONS(4, 4, 0)
WINOGRAD_FUNCTIONS(6, 6, 0)
WINOGRAD_FUNCTIONS(4_bf16, 4, 1)

#define WINOGRAD(layer, pass, id, order, how)                                                                          \
    {                                                                                                                  \
        .name = "native." layer "_winograd" #id pass, .op = layer pass, .preference = order, .winograd = 1,            \
        .bf16_products = bf16_products_##id, .offer = offer_##id, .create = create_##id, .run = how,                   \
        .destroy = cvy_winograd_destroy                                                                                \
    }

CVY_KERNEL_DEFINE(native_conv_winograd4) = WINOGRAD("conv", "", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd4_grad_src) = WINOGRAD("conv", "_grad_src", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd4_grad_weight) = WINOGRAD("conv", "_grad_weight", 4, 125, grad_weight_run);
CVY_KERNEL_DEFINE(native_conv_winograd6) = WINOGRAD("conv", "", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd6_grad_src) = WINOGRAD("conv", "_grad_src", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd6_grad_weight) = WINOGRAD("conv", "_grad_weight", 6, 108, grad_weight_run);
CVY_KERNEL_DEFINE(native_conv_winograd4_bf16) = WINOGRAD("conv", "", 4_bf16, 127, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd4_bf16_grad_src) = WINOGRAD("conv", "_grad_src", 4_bf16, 127, tiles_run);
CVY_KERNEL_DEFINE(native_conv_winograd4_bf16_grad_weight) = WINOGRAD("conv", "_grad_weight", 4_bf16, 127,
                                                                     grad_weight_run);
CVY_KERNEL_DEFINE(native_deconv_winograd4) = WINOGRAD("deconv", "", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd4_grad_src) = WINOGRAD("deconv", "_grad_src", 4, 125, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd4_grad_weight) = WINOGRAD("deconv", "_grad_weight", 4, 125, grad_weight_run);
CVY_KERNEL_DEFINE(native_deconv_winograd6) = WINOGRAD("deconv", "", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd6_grad_src) = WINOGRAD("deconv", "_grad_src", 6, 108, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd6_grad_weight) = WINOGRAD("deconv", "_grad_weight", 6, 108, grad_weight_run);
CVY_KERNEL_DEFINE(native_deconv_winograd4_bf16) = WINOGRAD("deconv", "", 4_bf16, 127, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd4_bf16_grad_src) = WINOGRAD("deconv", "_grad_src", 4_bf16, 127, tiles_run);
CVY_KERNEL_DEFINE(native_deconv_winograd4_bf16_grad_weight) = WINOGRAD("deconv", "_grad_weight", 4_bf16, 127,
                                                                       grad_weight_run);
