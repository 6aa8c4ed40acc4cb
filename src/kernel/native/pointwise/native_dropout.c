/*
 * native_dropout.c: dropout and its gradient of f32 and bf16, for layouts that are plain, blocked by channels, or
 * channels last.
 *
 * The mask is the same as that of the reference kernel. Random words are made for one piece of a sample at a time, in
 * vector lanes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_philox.h"
#include "kernel/native/native_common.h"
#include "op/pointwise/op_activation.h"

enum { PIECE = 1024, NBLOCK = PIECE / 4 };

struct dropout {
    int64_t each;        /* elements of a sample, without padding */
    int64_t each_memory; /* the same, with padding */
    int64_t npieces;     /* pieces of a sample */
    int64_t n, channels, positions, block;
    int threads, bf16;
    uint64_t seed, layer, threshold;
    float scale;
    struct cvy_dropout options; /* say whether a sample is a part */
    cvy_shape sample;
    int64_t run;     /* elements of a part that are consecutive in the whole sample */
    const void *src; /* of the running call */
    void *dst;
    const int64_t *id;
    int64_t step;
};

static cvy_status dropout_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    ask->src[0] = ask->dst[0] = cvy_native_activation(ask, 0);
    ask->inplace[0] = 1;
    return CVY_OK;
}

static cvy_status dropout_create(const cvy_kernel_ask *ask, void **state_out)
{
    const struct cvy_dropout *o = ask->node->options;
    const cvy_shape *shape = &ask->node->src[0]->shape;
    struct dropout *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct dropout){.each = 1,
                          .positions = 1,
                          .block = 1,
                          .n = shape->dim[0],
                          .channels = shape->ndim > 1 ? shape->dim[1] : 1,
                          .threads = ask->threads,
                          .bf16 = ask->node->src[0]->dtype == CVY_DTYPE_BF16,
                          .seed = ask->node->graph->seed,
                          .layer = cvy_rng_name(ask->node->layer),
                          .threshold = cvy_dropout_threshold(o->p),
                          .scale = (float)cvy_dropout_scale(o->p),
                          .options = *o,
                          .sample = cvy_shape_make(shape->ndim - 1, shape->dim + 1)};
    s->run = s->sample.ndim > 0 ? s->sample.dim[s->sample.ndim - 1] : 1;
    if (shape->ndim > 1)
        s->block = cvy_planes_make(shape, &ask->src[0]).block;
    for (int d = 1; d < shape->ndim; d++)
        s->each *= shape->dim[d];
    for (int d = 2; d < shape->ndim; d++)
        s->positions *= shape->dim[d];
    s->each_memory = (s->channels + s->block - 1) / s->block * s->block * s->positions;
    s->npieces = (s->each + PIECE - 1) / PIECE;
    *state_out = s;
    return CVY_OK;
}

static void dropout_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Draws PIECE words, from block `first` of the stream on. word[k][j] is word k of block first + j. */
CVY_SIMD static void draw(const cvy_rng *stream, uint64_t first, uint32_t word[4][NBLOCK])
{
    const cvy_rng rng = *stream;
#pragma omp simd
    for (int j = 0; j < NBLOCK; j++)
        cvy_philox(&rng, first + (uint64_t)j, &word[0][j], &word[1][j], &word[2][j], &word[3][j]);
}

/* Computes the factors of PIECE elements, in logical order. */
CVY_SIMD static void factors(const struct dropout *s, const uint32_t word[4][NBLOCK], float *factor)
{
    const float scale = s->scale;
    if (s->threshold > UINT32_MAX) { /* p = 1: every word is below the threshold */
        for (int i = 0; i < PIECE; i++)
            factor[i] = 0;
        return;
    }
    const uint32_t threshold = (uint32_t)s->threshold;
#pragma omp simd
    for (int j = 0; j < NBLOCK; j++)
        for (int k = 0; k < 4; k++)
            factor[4 * j + k] = word[k][j] < threshold ? 0 : scale;
}

/* The factors of elements from .. from + count - 1 of a part, whose words are not consecutive. */
static void part_factors(const struct dropout *s, const cvy_rng *stream, int64_t from, int64_t count, float *factor)
{
    for (int64_t i = 0; i < count;) {
        const int64_t end = CVY_MIN(count, i + s->run - (from + i) % s->run);
        uint32_t word[4] = {0};
        for (uint64_t w = (uint64_t)cvy_dropout_index(&s->options, &s->sample, from + i), first = w; i < end;
             i++, w++) {
            if (w == first || w % 4 == 0)
                cvy_philox(stream, w / 4, &word[0], &word[1], &word[2], &word[3]);
            factor[i] = word[w % 4] < s->threshold ? 0 : s->scale;
        }
    }
}

/* A dropped element becomes zero, also if it was not finite. */
CVY_INLINE float kept(float x, float factor)
{
    return factor == 0 ? 0 : x * factor;
}

/* Applies the factors to `run` elements from index `at` on, `step` elements apart. */
CVY_SIMD static void dropout_stretch(const struct dropout *s, const float *factor, int64_t at, const int64_t step,
                                     int64_t run)
{
    if (s->bf16) {
        const cvy_bf16 *src = (const cvy_bf16 *)s->src + at;
        cvy_bf16 *dst = (cvy_bf16 *)s->dst + at;
#pragma omp simd
        for (int64_t r = 0; r < run; r++)
            dst[r * step] = cvy_bf16_of(kept(cvy_bf16_get(src[r * step]), factor[r]));
    } else if (step == 1) {
        const float *src = (const float *)s->src + at;
        float *dst = (float *)s->dst + at;
#pragma omp simd
        for (int64_t r = 0; r < run; r++)
            dst[r] = kept(src[r], factor[r]);
    } else {
        const float *src = (const float *)s->src + at;
        float *dst = (float *)s->dst + at;
        for (int64_t r = 0; r < run; r++)
            dst[r * step] = kept(src[r * step], factor[r]);
    }
}

/* Applies the factors to elements first .. first + count - 1 of the sample at `base`, whose channels are in blocks. The
 * positions of one channel are `block` elements apart. */
static void apply_blocked(const struct dropout *s, const float *factor, int64_t base, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count;) {
        const int64_t c = (first + i) / s->positions, p = (first + i) % s->positions,
                      run = CVY_MIN(count - i, s->positions - p);
        dropout_stretch(s, factor + i, base + (c / s->block * s->positions + p) * s->block + c % s->block, s->block,
                        run);
        i += run;
    }
}

static void clear_padding(const struct dropout *s, int64_t base)
{
    const float zero = 0;
    for (int64_t c = s->channels; c % s->block; c++)
        for (int64_t p = 0; p < s->positions; p++)
            cvy_floats_store(s->bf16, &zero, 1, s->dst,
                             base + (c / s->block * s->positions + p) * s->block + c % s->block);
}

/* Work item: a piece of a sample. Each item draws its own words. */
static void dropout_range(int64_t first, int64_t end, void *arg)
{
    const struct dropout *s = arg;
    uint32_t word[4][NBLOCK];
    float factor[PIECE];
    for (int64_t item = first; item < end; item++) {
        const int64_t n = item / s->npieces, from = item % s->npieces * PIECE, count = CVY_MIN(PIECE, s->each - from);
        const cvy_rng stream = cvy_dropout_stream(s->seed, s->layer, s->step, s->id[n]);
        if (s->options.place.whole.ndim > 0)
            part_factors(s, &stream, from, count, factor);
        else {
            draw(&stream, (uint64_t)from / 4, word);
            factors(s, (const uint32_t(*)[NBLOCK])word, factor);
        }
        const int64_t base = n * s->each_memory;
        if (s->block == 1)
            dropout_stretch(s, factor, base + from, 1, count);
        else
            apply_blocked(s, factor, base, from, count);
        if (from + count == s->each)
            clear_padding(s, base);
    }
}

static cvy_status dropout_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct dropout *s = state;
    (void)scratch;
    s->src = src[0];
    s->id = src[1];
    s->step = *(const int64_t *)src[2];
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->n * s->npieces, 4, dropout_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_dropout) = {
    .name = "native.dropout",
    .op = "dropout",
    .preference = 50,
    .offer = dropout_offer,
    .create = dropout_create,
    .run = dropout_run,
    .destroy = dropout_destroy,
};

CVY_KERNEL_DEFINE(native_dropout_grad) = {
    .name = "native.dropout_grad",
    .op = "dropout_grad",
    .preference = 50,
    .offer = dropout_offer,
    .create = dropout_create,
    .run = dropout_run,
    .destroy = dropout_destroy,
};
