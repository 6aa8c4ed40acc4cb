/*
 * gpu_distribution.c: the losses of predicted distributions, and their gradients: quantile and gaussian_nll, of f32 and
 * bf16. The formulas are in src/op/loss; op_distribution.h says how the numbers of a target lie in the output.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { DISTRIBUTION_THREADS = 256 };
enum { DISTRIBUTION_QUANTILE, DISTRIBUTION_GAUSSIAN };
struct distribution {
    i64 targets, each, positions; /* each: targets of a sample, [channels, positions] */
    i64 of_n, of_c, of_p;         /* of the output */
    i64 weight_each;              /* numbers for each sample */
    double loss_weight;           /* with the division by `each` */
    double least, added;          /* of gaussian_nll: the least log variance, and what is added to each term */
    int f, count;                 /* count: numbers for each target */
    int target_kind, weight_kind; /* NUMBER_*; weight_kind -1: there is no weight */
};

#ifdef CVY_DEVICE

/* Where the first number of target i is; the others are `step` apart. */
INLINE i64 first_number(struct distribution a, i64 i)
{
    const i64 n = i / a.each, e = i - n * a.each, c = e / a.positions, p = e - c * a.positions;
    return n * a.of_n + c * a.of_c + p * a.of_p;
}
INLINE i64 step_of(struct distribution a)
{
    return a.each / a.positions * a.of_c;
}

INLINE double target_factor(struct distribution a, GLOBAL const void *weight, double norm, i64 i)
{
    const i64 n = i / a.each, e = i - n * a.each;
    if (norm == 0)
        return 0;
    return a.weight_kind < 0
               ? 1 / norm
               : number_at(weight, a.weight_kind, a.weight_each == 1 ? n : n * a.weight_each + e % a.weight_each) /
                     norm;
}

INLINE double log_variance(struct distribution a, double s)
{
    return s < a.least ? a.least : s;
}

INLINE double target_term(struct distribution a, GLOBAL const double *levels, GLOBAL const act *x, i64 at, double t)
{
    const i64 step = step_of(a);
    if (a.f == DISTRIBUTION_GAUSSIAN) {
        const double d = GET(x, at) - t, s = log_variance(a, GET(x, at + step));
        return (s + d * d * EXP_D(-s)) / 2 + a.added;
    }
    double sum = 0;
    for (int b = 0; b < a.count; b++) {
        const double d = t - GET(x, at + b * step);
        sum += d >= 0 ? levels[b] * d : (levels[b] - 1) * d;
    }
    return sum / a.count;
}

KERNEL(distribution)
(GLOBAL const act *x, GLOBAL const void *target, GLOBAL const double *norm, GLOBAL const void *weight,
 GLOBAL const double *levels, GLOBAL double *part, struct distribution a)
{
    SHARED double s[DISTRIBUTION_THREADS];
    double loss = 0;
    FOR_EACH (i, a.targets) {
        const double factor = target_factor(a, weight, norm[0], i);
        if (factor != 0)
            loss += factor * target_term(a, levels, x, first_number(a, i), number_at(target, a.target_kind, i));
    }
    BLOCK_SUM(loss, s);
    if (THREAD == 0)
        part[BLOCK] = loss;
}

KERNEL(distribution_grad)
(GLOBAL const double *dloss, GLOBAL const act *x, GLOBAL const void *target, GLOBAL const double *norm,
 GLOBAL const void *weight, GLOBAL const double *levels, GLOBAL act *dx, struct distribution a)
{
    FOR_EACH (i, a.targets) {
        const double factor = a.loss_weight * dloss[0] * target_factor(a, weight, norm[0], i);
        const double t = number_at(target, a.target_kind, i);
        const i64 at = first_number(a, i), step = step_of(a);
        const double d = GET(x, at) - t;
        const double precision = a.f == DISTRIBUTION_GAUSSIAN ? EXP_D(-log_variance(a, GET(x, at + step))) : 0;
        for (int b = 0; b < a.count; b++) {
            double slope;
            if (a.f == DISTRIBUTION_GAUSSIAN) {
                slope = b == 0 ? d * precision : (1 - d * d * precision) / 2;
            } else {
                const double below = t - GET(x, at + b * step), q = levels[b];
                slope = (below > 0 ? -q : below < 0 ? 1 - q : below == 0 ? 0.5 - q : below) / a.count;
            }
            SET(dx, at + b * step, factor == 0 ? 0.0f : (float)(factor * slope));
        }
    }
}

#else
#include <math.h>
#include <string.h>

#include "kernel/gpu/loss/gpu_loss.h"
#include "op/loss/op_distribution.h"

CVY_GPU_SOURCE_DECLARE(gpu_distribution);

struct call {
    cvy_gpu_kernel kernel, sum;
    struct distribution a;
    cvy_gpu_loss_weight weight;
    cvy_gpu_table levels;
    int64_t blocks;
};

static cvy_status kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    const int first = cvy_gpu_loss_first(ask->node);
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act_of(ask->node->src[first], &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_distribution), first ? "distribution_grad" : "distribution", act, out);
}

/* The output stays as it is in memory. */
static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const int first = cvy_gpu_loss_first(node);
    const cvy_layout output = cvy_gpu_loss_layout(&ask->src[first], &node->src[first]->shape);
    cvy_gpu_kernel k;
    CVY_TRY(kernel(ask, &k));
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->src[first] = output;
    if (first) {
        ask->dst[0] = output;
        ask->inplace[0] = first + 1;
    } else {
        ask->scratch_bytes =
            sizeof(double) * (size_t)cvy_gpu_loss_blocks(cvy_shape_elems(&node->src[first + 1]->shape));
    }
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const int first = cvy_gpu_loss_first(node);
    const struct cvy_distribution *o = node->options;
    const cvy_gpu_planes x = cvy_gpu_planes_make(&node->src[first]->shape, &ask->src[first]);
    const int count = ((const cvy_distribution_def *)node->op->family)->count(o);
    const int is_quantile = strncmp(node->op->name, "quantile", 8) == 0;
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    c->weight = cvy_gpu_loss_weight_of(node, first + 2);
    c->a = (struct distribution){.targets = x.elems / count,
                                 .each = x.channels * x.positions / count,
                                 .positions = x.positions,
                                 .of_n = x.of_n,
                                 .of_c = x.of_c,
                                 .of_p = x.of_p,
                                 .weight_each = c->weight.each,
                                 .added = o->full ? 0.91893853320467274178 : 0, /* log(2 pi) / 2 */
                                 .f = is_quantile ? DISTRIBUTION_QUANTILE : DISTRIBUTION_GAUSSIAN,
                                 .count = count,
                                 .target_kind = cvy_gpu_number_kind(node->src[first + 1]->dtype),
                                 .weight_kind = c->weight.kind};
    c->a.loss_weight = o->loss_weight / (double)c->a.each;
    c->a.least = is_quantile ? 0 : log(o->eps);
    c->blocks = first ? cvy_gpu_blocks(c->a.targets) : cvy_gpu_loss_blocks(c->a.targets);
    CVY_TRY(cvy_gpu_table_make(ask->space, o->levels.at, is_quantile ? count : 0, &c->levels));
    CVY_TRY(kernel(ask, &c->kernel));
    return first ? CVY_OK : cvy_gpu_loss_sum_get(ask->space, &c->sum);
}

static void destroy(void *state)
{
    struct call *c = state;
    if (c)
        cvy_gpu_table_free(&c->levels);
    cvy_mem_free(&c);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const void *const levels = c->levels.there ? c->levels.there : src[c->weight.norm_at];
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, DISTRIBUTION_THREADS, CVY_GPU_POINTER(src[0]),
                           CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[c->weight.norm_at]),
                           CVY_GPU_POINTER(src[c->weight.weight_at]), CVY_GPU_POINTER(levels), CVY_GPU_POINTER(scratch),
                           CVY_GPU_VALUE(c->a)));
    return cvy_gpu_loss_sum_run(&c->sum, scratch, c->blocks, c->a.loss_weight, dst[0]);
}

static cvy_status run_grad(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const void *const levels = c->levels.there ? c->levels.there : src[c->weight.norm_at];
    (void)scratch;
    return CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, DISTRIBUTION_THREADS, CVY_GPU_POINTER(src[0]),
                          CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(src[c->weight.norm_at]),
                          CVY_GPU_POINTER(src[c->weight.weight_at]), CVY_GPU_POINTER(levels), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_quantile) = {CVY_GPU_FIELDS("quantile", offer, create, run, destroy)};
CVY_KERNEL_DEFINE(gpu_gaussian_nll) = {CVY_GPU_FIELDS("gaussian_nll", offer, create, run, destroy)};
CVY_KERNEL_DEFINE(gpu_quantile_grad) = {CVY_GPU_FIELDS("quantile_grad", offer, create, run_grad, destroy)};
CVY_KERNEL_DEFINE(gpu_gaussian_nll_grad) = {CVY_GPU_FIELDS("gaussian_nll_grad", offer, create, run_grad, destroy)};
#endif
