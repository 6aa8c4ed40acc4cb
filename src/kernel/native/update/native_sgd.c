/*
 * native_sgd.c: sgd in one pass over weight, gradient and momentum. The formula is in src/optim/optim_sgd.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/update/native_update.h"

CVY_SIMD static void sgd_plain_range(int64_t first, int64_t end, void *arg)
{
    const cvy_native_update *u = arg;
    const struct cvy_sgd *o = u->options;
    const float *weight = u->weight, *gradient = u->gradient, scale = (float)u->now.scale,
                decay = (float)o->weight_decay, lr = (float)u->now.lr;
    float *out = u->weight_out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        out[i] = weight[i] - lr * (scale * gradient[i] + decay * weight[i]);
}

/* inside: what the gradient is multiplied by before it enters the momentum; outside: the step. One of them is lr, the
 * other 1. */
CVY_INLINE void update(const cvy_native_update *u, int64_t first, int64_t end, float inside, float outside)
{
    const struct cvy_sgd *o = u->options;
    const float *weight = u->weight, *gradient = u->gradient, *state = u->state[0];
    const float scale = (float)u->now.scale, decay = (float)o->weight_decay, momentum = (float)o->momentum;
    const cvy_sgd_share share = cvy_sgd_direction(o);
    const float a = (float)share.gradient, b = (float)share.momentum;
    float *out = u->weight_out, *state_out = u->state_out[0];
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float g = inside * (scale * gradient[i] + decay * weight[i]), m = momentum * state[i] + g;
        state_out[i] = m;
        out[i] = weight[i] - outside * (a * g + b * m);
    }
}

CVY_SIMD static void sgd_momentum_range(int64_t first, int64_t end, void *arg)
{
    const cvy_native_update *u = arg;
    update(u, first, end, 1, (float)u->now.lr);
}

CVY_SIMD static void sgd_steps_range(int64_t first, int64_t end, void *arg)
{
    const cvy_native_update *u = arg;
    update(u, first, end, (float)u->now.lr, 1);
}

cvy_range_fn cvy_native_sgd_range(const struct cvy_sgd *o)
{
    return !(o->momentum > 0) ? sgd_plain_range : o->lr_inside ? sgd_steps_range : sgd_momentum_range;
}

static cvy_status sgd_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct cvy_sgd *o = ((cvy_native_update *)state)->options;
    (void)scratch;
    return cvy_native_update_run(state, o->lr_mult, o->momentum > 0, src, dst, cvy_native_sgd_range(o));
}

CVY_KERNEL_DEFINE(native_sgd) = {
    .name = "native.sgd",
    .op = "sgd",
    .preference = 50,
    .writes_shadow = 1,
    .in_parts = 1,
    .offer = cvy_native_update_offer,
    .create = cvy_native_update_create,
    .run = sgd_run,
    .destroy = cvy_native_update_destroy,
};
