/*
 * native_adadelta.c: adadelta in one pass over weight, gradient and both means. The formula is in
 * src/optim/optim_adadelta.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "kernel/native/update/native_update.h"

CVY_SIMD static void adadelta_range(int64_t first, int64_t end, void *arg)
{
    const cvy_native_update *u = arg;
    const struct cvy_adadelta *o = u->options;
    const float *weight = u->weight, *gradient = u->gradient, *square = u->state[0], *step = u->state[1];
    const float scale = (float)u->now.scale, decay = (float)o->weight_decay, lr = (float)u->now.lr, eps = (float)o->eps;
    const float rho = (float)o->rho, fresh = (float)(1 - o->rho);
    float *out = u->weight_out, *square_out = u->state_out[0], *step_out = u->state_out[1];
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float g = scale * gradient[i] + decay * weight[i], s = rho * square[i] + fresh * g * g, q = step[i];
        const float d = g * sqrtf(q + eps) / sqrtf(s + eps);
        square_out[i] = s;
        step_out[i] = rho * q + fresh * d * d;
        out[i] = weight[i] - lr * d;
    }
}

static cvy_status adadelta_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct cvy_adadelta *o = ((cvy_native_update *)state)->options;
    (void)scratch;
    return cvy_native_update_run(state, o->lr_mult, 2, src, dst, adadelta_range);
}

CVY_KERNEL_DEFINE(native_adadelta) = {
    .name = "native.adadelta",
    .op = "adadelta",
    .preference = 50,
    .writes_shadow = 1,
    .offer = cvy_native_update_offer,
    .create = cvy_native_update_create,
    .run = adadelta_run,
    .destroy = cvy_native_update_destroy,
};
