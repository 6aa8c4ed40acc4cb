/*
 * native_adam.c: adam and adamw in one pass over weight, gradient and moments. The formulas are in
 * src/optim/optim_adam.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "kernel/native/update/native_update.h"

/* adam adds the weight decay to the gradient (into_gradient); adamw multiplies the weight by a factor (keep). */
CVY_INLINE void update(const cvy_native_update *u, int64_t first, int64_t end, float into_gradient, float keep)
{
    const struct cvy_adam *o = u->options;
    const double t = (double)u->now.step + 1;
    const float rate = (float)(u->now.lr / (1 - pow(o->beta1, t))), root = (float)(1 / sqrt(1 - pow(o->beta2, t)));
    const float *weight = u->weight, *gradient = u->gradient, *mean = u->state[0], *square = u->state[1];
    const float scale = (float)u->now.scale, beta1 = (float)o->beta1, beta2 = (float)o->beta2,
                eps = (float)o->eps * (o->eps_hat ? root : 1);
    const float new1 = (float)(1 - o->beta1), new2 = (float)(1 - o->beta2);
    float *out = u->weight_out, *mean_out = u->state_out[0], *square_out = u->state_out[1];
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        const float g = scale * gradient[i] + into_gradient * weight[i];
        const float m = beta1 * mean[i] + new1 * g, v = beta2 * square[i] + new2 * g * g;
        mean_out[i] = m;
        square_out[i] = v;
        out[i] = keep * weight[i] - rate * m / (sqrtf(v) * root + eps);
    }
}

CVY_SIMD static void adam_range(int64_t first, int64_t end, void *arg)
{
    const cvy_native_update *u = arg;
    update(u, first, end, (float)((const struct cvy_adam *)u->options)->weight_decay, 1);
}

CVY_SIMD static void adamw_range(int64_t first, int64_t end, void *arg)
{
    const cvy_native_update *u = arg;
    update(u, first, end, 0, (float)(1 - u->now.lr * ((const struct cvy_adam *)u->options)->weight_decay));
}

static cvy_status run(cvy_native_update *u, void *const *src, void *const *dst, cvy_range_fn range)
{
    return cvy_native_update_run(u, ((const struct cvy_adam *)u->options)->lr_mult, 2, src, dst, range);
}

static cvy_status adam_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, adam_range);
}

static cvy_status adamw_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    return run(state, src, dst, adamw_range);
}

CVY_KERNEL_DEFINE(native_adam) = {
    .name = "native.adam",
    .op = "adam",
    .preference = 50,
    .writes_shadow = 1,
    .in_parts = 1,
    .offer = cvy_native_update_offer,
    .create = cvy_native_update_create,
    .run = adam_run,
    .destroy = cvy_native_update_destroy,
};

CVY_KERNEL_DEFINE(native_adamw) = {
    .name = "native.adamw",
    .op = "adamw",
    .preference = 50,
    .writes_shadow = 1,
    .in_parts = 1,
    .offer = cvy_native_update_offer,
    .create = cvy_native_update_create,
    .run = adamw_run,
    .destroy = cvy_native_update_destroy,
};
