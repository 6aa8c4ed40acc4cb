/*
 * gpu_random.c: dropout, noise, mix and their gradients, of f32 and bf16: numbers of the random streams that the host
 * uses, too (base/number/base_rng.h).
 *
 * A stream belongs to a sample. Its words are the same to the bit as the host's: the masks of dropout, uniform noise
 * and the shares of mix are equal; normal numbers may differ in their last bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct dropout {
    i64 key, threshold; /* of the seed and the layer; words below the threshold drop their element */
    i64 samples, each;  /* elements of a sample */
    i64 first;          /* the word of element 0 */
    struct walk w;      /* a: the places of a sample's elements, b: their words, from `first` on */
    float scale;
    int normal; /* of noise */
};

#ifdef CVY_DEVICE

struct stream {
    u32 key0, key1, low, high;
};

struct words {
    u32 w0, w1, w2, w3;
};

INLINE u64 mixed(u64 x)
{
    x = (x ^ (x >> 30)) * (u64)0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * (u64)0x94D049BB133111EB;
    return x ^ (x >> 31);
}

/* The upper halves of step and sample are zero almost always, and then the key is that of seed and layer. */
INLINE struct stream stream_of(i64 key_of_layer, i64 step, i64 sample)
{
    const u64 upper = ((u64)step >> 32 << 32) | ((u64)sample >> 32);
    const u64 key = upper ? mixed((u64)key_of_layer ^ mixed(upper)) : (u64)key_of_layer;
    struct stream s;
    s.key0 = (u32)key;
    s.key1 = (u32)(key >> 32);
    s.low = (u32)step;
    s.high = (u32)sample;
    return s;
}

/* Philox 4x32-10. */
INLINE struct words block_of(struct stream s, i64 counter)
{
    u32 c0 = (u32)counter, c1 = (u32)((u64)counter >> 32), c2 = s.low, c3 = s.high, k0 = s.key0, k1 = s.key1;
    for (int round = 0; round < 10; round++) {
        const u32 h0 = MUL_HIGH(0xD2511F53u, c0), h1 = MUL_HIGH(0xCD9E8D57u, c2);
        const u32 l0 = 0xD2511F53u * c0, l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    struct words w;
    w.w0 = c0;
    w.w1 = c1;
    w.w2 = c2;
    w.w3 = c3;
    return w;
}

/* A number in [0, 1) from 53 bits of two words. */
INLINE double unit_of(u32 high, u32 low)
{
    return (double)((u64)(high >> 5) << 26 | low >> 6) * 1.1102230246251565e-16;
}

/* The cosine of so many turns, by the cosine or sine of at most an eighth of a turn. */
INLINE float cosine_of_turns(double turns)
{
    const int quarter = (int)(4.0 * turns + 0.5);
    const float angle = (float)(6.283185307179586 * (turns - 0.25 * quarter));
    return quarter == 1 ? -SIN(angle) : quarter == 2 ? -COS(angle) : quarter == 3 ? SIN(angle) : COS(angle);
}

INLINE float normal_of(struct words w)
{
    const double radius = SQRT_D(-2.0 * LOG_D(1.0 - unit_of(w.w0, w.w1)));
    return (float)(radius * cosine_of_turns(unit_of(w.w2, w.w3)));
}

/* A dropped element becomes zero, also if it was not finite. */
#define DROP(i, word, o) SET(dst, i, (i64)(word) < (o).threshold ? 0.0f : (o).scale * GET(src, i))

/* For samples whose words are in the order of memory: a thread takes the four elements of a block of words. */
KERNEL(dropout_plain)
(GLOBAL const act *src, GLOBAL const i64 *id, GLOBAL const i64 *step, GLOBAL act *dst, struct dropout o)
{
    const i64 blocks = (o.each + 3) / 4;
    FOR_EACH (k, o.samples * blocks) {
        const i64 n = QUOTIENT(k, blocks), first = 4 * (k - n * blocks), at = n * o.each + first;
        const struct words w = block_of(stream_of(o.key, step[0], id[n]), first / 4);
        DROP(at, w.w0, o);
        if (first + 1 < o.each)
            DROP(at + 1, w.w1, o);
        if (first + 2 < o.each)
            DROP(at + 2, w.w2, o);
        if (first + 3 < o.each)
            DROP(at + 3, w.w3, o);
    }
}

KERNEL(dropout_any)
(GLOBAL const act *src, GLOBAL const i64 *id, GLOBAL const i64 *step, GLOBAL act *dst, struct dropout o)
{
    FOR_EACH (k, o.samples * o.each) {
        const i64 n = QUOTIENT(k, o.each);
        WALK(k - n * o.each, o.w, place, number)
        const i64 at = n * o.each + place, index = o.first + number;
        const struct words w = block_of(stream_of(o.key, step[0], id[n]), index / 4);
        const int word = (int)(index % 4);
        DROP(at, word == 0 ? w.w0 : word == 1 ? w.w1 : word == 2 ? w.w2 : w.w3, o);
    }
}

/* In evaluation there is no step: is_training 0. */
KERNEL(noise)(GLOBAL const i64 *id, GLOBAL const i64 *step, GLOBAL act *dst, int is_training, struct dropout o)
{
    FOR_EACH (k, o.samples * o.each) {
        const i64 n = QUOTIENT(k, o.each);
        WALK(k - n * o.each, o.w, place, number)
        const struct words w = block_of(stream_of(o.key, is_training ? step[0] : -1, id[n]), number);
        SET(dst, n * o.each + place, o.normal ? normal_of(w) : (float)(2.0 * unit_of(w.w0, w.w1) - 1.0));
    }
}

INLINE double share_of(i64 key, i64 step, i64 sample)
{
    const struct words w = block_of(stream_of(key, step, sample), 0);
    return unit_of(w.w0, w.w1);
}

KERNEL(mixture)
(GLOBAL const act *one, GLOBAL const act *other, GLOBAL const i64 *id, GLOBAL const i64 *step, GLOBAL act *dst,
 int is_training, struct dropout o)
{
    FOR_EACH (i, o.samples * o.each) {
        const double e = share_of(o.key, is_training ? step[0] : -1, id[QUOTIENT(i, o.each)]);
        SET(dst, i, (float)e * GET(one, i) + (float)(1.0 - e) * GET(other, i));
    }
}

KERNEL(mixture_grad)
(GLOBAL const act *ddst, GLOBAL const i64 *id, GLOBAL const i64 *step, GLOBAL act *dsrc, int is_training, int side,
 struct dropout o)
{
    FOR_EACH (i, o.samples * o.each) {
        const double e = share_of(o.key, is_training ? step[0] : -1, id[QUOTIENT(i, o.each)]);
        SET(dsrc, i, (float)(side ? 1.0 - e : e) * GET(ddst, i));
    }
}

#else
#include <string.h>

#include "kernel/gpu/gpu_walk.h"
#include "op/pointwise/op_activation.h"
#include "op/tensor/op_mix.h"
#include "op/tensor/op_noise.h"

CVY_GPU_SOURCE_DECLARE(gpu_random);

struct call {
    cvy_gpu_kernel kernel;
    struct dropout o;
    int is_training, side;
};

static cvy_status kernel_get(const cvy_kernel_ask *ask, const char *name, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act_of(ask->node->dst[0], &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_random), name, act, out);
}

/* What all of them need: the key, and the sizes of the result. */
static cvy_status call_make(const cvy_kernel_ask *ask, const char *name, struct call **out)
{
    const cvy_shape *shape = cvy_node_dst(ask->node, 0), sample = cvy_shape_make(shape->ndim - 1, shape->dim + 1);
    const cvy_rng rng = cvy_rng_make_hashed(ask->node->graph->seed, cvy_rng_name(ask->node->layer), 0, 0);
    struct call *s = NULL;
    cvy_gpu_kernel kernel;
    CVY_TRY(kernel_get(ask, name, &kernel));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct call){.kernel = kernel};
    s->o.key = (int64_t)((uint64_t)rng.key[1] << 32 | rng.key[0]);
    s->o.samples = shape->dim[0];
    s->o.each = cvy_shape_elems(&sample);
    *out = s;
    return CVY_OK;
}

/* The elements of a sample in the order of memory, and their numbers in a whole sample of this shape. */
static struct walk walk_of(const cvy_kernel_ask *ask, const cvy_shape *whole)
{
    const cvy_shape *shape = cvy_node_dst(ask->node, 0);
    cvy_gpu_axes axes = {.ndim = shape->ndim - 1};
    int64_t step[CVY_NDIM_MAX], number = 1;
    cvy_gpu_steps(shape, &ask->dst[0], step);
    for (int d = axes.ndim - 1; d >= 0; d--) {
        axes.dim[d] = shape->dim[d + 1];
        axes.a[d] = step[d + 1];
        axes.b[d] = number;
        number *= whole->dim[d];
    }
    cvy_gpu_axes_sort(&axes, 0);
    return cvy_gpu_walk_make(&axes);
}

/* ---- dropout ---- */

static int is_plain(const cvy_kernel_ask *ask)
{
    const struct cvy_dropout *o = ask->node->options;
    return o->place.whole.ndim == 0 && cvy_layout_is_plain(&ask->src[0]);
}

static cvy_status dropout_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    ask->src[0] = ask->dst[0] = cvy_gpu_unblocked(ask, 0);
    ask->inplace[0] = 1;
    return kernel_get(ask, is_plain(ask) ? "dropout_plain" : "dropout_any", &kernel);
}

static cvy_status dropout_create(const cvy_kernel_ask *ask, void **state_out)
{
    const struct cvy_dropout *o = ask->node->options;
    const cvy_shape *shape = cvy_node_dst(ask->node, 0), sample = cvy_shape_make(shape->ndim - 1, shape->dim + 1);
    struct call *s = NULL;
    CVY_TRY(call_make(ask, is_plain(ask) ? "dropout_plain" : "dropout_any", &s));
    s->o.threshold = (int64_t)cvy_dropout_threshold(o->p);
    s->o.scale = (float)cvy_dropout_scale(o->p);
    s->o.first = s->o.each > 0 ? cvy_dropout_index(o, &sample, 0) : 0;
    s->o.w = walk_of(ask, o->place.whole.ndim ? &o->place.whole : &sample);
    *state_out = s;
    return CVY_OK;
}

static cvy_status dropout_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.samples * s->o.each), 1, 1, CVY_GPU_THREADS,
                          CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->o));
}

CVY_KERNEL_DEFINE(gpu_dropout) = {
    CVY_GPU_FIELDS("dropout", dropout_offer, dropout_create, dropout_run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_dropout_grad) = {
    CVY_GPU_FIELDS("dropout_grad", dropout_offer, dropout_create, dropout_run, cvy_gpu_free_state)};

/* ---- noise ---- */

static cvy_status noise_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    ask->dst[0] = cvy_gpu_layout(cvy_node_dst(ask->node, 0));
    return kernel_get(ask, "noise", &kernel);
}

static cvy_status noise_create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_shape *shape = cvy_node_dst(ask->node, 0), sample = cvy_shape_make(shape->ndim - 1, shape->dim + 1);
    struct call *s = NULL;
    CVY_TRY(call_make(ask, "noise", &s));
    s->o.normal = ((const struct cvy_noise *)ask->node->options)->distribution == CVY_NOISE_NORMAL;
    s->o.w = walk_of(ask, &sample);
    s->is_training = ask->node->nsrc > 1;
    *state_out = s;
    return CVY_OK;
}

static cvy_status noise_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.samples * s->o.each), 1, 1, CVY_GPU_THREADS,
                          CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[s->is_training]), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->is_training), CVY_GPU_VALUE(s->o));
}

CVY_KERNEL_DEFINE(gpu_noise) = {CVY_GPU_FIELDS("noise", noise_offer, noise_create, noise_run, cvy_gpu_free_state)};

/* ---- mix ---- */

static int is_grad(const cvy_node *node)
{
    return (node->op->flags & CVY_OP_HIDDEN) != 0;
}

static cvy_status mix_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    cvy_gpu_common_layout(ask, is_grad(ask->node) ? 1 : 2, 0);
    return kernel_get(ask, is_grad(ask->node) ? "mixture_grad" : "mixture", &kernel);
}

static cvy_status mix_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct call *s = NULL;
    CVY_TRY(call_make(ask, is_grad(ask->node) ? "mixture_grad" : "mixture", &s));
    s->is_training = ask->node->nsrc > (is_grad(ask->node) ? 2 : 3);
    s->side = is_grad(ask->node) ? (int)((const cvy_mix_grad_opts *)ask->node->options)->side : 0;
    *state_out = s;
    return CVY_OK;
}

static cvy_status mix_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.samples * s->o.each), 1, 1, CVY_GPU_THREADS,
                          CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]),
                          CVY_GPU_POINTER(src[s->is_training ? 3 : 2]), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->is_training), CVY_GPU_VALUE(s->o));
}

static cvy_status mix_grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.samples * s->o.each), 1, 1, CVY_GPU_THREADS,
                          CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]),
                          CVY_GPU_POINTER(src[s->is_training ? 2 : 1]), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(s->is_training), CVY_GPU_VALUE(s->side), CVY_GPU_VALUE(s->o));
}

CVY_KERNEL_DEFINE(gpu_mix) = {CVY_GPU_FIELDS("mix", mix_offer, mix_create, mix_run, cvy_gpu_free_state)};

CVY_KERNEL_DEFINE(gpu_mix_grad) = {CVY_GPU_FIELDS("mix_grad", mix_offer, mix_create, mix_grad_run, cvy_gpu_free_state)};
#endif
