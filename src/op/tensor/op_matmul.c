/*
 * matmul: product of the matrices in the last two axes of two tensors, for attention and for products of features.
 *
 *     dst[n,..] = a[n,..] b[n,..]        a or b transposed if the options say so
 *     da        = ddst b^T,  db = a^T ddst
 *
 * Axis 0 counts samples. The axes between are equal, or 1 in one source, whose matrix is then repeated, as in PyTorch's
 * matmul; the gradient of that source is the sum over the repetitions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_matmul.h"

#include "graph/graph_grad.h"

static const cvy_option matmul_rows[] = {
    {"transpose_a", CVY_TYPE_BOOL, CVY_FIELD(cvy_matmul_opts, transpose_a), "false", "", "",
     "swap the last two axes of the first source"},
    {"transpose_b", CVY_TYPE_BOOL, CVY_FIELD(cvy_matmul_opts, transpose_b), "false", "", "",
     "swap the last two axes of the second source"},
    {0},
};

cvy_matmul cvy_matmul_make(const cvy_node *node)
{
    const cvy_matmul_opts *o = node->options; /* of matmul_grad: its first member */
    const cvy_shape *a = cvy_node_src(node, 0), *b = cvy_node_src(node, 1), *dst = cvy_node_dst(node, 0);
    const int naxes = a->ndim - 2;
    const int64_t a_columns = a->dim[naxes + 1], b_columns = b->dim[naxes + 1];
    cvy_matmul m = {.m = dst->dim[naxes],
                    .p = dst->dim[naxes + 1],
                    .k = a->dim[o->transpose_a ? naxes : naxes + 1],
                    .a_row = o->transpose_a ? 1 : a_columns,
                    .a_col = o->transpose_a ? a_columns : 1,
                    .b_row = o->transpose_b ? 1 : b_columns,
                    .b_col = o->transpose_b ? b_columns : 1,
                    .items = 1,
                    .sums = 1,
                    .naxes = naxes};
    int64_t a_stride = a->dim[naxes] * a_columns, b_stride = b->dim[naxes] * b_columns;
    for (int d = naxes - 1; d >= 0; d--) {
        m.dim[d] = d == 0 ? a->dim[0] : CVY_MAX(a->dim[d], b->dim[d]);
        m.a_stride[d] = a->dim[d] == 1 ? 0 : a_stride;
        m.b_stride[d] = b->dim[d] == 1 ? 0 : b_stride;
        m.is_summed[d] = d > 0 && dst->dim[d] < m.dim[d];
        *(m.is_summed[d] ? &m.sums : &m.items) *= m.dim[d];
        a_stride *= a->dim[d];
        b_stride *= b->dim[d];
    }
    return m;
}

void cvy_matmul_at(const cvy_matmul *m, int64_t item, int64_t sum, int64_t *a_out, int64_t *b_out)
{
    *a_out = *b_out = 0;
    for (int d = m->naxes - 1; d >= 0; d--) {
        int64_t *rest = m->is_summed[d] ? &sum : &item;
        *a_out += *rest % m->dim[d] * m->a_stride[d];
        *b_out += *rest % m->dim[d] * m->b_stride[d];
        *rest /= m->dim[d];
    }
}

static cvy_status matmul_infer(cvy_node *node)
{
    const cvy_matmul_opts *o = node->options;
    const cvy_shape *a = cvy_node_src(node, 0), *b = cvy_node_src(node, 1);
    const int last = a->ndim - 1;
    CVY_CHECK(
        a->ndim == b->ndim && a->ndim >= 3 && a->dim[0] == b->dim[0] && node->src[0]->dtype == node->src[1]->dtype,
        CVY_E_SHAPE,
        "matmul needs two sources [N, ..., rows, columns] of one dtype, with N samples and equally many axes, got "
        "%s %s and %s %s",
        cvy_dtype_text(node->src[0]->dtype), cvy_shape_text(a), cvy_dtype_text(node->src[1]->dtype), cvy_shape_text(b));
    cvy_shape dst = *a;
    for (int d = 1; d < last - 1; d++) {
        CVY_CHECK(a->dim[d] == b->dim[d] || a->dim[d] == 1 || b->dim[d] == 1, CVY_E_SHAPE,
                  "matmul: axis %d of the sources is %lld and %lld; it must be equal, or 1 in one of them", d,
                  (long long)a->dim[d], (long long)b->dim[d]);
        dst.dim[d] = CVY_MAX(a->dim[d], b->dim[d]);
    }
    const int64_t k = a->dim[o->transpose_a ? last - 1 : last], rows = b->dim[o->transpose_b ? last : last - 1];
    CVY_CHECK(k == rows, CVY_E_SHAPE,
              "matmul: the first matrix has %lld columns, the second has %lld rows (%s and %s%s)", (long long)k,
              (long long)rows, cvy_shape_text(a), cvy_shape_text(b),
              o->transpose_a || o->transpose_b ? ", before they are transposed" : "");
    dst.dim[last - 1] = a->dim[o->transpose_a ? last : last - 1];
    dst.dim[last] = b->dim[o->transpose_b ? last - 1 : last];
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

/* Adds the gradient of source i, which is the product of two matrices. */
static cvy_status add_product(cvy_grad *g, const cvy_node *fwd, int i, cvy_value *a, int transpose_a, cvy_value *b,
                              int transpose_b)
{
    const cvy_matmul_grad_opts opts = {{transpose_a, transpose_b}, *cvy_node_src(fwd, i)};
    cvy_value *const from[] = {a, b};
    cvy_value *d = NULL;
    CVY_TRY(cvy_grad_emit(g, fwd, "matmul_grad", &opts, from, 2, &d, 1));
    return cvy_grad_add(g, fwd->src[i], d);
}

static cvy_status matmul_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_matmul_opts *o = fwd->options;
    const int ta = o->transpose_a, tb = o->transpose_b;
    cvy_value *a = fwd->src[0], *b = fwd->src[1], *ddst = cvy_grad_of(g, fwd->dst[0]);
    if (ddst && cvy_grad_wanted(g, a))
        CVY_TRY(ta ? add_product(g, fwd, 0, b, tb, ddst, 1) : add_product(g, fwd, 0, ddst, 0, b, !tb));
    if (ddst && cvy_grad_wanted(g, b))
        CVY_TRY(tb ? add_product(g, fwd, 1, ddst, 1, a, ta) : add_product(g, fwd, 1, a, !ta, ddst, 0));
    return CVY_OK;
}

static void matmul_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_matmul m = cvy_matmul_make(node);
    *cost_out = (cvy_cost){
        .flop = 2 * m.items * m.sums * m.m * m.p * m.k,
        .read_elems = cvy_shape_elems(cvy_node_src(node, 0)) + cvy_shape_elems(cvy_node_src(node, 1)),
        .write_elems = cvy_shape_elems(cvy_node_dst(node, 0)),
    };
}

static int64_t matmul_summands(const cvy_node *node)
{
    const cvy_matmul m = cvy_matmul_make(node);
    return m.k * m.sums;
}

static cvy_status matmul_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_matmul m = cvy_matmul_make(node);
    for (int64_t e = 0; e < dst->elems; e++) {
        const int64_t item = e / (m.m * m.p), row = e / m.p % m.m, column = e % m.p;
        double total = 0;
        for (int64_t s = 0; s < m.sums; s++) {
            int64_t a, b;
            cvy_matmul_at(&m, item, s, &a, &b);
            for (int64_t i = 0; i < m.k; i++)
                total += cvy_get(&src[0], a + row * m.a_row + i * m.a_col) *
                         cvy_get(&src[1], b + i * m.b_row + column * m.b_col);
        }
        cvy_set(dst, e, total);
    }
    return CVY_OK;
}

/* An axis between samples and matrices is computed element by element, if no source is repeated along it. */
static unsigned matmul_splits(const cvy_node *node)
{
    const cvy_shape *a = cvy_node_src(node, 0), *b = cvy_node_src(node, 1);
    return a->ndim >= 4 && a->dim[1] == b->dim[1] ? CVY_SPLIT_CHANNELS : 0;
}

static const cvy_sample matmul_samples[] = {
    {.src = "2x3x5,2x5x4"},
    {.src = "1x1x1,1x1x1"},
    {.src = "2x5x3,2x5x4", .options = "transpose_a: true"},
    {.src = "2x3x5,2x4x5", .options = "transpose_b: true"},
    {.src = "2x5x3,2x4x5", .options = "transpose_a: true, transpose_b: true"},
    {.src = "3x4x2x5,3x4x5x3"},
    {.src = "2x1x3x5,2x4x5x2"},
    {.src = "2x4x3x5,2x1x2x5", .options = "transpose_b: true"},
    {.src = "2x3x1x4x3,2x1x2x4x5", .options = "transpose_a: true"},
    {.src = "3x17x33,3x33x40"},
    {.src = "8x12x128x64,8x12x128x64", .options = "transpose_b: true", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(matmul) = {
    .name = "matmul",
    .summary = "product of the matrices in the last two axes",
    .options = matmul_rows,
    .options_size = sizeof(cvy_matmul_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = matmul_splits,
    .infer = matmul_infer,
    .grad = matmul_grad,
    .cost = matmul_cost,
    .reference = matmul_reference,
    .summands = matmul_summands,
    .samples = matmul_samples,
};

/* matmul_grad: a, b -> the gradient of a source of matmul. It is tested with the samples of matmul, through its
 * gradient. */
static cvy_status matmul_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const cvy_matmul_grad_opts *)node->options)->dst);
}

CVY_OP_DEFINE(matmul_grad) = {
    .name = "matmul_grad",
    .summary = "gradient of matmul for one source",
    .options_size = sizeof(cvy_matmul_grad_opts),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES,
    .node_splits = matmul_splits,
    .infer = matmul_grad_infer,
    .cost = matmul_cost,
    .reference = matmul_reference,
    .summands = matmul_summands,
};
