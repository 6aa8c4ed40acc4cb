/*
 * gpu_label_loss.c: the losses on labels, and their gradients: softmax_cross_entropy, focal and hinge, of f32 and bf16.
 * The formulas are in src/op/loss.
 *
 * The classes of a position are neighbours in memory, a row. A block computes a row if there are many classes, a thread
 * if there are few. The label and the weight of a row are the same for all threads of its block, so all of them reach
 * the same barriers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { LABEL_THREADS = 256, LABEL_FEW = 64 }; /* LABEL_FEW: so many classes are computed by one thread */
enum { LABEL_CROSS_ENTROPY, LABEL_FOCAL, LABEL_HINGE };
struct label_loss {
    i64 rows, classes, positions; /* positions: rows of a sample */
    i64 weight_each;              /* numbers for each sample */
    double loss_weight;           /* with the division by `positions` */
    double smoothing, gamma, all; /* all: the sum of the class weights */
    int f, squared;               /* squared: of hinge */
    int label_kind, weight_kind;  /* NUMBER_*; weight_kind -1: there is no weight */
    int class_weights, ignored;   /* their numbers in the table */
};

#ifdef CVY_DEVICE

INLINE double class_weight(struct label_loss a, GLOBAL const double *table, i64 k)
{
    return a.class_weights ? table[k] : 1;
}

/* weight / norm of a row; 0 if it does not count. */
INLINE double row_factor(struct label_loss a, GLOBAL const double *table, GLOBAL const void *weight, double norm, i64 r,
                         double label)
{
    const i64 n = QUOTIENT(r, a.positions);
    for (int i = 0; i < a.ignored; i++)
        if (table[a.class_weights + i] == label)
            return 0;
    if (norm == 0)
        return 0;
    return a.weight_kind < 0 ? 1 / norm : number_at(weight, a.weight_kind, a.weight_each == 1 ? n : r) / norm;
}

/* ---- parts of a row: of every lanes-th class from `lane` on ---- */

INLINE float row_top(GLOBAL const act *x, i64 at, i64 K, int lane, int lanes)
{
    float top = -INFINITY;
    for (i64 k = lane; k < K; k += lanes) {
        const float v = GET(x, at + k);
        top = v > top ? v : top;
    }
    return top;
}

INLINE double row_sum(GLOBAL const act *x, i64 at, i64 K, float top, int lane, int lanes)
{
    double sum = 0;
    for (i64 k = lane; k < K; k += lanes)
        sum += EXP(GET(x, at + k) - top);
    return sum;
}

/* What a score of class k lacks that should be 1 at the label and -1 elsewhere. */
INLINE double lacking_class(double x, int is_label)
{
    const double m = 1 - (is_label ? x : -x);
    return m > 0 || m != m ? m : 0;
}

/* Hinge: the sum of margins. Cross-entropy: of c[k] (total - x[k]), for label smoothing. */
INLINE double row_rest(struct label_loss a, GLOBAL const double *table, GLOBAL const act *x, i64 at, i64 label,
                       double total, int lane, int lanes)
{
    double sum = 0;
    for (i64 k = lane; k < a.classes; k += lanes) {
        const double v = GET(x, at + k), m = lacking_class(v, k == label);
        sum += a.f == LABEL_HINGE ? (a.squared ? m * m : m) : class_weight(a, table, k) * (total - v);
    }
    return sum;
}

/* (1 - p)^gamma, with the logarithm of p. */
INLINE double focus(double gamma, double log_p)
{
    const double q = log_p < 0 ? 1 - EXP_D(log_p) : 0;
    return gamma > 0 ? EXP_D(gamma * LOG_D(q)) : 1;
}

/* The term of a row. rest: the sum of row_rest. */
INLINE double row_term(struct label_loss a, GLOBAL const double *table, double x_label, i64 label, double total,
                       double rest)
{
    if (a.f == LABEL_HINGE)
        return rest;
    const double term = class_weight(a, table, label) * (total - x_label);
    if (a.f == LABEL_FOCAL)
        return focus(a.gamma, x_label - total) * term;
    return (1 - a.smoothing) * term + a.smoothing / (double)a.classes * rest;
}

/* The derivative with respect to log p[label], negative; without the weight of the class. */
INLINE double focal_slope(double gamma, double log_p)
{
    const double q = log_p < 0 ? 1 - EXP_D(log_p) : 0;
    return (gamma > 0 && q > 0 ? gamma * EXP_D((gamma - 1) * LOG_D(q)) * EXP_D(log_p) * log_p : 0) -
           focus(gamma, log_p);
}

/* Writes the gradients of a part of a row. factor: with dloss. */
INLINE void row_slope(struct label_loss a, GLOBAL const double *table, GLOBAL const act *x, GLOBAL act *dx, i64 at,
                      i64 label, double factor, double x_label, float top, double sum, int lane, int lanes)
{
    double here = 0, even = 0;
    if (a.f != LABEL_HINGE && factor != 0) {
        even = a.smoothing / (double)a.classes;
        here = (1 - a.smoothing) * class_weight(a, table, label);
        if (a.f == LABEL_FOCAL)
            here *= -focal_slope(a.gamma, x_label - top - LOG_D(sum));
    }
    const double by = (here + even * a.all) / sum;
    for (i64 k = lane; k < a.classes; k += lanes) {
        const float v = GET(x, at + k);
        double slope = 0;
        if (factor != 0 && a.f == LABEL_HINGE) {
            const double m = lacking_class(v, k == label);
            slope = (k == label ? -1 : 1) * (a.squared ? 2 * m : m > 0 ? 1 : m);
        } else if (factor != 0) {
            slope = EXP(v - top) * by - (k == label ? here : 0) - (even > 0 ? even * class_weight(a, table, k) : 0);
        }
        SET(dx, at + k, factor == 0 ? 0.0f : (float)(factor * slope));
    }
}

/* ---- a thread for each row ---- */

KERNEL(label_loss_few)
(GLOBAL const act *x, GLOBAL const void *labels, GLOBAL const double *norm, GLOBAL const void *weight,
 GLOBAL const double *table, GLOBAL double *part, struct label_loss a)
{
    SHARED double s[LABEL_THREADS];
    double loss = 0;
    FOR_EACH (r, a.rows) {
        const i64 label = (i64)number_at(labels, a.label_kind, r), at = r * a.classes;
        const double factor = row_factor(a, table, weight, norm[0], r, (double)label);
        if (factor == 0)
            continue;
        if (label < 0 || label >= a.classes) {
            loss = NAN;
            continue;
        }
        double total = 0, rest = 0;
        if (a.f != LABEL_HINGE) {
            const float top = row_top(x, at, a.classes, 0, 1);
            total = top + LOG_D(row_sum(x, at, a.classes, top, 0, 1));
        }
        if (a.f == LABEL_HINGE || a.smoothing > 0)
            rest = row_rest(a, table, x, at, label, total, 0, 1);
        loss += factor * row_term(a, table, GET(x, at + label), label, total, rest);
    }
    BLOCK_SUM(loss, s);
    if (THREAD == 0)
        part[BLOCK] = loss;
}

KERNEL(label_loss_few_grad)
(GLOBAL const double *dloss, GLOBAL const act *x, GLOBAL const void *labels, GLOBAL const double *norm,
 GLOBAL const void *weight, GLOBAL const double *table, GLOBAL act *dx, struct label_loss a)
{
    FOR_EACH (r, a.rows) {
        const i64 label = (i64)number_at(labels, a.label_kind, r), at = r * a.classes;
        double factor = a.loss_weight * dloss[0] * row_factor(a, table, weight, norm[0], r, (double)label);
        float top = 0, x_label = 0;
        double sum = 1;
        if (factor != 0 && a.f != LABEL_HINGE) {
            top = row_top(x, at, a.classes, 0, 1);
            sum = row_sum(x, at, a.classes, top, 0, 1);
        }
        if (factor != 0 && (label < 0 || label >= a.classes))
            factor = NAN;
        else if (factor != 0)
            x_label = GET(x, at + label);
        row_slope(a, table, x, dx, at, factor != factor ? 0 : label, factor, x_label, top, sum, 0, 1);
    }
}

/* ---- a block for each row ---- */

KERNEL(label_loss_many)
(GLOBAL const act *x, GLOBAL const void *labels, GLOBAL const double *norm, GLOBAL const void *weight,
 GLOBAL const double *table, GLOBAL double *part, struct label_loss a)
{
    SHARED double s[LABEL_THREADS];
    SHARED float s_top[LABEL_THREADS];
    double loss = 0;
    for (i64 r = BLOCK; r < a.rows; r += BLOCKS) {
        const i64 label = (i64)number_at(labels, a.label_kind, r), at = r * a.classes;
        const double factor = row_factor(a, table, weight, norm[0], r, (double)label);
        if (factor == 0)
            continue;
        if (label < 0 || label >= a.classes) {
            loss = NAN;
            continue;
        }
        double total = 0, rest = 0;
        if (a.f != LABEL_HINGE) {
            float top = row_top(x, at, a.classes, THREAD, THREADS);
            BLOCK_MAX(top, s_top);
            total = row_sum(x, at, a.classes, top, THREAD, THREADS);
            BLOCK_SUM(total, s);
            total = top + LOG_D(total);
        }
        if (a.f == LABEL_HINGE || a.smoothing > 0) {
            rest = row_rest(a, table, x, at, label, total, THREAD, THREADS);
            BLOCK_SUM(rest, s);
        }
        loss += factor * row_term(a, table, GET(x, at + label), label, total, rest);
    }
    if (THREAD == 0)
        part[BLOCK] = loss;
}

KERNEL(label_loss_many_grad)
(GLOBAL const double *dloss, GLOBAL const act *x, GLOBAL const void *labels, GLOBAL const double *norm,
 GLOBAL const void *weight, GLOBAL const double *table, GLOBAL act *dx, struct label_loss a)
{
    SHARED double s[LABEL_THREADS];
    SHARED float s_top[LABEL_THREADS];
    for (i64 r = BLOCK; r < a.rows; r += BLOCKS) {
        const i64 label = (i64)number_at(labels, a.label_kind, r), at = r * a.classes;
        double factor = a.loss_weight * dloss[0] * row_factor(a, table, weight, norm[0], r, (double)label);
        const int is_class = label >= 0 && label < a.classes;
        float top = 0;
        const float x_label = is_class ? GET(x, at + label) : 0; /* before anything is written over it */
        double sum = 1;
        if (factor != 0) {
            top = row_top(x, at, a.classes, THREAD, THREADS);
            BLOCK_MAX(top, s_top);
            sum = row_sum(x, at, a.classes, top, THREAD, THREADS);
            BLOCK_SUM(sum, s);
            if (!is_class)
                factor = NAN;
        }
        row_slope(a, table, x, dx, at, is_class ? label : 0, factor, x_label, top, sum, THREAD, THREADS);
    }
}

#else
#include <string.h>

#include "kernel/gpu/loss/gpu_loss.h"
#include "op/loss/op_label_loss.h"

CVY_GPU_SOURCE_DECLARE(gpu_label_loss);

struct call {
    cvy_gpu_kernel kernel, sum;
    struct label_loss a;
    cvy_gpu_loss_weight weight;
    cvy_gpu_table table;
    int64_t blocks;
};

static int has_few(const cvy_node *node)
{
    return node->src[cvy_gpu_loss_first(node)]->shape.dim[1] <= LABEL_FEW;
}

static int64_t rows_of(const cvy_shape *x)
{
    return cvy_shape_elems(x) / x->dim[1];
}

static int64_t blocks_of(const cvy_node *node)
{
    const int64_t rows = rows_of(&node->src[cvy_gpu_loss_first(node)]->shape);
    if (has_few(node))
        return cvy_gpu_loss_first(node) ? cvy_gpu_blocks(rows) : cvy_gpu_loss_blocks(rows);
    return CVY_MIN(rows, cvy_gpu_loss_first(node) ? CVY_GPU_BLOCKS_MAX : CVY_GPU_LOSS_BLOCKS);
}

static cvy_status kernel(const cvy_kernel_ask *ask, cvy_gpu_kernel *out)
{
    static const char *const names[2][2] = {{"label_loss_many", "label_loss_many_grad"},
                                            {"label_loss_few", "label_loss_few_grad"}};
    const int first = cvy_gpu_loss_first(ask->node);
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act_of(ask->node->src[first], &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_label_loss), names[has_few(ask->node)][first], act, out);
}

static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const int first = cvy_gpu_loss_first(node);
    cvy_gpu_kernel k;
    CVY_TRY(kernel(ask, &k));
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->src[first] = cvy_gpu_layout(&node->src[first]->shape);
    if (first) {
        ask->dst[0] = ask->src[first];
        ask->inplace[0] = first + 1;
    } else {
        ask->scratch_bytes = sizeof(double) * (size_t)blocks_of(node);
    }
    return CVY_OK;
}

static struct label_loss loss_of(const cvy_node *node)
{
    const struct cvy_label_loss *o = node->options;
    const cvy_shape *x = &node->src[cvy_gpu_loss_first(node)]->shape;
    struct label_loss a = {.rows = rows_of(x),
                           .classes = x->dim[1],
                           .positions = rows_of(x) / x->dim[0],
                           .label_kind = cvy_gpu_number_kind(node->src[cvy_gpu_loss_first(node) + 1]->dtype),
                           .class_weights = o->labels.class_weights.count,
                           .ignored = o->labels.ignore_label.count};
    a.loss_weight = o->loss_weight / (double)a.positions;
    for (int64_t k = 0; k < a.classes; k++)
        a.all += cvy_class_weight(&o->labels, k);
    if (strncmp(node->op->name, "softmax", 7) == 0) {
        a.f = LABEL_CROSS_ENTROPY;
        a.smoothing = ((const struct cvy_cross_entropy *)node->options)->label_smoothing;
    } else if (strncmp(node->op->name, "focal", 5) == 0) {
        a.f = LABEL_FOCAL;
        a.gamma = ((const struct cvy_focal *)node->options)->gamma;
    } else {
        a.f = LABEL_HINGE;
        a.squared = ((const struct cvy_hinge *)node->options)->norm == CVY_HINGE_L2;
    }
    return a;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const struct cvy_label_loss *o = node->options;
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    c->weight = cvy_gpu_loss_weight_of(node, cvy_gpu_loss_first(node) + 2);
    c->blocks = blocks_of(node);
    c->a = loss_of(node);
    c->a.weight_each = c->weight.each;
    c->a.weight_kind = c->weight.kind;
    CVY_TRY(cvy_gpu_table_of_labels(ask->space, &o->labels, &c->table));
    CVY_TRY(kernel(ask, &c->kernel));
    return cvy_gpu_loss_first(node) ? CVY_OK : cvy_gpu_loss_sum_get(ask->space, &c->sum);
}

static void destroy(void *state)
{
    struct call *c = state;
    if (c)
        cvy_gpu_table_free(&c->table);
    cvy_mem_free(&c);
}

static cvy_status run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const void *const table = c->table.there ? c->table.there : src[c->weight.norm_at];
    CVY_TRY(CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, LABEL_THREADS, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]),
                           CVY_GPU_POINTER(src[c->weight.norm_at]), CVY_GPU_POINTER(src[c->weight.weight_at]),
                           CVY_GPU_POINTER(table), CVY_GPU_POINTER(scratch), CVY_GPU_VALUE(c->a)));
    return cvy_gpu_loss_sum_run(&c->sum, scratch, c->blocks, c->a.loss_weight, dst[0]);
}

static cvy_status run_grad(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct call *c = state;
    const void *const table = c->table.there ? c->table.there : src[c->weight.norm_at];
    (void)scratch;
    return CVY_GPU_LAUNCH(&c->kernel, c->blocks, 1, 1, LABEL_THREADS, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]),
                          CVY_GPU_POINTER(src[2]), CVY_GPU_POINTER(src[c->weight.norm_at]),
                          CVY_GPU_POINTER(src[c->weight.weight_at]), CVY_GPU_POINTER(table), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_softmax_cross_entropy) = {CVY_GPU_FIELDS("softmax_cross_entropy", offer, create, run, destroy)};
CVY_KERNEL_DEFINE(gpu_focal) = {CVY_GPU_FIELDS("focal", offer, create, run, destroy)};
CVY_KERNEL_DEFINE(gpu_hinge) = {CVY_GPU_FIELDS("hinge", offer, create, run, destroy)};
CVY_KERNEL_DEFINE(gpu_softmax_cross_entropy_grad) = {
    CVY_GPU_FIELDS("softmax_cross_entropy_grad", offer, create, run_grad, destroy)};
CVY_KERNEL_DEFINE(gpu_focal_grad) = {CVY_GPU_FIELDS("focal_grad", offer, create, run_grad, destroy)};
CVY_KERNEL_DEFINE(gpu_hinge_grad) = {CVY_GPU_FIELDS("hinge_grad", offer, create, run_grad, destroy)};
#endif
