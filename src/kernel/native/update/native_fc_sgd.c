/*
 * native_fc_sgd.c: the gradient of a fully connected weight and its update by sgd, in one pass over the memory of
 * weight and momentum.
 *
 *     gradient [k][i] = sum over n of ddst [n][k] * src [n][i]
 *
 * The weight is walked through in memory order, in tiles of some rows of contiguous elements. In the layout AB16b64a,
 * a tile is one block: 16 rows (inputs) of 64 elements (outputs). Of each tile the gradient is computed into the
 * first-level cache by the products that Winograd's gradient of the weights uses, and the tile is updated with it.
 * Meanwhile the next tile is prefetched. In a layout without such tiles, the update goes through short runs of
 * elements, which is slow. src and ddst are packed first, one as operand of the rows, the other as that of the
 * elements: in f32, or, if both are bf16 and the CPU multiplies pairs of bf16, two samples in each word. No value is
 * rounded.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/update/native_update.h"
#include "kernel/native/winograd/native_winograd.h"
#include "optim/optim_sgd_fc.h"

/* Elements of a tile in a plain layout; room for the gradient of a tile; floats in a cache line. */
enum { PLAIN_ROWS = 8, PLAIN_LENGTH = 256, TILE_FLOATS = 2048, LINE = CVY_LINE_BYTES / (int)sizeof(float) };

/* One of the two dimensions of the weight: outputs, with ddst [N, real], or inputs, with src [N, real]. */
struct side {
    int dim, source;          /* in the weight; of the node */
    int64_t real, size, tile; /* elements: of the matrix; with the padding of whole blocks; of a tile */
    int64_t chunk;            /* elements that are packed side by side */
    int64_t step;             /* between tiles, in memory */
    const void *from;         /* of the running call, like the next one */
    float *packed;            /* [chunks][words][chunk] */
};

struct fc_sgd {
    cvy_native_update u;
    const cvy_winograd_isa *isa;
    int half, threads, has_momentum;
    int64_t N, words;        /* rows of src and ddst; words that they fill */
    int64_t row_step;        /* distance between rows of a tile, in memory */
    struct side rows, along; /* the dimension of the rows of a tile, and that of its contiguous elements */
    int64_t elems;           /* of the weight, with padding */
    int64_t run;             /* 0: rows of a tile are contiguous; else elements of its runs, placed by `blocking` */
    cvy_blocking blocking;
};

static int64_t chunks_of(const struct side *d)
{
    return (d->size + d->chunk - 1) / d->chunk;
}

static int64_t tiles_of(const struct side *d)
{
    return (d->size + d->tile - 1) / d->tile;
}

/* ---- planning ---- */

static struct side side_of(const cvy_node *node, const cvy_blocking *b, int dim, int64_t tile, int64_t chunk)
{
    return (struct side){.dim = dim,
                         .source = dim == 0 ? cvy_fc_sgd_ddst(node) : CVY_FC_SGD_SRC,
                         .real = b->dim[dim],
                         .size = b->padded[dim],
                         .tile = tile,
                         .chunk = chunk,
                         .step = b->nblock ? b->stride[dim] : tile * b->stride[dim]};
}

static int has_tiles(const cvy_blocking *b, const struct fc_sgd *s)
{
    return b->nblock == 0 ||
           (b->nblock == 2 && b->block_dim[0] != b->block_dim[1] && b->block_size[1] % s->isa->lanes == 0 &&
            b->block_size[0] % s->isa->sum_rows == 0 && b->block_size[0] * b->block_size[1] <= TILE_FLOATS);
}

/* A layout with a block in each dimension has its blocks as tiles; the tiles of others are short rows. */
static void choose_tiles(const cvy_node *node, const cvy_blocking *b, struct fc_sgd *s)
{
    const int64_t lanes = s->isa->lanes;
    const int blocks = b->nblock == 2 && has_tiles(b, s),
              along = b->nblock ? b->block_dim[b->nblock - 1] : b->stride[0] != 1, rows = 1 - along;
    const int64_t length = blocks ? b->block_size[1] : PLAIN_LENGTH, height = blocks ? b->block_size[0] : PLAIN_ROWS;
    s->row_step = blocks ? length : b->stride[rows];
    s->rows = side_of(node, b, rows, height, lanes);
    const int wide = length % (2 * lanes) == 0 && s->isa != cvy_winograd_plain(); /* else there are too few registers */
    s->along = side_of(node, b, along, length, wide ? 2 * lanes : lanes);
    s->elems = b->elems;
    s->blocking = *b;
    s->run = 0;
    if (!has_tiles(b, s)) {
        const int64_t block = b->block_size[b->nblock - 1];
        s->run = PLAIN_LENGTH % block == 0 ? block : 1;
        s->rows.size = s->rows.real;
        s->along.size = s->along.real;
    }
}

static cvy_status fill(const cvy_kernel_ask *ask, struct fc_sgd *s)
{
    const cvy_fc_sgd_opts *o = ask->node->options;
    cvy_blocking b;
    const int half = ask->node->src[CVY_FC_SGD_SRC]->dtype == CVY_DTYPE_BF16;
    *s = (struct fc_sgd){
        .isa = half ? cvy_winograd_avx512_bf16() : NULL, .half = half, .threads = CVY_MAX(1, ask->threads)};
    if (!s->isa)
        s->isa = cvy_winograd_find(CVY_WINOGRAD_LANES_MAX);
    s->has_momentum = o->sgd.momentum > 0;
    s->N = cvy_fc_matrix_of(&o->grad.fc, &o->grad.src).rows;
    s->words = (s->N + s->isa->per_word - 1) / s->isa->per_word;
    CVY_TRY(cvy_blocking_make(&ask->src[CVY_OPTIM_WEIGHT], cvy_node_src(ask->node, CVY_OPTIM_WEIGHT), &b));
    choose_tiles(ask->node, &b, s);
    return CVY_OK;
}

static size_t packed_floats(const struct fc_sgd *s, const struct side *d)
{
    return (size_t)(chunks_of(d) * s->words * d->chunk);
}

static cvy_status fc_sgd_offer(cvy_kernel_ask *ask)
{
    struct fc_sgd s;
    CVY_TRY(cvy_native_f32(ask->node));
    CVY_TRY(fill(ask, &s));
    const cvy_layout layout = ask->src[CVY_OPTIM_WEIGHT];
    for (int i = CVY_OPTIM_GRADIENT; i < ask->node->nsrc; i++)
        ask->src[i] = i >= CVY_OPTIM_STATE && i < cvy_fc_sgd_ddst(ask->node) ? layout : cvy_layout_plain();
    for (int i = 0; i < ask->node->ndst; i++)
        if (ask->node->dst[i])
            ask->dst[i] = layout;
    ask->scratch_bytes = (packed_floats(&s, &s.rows) + packed_floats(&s, &s.along)) * sizeof(float);
    return CVY_OK;
}

static cvy_status fc_sgd_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_fc_sgd_opts *o = ask->node->options;
    void *update = NULL;
    struct fc_sgd *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    cvy_status status = fill(ask, s);
    if (status == CVY_OK)
        status = cvy_native_update_create(ask, &update);
    if (status != CVY_OK) {
        cvy_mem_free(&s);
        return status;
    }
    s->u = *(cvy_native_update *)update;
    s->u.range = cvy_native_sgd_range(&o->sgd);
    cvy_native_update_destroy(update);
    *state_out = s;
    return CVY_OK;
}

static void fc_sgd_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* ---- running ---- */

struct packing {
    const struct fc_sgd *s;
    const struct side *side;
};

/* Packs `count` elements of the rows of one word, from element `at` of the first row on. */
static void pack_word(const struct fc_sgd *s, const struct side *d, int64_t row, int64_t at, int64_t count, float *to)
{
    const cvy_bf16 *lower = (const cvy_bf16 *)d->from + row * d->real + at,
                   *upper = row + 1 < s->N ? lower + d->real : NULL;
    if (s->isa->per_word == 1) {
        cvy_floats_load(s->half, d->from, row * d->real + at, count, to);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const uint32_t word = lower[i] | (upper ? (uint32_t)upper[i] << 16 : 0);
        memcpy(to + i, &word, sizeof word);
    }
}

/* Work item: one chunk. Elements beyond the matrix become zeros. */
static void pack_chunks(int64_t first, int64_t end, void *arg)
{
    const struct packing *p = arg;
    const struct side *d = p->side;
    for (int64_t c = first; c < end; c++)
        for (int64_t w = 0; w < p->s->words; w++) {
            float *to = d->packed + (c * p->s->words + w) * d->chunk;
            const int64_t count = CVY_MAX(0, CVY_MIN(d->chunk, d->real - c * d->chunk));
            if (count < d->chunk)
                memset(to, 0, (size_t)d->chunk * sizeof *to);
            pack_word(p->s, d, w * p->s->isa->per_word, c * d->chunk, count, to);
        }
}

/* Prefetches some rows of the weight and of its momentum, to the second-level cache: the operands of the products fill
 * the first one. */
static void prefetch(const struct fc_sgd *s, int64_t at, int64_t rows, int64_t length)
{
    for (int64_t end = s->run ? 0 : CVY_MIN(at + rows * s->row_step, s->elems); at < end; at += s->row_step)
        for (int64_t i = at; i < at + length; i += LINE) {
            __builtin_prefetch(s->u.weight + i, 0, 2);
            if (s->has_momentum)
                __builtin_prefetch(s->u.state[0] + i, 0, 2);
        }
}

/* Computes the gradient [rows][length] of a tile, and prefetches the tile at `next`. */
static void tile_gradient(const struct fc_sgd *s, int64_t row, int64_t at, int64_t rows, int64_t length, int64_t next,
                          float *gradient)
{
    enum { SUM_MOST = 16 };
    const struct side *r = &s->rows, *a = &s->along;
    const int high = s->isa->sum_rows, wide = a->chunk > s->isa->lanes;
    float sum[SUM_MOST * 2 * CVY_WINOGRAD_LANES_MAX];
    for (int64_t i = 0; i < rows; i += high)
        for (int64_t j = 0; j < length; j += a->chunk) {
            const int64_t y = row + i, x = at + j, height = CVY_MIN(high, rows - i),
                          width = CVY_MIN(a->chunk, length - j);
            prefetch(s, next + i * s->row_step + j, height, width);
            s->isa->sum[wide](s->words, r->packed + y / r->chunk * s->words * r->chunk + y % r->chunk,
                              a->packed + x / a->chunk * s->words * a->chunk, 0, sum);
            for (int64_t k = 0; k < height; k++)
                memcpy(gradient + (i + k) * length + j, sum + k * a->chunk, (size_t)width * sizeof *sum);
        }
}

/* Where tile number t is. Tiles are numbered in memory order. */
static void place_of(const struct fc_sgd *s, int64_t t, int64_t *row, int64_t *at, int64_t *offset)
{
    const int rows_inside = s->rows.step < s->along.step;
    const struct side *inner = rows_inside ? &s->rows : &s->along, *outer = rows_inside ? &s->along : &s->rows;
    const int64_t in = t % tiles_of(inner), out = t / tiles_of(inner);
    *offset = in * inner->step + out * outer->step;
    *row = (rows_inside ? in : out) * s->rows.tile;
    *at = (rows_inside ? out : in) * s->along.tile;
}

/* Updates a tile in a layout in which only runs are contiguous. */
static void update_runs(const struct fc_sgd *s, int64_t row, int64_t at, int64_t rows, int64_t length,
                        const float *gradient)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < length; j += s->run) {
            int64_t place[CVY_NDIM_MAX] = {0};
            place[s->rows.dim] = row + i;
            place[s->along.dim] = at + j;
            cvy_native_update_part(&s->u, cvy_blocking_offset(&s->blocking, place), CVY_MIN(s->run, length - j),
                                   gradient + i * length + j);
        }
}

/* Work item: one tile. */
static void update_tiles(int64_t first, int64_t end, void *arg)
{
    const struct fc_sgd *s = arg;
    float gradient[TILE_FLOATS];
    for (int64_t t = first; t < end; t++) {
        int64_t row, at, offset, other[2], next;
        place_of(s, CVY_MIN(t + 1, end - 1), &other[0], &other[1], &next);
        place_of(s, t, &row, &at, &offset);
        const int64_t rows = CVY_MIN(s->rows.tile, s->rows.size - row),
                      length = CVY_MIN(s->along.tile, s->along.size - at);
        tile_gradient(s, row, at, rows, length, next, gradient);
        if (s->run)
            update_runs(s, row, at, rows, length, gradient);
        else if (s->row_step == length)
            cvy_native_update_part(&s->u, offset, rows * length, gradient);
        else
            for (int64_t i = 0; i < rows; i++)
                cvy_native_update_part(&s->u, offset + i * s->row_step, length, gradient + i * length);
    }
}

static cvy_status fc_sgd_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct fc_sgd *s = state;
    const struct cvy_sgd *o = s->u.options; /* the first member of cvy_fc_sgd_opts */
    struct side *const sides[] = {&s->rows, &s->along};
    s->rows.packed = scratch;
    s->along.packed = s->rows.packed + packed_floats(s, &s->rows);
    for (int i = 0; i < 2; i++) {
        struct packing p = {s, sides[i]};
        sides[i]->from = src[sides[i]->source];
        cvy_parallel_for(s->threads, chunks_of(sides[i]), CVY_MAX(1, CVY_GRAIN / (s->N * sides[i]->chunk)), pack_chunks,
                         &p);
    }
    cvy_native_update_begin(&s->u, o->lr_mult, s->has_momentum, src, dst);
    cvy_parallel_for(s->threads, tiles_of(&s->rows) * tiles_of(&s->along), 1, update_tiles, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_fc_grad_sgd) = {
    .name = "native.fc_grad_sgd",
    .op = "fc_grad_sgd",
    .preference = 50,
    .writes_shadow = 1,
    .offer = fc_sgd_offer,
    .create = fc_sgd_create,
    .run = fc_sgd_run,
    .destroy = fc_sgd_destroy,
};
