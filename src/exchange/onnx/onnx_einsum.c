/*
 * onnx_einsum.c: Einsum of one or two sources. A label that stands in one source only and not in the result is summed;
 * what is left of two sources is a product of matrices:
 *
 *     both        [N, shared.., first.., summed..] x [N, shared.., summed.., second..]
 *     a constant  a fully connected layer, a factor if nothing is summed, or a product of matrices with the constant
 *                 repeated for each sample
 *
 * and a transposition puts the axes into the order of the result. The axis of the samples may be any, also one that
 * others share (onnx_batch.c), if the result has it and both sources agree.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx_einsum.h"

static uint64_t bit(int label)
{
    return label == CVY_EINSUM_NONE ? 0 : (uint64_t)1 << label;
}

/* ---- the samples ---- */

/* The label of the samples is taken out; what shares their axis gets labels of its own. */
static void take_out(cvy_einsum_term *t, int at, const cvy_onnx_batch *b)
{
    const cvy_einsum_term from = *t;
    t->n = 0;
    for (int i = 0; i < from.n; i++) {
        if (i != at) {
            t->label[t->n++] = from.label[i];
            continue;
        }
        if (b->before > 1)
            t->label[t->n++] = CVY_EINSUM_BEFORE;
        if (b->after > 1)
            t->label[t->n++] = CVY_EINSUM_AFTER;
    }
}

/* The first source that depends on the input, and the label of its samples. */
static const cvy_onnx_value *find_samples(const cvy_einsum *e, int *label)
{
    const cvy_onnx_value *v = NULL;
    for (int i = e->nsource - 1; i >= 0; i--)
        if (e->source[i].layer) {
            v = e->node->in[i];
            *label = e->source[i].label[v->batch.at];
        }
    return v;
}

static cvy_status take_samples_of_source(cvy_einsum *e, int i, const cvy_onnx_value *first, int label)
{
    cvy_einsum_term *t = &e->source[i];
    const cvy_onnx_value *v = e->node->in[i];
    for (int k = 0; k < t->n && t->constant; k++)
        if (t->label[k] == label) {
            CVY_EINSUM_CHECK(t->shape.dim[k] == 1, e,
                             "axis %d of the constant of shape %s is that of the samples: it must be the same for all "
                             "of them, with the length 1",
                             k, cvy_shape_text(&t->shape));
            t->label[k] = CVY_EINSUM_NONE;
        }
    if (t->constant)
        return CVY_OK;
    for (int k = 0; k < t->n; k++)
        for (int m = 0; m < k; m++)
            CVY_EINSUM_CHECK(t->label[k] != t->label[m], e,
                             "source %d has a label twice, and diagonals are supported of constants only", i);
    CVY_EINSUM_CHECK(
        t->label[v->batch.at] == label, e,
        "axis %d of source %d is that of its samples, and has another label than that of the other source: "
        "samples are independent of each other",
        v->batch.at, i);
    CVY_EINSUM_CHECK(cvy_onnx_shares_alike(&v->batch, &first->batch), e,
                     "the samples share an axis of its sources %s and %s with different others",
                     cvy_shape_text(&first->shape), cvy_shape_text(&v->shape));
    take_out(t, v->batch.at, &v->batch);
    t->shape = (cvy_shape){0};
    for (int d = 1; d < cvy_onnx_shape(e->node->x, t->layer)->ndim; d++)
        t->shape.dim[t->shape.ndim++] = cvy_onnx_shape(e->node->x, t->layer)->dim[d];
    return CVY_OK;
}

/* *moved: where they are in the result. */
static cvy_status take_samples(cvy_einsum *e, cvy_onnx_batch *moved)
{
    int label = CVY_EINSUM_NONE, at = 0;
    const cvy_onnx_value *first = find_samples(e, &label);
    for (int i = 0; i < e->nsource; i++)
        CVY_TRY(take_samples_of_source(e, i, first, label));
    while (at < e->result.n && e->result.label[at] != label)
        at++;
    CVY_EINSUM_CHECK(at < e->result.n, e, "%s", "it sums over the samples, which are independent of each other");
    *moved = first->batch;
    moved->at = at;
    take_out(&e->result, at, moved);
    return CVY_OK;
}

/* ---- layers ---- */

/* The sample gets the axes with these labels, in this order. */
static cvy_status arrange(const cvy_einsum *e, cvy_einsum_term *t, const int *label, int n)
{
    int64_t order[2 * CVY_NDIM_MAX], sample[2 * CVY_NDIM_MAX];
    int moves = 0;
    cvy_text options = {0};
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < t->n; k++)
            if (t->label[k] == label[i])
                order[i] = k + 1;
        moves |= order[i] != i + 1;
        sample[i] = e->dim[label[i]];
    }
    if (moves) {
        cvy_onnx_list(&options, "order", order, n);
        const cvy_status status = options.status == CVY_OK
                                      ? cvy_onnx_step(e->node, "transpose", options.data, t->layer, &t->layer)
                                      : options.status;
        cvy_text_free(&options);
        CVY_TRY(status);
    }
    memcpy(t->label, label, sizeof *label * (size_t)n);
    t->n = n;
    return cvy_onnx_reshape(e->node, t->layer, sample, n, &t->layer);
}

/* Axes without a label go; those whose labels are not among `keep` are summed. */
static cvy_status sum_others(const cvy_einsum *e, cvy_einsum_term *t, uint64_t keep)
{
    int64_t axes[CVY_NDIM_MAX], sample[CVY_NDIM_MAX];
    int n = 0, summed = 0;
    cvy_text options = {0};
    if (t->constant)
        return CVY_OK; /* computed when it is arranged */
    const cvy_einsum_term from = *t;
    t->n = 0;
    for (int k = 0; k < from.n; k++) {
        const int l = from.label[k], is_summed = l != CVY_EINSUM_NONE && !(keep & bit(l));
        if (is_summed)
            axes[summed++] = k + 1;
        if (l == CVY_EINSUM_NONE || is_summed)
            continue;
        sample[n++] = e->dim[l];
        t->label[t->n++] = l;
    }
    if (summed > 0) {
        cvy_onnx_list(&options, "axes", axes, summed);
        cvy_text_add(&options, ", method: sum");
        const cvy_status status = options.status == CVY_OK
                                      ? cvy_onnx_step(e->node, "reduction", options.data, t->layer, &t->layer)
                                      : options.status;
        cvy_text_free(&options);
        CVY_TRY(status);
    }
    return cvy_onnx_reshape(e->node, t->layer, sample, n, &t->layer);
}

/* The labels of `of` among `set`, and the product of their lengths. */
static int choose(const cvy_einsum *e, const cvy_einsum_term *of, uint64_t set, int *label, int64_t *elems)
{
    int n = 0;
    *elems = 1;
    for (int k = 0; k < of->n; k++)
        if (set & bit(of->label[k])) {
            label[n++] = of->label[k];
            *elems *= e->dim[of->label[k]];
        }
    return n;
}

/* ---- two sources ---- */

/* The axes of a product of two matrices. */
typedef struct product {
    int shared[CVY_NDIM_MAX], first[CVY_NDIM_MAX], second[CVY_NDIM_MAX], summed[CVY_NDIM_MAX];
    int nshared, nfirst, nsecond, nsummed;
    int64_t ashared, afirst, asecond, asummed; /* the products of their lengths */
} product;

static int append(int *to, int n, const int *label, int more)
{
    memcpy(to + n, label, sizeof *label * (size_t)more);
    return n + more;
}

static void plan_product(const cvy_einsum *e, product *p)
{
    const uint64_t a = cvy_einsum_labels(&e->source[0]), b = cvy_einsum_labels(&e->source[1]),
                   out = cvy_einsum_labels(&e->result);
    p->nshared = choose(e, &e->result, a & b, p->shared, &p->ashared);
    p->nfirst = choose(e, &e->result, a & ~b, p->first, &p->afirst);
    p->nsecond = choose(e, &e->result, b & ~a, p->second, &p->asecond);
    p->nsummed = choose(e, &e->source[0], a & b & ~out, p->summed, &p->asummed);
}

/* The constant with these axes. *out: itself, if it has them already. */
static cvy_status constant_with(const cvy_einsum *e, const cvy_einsum_term *t, const int *label, int n,
                                const cvy_onnx_tensor **out)
{
    cvy_onnx_tensor *to = NULL;
    *out = t->constant;
    if (t->n == n && memcmp(t->label, label, sizeof *label * (size_t)n) == 0)
        return CVY_OK;
    CVY_TRY(cvy_einsum_compute(e, t, 1, label, n, &to));
    to->kind = t->constant->kind;
    to->origin = *t->constant->name ? t->constant->name : t->constant->origin;
    *out = to;
    return CVY_OK;
}

static cvy_status with_shape(const cvy_einsum *e, const cvy_onnx_tensor **t, const cvy_shape *shape)
{
    cvy_onnx_tensor *to = NULL;
    if (cvy_shape_equal(&(*t)->shape, shape))
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(e->node->x->out->pool, sizeof *to, &to));
    *to = **t;
    to->shape = *shape;
    to->stored = (*t)->stored ? (*t)->stored : &(*t)->shape;
    *t = to;
    return CVY_OK;
}

/* Nothing is summed, and the constant has no axis of its own. */
static cvy_status factor(const cvy_einsum *e, cvy_einsum_term *a, const cvy_einsum_term *b)
{
    const uint64_t has = cvy_einsum_labels(b);
    const cvy_onnx_tensor *t = NULL;
    int label[CVY_NDIM_MAX], n = 0;
    cvy_shape shape = {.ndim = CVY_MAX(a->n, 1), .dim = {1}};
    for (int k = 0; k < a->n; k++) {
        shape.dim[k] = has & bit(a->label[k]) ? e->dim[a->label[k]] : 1;
        if (has & bit(a->label[k]))
            label[n++] = a->label[k];
    }
    CVY_TRY(constant_with(e, b, label, n, &t));
    CVY_TRY(with_shape(e, &t, &shape));
    if (a->n == 0)
        CVY_TRY(cvy_onnx_reshape(e->node, a->layer, (const int64_t[]){1}, 1, &a->layer));
    return cvy_onnx_affine(e->node, a->layer, t, "scale", &a->layer);
}

/* The axes before those of a matrix: one for each label, or one for all if these are too many. */
static int lead(const cvy_einsum *e, const int *label, int n, int64_t elems, int most, int64_t *sample)
{
    sample[0] = elems;
    for (int i = 0; i < n && n <= most; i++)
        sample[i] = e->dim[label[i]];
    return n <= most ? n : 1;
}

/* The second source as matrices of each sample. */
static cvy_status second_matrices(const cvy_einsum *e, const product *p, cvy_einsum_term *b, const int64_t *sample,
                                  int ndim)
{
    int label[2 * CVY_NDIM_MAX];
    int n = append(label, append(label, 0, p->shared, p->nshared), p->summed, p->nsummed);
    const cvy_onnx_tensor *t = NULL;
    cvy_shape shape = {.ndim = ndim + 1, .dim = {1}};
    n = append(label, n, p->second, p->nsecond);
    if (b->constant) {
        memcpy(shape.dim + 1, sample, sizeof *sample * (size_t)ndim);
        CVY_TRY(constant_with(e, b, label, n, &t));
        CVY_TRY(with_shape(e, &t, &shape));
        return cvy_onnx_repeat_constant(e->node, t, &b->layer);
    }
    CVY_TRY(arrange(e, b, label, n));
    return cvy_onnx_reshape(e->node, b->layer, sample, ndim, &b->layer);
}

static cvy_status product_of_matrices(const cvy_einsum *e, const product *p, cvy_einsum_term *a, cvy_einsum_term *b)
{
    int64_t sample[CVY_NDIM_MAX];
    const int n = lead(e, p->shared, p->nshared, p->ashared, CVY_NDIM_MAX - 3, sample);
    sample[n] = p->afirst;
    sample[n + 1] = p->asummed;
    CVY_TRY(cvy_onnx_reshape(e->node, a->layer, sample, n + 2, &a->layer));
    sample[n] = p->asummed;
    sample[n + 1] = p->asecond;
    CVY_TRY(second_matrices(e, p, b, sample, n + 2));
    return cvy_onnx_add(e->node, &(cvy_onnx_layer){.op = "matmul", .from = {a->layer, b->layer}, .nfrom = 2}, NULL,
                        &a->layer);
}

/* A matrix [summed, second], or as the file has it, [second, summed]. */
static cvy_status connect(const cvy_einsum *e, const product *p, cvy_einsum_term *a, const cvy_einsum_term *b)
{
    int label[2 * CVY_NDIM_MAX];
    int64_t sample[CVY_NDIM_MAX];
    const cvy_onnx_tensor *t = NULL;
    const int is_turned = p->nsecond > 0 && b->n > 0 && b->label[0] == p->second[0];
    const int n = is_turned ? append(label, append(label, 0, p->second, p->nsecond), p->summed, p->nsummed)
                            : append(label, append(label, 0, p->summed, p->nsummed), p->second, p->nsecond);
    const int before = lead(e, p->first, p->nfirst, p->afirst, CVY_NDIM_MAX - 2, sample);
    CVY_TRY(constant_with(e, b, label, n, &t));
    CVY_TRY(with_shape(
        e, &t,
        &(cvy_shape){.ndim = 2, .dim = {is_turned ? p->asecond : p->asummed, is_turned ? p->asummed : p->asecond}}));
    sample[before] = p->asummed;
    CVY_TRY(cvy_onnx_reshape(e->node, a->layer, sample, before + 1, &a->layer));
    return cvy_onnx_fc(e->node, a->layer, t, is_turned, NULL, &a->layer);
}

/* Leaves the product in a, with the axes shared, first and second. */
static cvy_status multiply(const cvy_einsum *e, const product *p, cvy_einsum_term *a, cvy_einsum_term *b)
{
    int order[2 * CVY_NDIM_MAX];
    int64_t sample[2 * CVY_NDIM_MAX];
    const int n = append(order, append(order, 0, p->shared, p->nshared), p->first, p->nfirst);
    CVY_TRY(arrange(e, a, order, append(order, n, p->summed, p->nsummed)));
    CVY_TRY(b->constant && p->nshared == 0 ? connect(e, p, a, b) : product_of_matrices(e, p, a, b));
    a->n = append(order, n, p->second, p->nsecond);
    memcpy(a->label, order, sizeof order);
    for (int i = 0; i < a->n; i++)
        sample[i] = e->dim[order[i]];
    return cvy_onnx_reshape(e->node, a->layer, sample, a->n, &a->layer);
}

static cvy_status two_sources(cvy_einsum *e)
{
    cvy_einsum_term *a = &e->source[0], *b = &e->source[1];
    product p = {0};
    if (a->constant) { /* a product has no order */
        const cvy_einsum_term first = *a;
        *a = *b;
        *b = first;
    }
    CVY_EINSUM_CHECK(!b->constant || cvy_onnx_is_real(b->constant), e, "%s", "its constant should hold real numbers");
    const uint64_t out = cvy_einsum_labels(&e->result), second = cvy_einsum_labels(b);
    CVY_TRY(sum_others(e, a, out | second));
    CVY_TRY(sum_others(e, b, out | cvy_einsum_labels(a)));
    plan_product(e, &p);
    if (b->constant && p.nsummed == 0 && p.nsecond == 0)
        return factor(e, a, b);
    return multiply(e, &p, a, b);
}

static cvy_status translate_einsum(const cvy_onnx_node *node)
{
    cvy_einsum e;
    cvy_onnx_batch moved = {0};
    CVY_TRY(cvy_einsum_read(node, &e));
    CVY_EINSUM_CHECK(e.nsource <= 2, &e, "%d sources, one of which depends on the input; at most 2 are supported",
                     e.nsource);
    CVY_TRY(take_samples(&e, &moved));
    CVY_TRY(cvy_einsum_measure(&e));
    CVY_TRY(e.nsource == 2 ? two_sources(&e) : sum_others(&e, &e.source[0], cvy_einsum_labels(&e.result)));
    CVY_TRY(arrange(&e, &e.source[0], e.result.label, e.result.n));
    return cvy_onnx_done_moved(node, 0, e.source[0].layer, &moved);
}
CVY_ONNX_DEFINE(einsum) = {"Einsum", .attributes = "equation", .translate = translate_einsum};
