/*
 * native_lrn.c: local response normalisation across channels, and its gradient, of f32 and bf16.
 *
 * AlexNet, CaffeNet and GoogLeNet use it between ReLU and pooling. A tile holds all channels of `step` adjacent
 * positions, in f32, with `half` zero channels before and after them. So the window of every channel is the same sum of
 * shifted rows. If channels are in blocks or last, a tile is one position, and vectors run over channels. In the plain
 * layout a tile is sixteen positions, and vectors run over these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "kernel/native/native_common.h"
#include "op/norm/op_lrn.h"

enum { STEP_PLAIN = 16, TILES = 4 };

struct lrn {
    cvy_planes p;
    cvy_lrn_opts o;
    int threads, bf16;
    int64_t half, step, tiles; /* half: channels in half a window; tiles: tiles of one sample */
    int64_t tile_floats;
    const void *src, *ddst; /* of the running call */
    void *dst;
    float *scratch;
};

/* ---- between memory and tile [half + channels + half, step] ---- */

/* Elements of one sample. */
CVY_INLINE int64_t sample_elems(const struct lrn *s)
{
    return s->p.groups * s->p.block * s->p.positions;
}

/* Loads a tile. item: number of the tile, counted over all samples. */
CVY_INLINE void load(const struct lrn *s, const void *src, int64_t item, float *out)
{
    const cvy_planes *p = &s->p;
    const int64_t sample = item / s->tiles * sample_elems(s), tile = item % s->tiles;
    float *x = out + s->half * s->step;
    if (p->block > 1) {
        for (int64_t g = 0; g < p->groups; g++)
            cvy_floats_load(s->bf16, src, sample + (g * p->positions + tile) * p->block,
                            CVY_MIN(p->block, p->channels - g * p->block), x + g * p->block);
        return;
    }
    const int64_t first = tile * s->step, n = CVY_MIN(s->step, p->positions - first);
    for (int64_t c = 0; c < p->channels; c++)
        cvy_floats_load(s->bf16, src, sample + c * p->positions + first, n, x + c * s->step);
}

CVY_INLINE void store(const struct lrn *s, const float *x, int64_t item)
{
    const cvy_planes *p = &s->p;
    const int64_t sample = item / s->tiles * sample_elems(s), tile = item % s->tiles;
    const float zero = 0;
    if (p->block > 1) {
        for (int64_t g = 0; g < p->groups; g++) {
            const int64_t used = CVY_MIN(p->block, p->channels - g * p->block),
                          to = sample + (g * p->positions + tile) * p->block;
            cvy_floats_store(s->bf16, x + g * p->block, used, s->dst, to);
            for (int64_t l = used; l < p->block; l++)
                cvy_floats_store(s->bf16, &zero, 1, s->dst, to + l);
        }
        return;
    }
    const int64_t first = tile * s->step, n = CVY_MIN(s->step, p->positions - first);
    for (int64_t c = 0; c < p->channels; c++)
        cvy_floats_store(s->bf16, x + c * s->step, n, s->dst, sample + c * p->positions + first);
}

/* ---- arithmetic on tiles ---- */

/* out = the sum of x over the window of each channel. x and out point to the first real channel. */
CVY_INLINE void window_sum(const struct lrn *s, int64_t n, const float *restrict x, float *restrict out)
{
    memset(out, 0, (size_t)n * sizeof *out);
    for (int64_t near = -s->half; near <= s->half; near++)
        for (int64_t i = 0; i < n; i++)
            out[i] += x[i + near * s->step];
}

/* out = scale^-beta. The values of beta that networks use need no logarithm. */
CVY_INLINE void power(const struct lrn *s, int64_t n, const float *restrict scale, float *restrict out)
{
    if (s->o.beta == 0.75)
        for (int64_t i = 0; i < n; i++) {
            const float root = sqrtf(scale[i]);
            out[i] = 1 / (root * sqrtf(root));
        }
    else if (s->o.beta == 0.5)
        for (int64_t i = 0; i < n; i++)
            out[i] = 1 / sqrtf(scale[i]);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = powf(scale[i], (float)-s->o.beta);
}

/* Work item: one tile of one sample. Tiles in scratch memory: x, squares or weighted gradients, scale, scale^-beta. */
CVY_INLINE void forward_tile(const struct lrn *s, int64_t item, float *x, float *square, float *scale, float *factor)
{
    const int64_t n = s->p.channels * s->step, at = s->half * s->step;
    const float k = (float)s->o.k, slope = (float)(s->o.alpha / (double)s->o.size);
    load(s, s->src, item, x);
    for (int64_t i = 0; i < n; i++)
        square[at + i] = x[at + i] * x[at + i];
    window_sum(s, n, square + at, scale);
    for (int64_t i = 0; i < n; i++)
        scale[i] = k + slope * scale[i];
    power(s, n, scale, factor);
}

CVY_SIMD static void lrn_range(int64_t first, int64_t end, void *arg)
{
    const struct lrn *s = arg;
    const int64_t n = s->p.channels * s->step, at = s->half * s->step;
    for (int64_t t = first; t < end; t++) {
        float *x = s->scratch + t * TILES * s->tile_floats, *square = x + s->tile_floats,
              *scale = square + s->tile_floats, *factor = scale + s->tile_floats;
        memset(x, 0, (size_t)(TILES * s->tile_floats) * sizeof *x);
        const int64_t items = s->p.n * s->tiles;
        for (int64_t item = items * t / s->threads; item < items * (t + 1) / s->threads; item++) {
            forward_tile(s, item, x, square, scale, factor);
            for (int64_t i = 0; i < n; i++)
                factor[i] *= x[at + i];
            store(s, factor, item);
        }
    }
}

CVY_SIMD static void lrn_grad_range(int64_t first, int64_t end, void *arg)
{
    const struct lrn *s = arg;
    const int64_t n = s->p.channels * s->step, at = s->half * s->step;
    const float slope = (float)(2 * s->o.alpha * s->o.beta / (double)s->o.size);
    for (int64_t t = first; t < end; t++) {
        float *x = s->scratch + t * (TILES + 1) * s->tile_floats, *ratio = x + s->tile_floats,
              *scale = ratio + s->tile_floats;
        float *factor = scale + s->tile_floats, *ddst = factor + s->tile_floats;
        memset(x, 0, (size_t)((TILES + 1) * s->tile_floats) * sizeof *x);
        const int64_t items = s->p.n * s->tiles;
        for (int64_t item = items * t / s->threads; item < items * (t + 1) / s->threads; item++) {
            forward_tile(s, item, x, ratio, scale, factor);
            load(s, s->ddst, item, ddst);
            for (int64_t i = 0; i < n; i++) {
                ratio[at + i] = ddst[at + i] * x[at + i] * factor[i] / scale[i];
                factor[i] *= ddst[at + i];
            }
            window_sum(s, n, ratio + at, scale);
            for (int64_t i = 0; i < n; i++)
                factor[i] -= slope * x[at + i] * scale[i];
            store(s, factor, item);
        }
    }
}

/* ---- planning and running ---- */

static struct lrn lrn_of(const cvy_kernel_ask *ask, const cvy_layout *layout)
{
    struct lrn s = {.p = cvy_planes_make(&ask->node->src[0]->shape, layout),
                    .o = *(const cvy_lrn_opts *)ask->node->options,
                    .threads = ask->threads,
                    .bf16 = ask->node->src[0]->dtype == CVY_DTYPE_BF16};
    s.half = s.o.size / 2;
    s.step = s.p.block > 1 ? 1 : STEP_PLAIN;
    s.tiles = (s.p.positions + s.step - 1) / s.step;
    s.tile_floats = cvy_whole_lines((s.p.channels + 2 * s.half) * s.step);
    return s;
}

static cvy_status lrn_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_f32_or_bf16(ask->node));
    const cvy_layout layout = cvy_native_activation(ask, 0);
    const struct lrn s = lrn_of(ask, &layout);
    for (int i = 0; i < ask->node->nsrc; i++)
        ask->src[i] = layout;
    ask->dst[0] = layout;
    ask->scratch_bytes = (size_t)(s.threads * (TILES + 1) * s.tile_floats) * sizeof(float);
    return CVY_OK;
}

static cvy_status lrn_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct lrn *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = lrn_of(ask, &ask->src[0]);
    *state_out = s;
    return CVY_OK;
}

static void lrn_destroy(void *state)
{
    cvy_mem_free(&state);
}

static cvy_status run(struct lrn *s, const void *src, const void *ddst, void *dst, void *scratch, cvy_range_fn body)
{
    s->src = src;
    s->ddst = ddst;
    s->dst = dst;
    s->scratch = scratch;
    cvy_parallel_for(s->threads, s->threads, 1, body, s);
    return CVY_OK;
}

static cvy_status lrn_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    return run(state, src[0], NULL, dst[0], scratch, lrn_range);
}

static cvy_status lrn_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    return run(state, src[0], src[1], dst[0], scratch, lrn_grad_range);
}

CVY_KERNEL_DEFINE(native_lrn) = {
    .name = "native.lrn",
    .op = "lrn",
    .preference = 50,
    .offer = lrn_offer,
    .create = lrn_create,
    .run = lrn_run,
    .destroy = lrn_destroy,
};

CVY_KERNEL_DEFINE(native_lrn_grad) = {
    .name = "native.lrn_grad",
    .op = "lrn_grad",
    .preference = 50,
    .offer = lrn_offer,
    .create = lrn_create,
    .run = lrn_grad_run,
    .destroy = lrn_destroy,
};
