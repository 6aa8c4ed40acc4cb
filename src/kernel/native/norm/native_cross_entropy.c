/*
 * native_cross_entropy.c: softmax_cross_entropy and focal, and their gradients, on plain layouts.
 *
 * src/op/loss/op_softmax_cross_entropy.c and op_focal.c have the formulas. The gradient of focal is that of the
 * cross-entropy, times a factor for each position. Each sample gives one loss, and these are added in order, so
 * the total does not depend on the number of threads. A bf16 sample is converted to f32 in scratch memory; the gradient
 * overwrites it there before it is rounded.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/norm/native_label_loss.h"
#include "kernel/native/norm/native_softmax.h"

struct cross_entropy {
    cvy_native_labels labels;
    const struct cvy_label_loss *options;
    double smoothing, gamma; /* label smoothing of the cross-entropy, and the power of focal; 0: none */
    int threads, bf16;
    const void *x; /* this and what follows: of the running call */
    float *wide;   /* bf16: the f32 copy [N, K, P] */
    double dloss;
    double *loss; /* one for each sample */
    void *dx;
};

/* ---- planning ---- */

static size_t wide_bytes(const cvy_value *x)
{
    return x->dtype == CVY_DTYPE_BF16 ? sizeof(float) * (size_t)cvy_shape_elems(&x->shape) : 0;
}

static size_t loss_bytes(const cvy_value *x)
{
    return sizeof(double) * (size_t)x->shape.dim[0];
}

static cvy_status forward_offer(cvy_kernel_ask *ask)
{
    const cvy_value *x = ask->node->src[0];
    CVY_TRY(cvy_native_label_loss_offer(ask, 0, "output is"));
    ask->scratch_bytes = loss_bytes(x) + wide_bytes(x);
    return CVY_OK;
}

static cvy_status backward_offer(cvy_kernel_ask *ask)
{
    CVY_TRY(cvy_native_label_loss_offer(ask, 1, "output is"));
    ask->scratch_bytes = wide_bytes(ask->node->src[1]);
    ask->inplace[0] = 2;
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, int first, void **state_out)
{
    const int is_focal = strncmp(ask->node->op->name, "focal", 5) == 0;
    struct cross_entropy *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (struct cross_entropy){.labels = cvy_native_labels_of(ask->node, first),
                                .options = ask->node->options,
                                .threads = ask->threads,
                                .bf16 = ask->node->src[first]->dtype == CVY_DTYPE_BF16};
    if (is_focal)
        s->gamma = ((const struct cvy_focal *)ask->node->options)->gamma;
    else
        s->smoothing = ((const struct cvy_cross_entropy *)ask->node->options)->label_smoothing;
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

static float class_weight(const struct cross_entropy *s, int64_t k)
{
    return (float)cvy_class_weight(s->labels.options, k);
}

/* Returns sample n in f32. */
CVY_INLINE const float *sample_of(const struct cross_entropy *s, int64_t n)
{
    const int64_t each = s->labels.K * s->labels.P;
    if (!s->bf16)
        return (const float *)s->x + n * each;
    cvy_floats_load(1, s->x, n * each, each, s->wide + n * each);
    return s->wide + n * each;
}

/* Maximum and sum of exponentials of positions p .. p + count - 1 of a sample. */
CVY_INLINE void reduce(const struct cross_entropy *s, const float *x, int64_t p, int64_t count, float *top, float *sum)
{
    if (s->labels.P == 1)
        cvy_softmax_row(x, s->labels.K, top, sum);
    else
        cvy_softmax_strip(x + p, s->labels.K, s->labels.P, count, top, sum);
}

/* The term of label smoothing: the mean over all K classes of c[k] (total - x[k]), c[k] are the class weights. */
static double smoothing_term(const struct cross_entropy *s, const float *x, double total)
{
    double sum = 0;
    for (int64_t k = 0; k < s->labels.K; k++)
        sum += class_weight(s, k) * (total - x[k * s->labels.P]);
    return sum / (double)s->labels.K;
}

/* (1 - p)^gamma for the probability p = exp(-term) of the label. */
static double focus(const struct cross_entropy *s, double term)
{
    return s->gamma > 0 ? pow(-expm1(-CVY_MAX(term, 0)), s->gamma) : 1;
}

CVY_SIMD static void forward_range(int64_t first, int64_t end, void *arg)
{
    const struct cross_entropy *s = arg;
    const double smoothing = s->smoothing;
    float top[CVY_STRIP], sum[CVY_STRIP];
    for (int64_t n = first; n < end; n++) {
        const float *x = sample_of(s, n);
        double loss = 0;
        for (int64_t p = 0; p < s->labels.P; p += CVY_STRIP) {
            const int64_t count = CVY_MIN(CVY_STRIP, s->labels.P - p);
            reduce(s, x, p, count, top, sum);
            for (int64_t j = 0; j < count; j++) {
                const int32_t label = s->labels.label[n * s->labels.P + p + j];
                const float weight = cvy_native_label_weight(&s->labels, n, p + j);
                if (weight == 0)
                    continue;
                const double total = (double)top[j] + log((double)sum[j]);
                const double term = total - x[label * s->labels.P + p + j];
                loss += weight * (1 - smoothing) * class_weight(s, label) * focus(s, term) * term;
                if (smoothing > 0)
                    loss += weight * smoothing * smoothing_term(s, x + p + j, total);
            }
        }
        s->loss[n] = cvy_native_label_factor(&s->labels, n) * loss / (double)s->labels.P;
    }
}

static cvy_status forward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct cross_entropy *s = state;
    double loss = 0;
    s->x = src[0];
    s->loss = scratch;
    s->wide = (float *)(s->loss + s->labels.n);
    CVY_TRY(cvy_native_labels_take(&s->labels, 0, src));
    cvy_parallel_for(s->threads, s->labels.n, CVY_MAX(1, CVY_GRAIN / 8 / (s->labels.K * s->labels.P)), forward_range,
                     s);
    for (int64_t n = 0; n < s->labels.n; n++)
        loss += s->loss[n];
    *(double *)dst[0] = s->options->loss_weight * loss;
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_softmax_cross_entropy) = {
    .name = "native.softmax_cross_entropy",
    .op = "softmax_cross_entropy",
    .preference = 50,
    .offer = forward_offer,
    .create = forward_create,
    .run = forward_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_focal) = {
    .name = "native.focal",
    .op = "focal",
    .preference = 50,
    .offer = forward_offer,
    .create = forward_create,
    .run = forward_run,
    .destroy = destroy,
};

/* The factors of the gradient of up to CVY_STRIP positions: dx[k] = a * exp(x[k] - top) - b * c[k], and l less at the
 * label. */
typedef struct strip {
    float top[CVY_STRIP], a[CVY_STRIP], b[CVY_STRIP], l[CVY_STRIP];
} strip;

/* For positions p .. p + count - 1 of sample n, whose outputs are x. f: the factor of all of them. */
CVY_INLINE void prepare(const struct cross_entropy *s, const float *x, int64_t n, double f, int64_t p, int64_t count,
                        strip *t)
{
    const int32_t *label = s->labels.label + n * s->labels.P + p;
    const double even = s->smoothing / (double)s->labels.K;
    float sum[CVY_STRIP];
    reduce(s, x, p, count, t->top, sum);
    for (int64_t j = 0; j < count; j++) {
        const float weight = cvy_native_label_weight(&s->labels, n, p + j);
        const double own = f * weight;
        double here = weight != 0 ? (1 - s->smoothing) * class_weight(s, label[j]) : 0;
        if (here > 0 && s->gamma > 0)
            here *=
                -cvy_focal_slope(s->gamma, x[label[j] * s->labels.P + p + j] - (double)t->top[j] - log((double)sum[j]));
        t->a[j] = (float)(own * (here + even * s->labels.all) / sum[j]);
        t->b[j] = (float)(own * even);
        t->l[j] = (float)(own * here);
    }
}

/* For a tensor without positions: vectors run over the classes. */
CVY_INLINE void backward_row(const struct cross_entropy *s, const float *x, float *dx, const strip *t)
{
    const float top = t->top[0], a = t->a[0], b = t->b[0];
#pragma omp simd
    for (int64_t k = 0; k < s->labels.K; k++)
        dx[k] = a * cvy_exp(x[k] - top);
    for (int64_t k = 0; b != 0 && k < s->labels.K; k++)
        dx[k] -= b * class_weight(s, k);
}

CVY_INLINE void backward_strip(const struct cross_entropy *s, const float *x, float *dx, int64_t count, const strip *t)
{
    for (int64_t k = 0; k < s->labels.K; k++) {
        const float c = class_weight(s, k);
#pragma omp simd
        for (int64_t j = 0; j < count; j++)
            dx[k * s->labels.P + j] = t->a[j] * cvy_exp(x[k * s->labels.P + j] - t->top[j]) - t->b[j] * c;
    }
}

CVY_SIMD static void backward_range(int64_t first, int64_t end, void *arg)
{
    const struct cross_entropy *s = arg;
    const int64_t K = s->labels.K, P = s->labels.P;
    strip t;
    for (int64_t n = first; n < end; n++) {
        const float *x = sample_of(s, n);
        float *dx = (s->bf16 ? s->wide : (float *)s->dx) + n * K * P;
        const double f = s->dloss * cvy_native_label_factor(&s->labels, n) / (double)P;
        for (int64_t p = 0; p < P; p += CVY_STRIP) {
            const int64_t count = CVY_MIN(CVY_STRIP, P - p);
            const int32_t *label = s->labels.label + n * P + p;
            prepare(s, x, n, f, p, count, &t);
            if (P == 1)
                backward_row(s, x, dx, &t);
            else
                backward_strip(s, x + p, dx + p, count, &t);
            for (int64_t j = 0; j < count; j++)
                if (t.l[j] != 0)
                    dx[label[j] * P + p + j] -= t.l[j];
        }
        if (s->bf16)
            cvy_floats_store(1, dx, K * P, s->dx, n * K * P);
    }
}

static cvy_status backward_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct cross_entropy *s = state;
    s->wide = scratch;
    s->dloss = s->options->loss_weight * *(const double *)src[0];
    s->x = src[1];
    s->dx = dst[0];
    CVY_TRY(cvy_native_labels_take(&s->labels, 1, src));
    cvy_parallel_for(s->threads, s->labels.n, CVY_MAX(1, CVY_GRAIN / 8 / (s->labels.K * s->labels.P)), backward_range,
                     s);
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_softmax_cross_entropy_grad) = {
    .name = "native.softmax_cross_entropy_grad",
    .op = "softmax_cross_entropy_grad",
    .preference = 50,
    .offer = backward_offer,
    .create = backward_create,
    .run = backward_run,
    .destroy = destroy,
};

CVY_KERNEL_DEFINE(native_focal_grad) = {
    .name = "native.focal_grad",
    .op = "focal_grad",
    .preference = 50,
    .offer = backward_offer,
    .create = backward_create,
    .run = backward_run,
    .destroy = destroy,
};
