/*
 * onnx_transpose.c: Transpose. TensorFlow keeps channels last, so tf2onnx puts a pair of transpositions around each
 * layer that wants them first. Transpositions that follow each other become one, or none if they cancel.
 *
 * A transposition that only transpositions read becomes no layer: its output is that of its source, with the order of
 * the axes in `turned`, and the readers take that into their own order. The same holds for an input with its channels
 * last that is transposed before it is used: the data of a job have channels first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

static const Cvy__Onnx__AttributeProto *order_of(const Cvy__Onnx__NodeProto *p)
{
    for (size_t i = 0; i < p->n_attribute; i++)
        if (strcmp(p->attribute[i]->name, "perm") == 0)
            return p->attribute[i];
    return NULL;
}

static int is_transpose(const Cvy__Onnx__NodeProto *p)
{
    return strcmp(p->op_type, "Transpose") == 0;
}

/* Whether the node makes [N, C, positions..] of [N, positions.., C]. */
static int moves_channels_first(const Cvy__Onnx__NodeProto *p, int ndim)
{
    const Cvy__Onnx__AttributeProto *order = is_transpose(p) ? order_of(p) : NULL;
    int moves = order && order->n_ints == (size_t)ndim && ndim >= 3 && order->ints[0] == 0;
    for (int i = 1; moves && i < ndim; i++)
        moves = order->ints[i] == (i == 1 ? ndim - 1 : i - 1);
    return moves;
}

/* Whether transpositions read this value, and nothing else does. */
static int only_turned(const cvy_onnx *x, const char *name)
{
    const int at = cvy_keys_find(&x->names, name);
    return at >= 0 && x->value[at].readers > 0 && x->value[at].turns == x->value[at].readers;
}

int cvy_onnx_is_channels_last(const cvy_onnx *x, const char *input, int ndim)
{
    if (!only_turned(x, input))
        return 0;
    for (size_t i = 0; i < x->proto->n_node; i++) {
        const Cvy__Onnx__NodeProto *p = x->proto->node[i];
        if (p->n_input > 0 && strcmp(p->input[0], input) == 0 && !moves_channels_first(p, ndim))
            return 0;
    }
    return 1;
}

static cvy_status add_transpose(const cvy_onnx_node *node, const int64_t *order, int n)
{
    cvy_text options = {0};
    cvy_onnx_list(&options, "order", order + 1, n - 1);
    const cvy_status status =
        options.status == CVY_OK ? cvy_onnx_simple(node, "transpose", options.data) : options.status;
    cvy_text_free(&options);
    return status;
}

static cvy_status translate_transpose(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const int64_t *given = NULL;
    int64_t *order = NULL, reversed[CVY_NDIM_MAX];
    unsigned seen = 0;
    int n = 0, moves = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_ints(node, "perm", -1, &given, &n));
    CVY_ONNX_CHECK(n == src->shape.ndim || (n == 0 && src->shape.ndim <= CVY_NDIM_MAX), node, "%d axes for %s", n,
                   cvy_shape_text(&src->shape));
    for (int i = 0; n == 0 && i < src->shape.ndim; i++)
        reversed[i] = src->shape.ndim - 1 - i;
    given = n == 0 ? reversed : given;
    n = src->shape.ndim;
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *order * (size_t)(n + 1), &order));
    for (int i = 0; i < n; i++) {
        CVY_ONNX_CHECK(given[i] >= 0 && given[i] < n, node, "axis %lld of %s", (long long)given[i],
                       cvy_shape_text(&src->shape));
        CVY_ONNX_CHECK(!(seen >> given[i] & 1), node, "axis %lld is named twice", (long long)given[i]);
        seen |= 1U << given[i];
        order[i] = src->turned ? src->turned[given[i]] : given[i];
        moves |= order[i] != i;
    }
    if (given[0] != 0 || cvy_onnx_is_moved(src))
        return cvy_onnx_transpose_moved(node, src, given);
    if (!moves)
        return cvy_onnx_done(node, 0, src->layer);
    return only_turned(node->x, node->proto->output[0]) ? cvy_onnx_done_turned(node, 0, src->layer, order)
                                                        : add_transpose(node, order, n);
}
CVY_ONNX_DEFINE(transpose) = {"Transpose", .attributes = "perm", .translate = translate_transpose};
