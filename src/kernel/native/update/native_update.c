/*
 * native_update.c: what the fast optimisers share. They run in the UPDATE phase, in one pass over the memory of each
 * weight.
 */
#include "kernel/native/update/native_update.h"

cvy_status cvy_native_update_offer(cvy_kernel_ask *ask)
{
    const cvy_layout layout = ask->src[CVY_OPTIM_WEIGHT];
    CVY_TRY(cvy_native_f32(ask->node));
    ask->src[CVY_OPTIM_GRADIENT] = layout;
    for (int i = CVY_OPTIM_STATE; i < ask->node->nsrc; i++)
        ask->src[i] = layout;
    for (int i = 0; i < ask->node->ndst; i++)
        if (ask->node->dst[i])
            ask->dst[i] = layout;
    return CVY_OK;
}

cvy_status cvy_native_update_create(const cvy_kernel_ask *ask, void **state_out)
{
    cvy_native_update *u = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *u, &u));
    u->options = ask->node->options;
    u->threads = ask->threads;
    u->shadow_at = ask->writes_shadow ? ask->node->ndst : 0;
    *state_out = u;
    CVY_TRY(cvy_native_dst_elems(ask, &u->elems));
    if (ask->part_elems)
        u->elems = ask->part_elems;
    return CVY_OK;
}

void cvy_native_update_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Rounds the weights to bf16 while they are in the first-level cache. */
CVY_SIMD static void update_and_write_shadow(int64_t first, int64_t end, void *arg)
{
    enum { PART = 2048 };
    const cvy_native_update *u = arg;
    for (int64_t i = first; i < end; i += PART) {
        const int64_t last = CVY_MIN(end, i + PART);
        u->range(i, last, arg);
        cvy_floats_store(1, u->weight_out + i, last - i, u->shadow, i);
    }
}

cvy_status cvy_native_update_run(cvy_native_update *u, double lr_mult, int nstate, void *const *src, void *const *dst,
                                 cvy_range_fn range)
{
    u->now = cvy_update_read(src[CVY_OPTIM_LR], src[CVY_OPTIM_SCALE], src[CVY_OPTIM_STEP], lr_mult);
    u->weight = src[CVY_OPTIM_WEIGHT];
    u->gradient = src[CVY_OPTIM_GRADIENT];
    u->weight_out = dst[0];
    for (int i = 0; i < nstate; i++) {
        u->state[i] = src[CVY_OPTIM_STATE + i];
        u->state_out[i] = dst[1 + i];
    }
    u->range = range;
    u->shadow = u->shadow_at ? dst[u->shadow_at] : NULL;
    cvy_parallel_for(u->threads, u->elems, CVY_GRAIN, u->shadow ? update_and_write_shadow : range, u);
    return CVY_OK;
}
