/*
 * native_adagrad.c: adagrad in one pass over weight, gradient and sum of squares. The formula is in
 * src/optim/optim_adagrad.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "kernel/native/update/native_update.h"

CVY_SIMD static void adagrad_range(int64_t first, int64_t end, void *arg)
{
    const cvy_native_update *u = arg;
    const struct cvy_adagrad *o = u->options;
    const float *weight = u->weight, *gradient = u->gradient, *square = u->state[0];
    const float scale = (float)u->now.scale, decay = (float)o->weight_decay, eps = (float)o->eps;
    const float rate = (float)(u->now.lr / (1 + (double)u->now.step * o->lr_decay));
    float *out = u->weight_out, *square_out = u->state_out[0];
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float g = scale * gradient[i] + decay * weight[i], s = square[i] + g * g;
        square_out[i] = s;
        out[i] = weight[i] - rate * g / (sqrtf(s) + eps);
    }
}

static cvy_status adagrad_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct cvy_adagrad *o = ((cvy_native_update *)state)->options;
    (void)scratch;
    return cvy_native_update_run(state, o->lr_mult, 1, src, dst, adagrad_range);
}

CVY_KERNEL_DEFINE(native_adagrad) = {
    .name = "native.adagrad",
    .op = "adagrad",
    .preference = 50,
    .writes_shadow = 1,
    .offer = cvy_native_update_offer,
    .create = cvy_native_update_create,
    .run = adagrad_run,
    .destroy = cvy_native_update_destroy,
};
