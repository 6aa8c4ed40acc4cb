/*
 * gpu_dice.c: dice and its gradient, of f32 and bf16 with channels last. src/op/loss/op_dice.c has the formulas.
 *
 * The positions of a class of a sample are added in pieces, one for each block; the pieces are then added in order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

enum { DICE_THREADS = 256, DICE_PIECE = 4096 };
struct dice {
    i64 samples, classes, positions, pieces; /* pieces: of the positions of a sample */
    i64 weight_each;                         /* numbers for each sample: 1, or one for each position */
    double loss_weight, smooth, all;         /* all: the sum of the class weights */
    int label_kind, weight_kind;             /* NUMBER_*; weight_kind -1: there is no weight */
    int class_weights, ignored;              /* their numbers in the table */
};

#ifdef CVY_DEVICE

INLINE double class_weight(struct dice a, GLOBAL const double *table, i64 k)
{
    return a.class_weights ? table[k] : 1;
}

/* w[n,x]; 0 for an ignored label. */
INLINE double position_weight(struct dice a, GLOBAL const double *table, GLOBAL const void *weight, i64 at, i64 label)
{
    for (int i = 0; i < a.ignored; i++)
        if (table[a.class_weights + i] == (double)label)
            return 0;
    return a.weight_kind < 0 || a.weight_each == 1 ? 1 : number_at(weight, a.weight_kind, at);
}

/* weight[n] / norm. */
INLINE double sample_factor(struct dice a, GLOBAL const void *weight, double norm, i64 n)
{
    if (norm == 0)
        return 0;
    return (a.weight_kind < 0 || a.weight_each > 1 ? 1 : number_at(weight, a.weight_kind, n)) / norm;
}

/* Block (n * classes + k) * pieces + piece: overlap and total of class k of sample n in this piece. */
KERNEL(dice_sums)
(GLOBAL const act *p, GLOBAL const void *labels, GLOBAL const double *norm, GLOBAL const void *weight,
 GLOBAL const double *table, GLOBAL double *part, struct dice a)
{
    SHARED double s[DICE_THREADS];
    const i64 i = QUOTIENT(BLOCK, a.pieces), n = QUOTIENT(i, a.classes), k = i - n * a.classes,
              first = (BLOCK - i * a.pieces) * DICE_PIECE;
    const i64 last = MIN(first + DICE_PIECE, a.positions);
    const int counts = sample_factor(a, weight, norm[0], n) != 0;
    double overlap = 0, total = 0;
    for (i64 x = first + THREAD; x < last; x += THREADS) {
        const i64 at = n * a.positions + x, label = (i64)number_at(labels, a.label_kind, at);
        const double w = position_weight(a, table, weight, at, label), value = GET(p, at * a.classes + k);
        if (w == 0)
            continue;
        overlap += label == k ? w * value : 0;
        total += w * (value + (label == k));
        if (counts && (label < 0 || label >= a.classes))
            total = NAN;
    }
    BLOCK_SUM(overlap, s);
    BLOCK_SUM(total, s);
    if (THREAD == 0) {
        part[2 * BLOCK] = overlap;
        part[2 * BLOCK + 1] = total;
    }
}

/* For each class of each sample: D, and total + smooth. */
KERNEL(dice_coefficients)(GLOBAL const double *part, GLOBAL double *coefficient, struct dice a)
{
    FOR_EACH (i, a.samples * a.classes) {
        double overlap = 0, total = 0;
        for (i64 b = i * a.pieces; b < (i + 1) * a.pieces; b++) {
            overlap += part[2 * b];
            total += part[2 * b + 1];
        }
        coefficient[2 * i] = (2 * overlap + a.smooth) / (total + a.smooth);
        coefficient[2 * i + 1] = total + a.smooth;
    }
}

/* One block. */
KERNEL(dice_loss)
(GLOBAL const double *coefficient, GLOBAL const double *norm, GLOBAL const void *weight, GLOBAL const double *table,
 GLOBAL double *dst, struct dice a)
{
    SHARED double s[DICE_THREADS];
    double loss = 0;
    for (i64 i = THREAD; i < a.samples * a.classes; i += THREADS) {
        const i64 n = QUOTIENT(i, a.classes);
        const double factor = sample_factor(a, weight, norm[0], n);
        if (factor != 0)
            loss += factor * class_weight(a, table, i - n * a.classes) * (1 - coefficient[2 * i]) / a.all;
    }
    BLOCK_SUM(loss, s);
    if (THREAD == 0)
        dst[0] = a.loss_weight * loss;
}

KERNEL(dice_grad)
(GLOBAL const double *dloss, GLOBAL const void *labels, GLOBAL const double *norm, GLOBAL const void *weight,
 GLOBAL const double *table, GLOBAL const double *coefficient, GLOBAL act *dp, struct dice a)
{
    const double by = a.loss_weight * dloss[0] / a.all;
    FOR_EACH (i, a.samples * a.positions * a.classes) {
        const i64 at = QUOTIENT(i, a.classes), k = i - at * a.classes, n = QUOTIENT(at, a.positions),
                  own = 2 * (n * a.classes + k);
        const i64 label = (i64)number_at(labels, a.label_kind, at);
        const double factor = by * sample_factor(a, weight, norm[0], n) * class_weight(a, table, k),
                     w = position_weight(a, table, weight, at, label);
        SET(dp, i,
            factor == 0 || w == 0
                ? 0.0f
                : (float)(factor / coefficient[own + 1] * w * (coefficient[own] - (label == k ? 2 : 0))));
    }
}

#else
#include "kernel/gpu/loss/gpu_loss.h"
#include "op/loss/op_label_loss.h"

CVY_GPU_SOURCE_DECLARE(gpu_dice);

struct call {
    cvy_gpu_kernel sums, coefficients, last;
    struct dice a;
    cvy_gpu_loss_weight weight;
    cvy_gpu_table table;
    int first; /* the source that is the output; the labels follow */
    int64_t blocks;
};

static int64_t pieces_of(const cvy_shape *p)
{
    return (cvy_shape_elems(p) / (p->dim[0] * p->dim[1]) + DICE_PIECE - 1) / DICE_PIECE;
}

static cvy_status kernel(const cvy_kernel_ask *ask, const char *name, cvy_gpu_kernel *out)
{
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act_of(ask->node->src[cvy_gpu_loss_first(ask->node)], &act));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_dice), name, act, out);
}

/* The scratch memory has the sums of the pieces, and then the coefficients. */
static cvy_status offer(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const int first = cvy_gpu_loss_first(node);
    const cvy_shape *p = &node->src[first]->shape;
    cvy_gpu_kernel k;
    CVY_TRY(kernel(ask, "dice_sums", &k));
    for (int i = 0; i < node->nsrc; i++)
        ask->src[i] = cvy_layout_plain();
    ask->src[first] = cvy_gpu_layout(p);
    if (first)
        ask->dst[0] = ask->src[first];
    ask->scratch_bytes = 2 * sizeof(double) * (size_t)(p->dim[0] * p->dim[1] * (pieces_of(p) + 1));
    return CVY_OK;
}

static cvy_status create(const cvy_kernel_ask *ask, void **state_out)
{
    const cvy_node *node = ask->node;
    const struct cvy_dice *o = node->options;
    const int first = cvy_gpu_loss_first(node);
    const cvy_shape *p = &node->src[first]->shape;
    struct call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    c->first = first;
    c->weight = cvy_gpu_loss_weight_of(node, first + 2);
    c->a = (struct dice){.samples = p->dim[0],
                         .classes = p->dim[1],
                         .positions = cvy_shape_elems(p) / (p->dim[0] * p->dim[1]),
                         .pieces = pieces_of(p),
                         .weight_each = c->weight.each,
                         .loss_weight = o->loss.loss_weight,
                         .smooth = o->smooth,
                         .label_kind = cvy_gpu_number_kind(node->src[first + 1]->dtype),
                         .weight_kind = c->weight.kind,
                         .class_weights = o->loss.labels.class_weights.count,
                         .ignored = o->loss.labels.ignore_label.count};
    for (int64_t k = 0; k < c->a.classes; k++)
        c->a.all += cvy_class_weight(&o->loss.labels, k);
    c->blocks = c->a.samples * c->a.classes * c->a.pieces;
    CVY_TRY(cvy_gpu_table_of_labels(ask->space, &o->loss.labels, &c->table));
    CVY_TRY(kernel(ask, "dice_sums", &c->sums));
    CVY_TRY(kernel(ask, "dice_coefficients", &c->coefficients));
    return kernel(ask, first ? "dice_grad" : "dice_loss", &c->last);
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
    const void *const norm = src[c->weight.norm_at], *const weight = src[c->weight.weight_at],
                      *const labels = src[c->first + 1], *const table = c->table.there ? c->table.there : norm;
    double *const coefficient = (double *)scratch + 2 * c->blocks; /* on the device */
    CVY_TRY(CVY_GPU_LAUNCH(&c->sums, c->blocks, 1, 1, DICE_THREADS, CVY_GPU_POINTER(src[c->first]),
                           CVY_GPU_POINTER(labels), CVY_GPU_POINTER(norm), CVY_GPU_POINTER(weight),
                           CVY_GPU_POINTER(table), CVY_GPU_POINTER(scratch), CVY_GPU_VALUE(c->a)));
    CVY_TRY(CVY_GPU_LAUNCH(&c->coefficients, cvy_gpu_blocks(c->a.samples * c->a.classes), 1, 1, DICE_THREADS,
                           CVY_GPU_POINTER(scratch), CVY_GPU_POINTER(coefficient), CVY_GPU_VALUE(c->a)));
    if (c->first == 0)
        return CVY_GPU_LAUNCH(&c->last, 1, 1, 1, DICE_THREADS, CVY_GPU_POINTER(coefficient), CVY_GPU_POINTER(norm),
                              CVY_GPU_POINTER(weight), CVY_GPU_POINTER(table), CVY_GPU_POINTER(dst[0]),
                              CVY_GPU_VALUE(c->a));
    return CVY_GPU_LAUNCH(&c->last, cvy_gpu_blocks(c->a.samples * c->a.positions * c->a.classes), 1, 1, DICE_THREADS,
                          CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(labels), CVY_GPU_POINTER(norm),
                          CVY_GPU_POINTER(weight), CVY_GPU_POINTER(table), CVY_GPU_POINTER(coefficient),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(c->a));
}

CVY_KERNEL_DEFINE(gpu_dice) = {CVY_GPU_FIELDS("dice", offer, create, run, destroy)};
CVY_KERNEL_DEFINE(gpu_dice_grad) = {CVY_GPU_FIELDS("dice_grad", offer, create, run, destroy)};
#endif
