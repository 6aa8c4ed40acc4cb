/*
 * gpu_combine.c: add, subtract, multiply, divide and maximum of two to eight tensors, and the gradient of maximum, of
 * f32 and bf16; and of scalars in f64.
 *
 * Sources are added in their order. The gradient of maximum is one launch for each source.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { BY_ADD, BY_SUBTRACT, BY_MULTIPLY, BY_DIVIDE, BY_MAXIMUM };
struct combine {
    i64 n;
    i64 row, step[8], to; /* of slices (cvy_gpu_slices): steps of the sources and the destination */
    int lanes;            /* of combine_two: n counts words of so many elements, which are read and written at once */
    int f, nsrc;          /* a kernel with eight sources reads the first nsrc of them */
};

#ifdef CVY_DEVICE

/* The maximum of a number and NaN is NaN. */
INLINE float combined(int f, float a, float b)
{
    switch (f) {
    case BY_ADD: return a + b;
    case BY_SUBTRACT: return a - b;
    case BY_MULTIPLY: return a * b;
    case BY_DIVIDE: return a / b;
    default: return a > b || a != a ? a : b;
    }
}

KERNEL(combine_two)(GLOBAL const act *s0, GLOBAL const act *s1, GLOBAL act *dst, struct combine o)
{
    FOR_EACH (i, o.n) {
        const i64 row = o.row ? QUOTIENT(i, o.row) : 0, at = i - row * o.row;
        const u64 word0 = o.lanes > 1 ? ((GLOBAL const u64 *)s0)[i] : 0;
        const u64 word1 = o.lanes > 1 ? ((GLOBAL const u64 *)s1)[i] : 0;
        u64 result = 0;
        for (int k = 0; k < o.lanes; k++) {
            const float a = o.lanes > 1 ? FROM_WORD(word0, k) : GET(s0, row * o.step[0] + at);
            const float b = o.lanes > 1 ? FROM_WORD(word1, k) : GET(s1, row * o.step[1] + at);
            const float y = combined(o.f, a, b);
            if (o.lanes > 1)
                result |= IN_WORD(y, k);
            else
                SET(dst, row * o.to + at, y);
        }
        if (o.lanes > 1)
            ((GLOBAL u64 *)dst)[i] = result;
    }
}

KERNEL(combine_many)
(GLOBAL const act *s0, GLOBAL const act *s1, GLOBAL const act *s2, GLOBAL const act *s3, GLOBAL const act *s4,
 GLOBAL const act *s5, GLOBAL const act *s6, GLOBAL const act *s7, GLOBAL act *dst, struct combine o)
{
    FOR_EACH (i, o.n) {
        const i64 row = o.row ? QUOTIENT(i, o.row) : 0, at = i - row * o.row;
        float x = combined(o.f, GET(s0, row * o.step[0] + at), GET(s1, row * o.step[1] + at));
        if (o.nsrc > 2)
            x = combined(o.f, x, GET(s2, row * o.step[2] + at));
        if (o.nsrc > 3)
            x = combined(o.f, x, GET(s3, row * o.step[3] + at));
        if (o.nsrc > 4)
            x = combined(o.f, x, GET(s4, row * o.step[4] + at));
        if (o.nsrc > 5)
            x = combined(o.f, x, GET(s5, row * o.step[5] + at));
        if (o.nsrc > 6)
            x = combined(o.f, x, GET(s6, row * o.step[6] + at));
        if (o.nsrc > 7)
            x = combined(o.f, x, GET(s7, row * o.step[7] + at));
        SET(dst, row * o.to + at, x);
    }
}

/* Of two sources, which are no slices: losses, and sums of squares for clipping. */
KERNEL(combine_doubles)(GLOBAL const double *s0, GLOBAL const double *s1, GLOBAL double *dst, struct combine o)
{
    FOR_EACH (i, o.n) {
        const double a = s0[i], b = s1[i];
        dst[i] = o.f == BY_ADD        ? a + b
                 : o.f == BY_SUBTRACT ? a - b
                 : o.f == BY_MULTIPLY ? a * b
                 : o.f == BY_DIVIDE   ? a / b
                 : a > b || a != a    ? a
                                      : b;
    }
}

/* The part of ddst that the source `own` gets: the sources that are equal to the maximum share it. Sources from nsrc on
 * are copies of s0 and do not count. */
KERNEL(maximum_grad)
(GLOBAL const act *ddst, GLOBAL const act *own, GLOBAL const act *s0, GLOBAL const act *s1, GLOBAL const act *s2,
 GLOBAL const act *s3, GLOBAL const act *s4, GLOBAL const act *s5, GLOBAL const act *s6, GLOBAL const act *s7,
 GLOBAL act *dsrc, struct combine o)
{
    FOR_EACH (i, o.n) {
        const float x[8] = {GET(s0, i), GET(s1, i), GET(s2, i), GET(s3, i),
                            GET(s4, i), GET(s5, i), GET(s6, i), GET(s7, i)};
        float max = x[0];
        int equal = 0;
        for (int k = 1; k < 8; k++)
            max = k < o.nsrc ? combined(BY_MAXIMUM, max, x[k]) : max;
        for (int k = 0; k < 8; k++)
            equal += k < o.nsrc && x[k] == max;
        SET(dsrc, i, GET(own, i) == max ? GET(ddst, i) / (float)equal : 0.0f);
    }
}

#else
#include <string.h>

#include "kernel/gpu/gpu_walk.h"

CVY_GPU_SOURCE_DECLARE(gpu_combine);

enum { MOST = 8 };

struct call {
    cvy_gpu_kernel kernel;
    struct combine o;
    cvy_dtype act;
    int ndst, doubles;
};

static int of_doubles(const cvy_node *node)
{
    return node->src[0]->dtype == CVY_DTYPE_F64 && node->src[0]->shape.ndim < 2;
}

static cvy_status kernel_of(const cvy_kernel_ask *ask, int is_grad, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    if (of_doubles(ask->node) && !is_grad)
        return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_combine), "combine_doubles", CVY_DTYPE_F32, out);
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    CVY_CHECK(ask->node->nsrc - is_grad <= MOST, CVY_NOT_APPLICABLE, "this kernel takes up to %d tensors, not %d", MOST,
              ask->node->nsrc - is_grad);
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_combine),
                         is_grad                ? "maximum_grad"
                         : ask->node->nsrc == 2 ? "combine_two"
                                                : "combine_many",
                         act, out);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    CVY_TRY(kernel_of(ask, 0, &kernel));
    cvy_gpu_common_layout(ask, ask->node->nsrc, 0);
    return CVY_OK;
}

/* ddst is read once for each source, so no gradient may take over its memory. */
static cvy_status grad_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel kernel;
    CVY_TRY(kernel_of(ask, 1, &kernel));
    cvy_gpu_common_layout(ask, ask->node->nsrc, -1);
    for (int i = 1; i < ask->node->ndst; i++)
        ask->dst[i] = ask->dst[0];
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    static const char *const ops[] = {"add", "subtract", "multiply", "divide", "maximum"};
    const cvy_node *node = ask->node;
    const int is_grad = strcmp(node->op->name, "maximum_grad") == 0;
    int64_t src_step[CVY_NODE_SRC_MAX], dst_step[CVY_NODE_DST_MAX];
    struct call *s = NULL;
    cvy_gpu_kernel kernel;
    CVY_TRY(kernel_of(ask, is_grad, &kernel));
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct call){.kernel = kernel, .act = node->src[0]->dtype, .ndst = node->ndst, .doubles = of_doubles(node)};
    s->o = (struct combine){.n = cvy_shape_elems(cvy_node_src(node, 0)), .f = BY_MAXIMUM, .nsrc = node->nsrc - is_grad};
    s->o.row = cvy_gpu_slices(ask, src_step, dst_step);
    for (int i = 0; i < s->o.nsrc; i++)
        s->o.step[i] = src_step[i];
    s->o.to = dst_step[0];
    for (int f = 0; f < CVY_COUNT(ops); f++)
        if (strcmp(ops[f], node->op->name) == 0)
            s->o.f = f;
    *state_out = s;
    return CVY_OK;
}

/* The third source and those behind it are combined with what dst has then. */
static cvy_status run_doubles(const struct call *s, void *const *src, void *const *dst)
{
    for (int i = 1; i < s->o.nsrc; i++)
        CVY_TRY(CVY_GPU_LAUNCH(&s->kernel, cvy_gpu_blocks(s->o.n), 1, 1, CVY_GPU_THREADS,
                               CVY_GPU_POINTER(*(i == 1 ? &src[0] : &dst[0])), CVY_GPU_POINTER(src[i]),
                               CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(s->o)));
    return CVY_OK;
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    cvy_gpu_arg args[MOST + 2];
    const int nsrc = s->o.nsrc > 2 ? MOST : 2;
    (void)scratch;
    if (s->doubles)
        return run_doubles(s, src, dst);
    struct combine o = s->o;
    const void *const pointer[] = {src[0], src[1], dst[0]};
    o.lanes = o.row || nsrc > 2 ? 1 : cvy_gpu_lanes(s->act, o.n, pointer, CVY_COUNT(pointer));
    o.n /= o.lanes;
    for (int i = 0; i < nsrc; i++)
        args[i] = (cvy_gpu_arg)CVY_GPU_POINTER(src[i < s->o.nsrc ? i : 0]);
    args[nsrc] = (cvy_gpu_arg)CVY_GPU_POINTER(dst[0]);
    args[nsrc + 1] = (cvy_gpu_arg)CVY_GPU_VALUE(o);
    return cvy_gpu_launch(&s->kernel, cvy_gpu_blocks(o.n), 1, 1, CVY_GPU_THREADS, args, nsrc + 2);
}

static cvy_status grad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *s = state;
    cvy_gpu_arg args[MOST + 4] = {CVY_GPU_POINTER(src[0])};
    (void)scratch;
    for (int i = 0; i < MOST; i++)
        args[2 + i] = (cvy_gpu_arg)CVY_GPU_POINTER(src[i < s->o.nsrc ? 1 + i : 1]);
    args[MOST + 3] = (cvy_gpu_arg)CVY_GPU_VALUE(s->o);
    for (int d = 0; d < s->ndst; d++) {
        if (!dst[d])
            continue;
        args[1] = (cvy_gpu_arg)CVY_GPU_POINTER(src[1 + d]);
        args[MOST + 2] = (cvy_gpu_arg)CVY_GPU_POINTER(dst[d]);
        CVY_TRY(cvy_gpu_launch(&s->kernel, cvy_gpu_blocks(s->o.n), 1, 1, CVY_GPU_THREADS, args, MOST + 4));
    }
    return CVY_OK;
}

/* clang-format off */
#define FIELDS(of, offers, runs) CVY_GPU_FIELDS(of, offers, create, runs, cvy_gpu_free_state)
#define SLICES .slice_src = ~0U, .slice_dst = 1, .slice_last = 1
CVY_KERNEL_DEFINE(gpu_add) = {FIELDS("add", offer, run), SLICES};
CVY_KERNEL_DEFINE(gpu_subtract) = {FIELDS("subtract", offer, run), SLICES};
CVY_KERNEL_DEFINE(gpu_multiply) = {FIELDS("multiply", offer, run), SLICES};
CVY_KERNEL_DEFINE(gpu_divide) = {FIELDS("divide", offer, run), SLICES};
CVY_KERNEL_DEFINE(gpu_maximum) = {FIELDS("maximum", offer, run), SLICES};
CVY_KERNEL_DEFINE(gpu_maximum_grad) = {FIELDS("maximum_grad", grad_offer, grad_run)};
/* clang-format on */
#endif
