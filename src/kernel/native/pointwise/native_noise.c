/*
 * native_noise.c: noise of f32, in plain layout.
 *
 * The numbers are those of the reference kernel up to rounding: the same random words, in vector lanes, with the
 * logarithm and the cosine of Cephes (Moshier 1989) in f32. The logarithm of 1 - u is taken from u where u is small, so
 * that numbers near zero keep their digits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/number/base_philox.h"
#include "kernel/native/native_common.h"
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
    return ask->node->dst[0]->dtype == CVY_DTYPE_F32 ? CVY_OK : CVY_NOT_APPLICABLE;
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

/* A number in [0, 1) from the 53 bits that cvy_rng_uniform() takes. The words are signed in the conversion, because
 * few machines convert unsigned numbers in vectors. */
CVY_INLINE float unit(uint32_t high, uint32_t low)
{
    return (float)(int32_t)(high >> 5) * 0x1p-27f + (float)(int32_t)(low >> 6) * 0x1p-53f;
}

/* -log(1 - u). rest: 1 - u, not computed from the rounded u. */
CVY_INLINE float minus_log(float u, float rest)
{
    uint32_t bits;
    float m;
    memcpy(&bits, &rest, sizeof bits);
    int32_t e = (int32_t)(bits >> 23) - 126;
    bits = (bits & 0x007FFFFFu) | 0x3F000000u; /* 0.5 .. 1 */
    memcpy(&m, &bits, sizeof m);
    const int is_low = m < 0.707106781f;
    e = is_low ? e - 1 : e;
    m = is_low ? 2 * m : m;
    const float x = e == 0 ? -u : m - 1, z = x * x;
    float p = 7.0376836292e-2f;
    p = p * x - 1.1514610310e-1f;
    p = p * x + 1.1676998740e-1f;
    p = p * x - 1.2420140846e-1f;
    p = p * x + 1.4249322787e-1f;
    p = p * x - 1.6668057665e-1f;
    p = p * x + 2.0000714765e-1f;
    p = p * x - 2.4999993993e-1f;
    p = p * x + 3.3333331174e-1f;
    const float y = p * x * z - 0.5f * z + (float)e * -2.12194440e-4f;
    return -(x + y + (float)e * 0.693359375f);
}

/* cos(2 pi t), t in [0, 1). */
CVY_INLINE float cosine_of_turns(float t)
{
    const int32_t quarter = (int32_t)(4 * t + 0.5f);
    const float x = (t - 0.25f * (float)quarter) * 6.28318530718f, z = x * x;
    float c = 2.443315711809948e-5f, s = -1.9515295891e-4f;
    c = c * z - 1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    c = c * z * z - 0.5f * z + 1.0f;
    s = s * z + 8.3321608736e-3f;
    s = s * z - 1.6666654611e-1f;
    s = s * z * x + x;
    const float size = quarter & 1 ? s : c;
    return (quarter + 1) & 2 ? -size : size;
}

/* Writes the numbers first .. first + count - 1 of the stream. */
CVY_SIMD static void draw_normal(const cvy_rng *stream, uint64_t first, int64_t count, float *dst)
{
    const cvy_rng rng = *stream;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        uint32_t a, b, c, d;
        cvy_philox(&rng, first + (uint64_t)i, &a, &b, &c, &d);
        const float rest = (float)(0x8000000 - (int32_t)(a >> 5)) * 0x1p-27f - (float)(int32_t)(b >> 6) * 0x1p-53f;
        dst[i] = sqrtf(2 * minus_log(unit(a, b), rest)) * cosine_of_turns(unit(c, d));
    }
}

CVY_SIMD static void draw_uniform(const cvy_rng *stream, uint64_t first, int64_t count, float *dst)
{
    const cvy_rng rng = *stream;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        uint32_t a, b, c, d;
        cvy_philox(&rng, first + (uint64_t)i, &a, &b, &c, &d);
        dst[i] = 2 * unit(a, b) - 1;
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
