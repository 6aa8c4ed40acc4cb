/*
 * gpu_loss_each.c: the losses that are a mean of terms of single elements, and their gradients: bce, mse, mae, huber,
 * hinge_each, contrastive, wasserstein and mean. The formulas are in src/op/loss; op_loss.h has the weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { EACH_THREADS = 256 };
enum { EACH_BCE, EACH_MSE, EACH_MAE, EACH_HUBER, EACH_HINGE, EACH_CONTRASTIVE, EACH_WASSERSTEIN, EACH_MEAN };
struct loss_each {
    i64 elems, each, channels, positions; /* each: elements of a sample */
    i64 target_of_n, target_of_c, target_of_p;
    i64 weight_each;               /* numbers for each sample */
    double parameter, loss_weight; /* loss_weight: with the division by `each` */
    double target_min, target_max;
    int f, is_last, is_same;      /* is_last: the output has its channels last; is_same: the target is like it */
    int target_kind, weight_kind; /* NUMBER_*; weight_kind -1: there is no weight */
};

#ifdef CVY_DEVICE

/* Of element i of the output in memory: its sample, its place in a plain sample, and the place of its target. */
struct each_place {
    i64 n, e, target;
};

INLINE struct each_place each_at(struct loss_each a, i64 i)
{
    struct each_place at;
    at.n = i / a.each;
    at.e = i - at.n * a.each;
    at.target = i;
    if (a.is_last) {
        const i64 p = at.e / a.channels, c = at.e - p * a.channels;
        at.e = c * a.positions + p;
    }
    if (!a.is_same) {
        const i64 c = at.e / a.positions, p = at.e - c * a.positions;
        at.target = at.n * a.target_of_n + c * a.target_of_c + p * a.target_of_p;
    }
    return at;
}

/* weight / norm. */
INLINE double each_factor(struct loss_each a, GLOBAL const void *weight, double norm, struct each_place at)
{
    if (norm == 0)
        return 0;
    if (a.weight_kind < 0)
        return 1 / norm;
    return number_at(weight, a.weight_kind, a.weight_each == 1 ? at.n : at.n * a.weight_each + at.e % a.weight_each) /
           norm;
}

/* What a number that should be at least 1 lacks. */
INLINE double lacking(double x)
{
    const double m = 1 - x;
    return m > 0 || m != m ? m : 0;
}

INLINE double distance_of(double s)
{
    return s > 0 ? SQRT_D(s) : s == s ? 0 : s;
}

INLINE double each_term(struct loss_each a, double x, double t)
{
    const double d = x - t, size = d < 0 ? -d : d;
    double m;
    switch (a.f) {
    case EACH_BCE:
        m = LOG_D(1 + EXP_D(x < 0 ? x : -x)) + (x < 0 ? -x : 0);
        return (1 - t) * x + (1 + (a.parameter - 1) * t) * m;
    case EACH_MSE: return d * d;
    case EACH_MAE: return size;
    case EACH_HUBER: return size <= a.parameter ? d * d / 2 : a.parameter * (size - a.parameter / 2);
    case EACH_HINGE: m = lacking(t * x); return a.parameter > 0 ? m * m : m;
    case EACH_CONTRASTIVE:
        m = a.parameter - distance_of(x);
        return (t * x + (1 - t) * (m > 0 || m != m ? m * m : 0)) / 2;
    case EACH_WASSERSTEIN: return -t * x;
    default: return x;
    }
}

INLINE double each_slope(struct loss_each a, double x, double t)
{
    const double d = x - t;
    double m;
    switch (a.f) {
    case EACH_BCE: return (1 - t) - (1 + (a.parameter - 1) * t) / (1 + EXP_D(x));
    case EACH_MSE: return 2 * d;
    case EACH_MAE: return x > t ? 1 : x < t ? -1 : d;
    case EACH_HUBER: return d > a.parameter ? a.parameter : d < -a.parameter ? -a.parameter : d;
    case EACH_HINGE: m = lacking(t * x); return -t * (a.parameter > 0 ? 2 * m : m > 0 ? 1 : m);
    case EACH_CONTRASTIVE:
        m = distance_of(x);
        m = m > 0 ? a.parameter / m - 1 : m == m ? 0 : m;
        return (t - (1 - t) * (m > 0 || m != m ? m : 0)) / 2;
    case EACH_WASSERSTEIN: return -t;
    default: return 1;
    }
}

INLINE int is_valid(struct loss_each a, double t)
{
    return !(a.target_min < a.target_max) || (t >= a.target_min && t <= a.target_max);
}

KERNEL(loss_each)
(GLOBAL const act *x, GLOBAL const void *target, GLOBAL const double *norm, GLOBAL const void *weight,
 GLOBAL double *part, struct loss_each a)
{
    SHARED double s[EACH_THREADS];
    double loss = 0;
    FOR_EACH (i, a.elems) {
        const struct each_place at = each_at(a, i);
        const double factor = each_factor(a, weight, norm[0], at);
        if (factor != 0) {
            const double t = number_at(target, a.target_kind, at.target);
            loss += is_valid(a, t) ? factor * each_term(a, GET(x, i), t) : NAN;
        }
    }
    BLOCK_SUM(loss, s);
    if (THREAD == 0)
        part[BLOCK] = loss;
}

KERNEL(loss_each_grad)
(GLOBAL const double *dloss, GLOBAL const act *x, GLOBAL const void *target, GLOBAL const double *norm,
 GLOBAL const void *weight, GLOBAL act *dx, struct loss_each a)
{
    FOR_EACH (i, a.elems) {
        const struct each_place at = each_at(a, i);
        const double factor = a.loss_weight * dloss[0] * each_factor(a, weight, norm[0], at);
        const double t = number_at(target, a.target_kind, at.target);
        SET(dx, i, factor == 0 ? 0 : (float)(factor * each_slope(a, GET(x, i), t)));
    }
}

#else
#include <string.h>

#include "kernel/gpu/loss/gpu_loss.h"
#include "op/loss/op_loss.h"

CVY_GPU_SOURCE_DECLARE(gpu_loss_each);

struct call {
    cvy_gpu_kernel kernel, sum;
    struct loss_each a;
    cvy_gpu_loss_weight weight;
    int first; /* the source that is the output; the target follows */
    int64_t blocks;
};

static int function_of(const cvy_node *node)
{
    static const char *const names[] = {"bce",        "mse",         "mae",         "huber",
                                        "hinge_each", "contrastive", "wasserstein", "mean"};
    int f = 0;
    while (f < EACH_MEAN && strncmp(node->op->name, names[f], strlen(names[f])) != 0)
        f++;
    return f;
}

static cvy_status kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    const int first = cvy_gpu_loss_first(ask->node);
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act_of(ask->node->src[first], &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_loss_each), first ? "loss_each_grad" : "loss_each", act, out);
}

/* Output and target stay as they are in memory; the target is plain if its shape is another one. */
static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const int first = cvy_gpu_loss_first(node);
    const cvy_shape *x = &node->src[first]->shape, *t = &node->src[first + 1]->shape;
    cvy_gpu_kernel k;
    CVY_TRY(kernel(ask, &k));
    const cvy_layout output = cvy_gpu_loss_layout(&ask->src[first], x);
    const cvy_layout target = cvy_shape_equal(x, t) ? cvy_gpu_loss_layout(&ask->src[first + 1], t) : cvy_layout_plain();
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->src[first] = output;
    ask->src[first + 1] = target;
    if (first) {
        ask->dst[0] = output;
        ask->inplace[0] = first + 1;
    } else {
        ask->scratch_bytes = sizeof(double) * (size_t)cvy_gpu_loss_blocks(cvy_shape_elems(x));
    }
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const int first = cvy_gpu_loss_first(node);
    const struct cvy_loss_each *o = node->options;
    const cvy_loss_each_def *def = node->op->family;
    const cvy_gpu_planes x = cvy_gpu_planes_make(&node->src[first]->shape, &ask->src[first]),
                         t = cvy_gpu_planes_make(&node->src[first + 1]->shape, &ask->src[first + 1]);
    const int64_t each = x.channels * x.positions;
    const int alike = cvy_layout_equal(&ask->src[first], &ask->src[first + 1]);
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    c->first = first;
    c->weight = cvy_gpu_loss_weight_of(node, first + 2);
    c->blocks = first ? cvy_gpu_blocks(x.elems) : cvy_gpu_loss_blocks(x.elems);
    c->a = (struct loss_each){.elems = x.elems,
                              .each = each,
                              .channels = x.channels,
                              .positions = x.positions,
                              .weight_each = c->weight.each,
                              .parameter = o->parameter,
                              .loss_weight = o->loss_weight / (double)each,
                              .target_min = def->target_min,
                              .target_max = def->target_max,
                              .f = function_of(node),
                              .is_last = x.of_c == 1 && x.positions > 1,
                              .is_same = alike,
                              .target_kind = cvy_gpu_number_kind(node->src[first + 1]->dtype),
                              .weight_kind = c->weight.kind};
    /* A target of another shape has the same elements in order. */
    const int own = cvy_shape_equal(&node->src[first]->shape, &node->src[first + 1]->shape);
    c->a.target_of_n = own ? t.of_n : each;
    c->a.target_of_c = own ? t.of_c : x.positions;
    c->a.target_of_p = own ? t.of_p : 1;
    CVY_TRY(kernel(ask, &c->kernel));
    return first ? CVY_OK : cvy_gpu_loss_sum_get(ask->space, &c->sum);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, EACH_THREADS, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]),
                           CVY_GPU_POINTER(src[c->weight.norm_at]), CVY_GPU_POINTER(src[c->weight.weight_at]),
                           CVY_GPU_POINTER(scratch), CVY_GPU_VALUE(c->a)));
    return cvy_gpu_loss_sum_run(&c->sum, scratch, c->blocks, c->a.loss_weight, dst[0]);
}

static cvy_status run_grad(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, EACH_THREADS, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]),
                          CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(src[c->weight.norm_at]),
                          CVY_GPU_POINTER(src[c->weight.weight_at]), CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_bce) = {CVY_GPU_FIELDS("bce", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_mse) = {CVY_GPU_FIELDS("mse", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_mae) = {CVY_GPU_FIELDS("mae", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_huber) = {CVY_GPU_FIELDS("huber", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_hinge_each) = {CVY_GPU_FIELDS("hinge_each", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_contrastive) = {CVY_GPU_FIELDS("contrastive", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_wasserstein) = {CVY_GPU_FIELDS("wasserstein", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_mean) = {CVY_GPU_FIELDS("mean", offer, create, run, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_bce_grad) = {CVY_GPU_FIELDS("bce_grad", offer, create, run_grad, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_mse_grad) = {CVY_GPU_FIELDS("mse_grad", offer, create, run_grad, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_mae_grad) = {CVY_GPU_FIELDS("mae_grad", offer, create, run_grad, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_huber_grad) = {CVY_GPU_FIELDS("huber_grad", offer, create, run_grad, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_hinge_each_grad) = {
    CVY_GPU_FIELDS("hinge_each_grad", offer, create, run_grad, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_contrastive_grad) = {
    CVY_GPU_FIELDS("contrastive_grad", offer, create, run_grad, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_wasserstein_grad) = {
    CVY_GPU_FIELDS("wasserstein_grad", offer, create, run_grad, cvy_gpu_free_state)};
CVY_KERNEL_DEFINE(gpu_mean_grad) = {CVY_GPU_FIELDS("mean_grad", offer, create, run_grad, cvy_gpu_free_state)};
#endif
