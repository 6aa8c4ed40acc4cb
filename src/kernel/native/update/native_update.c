/*
 * native_update.c: what the fast optimisers share. They run in the UPDATE phase, in one pass over the memory of each
 * weight; those that need norms in two.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/update/native_update.h"

enum { PIECE = 8192 };

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

static int64_t piece_count(int64_t elems)
{
    return (elems + PIECE - 1) / PIECE;
}

cvy_status cvy_native_update_offer_squares(cvy_kernel_ask *ask)
{
    int64_t elems;
    CVY_TRY(cvy_native_update_offer(ask));
    CVY_TRY(cvy_native_dst_elems(ask, &elems));
    ask->scratch_bytes = sizeof(cvy_squares) * (size_t)piece_count(elems);
    return CVY_OK;
}

cvy_status cvy_native_update_create(const cvy_kernel_ask *ask, void **state_out)
{
    cvy_native_update *u = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *u, &u));
    u->options = ask->node->options;
    u->threads = ask->threads;
    u->adapts = cvy_update_adapts(ask->node);
    u->limit = (float)cvy_update_limit(ask->node);
    u->decay = cvy_update_average(ask->node);
    u->shadow_at = ask->writes_shadow ? ask->node->ndst : 0;
    *state_out = u;
    CVY_TRY(cvy_native_dst_elems(ask, &u->elems));
    if (ask->part_elems)
        u->elems = ask->part_elems;
    return CVY_OK;
}

/* In memory, with padding. */
static cvy_status weight_elems(const cvy_kernel_ask *ask, int64_t *elems_out)
{
    cvy_blocking b;
    CVY_TRY(cvy_blocking_make(&ask->src[CVY_OPTIM_WEIGHT], &ask->node->src[CVY_OPTIM_WEIGHT]->shape, &b));
    *elems_out = b.elems;
    return CVY_OK;
}

cvy_status cvy_native_squares_offer(cvy_kernel_ask *ask)
{
    int64_t elems;
    CVY_TRY(cvy_native_update_offer(ask));
    ask->dst[0] = cvy_layout_plain();
    CVY_TRY(weight_elems(ask, &elems));
    ask->scratch_bytes = sizeof(cvy_squares) * (size_t)piece_count(elems);
    return CVY_OK;
}

cvy_status cvy_native_squares_create(const cvy_kernel_ask *ask, void **state_out)
{
    cvy_native_update *u = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *u, &u));
    u->options = ask->node->options;
    u->threads = ask->threads;
    *state_out = u;
    return weight_elems(ask, &u->elems);
}

void cvy_native_update_destroy(void *state)
{
    cvy_mem_free(&state);
}

/* Clips the weights, averages them, and rounds them to bf16, while they are in the first-level cache. */
CVY_SIMD static void update_and_finish(int64_t first, int64_t end, void *arg)
{
    enum { PART = 2048 };
    const cvy_native_update *u = arg;
    const float limit = u->limit, keep = u->keep, *average = u->average;
    for (int64_t i = first; i < end; i += PART) {
        const int64_t last = CVY_MIN(end, i + PART);
        float *w = u->weight_out, *average_out = u->average_out;
        u->range(i, last, arg);
        if (limit > 0)
#pragma omp simd
            for (int64_t k = i; k < last; k++)
                w[k] = w[k] > limit ? limit : w[k] < -limit ? -limit : w[k];
        if (average)
#pragma omp simd
            for (int64_t k = i; k < last; k++)
                average_out[k] = keep * average[k] + (1 - keep) * w[k];
        if (u->shadow)
            cvy_floats_store(1, w + i, last - i, u->shadow, i);
    }
}

void cvy_native_update_part(const cvy_native_update *u, int64_t first, int64_t n, const float *gradient)
{
    cvy_native_update part = *u;
    part.weight += first;
    part.weight_out += first;
    part.gradient = gradient;
    for (int i = 0; i < CVY_COUNT(part.state); i++)
        if (part.state[i]) {
            part.state[i] += first;
            part.state_out[i] += first;
        }
    if (part.average) {
        part.average += first;
        part.average_out += first;
    }
    if (part.shadow)
        part.shadow += first;
    update_and_finish(0, n, &part);
}

static void begin(cvy_native_update *u, double lr_mult, int nstate, void *const *src)
{
    u->now = cvy_update_read(src[CVY_OPTIM_LR], src[CVY_OPTIM_SCALE], src[CVY_OPTIM_STEP], lr_mult);
    u->weight = src[CVY_OPTIM_WEIGHT];
    u->gradient = src[CVY_OPTIM_GRADIENT];
    for (int i = 0; i < nstate; i++)
        u->state[i] = src[CVY_OPTIM_STATE + i];
}

void cvy_native_update_begin(cvy_native_update *u, double lr_mult, int nstate, void *const *src, void *const *dst)
{
    begin(u, lr_mult, nstate, src);
    u->weight_out = dst[0];
    for (int i = 0; i < nstate; i++)
        u->state_out[i] = dst[1 + i];
    if (u->decay > 0) {
        u->keep = (float)cvy_update_average_decay(u->decay, u->now.step);
        u->average = src[CVY_OPTIM_STATE + nstate];
        u->average_out = dst[1 + nstate];
    }
    u->shadow = u->shadow_at ? dst[u->shadow_at] : NULL;
}

struct squares_call {
    const cvy_native_update *u;
    cvy_squares_fn squares;
    cvy_squares *sum; /* one for each piece */
};

static void squares_of_pieces(int64_t first, int64_t end, void *arg)
{
    const struct squares_call *s = arg;
    for (int64_t p = first; p < end; p++)
        s->squares(s->u, p * PIECE, CVY_MIN((p + 1) * PIECE, s->u->elems), &s->sum[p]);
}

cvy_squares cvy_native_update_squares(cvy_native_update *u, cvy_squares_fn squares, void *scratch)
{
    struct squares_call call = {u, squares, scratch};
    const int64_t count = piece_count(u->elems);
    cvy_squares all = {0, 0};
    cvy_parallel_for(u->threads, count, CVY_GRAIN / PIECE, squares_of_pieces, &call);
    for (int64_t p = 0; p < count; p++) {
        all.weight += call.sum[p].weight;
        all.step += call.sum[p].step;
    }
    return all;
}

cvy_status cvy_native_squares_run(cvy_native_update *u, int nstate, cvy_squares_fn squares, void *const *src,
                                  void *const *dst, void *scratch)
{
    begin(u, 1, nstate, src);
    const cvy_squares all = cvy_native_update_squares(u, squares, scratch);
    double *out = dst[0];
    out[0] = all.weight;
    out[1] = all.step;
    return CVY_OK;
}

cvy_status cvy_native_update_end(cvy_native_update *u, cvy_range_fn range)
{
    u->range = range;
    cvy_parallel_for(u->threads, u->elems, CVY_GRAIN,
                     u->shadow || u->average || u->limit > 0 ? update_and_finish : range, u);
    return CVY_OK;
}

cvy_status cvy_native_update_run(cvy_native_update *u, double lr_mult, int nstate, void *const *src, void *const *dst,
                                 cvy_range_fn range)
{
    cvy_native_update_begin(u, lr_mult, nstate, src, dst);
    return cvy_native_update_end(u, range);
}
