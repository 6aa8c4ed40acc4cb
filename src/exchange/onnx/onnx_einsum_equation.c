/*
 * onnx_einsum_equation.c: reads the equation of an Einsum, and computes it for constants.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx_einsum.h"
#include "exchange/onnx/onnx_fold.h"

/* ---- the equation ---- */

static int label_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : CVY_EINSUM_NONE;
}

uint64_t cvy_einsum_labels(const cvy_einsum_term *t)
{
    uint64_t all = 0;
    for (int i = 0; i < t->n; i++)
        all |= t->label[i] == CVY_EINSUM_NONE ? 0 : (uint64_t)1 << t->label[i];
    return all;
}

/* The labels of one term, which ends at `end`. axes: of its ellipsis. */
static cvy_status read_term(const cvy_einsum *e, const char *text, const char *end, int axes, cvy_einsum_term *t)
{
    int dots = 0;
    for (const char *c = text; c < end; c++) {
        const int is_ellipsis = end - c >= 3 && strncmp(c, "...", 3) == 0;
        CVY_EINSUM_CHECK(is_ellipsis ? !dots++ : label_of(*c) >= 0, e, "a letter or one ellipsis is expected at %.*s",
                         (int)(end - c), c);
        CVY_EINSUM_CHECK(t->n + (is_ellipsis ? axes : 1) <= CVY_NDIM_MAX, e, "a term has more than %d axes",
                         CVY_NDIM_MAX);
        for (int k = axes - 1; is_ellipsis && k >= 0; k--)
            t->label[t->n++] = CVY_EINSUM_LETTERS + k;
        if (is_ellipsis)
            c += 2;
        else
            t->label[t->n++] = label_of(*c);
    }
    return CVY_OK;
}

/* An ellipsis stands for the axes that have no letter. */
static cvy_status read_source(cvy_einsum *e, int i, const char *text, const char *end)
{
    cvy_einsum_term *t = &e->source[i];
    const cvy_onnx_value *v = cvy_onnx_source(e->node, i);
    int letters = 0, dots = 0;
    CVY_EINSUM_CHECK(v, e, "source %d is left out", i);
    t->shape = v->constant ? v->constant->shape : v->shape;
    t->constant = v->constant;
    t->layer = v->layer;
    for (const char *c = text; c < end; c++) {
        letters += label_of(*c) >= 0;
        dots += *c == '.';
    }
    const int rest = t->shape.ndim - letters;
    CVY_EINSUM_CHECK(dots ? rest >= 0 : rest == 0, e, "term %.*s for source %d of shape %s", (int)(end - text), text, i,
                     cvy_shape_text(&t->shape));
    e->ellipsis = dots && rest > e->ellipsis ? rest : e->ellipsis;
    return read_term(e, text, end, dots ? rest : 0, t);
}

/* Without an arrow: the axes of the ellipsis, and the letters that stand once, in their order. */
static void take_letters(cvy_einsum *e)
{
    int times[CVY_EINSUM_LETTERS] = {0};
    for (int i = 0; i < e->nsource; i++)
        for (int k = 0; k < e->source[i].n; k++)
            if (e->source[i].label[k] < CVY_EINSUM_LETTERS)
                times[e->source[i].label[k]]++;
    for (int k = e->ellipsis - 1; k >= 0; k--)
        e->result.label[e->result.n++] = CVY_EINSUM_LETTERS + k;
    for (int l = 0; l < CVY_EINSUM_LETTERS && e->result.n < CVY_COUNT(e->result.label); l++)
        if (times[l] == 1)
            e->result.label[e->result.n++] = l;
}

static cvy_status check_result(const cvy_einsum *e)
{
    const cvy_einsum_term *r = &e->result;
    uint64_t known = 0, seen = 0;
    for (int i = 0; i < e->nsource; i++)
        known |= cvy_einsum_labels(&e->source[i]);
    CVY_EINSUM_CHECK(r->n <= CVY_NDIM_MAX, e, "its result has %d axes, at most %d", r->n, CVY_NDIM_MAX);
    for (int i = 0; i < r->n; i++) {
        const uint64_t bit = (uint64_t)1 << r->label[i];
        CVY_EINSUM_CHECK(known & bit, e, "axis %d of the result is in no source", i);
        CVY_EINSUM_CHECK(!(seen & bit), e, "axis %d of the result has the label of another one", i);
        seen |= bit;
    }
    for (int k = 0; k < e->ellipsis; k++)
        CVY_EINSUM_CHECK(seen >> (CVY_EINSUM_LETTERS + k) & 1, e, "%s",
                         "its result leaves out the axes of the ellipsis");
    return CVY_OK;
}

static cvy_status read_equation(cvy_einsum *e)
{
    const char *text = NULL;
    char *bare = NULL;
    size_t n = 0;
    CVY_TRY(cvy_onnx_string(e->node, "equation", &text));
    CVY_TRY(cvy_pool_strdup(e->node->x->out->pool, text, &bare));
    for (const char *c = text; *c; c++)
        if (*c != ' ')
            bare[n++] = *c;
    bare[n] = '\0';
    e->equation = bare;
    return CVY_OK;
}

cvy_status cvy_einsum_read(const cvy_onnx_node *node, cvy_einsum *e)
{
    *e = (cvy_einsum){.node = node, .nsource = node->nin};
    CVY_TRY(read_equation(e));
    const char *arrow = strstr(e->equation, "->"), *at = e->equation;
    const char *all = arrow ? arrow : at + strlen(at);
    CVY_EINSUM_CHECK(node->nin >= 1 && node->nin <= CVY_EINSUM_SOURCES, e, "%d sources, at most %d are supported",
                     node->nin, CVY_EINSUM_SOURCES);
    for (int i = 0; i < node->nin; i++) {
        const char *comma = memchr(at, ',', (size_t)(all - at)), *end = comma ? comma : all;
        CVY_EINSUM_CHECK((comma != NULL) == (i < node->nin - 1), e, "it does not have a term for each of %d sources",
                         node->nin);
        CVY_TRY(read_source(e, i, at, end));
        at = comma ? comma + 1 : all;
    }
    if (arrow)
        CVY_TRY(read_term(e, arrow + 2, arrow + strlen(arrow), e->ellipsis, &e->result));
    else
        take_letters(e);
    return check_result(e);
}

static char text_of(int label)
{
    return (char)(label >= CVY_EINSUM_LETTERS ? '.' : label < 26 ? 'A' + label : 'a' + label - 26);
}

/* A diagonal goes through axes of one length. */
static cvy_status check_diagonals(const cvy_einsum *e, int i)
{
    const cvy_einsum_term *t = &e->source[i];
    for (int k = 0; k < t->n; k++)
        for (int m = 0; m < k; m++)
            CVY_EINSUM_CHECK(t->label[k] == CVY_EINSUM_NONE || t->label[k] != t->label[m] ||
                                 t->shape.dim[k] == t->shape.dim[m],
                             e, "a diagonal of source %d of shape %s", i, cvy_shape_text(&t->shape));
    return CVY_OK;
}

cvy_status cvy_einsum_measure(cvy_einsum *e)
{
    for (int i = 0; i < e->nsource; i++)
        CVY_TRY(check_diagonals(e, i));
    for (int i = 0; i < e->nsource; i++)
        for (int k = 0; k < e->source[i].n; k++) {
            const int l = e->source[i].label[k];
            const int64_t n = e->source[i].shape.dim[k];
            CVY_EINSUM_CHECK(n > 0, e, "source %d of shape %s has no elements", i, cvy_shape_text(&e->source[i].shape));
            if (l == CVY_EINSUM_NONE)
                continue;
            CVY_EINSUM_CHECK(e->dim[l] <= 1 || n == 1 || n == e->dim[l], e,
                             "the axis %c of its sources has the lengths %lld and %lld", text_of(l),
                             (long long)e->dim[l], (long long)n);
            e->dim[l] = CVY_MAX(e->dim[l], n);
        }
    for (int i = 0; i < e->nsource; i++)
        for (int k = 0; k < e->source[i].n; k++) {
            int *l = &e->source[i].label[k];
            if (*l != CVY_EINSUM_NONE && e->source[i].shape.dim[k] < e->dim[*l])
                *l = CVY_EINSUM_NONE;
        }
    return CVY_OK;
}

/* ---- constants ---- */

/* The element of a constant at these positions of the labels. */
static double element(const cvy_einsum_term *t, const int64_t *at)
{
    int64_t i = 0;
    for (int k = 0; k < t->n; k++)
        i = i * t->shape.dim[k] + (t->label[k] == CVY_EINSUM_NONE ? 0 : at[t->label[k]]);
    return cvy_onnx_number(t->constant, i);
}

/* The next position of these labels. Returns 0 after the last one. */
static int advance(const cvy_einsum *e, const int *label, int n, int64_t *at)
{
    for (int k = n - 1; k >= 0; k--) {
        if (++at[label[k]] < e->dim[label[k]])
            return 1;
        at[label[k]] = 0;
    }
    return 0;
}

cvy_status cvy_einsum_compute(const cvy_einsum *e, const cvy_einsum_term *src, int nsrc, const int *label, int n,
                              cvy_onnx_tensor **out)
{
    cvy_shape shape = {.ndim = n};
    uint64_t rest = 0;
    int summed[CVY_EINSUM_LABELS], nsummed = 0;
    int64_t at[CVY_EINSUM_LABELS] = {0}, work = 1;
    for (int i = 0; i < nsrc; i++)
        rest |= cvy_einsum_labels(&src[i]);
    for (int k = 0; k < n; k++) {
        shape.dim[k] = e->dim[label[k]];
        rest &= ~((uint64_t)1 << label[k]);
    }
    for (int l = 0; l < CVY_EINSUM_LABELS; l++)
        if (rest >> l & 1)
            summed[nsummed++] = l;
    CVY_TRY(cvy_onnx_new(e->node->x, src[0].constant->dtype, &shape, out));
    for (int k = 0; k < nsummed && work <= CVY_ONNX_ELEMS; k++)
        work *= CVY_MIN(e->dim[summed[k]], CVY_ONNX_SIZE);
    CVY_EINSUM_CHECK(
        work <= CVY_ONNX_SIZE / CVY_MAX((*out)->elems, (int64_t)1), e,
        "a product of constants with a result of %lld elements, of which each is a sum of %lld, is too large",
        (long long)(*out)->elems, (long long)work);
    for (int64_t i = 0; i < (*out)->elems; i++) {
        double sum = 0;
        do {
            double product = 1;
            for (int s = 0; s < nsrc; s++)
                product *= element(&src[s], at);
            sum += product;
        } while (advance(e, summed, nsummed, at));
        cvy_onnx_set_number(*out, i, sum);
        advance(e, label, n, at);
    }
    return CVY_OK;
}

cvy_status cvy_onnx_fold_einsum(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    cvy_einsum e;
    cvy_onnx_tensor *t = NULL;
    CVY_TRY(cvy_einsum_read(node, &e));
    for (int i = 0; i < e.nsource; i++)
        CVY_EINSUM_CHECK(cvy_onnx_is_real(src[i]), &e, "source %d is a constant of integers", i);
    CVY_TRY(cvy_einsum_measure(&e));
    CVY_TRY(cvy_einsum_compute(&e, e.source, e.nsource, e.result.label, e.result.n, &t));
    return cvy_onnx_done_constant(node, 0, t);
}
