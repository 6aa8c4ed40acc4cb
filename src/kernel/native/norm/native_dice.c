/*
 * native_dice.c: dice and its gradient on plain layouts.
 *
 * src/op/loss/op_dice.c has the formulas. Each class of a sample is a unit of work: its sums run over positions in f32
 * within a strip and in f64 over strips, so they do not depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/norm/native_label_loss.h"

#define STRIP 256 /* positions that are converted and added at a time */

struct dice {
    cvy_native_labels labels;
    const struct cvy_dice *options;
    int threads, bf16;
    const void *p; /* this and what follows: of the running call */
    double dloss;
    double *term; /* forward: one for each class of each sample */
    void *dp;
};

/* ---- planning ---- */

static cvy_status forward_offer(cvy_kernel_ask *ask)
{
    const cvy_shape *p = &ask->node->src[0]->shape;
    CVY_TRY(cvy_native_label_loss_offer(ask, 0, "probabilities are"));
    ask->scratch_bytes = sizeof(double) * (size_t)(p->dim[0] * p->dim[1]);
    return CVY_OK;
}

static cvy_status backward_offer(cvy_kernel_ask *ask)
{
    return cvy_native_label_loss_offer(ask, 1, "probabilities are");
}

static cvy_status create(const cvy_kernel_ask *ask, int first, void **state_out)
{
    struct dice *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct dice){.labels = cvy_native_labels_of(ask->node, first),
                       .options = ask->node->options,
                       .threads = ask->threads,
                       .bf16 = ask->node->src[first]->dtype == CVY_DTYPE_BF16};
    *state_out = s;
    return CVY_OK;
}

static cvy_status forward_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, 0, state_out);
}

static cvy_status backward_create(const cvy_kernel_ask *ask, void **state_out)
{
    return create(ask, 1, state_out);
}

static void destroy(void *state)
{
    cvy_mem_free(&state);
}

/* ---- running ---- */

/* Sets weight[j] to the weight of position first + j of the batch, 0 if its label is ignored, and is[j] to 1 if the
 * label is k, else 0. */
CVY_INLINE void compare(const cvy_native_labels *l, int64_t first, int64_t count, int64_t k, float *weight, float *is)
{
    const cvy_ints *ignored = &l->options->ignore_label;
    const int32_t own = (int32_t)k, *label = l->label + first;
    for (int64_t j = 0; j < count; j++) {
        weight[j] = l->mask ? l->mask[first + j] : 1;
        is[j] = label[j] == own ? 1 : 0;
    }
    for (int i = 0; i < ignored->count; i++)
        for (int64_t j = 0; j < count; j++)
            weight[j] = label[j] == ignored->at[i] ? 0 : weight[j];
}

/* Sets D and total + smooth of class k of sample n. */
CVY_INLINE void coefficient(const struct dice *s, int64_t n, int64_t k, double *dice_out, double *total_out)
{
    const cvy_native_labels *l = &s->labels;
    float wide[STRIP], weight[STRIP], is[STRIP];
    double overlap = 0, total = 0;
    for (int64_t x = 0; x < l->P; x += STRIP) {
        const int64_t count = CVY_MIN(STRIP, l->P - x);
        float overlap_here = 0, total_here = 0;
        compare(l, n * l->P + x, count, k, weight, is);
        cvy_floats_load(s->bf16, s->p, (n * l->K + k) * l->P + x, count, wide);
#pragma omp simd reduction(+ : overlap_here, total_here)
        for (int64_t j = 0; j < count; j++) {
            overlap_here += weight[j] * is[j] * wide[j];
            total_here += weight[j] * (wide[j] + is[j]);
        }
        overlap += overlap_here;
        total += total_here;
    }
    *total_out = total + s->options->smooth;
    *dice_out = (2 * overlap + s->options->smooth) / *total_out;
}

CVY_SIMD static void dice_forward_range(int64_t first, int64_t end, void *arg)
{
    const struct dice *s = arg;
    const int64_t K = s->labels.K;
    for (int64_t i = first; i < end; i++) {
        double dice = 0, total = 0;
        coefficient(s, i / K, i % K, &dice, &total);
        s->term[i] = cvy_class_weight(s->labels.options, i % K) * (1 - dice);
    }
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct dice *s = state;
    const cvy_native_labels *l = &s->labels;
    double loss = 0;
    s->p = src[0];
    s->term = scratch;
    CVY_TRY(cvy_native_labels_take(&s->labels, 0, src));
    cvy_parallel_for(s->threads, l->n * l->K, CVY_MAX(1, CVY_GRAIN / 2 / l->P), dice_forward_range, s);
    for (int64_t n = 0; n < l->n; n++) {
        double sum = 0;
        for (int64_t k = 0; k < l->K; k++)
            sum += s->term[n * l->K + k];
        loss += cvy_native_label_factor(l, n) * sum / l->all;
    }
    *(double *)dst[0] = s->options->loss.loss_weight * loss;
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_dice) = {
    .name = "native.dice",
    .op = "dice",
    .preference = 50,
    .offer = forward_offer,
    .create = forward_create,
    .run = forward_run,
    .destroy = destroy,
};

CVY_SIMD static void dice_backward_range(int64_t first, int64_t end, void *arg)
{
    const struct dice *s = arg;
    const cvy_native_labels *l = &s->labels;
    float weight[STRIP], is[STRIP], dp[STRIP];
    for (int64_t i = first; i < end; i++) {
        const int64_t n = i / l->K, k = i % l->K;
        double dice = 0, total = 0;
        coefficient(s, n, k, &dice, &total);
        const double f = s->dloss / l->all * cvy_native_label_factor(l, n) * cvy_class_weight(l->options, k) / total;
        const float outside = (float)(f * dice), inside = (float)(f * (dice - 2));
        for (int64_t x = 0; x < l->P; x += STRIP) {
            const int64_t count = CVY_MIN(STRIP, l->P - x);
            compare(l, n * l->P + x, count, k, weight, is);
            for (int64_t j = 0; j < count; j++)
                dp[j] = weight[j] * (is[j] > 0 ? inside : outside);
            cvy_floats_store(s->bf16, dp, count, s->dp, i * l->P + x);
        }
    }
}

static cvy_status backward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct dice *s = state;
    const cvy_native_labels *l = &s->labels;
    (void)scratch;
    s->dloss = s->options->loss.loss_weight * *(const double *)src[0];
    s->p = src[1];
    s->dp = dst[0];
    CVY_TRY(cvy_native_labels_take(&s->labels, 1, src));
    cvy_parallel_for(s->threads, l->n * l->K, CVY_MAX(1, CVY_GRAIN / 3 / l->P), dice_backward_range, s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_dice_grad) = {
    .name = "native.dice_grad",
    .op = "dice_grad",
    .preference = 50,
    .offer = backward_offer,
    .create = backward_create,
    .run = backward_run,
    .destroy = destroy,
};
