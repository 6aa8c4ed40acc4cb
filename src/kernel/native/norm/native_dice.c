/*
 * native_dice.c: dice and its gradient on plain layouts.
 *
 * src/op/loss/op_dice.c has the formulas. Each class of a sample is a unit of work: its sums run over positions in f32
 * within a strip and in f64 over strips, so they do not depend on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/native/norm/native_label_loss.h"
#include "op/loss/op_loss.h"

#define STRIP 256 /* positions that are converted and added at a time */

struct dice {
    const cvy_node *node;
    const struct cvy_dice *options;
    int64_t n, K, P;
    int threads, bf16;
    double all;    /* sum of class weights */
    const void *p; /* this and what follows: of the running call */
    const float *weight;
    const int32_t *label;
    double norm, dloss;
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
    const cvy_shape *shape = &ask->node->src[first]->shape;
    struct dice *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct dice){.node = ask->node,
                       .options = ask->node->options,
                       .threads = ask->threads,
                       .bf16 = ask->node->src[first]->dtype == CVY_DTYPE_BF16,
                       .n = shape->dim[0],
                       .K = shape->dim[1],
                       .P = 1};
    for (int d = 2; d < shape->ndim; d++)
        s->P *= shape->dim[d];
    for (int64_t k = 0; k < s->K; k++)
        s->all += cvy_class_weight(&s->options->loss.labels, k);
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

static cvy_status check_labels(const struct dice *s)
{
    for (int64_t i = 0; i < s->n * s->P; i++)
        if ((s->label[i] < 0 || s->label[i] >= s->K) && !cvy_label_ignored(&s->options->loss.labels, s->label[i]))
            return cvy_label_error(s->node, i / s->P, s->label[i], s->K);
    return CVY_OK;
}

/* weight[n] / norm: see cvy_loss_factor. */
static double factor(const struct dice *s, int64_t n)
{
    return s->norm > 0 ? (s->weight ? s->weight[n] : 1) / s->norm : 0;
}

/* Sets counts[j] to 1 if the label of a position counts, and is[j] to 1 if it is k; else 0. */
CVY_INLINE void compare(const struct dice *s, const int32_t *label, int64_t count, int64_t k, float *counts, float *is)
{
    const cvy_ints *ignored = &s->options->loss.labels.ignore_label;
    const int32_t own = (int32_t)k;
    for (int64_t j = 0; j < count; j++) {
        counts[j] = 1;
        is[j] = label[j] == own ? 1 : 0;
    }
    for (int i = 0; i < ignored->count; i++)
        for (int64_t j = 0; j < count; j++)
            counts[j] = label[j] == ignored->at[i] ? 0 : counts[j];
}

/* Sets D and total + smooth of class k of sample n. */
CVY_INLINE void coefficient(const struct dice *s, int64_t n, int64_t k, double *dice_out, double *total_out)
{
    float wide[STRIP], counts[STRIP], is[STRIP];
    double overlap = 0, total = 0;
    for (int64_t x = 0; x < s->P; x += STRIP) {
        const int64_t count = CVY_MIN(STRIP, s->P - x);
        float overlap_here = 0, total_here = 0;
        compare(s, s->label + n * s->P + x, count, k, counts, is);
        cvy_floats_load(s->bf16, s->p, (n * s->K + k) * s->P + x, count, wide);
#pragma omp simd reduction(+ : overlap_here, total_here)
        for (int64_t j = 0; j < count; j++) {
            overlap_here += counts[j] * is[j] * wide[j];
            total_here += counts[j] * (wide[j] + is[j]);
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
    for (int64_t i = first; i < end; i++) {
        double dice = 0, total = 0;
        coefficient(s, i / s->K, i % s->K, &dice, &total);
        s->term[i] = cvy_class_weight(&s->options->loss.labels, i % s->K) * (1 - dice);
    }
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct dice *s = state;
    double loss = 0;
    s->p = src[0];
    s->label = src[1];
    s->norm = *(const double *)src[2];
    s->weight = s->node->nsrc > 3 ? src[3] : NULL;
    s->term = scratch;
    CVY_TRY(check_labels(s));
    cvy_parallel_for(s->threads, s->n * s->K, CVY_MAX(1, CVY_GRAIN / 2 / s->P), dice_forward_range, s);
    for (int64_t n = 0; n < s->n; n++) {
        double sum = 0;
        for (int64_t k = 0; k < s->K; k++)
            sum += s->term[n * s->K + k];
        loss += factor(s, n) * sum / s->all;
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
    float counts[STRIP], is[STRIP], dp[STRIP];
    for (int64_t i = first; i < end; i++) {
        const int64_t n = i / s->K, k = i % s->K;
        double dice = 0, total = 0;
        coefficient(s, n, k, &dice, &total);
        const double f = s->dloss / s->all * factor(s, n) * cvy_class_weight(&s->options->loss.labels, k) / total;
        const float outside = (float)(f * dice), inside = (float)(f * (dice - 2));
        for (int64_t x = 0; x < s->P; x += STRIP) {
            const int64_t count = CVY_MIN(STRIP, s->P - x);
            compare(s, s->label + n * s->P + x, count, k, counts, is);
            for (int64_t j = 0; j < count; j++)
                dp[j] = counts[j] * (is[j] > 0 ? inside : outside);
            cvy_floats_store(s->bf16, dp, count, s->dp, i * s->P + x);
        }
    }
}

static cvy_status backward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct dice *s = state;
    (void)scratch;
    s->dloss = s->options->loss.loss_weight * *(const double *)src[0];
    s->p = src[1];
    s->label = src[2];
    s->norm = *(const double *)src[3];
    s->weight = s->node->nsrc > 4 ? src[4] : NULL;
    s->dp = dst[0];
    CVY_TRY(check_labels(s));
    cvy_parallel_for(s->threads, s->n * s->K, CVY_MAX(1, CVY_GRAIN / 3 / s->P), dice_backward_range, s);
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
