/*
 * native_update.h: what the fast optimisers share. They accept any layout, if weight, gradient and states have the same
 * one. Padding lanes stay zero.
 */
#ifndef CVY_NATIVE_UPDATE_H
#define CVY_NATIVE_UPDATE_H

#include "kernel/native/native_math.h"
#include "optim/optim_update.h"

typedef struct cvy_native_update {
    const void *options; /* of the node, not owned */
    int64_t elems;       /* with padding */
    int threads;
    cvy_update_scalars now; /* of the running call, like the pointers below */
    const float *weight, *gradient, *state[3];
    float *weight_out, *state_out[3];
    cvy_range_fn range;
    int shadow_at; /* destination that is the bf16 shadow copy of the weight; 0: none */
    cvy_bf16 *shadow;
} cvy_native_update;

cvy_status cvy_native_update_offer(cvy_kernel_ask *ask);
cvy_status cvy_native_update_create(const cvy_kernel_ask *ask, void **state_out);
void cvy_native_update_destroy(void *state);
/* Stores the pointers and scalars of this call in u, and runs range over all elements. */
cvy_status cvy_native_update_run(cvy_native_update *u, double lr_mult, int nstate, void *const *src, void *const *dst,
                                 cvy_range_fn range);

#endif
