/*
 * native_rmsprop.c: rmsprop in one pass over weight, gradient and states. The formula is in
 * src/optim/optim_rmsprop.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "kernel/native/update/native_update.h"

/* Compiled four times, so that states which do not exist are not accessed. */
CVY_INLINE void update(const cvy_native_update *u, int64_t first, int64_t end, int centered, int moves)
{
    const struct cvy_rmsprop *o = u->options;
    const float *weight = u->weight, *gradient = u->gradient, *square = u->state[0], *mean = u->state[1],
                *last = u->state[centered ? 2 : 1];
    const float scale = (float)u->now.scale, decay = (float)o->weight_decay, lr = (float)u->now.lr, eps = (float)o->eps;
    const float alpha = (float)o->alpha, fresh = (float)(1 - o->alpha), momentum = (float)o->momentum;
    float *out = u->weight_out, *square_out = u->state_out[0], *mean_out = u->state_out[1],
          *last_out = u->state_out[centered ? 2 : 1];
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float g = scale * gradient[i] + decay * weight[i], s = alpha * square[i] + fresh * g * g;
        float spread = s;
        if (centered) {
            const float a = alpha * mean[i] + fresh * g;
            mean_out[i] = a;
            spread = s - a * a > 0 ? s - a * a : 0;
        }
        float direction = g / (sqrtf(spread) + eps);
        if (moves) {
            direction += momentum * last[i];
            last_out[i] = direction;
        }
        square_out[i] = s;
        out[i] = weight[i] - lr * direction;
    }
}

CVY_SIMD static void rmsprop_plain_range(int64_t first, int64_t end, void *arg)
{
    update(arg, first, end, 0, 0);
}
CVY_SIMD static void rmsprop_momentum_range(int64_t first, int64_t end, void *arg)
{
    update(arg, first, end, 0, 1);
}
CVY_SIMD static void rmsprop_centered_range(int64_t first, int64_t end, void *arg)
{
    update(arg, first, end, 1, 0);
}
CVY_SIMD static void rmsprop_centered_momentum_range(int64_t first, int64_t end, void *arg)
{
    update(arg, first, end, 1, 1);
}

static cvy_status rmsprop_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct cvy_rmsprop *o = ((cvy_native_update *)state)->options;
    const int centered = o->centered != 0, moves = o->momentum > 0;
    const cvy_range_fn range[2][2] = {{rmsprop_plain_range, rmsprop_momentum_range},
                                      {rmsprop_centered_range, rmsprop_centered_momentum_range}};
    (void)scratch;
    return cvy_native_update_run(state, o->lr_mult, 1 + centered + moves, src, dst, range[centered][moves]);
}

CVY_KERNEL_DEFINE(native_rmsprop) = {
    .name = "native.rmsprop",
    .op = "rmsprop",
    .preference = 50,
    .writes_shadow = 1,
    .offer = cvy_native_update_offer,
    .create = cvy_native_update_create,
    .run = rmsprop_run,
    .destroy = cvy_native_update_destroy,
};
