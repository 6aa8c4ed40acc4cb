/*
 * native_noise.c: noise of f32, in plain layout.
 *
 * The numbers are those of the reference kernel up to rounding: the same random words, in vector lanes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/pointwise/native_noise.h"
#include "base/number/base_philox.h"
#include "op/tensor/op_noise.h"

enum { PIECE = 1024 };

struct noise {
    int64_t n, each, npieces; /* each: elements of a sample */
    int threads, distribution, has_step;
    uint64_t seed, layer;
    float *dst; /* of the running call */
    const int64_t *id;
    int64_t step;
};

static cvy_status noise_offer(cvy_kernel_ask *ask)
{
    const cvy_dtype dtype = ask->node->dst[0]->dtype;
    CVY_CHECK(dtype == CVY_DTYPE_F32, CVY_NOT_APPLICABLE, "this kernel makes noise of f32; the result is %s",
              cvy_dtype_text(dtype));
    return CVY_OK;
}

static cvy_status noise_create(const cvy_kernel_ask *ask, void **state_out)
{
    const struct cvy_noise *o = ask->node->options;
    const cvy_shape *shape = &ask->node->dst[0]->shape;
    struct noise *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct noise){.n = shape->dim[0],
                        .each = 1,
                        .threads = ask->threads,
                        .distribution = o->distribution,
                        .has_step = ask->node->nsrc > 1,
                        .seed = ask->node->graph->seed,
                        .layer = cvy_rng_name(ask->node->layer)};
    for (int d = 1; d < shape->ndim; d++)
        s->each *= shape->dim[d];
    s->npieces = (s->each + PIECE - 1) / PIECE;
    *state_out = s;
    return CVY_OK;
}

static void noise_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Writes the numbers first .. first + count - 1 of the stream. */
CVY_SIMD static void draw_normal(const cvy_rng *stream, uint64_t first, int64_t count, float *dst)
{
    const cvy_rng rng = *stream;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        uint32_t a, b, c, d;
        cvy_philox(&rng, first + (uint64_t)i, &a, &b, &c, &d);
        dst[i] = cvy_noise_normal(a, b, c, d);
    }
}

CVY_SIMD static void draw_uniform(const cvy_rng *stream, uint64_t first, int64_t count, float *dst)
{
    const cvy_rng rng = *stream;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        uint32_t a, b, c, d;
        cvy_philox(&rng, first + (uint64_t)i, &a, &b, &c, &d);
        dst[i] = cvy_noise_uniform(a, b);
    }
}

/* Work item: a piece of a sample. */
static void noise_range(int64_t first, int64_t end, void *arg)
{
    const struct noise *s = arg;
    for (int64_t item = first; item < end; item++) {
        const int64_t n = item / s->npieces, from = item % s->npieces * PIECE, count = CVY_MIN(PIECE, s->each - from);
        const cvy_rng stream = cvy_noise_stream(s->seed, s->layer, s->step, s->id[n]);
        if (s->distribution == CVY_NOISE_NORMAL)
            draw_normal(&stream, (uint64_t)from, count, s->dst + n * s->each + from);
        else
            draw_uniform(&stream, (uint64_t)from, count, s->dst + n * s->each + from);
    }
}

static cvy_status noise_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct noise *s = state;
    (void)scratch;
    s->id = src[0];
    s->step = s->has_step ? *(const int64_t *)src[1] : -1;
    s->dst = dst[0];
    cvy_parallel_for(s->threads, s->n * s->npieces, 4, noise_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_noise) = {
    .name = "native.noise",
    .op = "noise",
    .preference = 50,
    .offer = noise_offer,
    .create = noise_create,
    .run = noise_run,
    .destroy = noise_destroy,
};
