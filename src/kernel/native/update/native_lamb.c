/*
 * native_lamb.c: lamb in two passes over each weight: the moments and the squares of weight and direction, then the
 * update. The second pass computes the direction again, which costs less than to store it.
 *
 * The formula is in src/optim/optim_lamb.c. The norm needs the whole weight, so the ranks of a node cannot each do a
 * part of this update.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "kernel/native/update/native_update.h"

/* The factors of the running step: m * mean is the corrected mean, sqrt(v) * root the root of the corrected square. */
struct correction {
    float mean, root;
};

static struct correction correction_of(const cvy_native_update *u)
{
    const struct cvy_adam *o = u->options;
    const double t = (double)u->now.step + 1;
    return (struct correction){(float)(1 / (1 - pow(o->beta1, t))), (float)(1 / sqrt(1 - pow(o->beta2, t)))};
}

/* As lamb_moments, for an update that comes later: it stores nothing. */
CVY_SIMD static void lamb_squares(const cvy_native_update *u, int64_t first, int64_t end, cvy_squares *out)
{
    const struct cvy_adam *o = u->options;
    const struct correction by = correction_of(u);
    const float *weight = u->weight, *gradient = u->gradient, *mean = u->state[0], *square = u->state[1];
    const float scale = (float)u->now.scale, beta1 = (float)o->beta1, beta2 = (float)o->beta2, eps = (float)o->eps,
                decay = (float)o->weight_decay, new1 = (float)(1 - o->beta1), new2 = (float)(1 - o->beta2);
    double w = 0, s = 0;
#pragma omp simd reduction(+ : w, s)
    for (int64_t i = first; i < end; i++) {
        const float g = scale * gradient[i];
        const float m = beta1 * mean[i] + new1 * g, v = beta2 * square[i] + new2 * g * g;
        const float r = m * by.mean / (sqrtf(v) * by.root + eps) + decay * weight[i];
        w += (double)weight[i] * (double)weight[i];
        s += (double)r * (double)r;
    }
    *out = (cvy_squares){w, s};
}

CVY_SIMD static void lamb_moments(const cvy_native_update *u, int64_t first, int64_t end, cvy_squares *out)
{
    const struct cvy_adam *o = u->options;
    const struct correction by = correction_of(u);
    const float *weight = u->weight, *gradient = u->gradient, *mean = u->state[0], *square = u->state[1];
    const float scale = (float)u->now.scale, beta1 = (float)o->beta1, beta2 = (float)o->beta2, eps = (float)o->eps,
                decay = (float)o->weight_decay, new1 = (float)(1 - o->beta1), new2 = (float)(1 - o->beta2);
    float *mean_out = u->state_out[0], *square_out = u->state_out[1];
    double w = 0, s = 0;
#pragma omp simd reduction(+ : w, s)
    for (int64_t i = first; i < end; i++) {
        const float g = scale * gradient[i];
        const float m = beta1 * mean[i] + new1 * g, v = beta2 * square[i] + new2 * g * g;
        const float r = m * by.mean / (sqrtf(v) * by.root + eps) + decay * weight[i];
        mean_out[i] = m;
        square_out[i] = v;
        w += (double)weight[i] * (double)weight[i];
        s += (double)r * (double)r;
    }
    *out = (cvy_squares){w, s};
}

CVY_SIMD static void lamb_range(int64_t first, int64_t end, void *arg)
{
    const cvy_native_update *u = arg;
    const struct cvy_adam *o = u->options;
    const struct correction by = correction_of(u);
    const float *weight = u->weight, *mean = u->state_out[0], *square = u->state_out[1];
    const float rate = (float)u->now.lr, eps = (float)o->eps, decay = (float)o->weight_decay;
    float *out = u->weight_out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        out[i] = weight[i] - rate * (mean[i] * by.mean / (sqrtf(square[i]) * by.root + eps) + decay * weight[i]);
}

/* The trust ratio is one more factor of the learning rate. */
static cvy_status lamb_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_native_update *u = state;
    cvy_native_update_begin(u, ((const struct cvy_adam *)u->options)->lr_mult, 2, src, dst);
    const cvy_squares all = cvy_native_update_squares(u, lamb_moments, scratch);
    if (u->adapts)
        u->now.lr *= cvy_lamb_trust(all.weight, all.step);
    return cvy_native_update_end(u, lamb_range);
}

CVY_KERNEL_DEFINE(native_lamb) = {
    .name = "native.lamb",
    .op = "lamb",
    .preference = 50,
    .writes_shadow = 1,
    .offer = cvy_native_update_offer_squares,
    .create = cvy_native_update_create,
    .run = lamb_run,
    .destroy = cvy_native_update_destroy,
};

static cvy_status lamb_squares_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    return cvy_native_squares_run(state, 2, lamb_squares, src, dst, scratch);
}

CVY_KERNEL_DEFINE(native_lamb_squares) = {
    .name = "native.lamb_squares",
    .op = "lamb_squares",
    .preference = 50,
    .offer = cvy_native_squares_offer,
    .create = cvy_native_squares_create,
    .run = lamb_squares_run,
    .destroy = cvy_native_update_destroy,
};
