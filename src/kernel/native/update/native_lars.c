/*
 * native_lars.c: lars in two passes over each weight: the squares of weight and gradient, then the update.
 *
 * The formula is in src/optim/optim_lars.c. The norm needs the whole weight, so the ranks of a node cannot each do a
 * part of this update.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/update/native_update.h"

CVY_SIMD static void lars_squares(const cvy_native_update *u, int64_t first, int64_t end, cvy_squares *out)
{
    const float *weight = u->weight, *gradient = u->gradient;
    double w = 0, g = 0;
#pragma omp simd reduction(+ : w, g)
    for (int64_t i = first; i < end; i++) {
        w += (double)weight[i] * (double)weight[i];
        g += (double)gradient[i] * (double)gradient[i];
    }
    *out = (cvy_squares){w, g};
}

CVY_SIMD static void lars_range(int64_t first, int64_t end, void *arg)
{
    const cvy_native_update *u = arg;
    const struct cvy_lars *o = u->options;
    const float *weight = u->weight, *gradient = u->gradient, *state = u->state[0];
    const float momentum = (float)o->momentum, rate_g = (float)(u->now.lr * u->now.scale),
                rate_w = (float)(u->now.lr * o->weight_decay);
    float *out = u->weight_out, *state_out = u->state_out[0];
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float m = momentum * state[i] + rate_g * gradient[i] + rate_w * weight[i];
        state_out[i] = m;
        out[i] = weight[i] - m;
    }
}

/* The trust ratio is one more factor of the learning rate. */
static cvy_status lars_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_native_update *u = state;
    const struct cvy_lars *o = u->options;
    cvy_native_update_begin(u, o->lr_mult, 1, src, dst);
    if (u->adapts) {
        const cvy_squares all = cvy_native_update_squares(u, lars_squares, scratch);
        u->now.lr *= cvy_lars_trust(o, all.weight, u->now.scale * u->now.scale * all.step);
    }
    return cvy_native_update_end(u, lars_range);
}

CVY_KERNEL_DEFINE(native_lars) = {
    .name = "native.lars",
    .op = "lars",
    .preference = 50,
    .writes_shadow = 1,
    .offer = cvy_native_update_offer_squares,
    .create = cvy_native_update_create,
    .run = lars_run,
    .destroy = cvy_native_update_destroy,
};

static cvy_status lars_squares_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_native_update *u = state;
    CVY_TRY(cvy_native_squares_run(u, 0, lars_squares, src, dst, scratch));
    ((double *)dst[0])[1] *= u->now.scale * u->now.scale;
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_lars_squares) = {
    .name = "native.lars_squares",
    .op = "lars_squares",
    .preference = 50,
    .offer = cvy_native_squares_offer,
    .create = cvy_native_squares_create,
    .run = lars_squares_run,
    .destroy = cvy_native_update_destroy,
};
