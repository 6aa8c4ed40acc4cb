/*
 * onnx_where.c: Where with a constant condition, as masks are: masked_fill() of PyTorch before a softmax.
 *
 *     Where(c, a, b) = a * c + b * (1 - c)      c is 1 or 0
 *
 * A source that is constant becomes what is added, so that -inf may be in it; then nothing needs to be multiplied, as
 * long as the other source is finite.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "exchange/onnx/onnx_fold.h"

/* 1 where the condition chooses the source, 0 elsewhere. */
static cvy_status chosen(const cvy_onnx_node *node, int source, cvy_onnx_tensor **out)
{
    const cvy_onnx_tensor *c = node->in[0]->constant;
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_F32, &c->shape, out));
    for (int64_t i = 0; i < c->elems; i++)
        cvy_onnx_set_number(*out, i, (cvy_onnx_number(c, i) != 0) == (source == 1));
    return CVY_OK;
}

/* The constant source where it is chosen, 0 elsewhere. *all_infinite: it is infinite wherever it is chosen. */
static cvy_status filled(const cvy_onnx_node *node, int source, cvy_onnx_tensor **out, int *all_infinite)
{
    const cvy_onnx_tensor *c = node->in[0]->constant, *t = node->in[source]->constant;
    cvy_shape shape;
    CVY_TRY(cvy_onnx_common_shape(node, &c->shape, &t->shape, &shape));
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_F32, &shape, out));
    *all_infinite = 1;
    for (int64_t i = 0; i < (*out)->elems; i++) {
        const double value = cvy_onnx_number(t, cvy_onnx_repeated(&t->shape, &shape, i));
        if ((cvy_onnx_number(c, cvy_onnx_repeated(&c->shape, &shape, i)) != 0) != (source == 1))
            continue;
        cvy_onnx_set_number(*out, i, value);
        *all_infinite &= isinf(value) != 0;
    }
    return CVY_OK;
}

static cvy_status translate_where(const cvy_onnx_node *node)
{
    const cvy_onnx_tensor *condition = NULL;
    cvy_onnx_tensor *keep = NULL, *fill = NULL;
    const char *part[2] = {NULL}, *output = NULL;
    int all_infinite = 0;
    CVY_TRY(cvy_onnx_constant(node, 0, &condition));
    CVY_ONNX_CHECK(condition && cvy_onnx_source(node, 1) && cvy_onnx_source(node, 2), node, "%s",
                   "it needs three sources");
    for (int s = 1; s <= 2; s++) {
        if (node->in[s]->constant)
            continue;
        part[s - 1] = node->in[s]->layer;
        if (node->in[3 - s]->constant)
            CVY_TRY(filled(node, 3 - s, &fill, &all_infinite));
        if (fill && all_infinite)
            continue;
        CVY_TRY(chosen(node, s, &keep));
        CVY_TRY(cvy_onnx_affine(node, part[s - 1], keep, "scale", &part[s - 1]));
    }
    if (fill)
        CVY_TRY(cvy_onnx_affine(node, part[0] ? part[0] : part[1], fill, "shift", &output));
    else
        CVY_TRY(cvy_onnx_join(node, "add", NULL, part, 2, &output));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(where) = {"Where", .translate = translate_where};
