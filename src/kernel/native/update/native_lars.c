/*
 * native_lars.c: lars in two passes over each weight: the squares of weight and gradient, then the update.
 *
 * The formula is in src/optim/optim_lars.c. Sums over pieces of fixed size are added in order, so the trust ratio does
 * not depend on the number of threads. Padding lanes are zero and add nothing. The norm needs the whole weight, so the
 * ranks of a node cannot each do a part of this update.
 */
#include "kernel/native/update/native_update.h"

enum { PIECE = 8192 };

struct squares {
    double weight, gradient;
};

struct lars {
    cvy_native_update *update;
    int adapts;
    const float *weight, *gradient; /* of the running call */
    struct squares *sum;            /* one for each piece */
};

static int64_t piece_count(int64_t elems)
{
    return (elems + PIECE - 1) / PIECE;
}

static cvy_status lars_offer(cvy_kernel_ask *ask)
{
    cvy_blocking b;
    CVY_TRY(cvy_native_update_offer(ask));
    CVY_TRY(cvy_blocking_make(&ask->src[CVY_OPTIM_WEIGHT], cvy_node_src(ask->node, CVY_OPTIM_WEIGHT), &b));
    ask->scratch_bytes = sizeof(struct squares) * (size_t)piece_count(b.elems);
    return CVY_OK;
}

static cvy_status lars_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct lars *s = NULL;
    void *update = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *state_out = s;
    s->adapts = cvy_lars_adapts(ask->node);
    const cvy_status status = cvy_native_update_create(ask, &update);
    s->update = update;
    return status;
}

static void lars_destroy(void *state)
{
    if (state)
        cvy_native_update_destroy(((struct lars *)state)->update);
    cvy_mem_free(&state);
}

CVY_SIMD static void lars_add_squares(const float *weight, const float *gradient, int64_t n, struct squares *out)
{
    double w = 0, g = 0;
#pragma omp simd reduction(+ : w, g)
    for (int64_t i = 0; i < n; i++) {
        w += (double)weight[i] * (double)weight[i];
        g += (double)gradient[i] * (double)gradient[i];
    }
    *out = (struct squares){w, g};
}

static void pieces(int64_t first, int64_t end, void *arg)
{
    const struct lars *s = arg;
    for (int64_t p = first; p < end; p++)
        lars_add_squares(s->weight + p * PIECE, s->gradient + p * PIECE, CVY_MIN(PIECE, s->update->elems - p * PIECE),
                         &s->sum[p]);
}

static double trust_of(struct lars *s, void *const *src, void *scratch)
{
    const int64_t count = piece_count(s->update->elems);
    const double scale = *(const double *)src[CVY_OPTIM_SCALE];
    struct squares all = {0, 0};
    s->weight = src[CVY_OPTIM_WEIGHT];
    s->gradient = src[CVY_OPTIM_GRADIENT];
    s->sum = scratch;
    cvy_parallel_for(s->update->threads, count, CVY_GRAIN / PIECE, pieces, s);
    for (int64_t p = 0; p < count; p++) {
        all.weight += s->sum[p].weight;
        all.gradient += s->sum[p].gradient;
    }
    return cvy_lars_trust(s->update->options, all.weight, scale * scale * all.gradient);
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
    struct lars *s = state;
    const struct cvy_lars *o = s->update->options;
    const double trust = s->adapts ? trust_of(s, src, scratch) : 1;
    return cvy_native_update_run(s->update, o->lr_mult * trust, 1, src, dst, lars_range);
}

CVY_KERNEL_DEFINE(native_lars) = {
    .name = "native.lars",
    .op = "lars",
    .preference = 50,
    .writes_shadow = 1,
    .offer = lars_offer,
    .create = lars_create,
    .run = lars_run,
    .destroy = lars_destroy,
};
