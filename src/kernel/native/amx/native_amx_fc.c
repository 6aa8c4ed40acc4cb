/*
 * native_amx_fc.c: the fully connected layer and its gradients in bf16 on tiles (AMX).
 *
 * This layer has little arithmetic and much memory traffic. With the batch sizes of training, the weights (205 MB of
 * bf16 in the first such layer of VGG) are read once in forward and once in the gradient of the source, and their f32
 * gradient is written once. Everything else stays in the caches, so the memory bandwidth is the limit. Weights and
 * their gradient are in blocks of 32 channels by 32 inputs:
 *
 *     forward        dst [k][n]  = weight [k][i] x src [pairs of i][n]         each thread takes channels
 *     grad_src       dsrc [n][i] = ddst [n][k]   x weight [pairs of k][i]      each takes inputs
 *     grad_weight    dweight     = ddst [k][n]   x src [pairs of n][i]         each takes blocks in memory order
 *
 * Forward reads a block of weights directly. The gradient of the source interleaves pairs of its rows while they are in
 * the first-level cache. So both use one copy, which has the variable's own layout. Each result depends only on its own
 * row and column.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/amx/native_amx.h"
#include "kernel/native/native_common.h"
#include "op/conv/op_fc.h"

enum {
    BLOCK = CVY_AMX_BLOCK,
    AREA = CVY_AMX_BLOCK * CVY_AMX_BLOCK, /* elements of a block */
    STAY_BLOCKS = 256,                    /* blocks of bf16 that stay in a core's second-level cache: 512 KB */
    LONG = 32,                /* blocks in a sum of forward, at least: each chunk reads and writes the sum once */
    DEEP = 8,                 /* blocks of channels that grad_src pairs together: 16 KB */
    STREAM_BYTES = 1 << 22,   /* larger gradients are written with non-temporal stores */
    SERIAL_PRODUCTS = 1 << 20 /* with fewer products a second thread costs more than it saves */
};

struct amx_fc {
    const cvy_amx *amx;
    cvy_layer_pass pass;
    int threads, relu, has_bias, streams;
    int64_t n, width, channels; /* samples, inputs, outputs */
    int64_t nn, nw, nc;         /* blocks of each */
    int64_t chunk, nchunk;      /* blocks of inputs in a chunk; in grad_src their sums stay in the cache */
    int64_t left_elems, right_elems, sum_floats,
        staged_elems; /* scratch memory: left and right operand, sums; staged: of each thread */
    /* Of the running call. */
    const cvy_bf16 *src, *ddst, *weight;
    const float *bias;
    cvy_bf16 *to, *left, *right, *staged;
    float *dweight, *dbias, *sums;
};

static int64_t blocks_of(int64_t count)
{
    return (count + BLOCK - 1) / BLOCK;
}

/* ---- what the products read ---- */

/* Returns a block of a matrix of rows x columns: a pointer into the matrix or, if the block is not whole, a copy that
 * is filled up with zeros. */
static const cvy_bf16 *block_at(const cvy_bf16 *m, int64_t rows, int64_t columns, int64_t row, int64_t column,
                                cvy_bf16 *copy, int64_t *row_out)
{
    const int64_t high = CVY_MIN(BLOCK, rows - row), wide = CVY_MIN(BLOCK, columns - column);
    const cvy_bf16 *from = m + row * columns + column;
    *row_out = columns;
    if (high == BLOCK && wide == BLOCK)
        return from;
    memset(copy, 0, AREA * sizeof *copy);
    for (int64_t i = 0; i < high; i++)
        memcpy(copy + i * BLOCK, from + i * columns, (size_t)wide * sizeof *copy);
    *row_out = BLOCK;
    return copy;
}

/* Forward: makes the source [block of samples][block of inputs][two tiles of pairs of inputs]. */
static void pair_inputs(const struct amx_fc *s, int64_t block)
{
    cvy_bf16 copy[AREA];
    for (int64_t b = 0; b < s->nn; b++) {
        int64_t row;
        const cvy_bf16 *from = block_at(s->src, s->n, s->width, b * BLOCK, block * BLOCK, copy, &row);
        cvy_bf16 *to = s->right + (b * s->nw + block) * AREA;
        s->amx->transpose_pairs(from, row, to);
        s->amx->transpose_pairs(from + CVY_AMX_ROWS * row, row, to + CVY_AMX_TILE);
    }
}

/* grad_src: copies ddst to [block of samples][block of channels], in whole blocks. */
static void copy_channels(const struct amx_fc *s, int64_t block)
{
    cvy_bf16 copy[AREA];
    for (int64_t b = 0; b < s->nn; b++) {
        int64_t row;
        const cvy_bf16 *from = block_at(s->ddst, s->n, s->channels, b * BLOCK, block * BLOCK, copy, &row);
        for (int64_t i = 0; i < BLOCK; i++)
            memcpy(s->left + (b * s->nc + block) * AREA + i * BLOCK, from + i * row, BLOCK * sizeof *from);
    }
}

/* grad_weight: makes the source [block of inputs][block of samples][two tiles of pairs of samples]. */
static void pair_samples(const struct amx_fc *s, int64_t block)
{
    cvy_bf16 copy[AREA];
    for (int64_t b = 0; b < s->nn; b++) {
        int64_t row;
        const cvy_bf16 *from = block_at(s->src, s->n, s->width, b * BLOCK, block * BLOCK, copy, &row);
        s->amx->pair(from, row, s->right + (block * s->nn + b) * AREA, CVY_AMX_TILE);
    }
}

/* grad_weight: transposes ddst to [block of channels][block of samples], and sums it for the bias. */
static void transpose_channels(const struct amx_fc *s, int64_t block)
{
    cvy_bf16 copy[AREA];
    float sums[BLOCK] = {0};
    for (int64_t b = 0; b < s->nn; b++) {
        int64_t row;
        const cvy_bf16 *from = block_at(s->ddst, s->n, s->channels, b * BLOCK, block * BLOCK, copy, &row);
        s->amx->transpose(from, row, s->left + (block * s->nn + b) * AREA, BLOCK);
        if (s->dbias)
            s->amx->sum(from, row, sums);
    }
    if (s->dbias)
        memcpy(s->dbias + block * BLOCK, sums, (size_t)CVY_MIN(BLOCK, s->channels - block * BLOCK) * sizeof *sums);
}

/* Work item: a block of inputs or, after all of these, a block of channels. */
static void prepare(int64_t begin, int64_t end, void *arg)
{
    const struct amx_fc *s = arg;
    for (int64_t i = begin; i < end; i++)
        if (s->pass == CVY_LAYER_FORWARD)
            pair_inputs(s, i);
        else if (s->pass == CVY_LAYER_GRAD_SRC)
            copy_channels(s, i);
        else if (i < s->nw)
            pair_samples(s, i);
        else
            transpose_channels(s, i - s->nw);
}

/* ---- products ---- */

static int tiles_of(int64_t count)
{
    return count > CVY_AMX_ROWS ? 2 : 1;
}

/* Prefetches the next weights while the tiles work; each of `parts` sums prefetches its share. If successive sums read
 * successive memory, the hardware prefetcher does this, and next is NULL. A prefetch beyond the last weights is
 * harmless. */
static void set_prefetch(cvy_amx_blocks *sum, const cvy_bf16 *next, int64_t step, int64_t parts, int64_t part)
{
    sum->next = next;
    sum->next_step = step;
    sum->next_row = (int)(BLOCK * part / parts);
    sum->next_end = (int)(BLOCK * (part + 1) / parts);
}

static void forward_block(const struct amx_fc *s, int64_t channel, int64_t chunk)
{
    _Alignas(64) float own[AREA];
    const int64_t first = chunk * s->chunk, steps = CVY_MIN(s->chunk, s->nw - first);
    for (int64_t b = 0; b < s->nn; b++) {
        const int64_t count = CVY_MIN(BLOCK, s->n - b * BLOCK);
        float *c = s->nchunk > 1 ? s->sums + (channel * s->nn + b) * AREA : own;
        cvy_amx_blocks sum = {.a = s->weight + (channel * s->nw + first) * AREA,
                              .b = s->right + (b * s->nw + first) * AREA,
                              .a_step = AREA,
                              .b_step = AREA,
                              .steps = steps,
                              .c = c,
                              .rows = 2,
                              .columns = tiles_of(count),
                              .add = chunk > 0};
        const cvy_amx_store store = {.to = s->to + b * BLOCK * s->channels + channel * BLOCK,
                                     .position = s->channels,
                                     .pitch = BLOCK,
                                     .width = BLOCK,
                                     .channels = CVY_MIN(BLOCK, s->channels - channel * BLOCK),
                                     .bias = s->bias ? s->bias + channel * BLOCK : NULL,
                                     .relu = s->relu};
        set_prefetch(&sum, s->nn > 1 ? sum.a + s->nw * AREA : NULL, AREA, s->nn, b);
        s->amx->blocks(&sum);
        if (chunk == s->nchunk - 1)
            s->amx->store(c, 1, count, &store);
    }
}

/* Computes blocks of channels begin .. end - 1. */
static void forward(const struct amx_fc *s, int64_t begin, int64_t end)
{
    for (int64_t chunk = 0; chunk < s->nchunk; chunk++)
        for (int64_t channel = begin; channel < end; channel++)
            forward_block(s, channel, chunk);
}

/* Adds up to DEEP blocks of channels, from `channel` on, for one block of inputs. sums: those of all samples for these
 * inputs. */
static void grad_src_block(const struct amx_fc *s, int64_t input, int64_t channel, cvy_bf16 *pairs, float *sums)
{
    const int64_t deep = CVY_MIN(DEEP, s->nc - channel);
    for (int64_t d = 0; d < deep; d++)
        s->amx->pair(s->weight + ((channel + d) * s->nw + input) * AREA, BLOCK, pairs + d * AREA, CVY_AMX_TILE);
    for (int64_t b = 0; b < s->nn; b++) {
        const int64_t count = CVY_MIN(BLOCK, s->n - b * BLOCK);
        cvy_amx_blocks sum = {.a = s->left + (b * s->nc + channel) * AREA,
                              .b = pairs,
                              .a_step = AREA,
                              .b_step = AREA,
                              .steps = deep,
                              .c = sums + b * AREA,
                              .rows = tiles_of(count),
                              .columns = 2,
                              .add = channel > 0};
        const cvy_amx_store store = {.to = s->to + b * BLOCK * s->width + input * BLOCK,
                                     .position = s->width,
                                     .pitch = BLOCK,
                                     .width = BLOCK,
                                     .channels = CVY_MIN(BLOCK, s->width - input * BLOCK)};
        set_prefetch(&sum, s->weight + (channel * s->nw + input + 1) * AREA, s->nw * AREA, s->nn, b);
        s->amx->blocks(&sum);
        if (channel + deep == s->nc)
            s->amx->store(sum.c, 0, count, &store);
    }
}

/* Computes blocks of inputs begin .. end - 1. */
static void grad_src(const struct amx_fc *s, int64_t begin, int64_t end, cvy_bf16 *pairs, float *sums)
{
    for (int64_t first = begin; first < end; first += s->chunk)
        for (int64_t channel = 0; channel < s->nc; channel += DEEP)
            for (int64_t input = first; input < CVY_MIN(end, first + s->chunk); input++)
                grad_src_block(s, input, channel, pairs, sums + (input - first) * s->nn * AREA);
}

/* Computes items begin .. end - 1. An item is a block of channels by a chunk of inputs. */
static void grad_weight(const struct amx_fc *s, int64_t begin, int64_t end)
{
    _Alignas(64) float own[AREA];
    for (int64_t item = begin; item < end; item++) {
        const int64_t channel = item % s->nc, first = item / s->nc * s->chunk;
        for (int64_t input = first; input < CVY_MIN(s->nw, first + s->chunk); input++) {
            float *to = s->dweight + (channel * s->nw + input) * AREA;
            const cvy_amx_blocks sum = {.a = s->left + channel * s->nn * AREA,
                                        .b = s->right + input * s->nn * AREA,
                                        .a_step = AREA,
                                        .b_step = AREA,
                                        .steps = s->nn,
                                        .c = s->streams ? own : to,
                                        .rows = 2,
                                        .columns = 2};
            s->amx->blocks(&sum);
            if (s->streams)
                s->amx->stream(own, to);
        }
    }
}

/* Work item: one thread. */
static void products(int64_t begin, int64_t end, void *arg)
{
    const struct amx_fc *s = arg;
    const int64_t items = s->pass == CVY_LAYER_FORWARD    ? s->nc
                          : s->pass == CVY_LAYER_GRAD_SRC ? s->nw
                                                          : s->nc * s->nchunk;
    s->amx->begin();
    for (int64_t t = begin; t < end; t++) {
        const int64_t from = items * t / s->threads, to = items * (t + 1) / s->threads;
        if (s->pass == CVY_LAYER_FORWARD)
            forward(s, from, to);
        else if (s->pass == CVY_LAYER_GRAD_SRC)
            grad_src(s, from, to, s->staged + t * s->staged_elems, s->sums + t * s->chunk * s->nn * AREA);
        else
            grad_weight(s, from, to);
    }
    s->amx->end();
}

static cvy_status amx_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct amx_fc *s = state;
    s->src = s->pass == CVY_LAYER_GRAD_SRC ? NULL : src[0];
    s->ddst = s->pass == CVY_LAYER_GRAD_SRC ? src[0] : s->pass == CVY_LAYER_GRAD_WEIGHT ? src[1] : NULL;
    s->weight = s->pass == CVY_LAYER_GRAD_WEIGHT ? NULL : src[1];
    s->bias = s->pass == CVY_LAYER_FORWARD && s->has_bias ? src[2] : NULL;
    s->to = s->pass == CVY_LAYER_GRAD_WEIGHT ? NULL : dst[0];
    s->dweight = s->pass == CVY_LAYER_GRAD_WEIGHT ? dst[0] : NULL;
    s->dbias = s->pass == CVY_LAYER_GRAD_WEIGHT && s->has_bias ? dst[1] : NULL;
    s->sums = scratch;
    s->left = (cvy_bf16 *)(s->sums + s->sum_floats);
    s->right = s->left + s->left_elems;
    s->staged = s->right + s->right_elems;
    const int64_t items = s->pass == CVY_LAYER_FORWARD ? s->nw : s->pass == CVY_LAYER_GRAD_SRC ? s->nc : s->nw + s->nc;
    cvy_parallel_for(s->threads, items, 1, prepare, s);
    cvy_parallel_for(s->threads, s->threads, 1, products, s);
    return CVY_OK;
}

/* ---- planning ---- */

static void divide_work(struct amx_fc *s)
{
    const int64_t stay = STAY_BLOCKS / s->nn, most = CVY_MAX(s->pass == CVY_LAYER_FORWARD ? LONG : 1, stay);
    if (s->pass == CVY_LAYER_GRAD_SRC) {
        s->chunk = CVY_MAX(1, CVY_MIN(stay / 2, (s->nw + s->threads - 1) / s->threads));
        s->left_elems = s->nn * s->nc * AREA;
        s->sum_floats = s->threads * s->chunk * s->nn * AREA;
        s->staged_elems = DEEP * AREA;
        return;
    }
    const int64_t least = s->pass == CVY_LAYER_GRAD_WEIGHT && s->nc < s->threads ? CVY_MIN(s->nw, s->threads) : 1;
    s->nchunk = CVY_MAX(least, (s->nw + most - 1) / most);
    s->chunk = (s->nw + s->nchunk - 1) / s->nchunk;
    s->nchunk = (s->nw + s->chunk - 1) / s->chunk;
    s->right_elems = s->nn * s->nw * AREA;
    s->left_elems = s->pass == CVY_LAYER_GRAD_WEIGHT ? s->nn * s->nc * AREA : 0;
    s->sum_floats = s->pass == CVY_LAYER_FORWARD && s->nchunk > 1 ? s->nc * s->nn * AREA : 0;
}

static cvy_status fill_amx(const cvy_kernel_ask *ask, struct amx_fc *s)
{
    const cvy_node *node = ask->node;
    s->pass = node->op->pass;
    const cvy_fc_grad_opts *g = node->options;
    const cvy_fc_opts *o = s->pass == CVY_LAYER_FORWARD ? node->options : &g->fc;
    const cvy_shape *src = s->pass == CVY_LAYER_FORWARD ? cvy_node_src(node, 0) : &g->src;
    CVY_CHECK(node->src[0]->dtype == CVY_DTYPE_BF16, CVY_NOT_APPLICABLE,
              "this kernel computes in bf16; the source is %s", cvy_dtype_text(node->src[0]->dtype));
    CVY_TRY(cvy_amx_get(&s->amx));
    const cvy_fc_matrix m = cvy_fc_matrix_of(o, src);
    s->n = m.rows;
    s->channels = o->channels;
    s->width = m.width;
    CVY_CHECK(s->n > 0 && s->width > 0, CVY_NOT_APPLICABLE, "the source is empty");
    s->has_bias = o->bias;
    s->relu = s->pass == CVY_LAYER_FORWARD && o->relu;
    s->nn = blocks_of(s->n);
    s->nw = blocks_of(s->width);
    s->nc = blocks_of(s->channels);
    s->threads = s->n * s->width * s->channels > SERIAL_PRODUCTS ? CVY_MAX(1, ask->threads) : 1;
    s->streams = s->nw * s->nc * AREA > STREAM_BYTES / (int)sizeof(float);
    divide_work(s);
    return CVY_OK;
}

static cvy_status amx_offer(cvy_kernel_ask *ask)
{
    struct amx_fc s = {0};
    const cvy_layout blocks = cvy_layout_make("AB32a32b");
    CVY_TRY(fill_amx(ask, &s));
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    for (int i = 0; i < ask->node->ndst; i++)
        ask->dst[i] = cvy_layout_plain();
    if (s.pass == CVY_LAYER_GRAD_WEIGHT) {
        ask->dst[0] = blocks;
    } else {
        ask->src_dtype[1] = CVY_DTYPE_BF16;
        ask->src[1] = blocks;
        if (ask->src_free[1])
            ask->src_canonical[1] = blocks;
    }
    ask->scratch_bytes = (size_t)s.sum_floats * sizeof(float) +
                         (size_t)(s.left_elems + s.right_elems + s.threads * s.staged_elems) * sizeof(cvy_bf16);
    return CVY_OK;
}

static cvy_status amx_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct amx_fc *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    const cvy_status status = fill_amx(ask, s);
    if (status != CVY_OK)
        cvy_mem_free(&s);
    else
        *state_out = s;
    return status;
}

static void amx_destroy(void *state)
{
    cvy_mem_free(&state);
}

CVY_KERNEL_DEFINE(native_fc_amx) = {
    .name = "native.fc_amx",
    .op = "fc",
    .preference = 130,
    .offer = amx_offer,
    .create = amx_create,
    .run = amx_run,
    .destroy = amx_destroy,
};

CVY_KERNEL_DEFINE(native_fc_amx_grad_src) = {
    .name = "native.fc_amx_grad_src",
    .op = "fc_grad_src",
    .preference = 130,
    .offer = amx_offer,
    .create = amx_create,
    .run = amx_run,
    .destroy = amx_destroy,
};

CVY_KERNEL_DEFINE(native_fc_amx_grad_weight) = {
    .name = "native.fc_amx_grad_weight",
    .op = "fc_grad_weight",
    .preference = 130,
    .thread_dependent = 1,
    .offer = amx_offer,
    .create = amx_create,
    .run = amx_run,
    .destroy = amx_destroy,
};
