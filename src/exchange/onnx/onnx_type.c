/*
 * onnx_type.c: data types of values. Layers compute with real numbers, and integers are exact in them as long as they
 * are small. So values of integers may be moved, compared and cast; arithmetic that would wrap around or be cut off to
 * whole numbers is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

static const struct type {
    int number; /* of ONNX */
    const char *name;
    int is_real;
    double least, most; /* of an integer */
} types[] = {
    {CVY_ONNX_FLOAT, "FLOAT", 1, 0, 0},
    {CVY_ONNX_UINT8, "UINT8", 0, 0, 255},
    {CVY_ONNX_INT8, "INT8", 0, -128, 127},
    {CVY_ONNX_UINT16, "UINT16", 0, 0, 65535},
    {CVY_ONNX_INT16, "INT16", 0, -32768, 32767},
    {CVY_ONNX_INT32, "INT32", 0, -2147483648.0, 2147483647.0},
    {CVY_ONNX_INT64, "INT64", 0, -9.3e18, 9.3e18},
    {CVY_ONNX_BOOL, "BOOL", 0, 0, 1},
    {CVY_ONNX_FLOAT16, "FLOAT16", 1, 0, 0},
    {CVY_ONNX_DOUBLE, "DOUBLE", 1, 0, 0},
    {CVY_ONNX_UINT32, "UINT32", 0, 0, 4294967295.0},
    {CVY_ONNX_UINT64, "UINT64", 0, 0, 1.9e19},
    {CVY_ONNX_BFLOAT16, "BFLOAT16", 1, 0, 0},
};

static const struct type *find(int64_t number)
{
    for (int i = 0; i < CVY_COUNT(types); i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

const char *cvy_onnx_type_name(int64_t type)
{
    const struct type *t = find(type);
    return t ? t->name : "that is not known";
}

int cvy_onnx_type_is_real(int64_t type)
{
    const struct type *t = find(type);
    return t && t->is_real;
}

int cvy_onnx_type_is_whole(int64_t type)
{
    const struct type *t = find(type);
    return t && !t->is_real;
}

int cvy_onnx_type_holds(int64_t type, double number)
{
    const struct type *t = find(type);
    return t && (t->is_real || type == CVY_ONNX_BOOL || (trunc(number) >= t->least && trunc(number) <= t->most));
}

/* A number, or in operator sets 1 to 5 a word. */
cvy_status cvy_onnx_cast_type(const cvy_onnx_node *node, int64_t *out)
{
    const Cvy__Onnx__AttributeProto *a = cvy_onnx_attribute(node, "to");
    const char *word = NULL;
    CVY_ONNX_CHECK(a, node, "%s", "it has no attribute to");
    CVY_TRY(cvy_onnx_string(node, "to", &word));
    *out = a->i;
    for (int i = 0; i < CVY_COUNT(types) && *word; i++)
        if (strcmp(types[i].name, word) == 0)
            *out = types[i].number;
    CVY_ONNX_CHECK(find(*out) && (!*word || strcmp(find(*out)->name, word) == 0), node,
                   "to a data type that is not supported: %s%lld", word, (long long)a->i);
    return CVY_OK;
}

cvy_status cvy_onnx_check_cast(const cvy_onnx_node *node, int64_t from, int64_t to)
{
    const struct type *a = find(from), *b = find(to);
    const int wide = to == CVY_ONNX_INT32 || to == CVY_ONNX_INT64; /* positions, which are never so large */
    CVY_ONNX_CHECK(cvy_onnx_type_is_real(to) ||
                       (cvy_onnx_type_is_whole(from) && (wide || (a->least >= b->least && a->most <= b->most))),
                   node, "a cast from %s to %s, which changes numbers, is not supported",
                   cvy_onnx_type_is_whole(from) ? cvy_onnx_type_name(from) : "FLOAT", cvy_onnx_type_name(to));
    return CVY_OK;
}

/* ---- what may be done with integers ---- */

static int is_exact(const cvy_onnx_node *node, int64_t type)
{
    static const char *const moves[] = {"Identity",
                                        "Reshape",
                                        "Flatten",
                                        "Squeeze",
                                        "Unsqueeze",
                                        "Transpose",
                                        "Slice",
                                        "Split",
                                        "Concat",
                                        "Gather",
                                        "Pad",
                                        "Expand",
                                        "Tile",
                                        "DepthToSpace",
                                        "SpaceToDepth",
                                        "MaxPool",
                                        "Max",
                                        "Min",
                                        "Relu",
                                        "Clip",
                                        "ReduceMax",
                                        "ReduceMin",
                                        "GlobalMaxPool",
                                        "Cast",
                                        "CastLike",
                                        "SplitToSequence",
                                        "Where",
                                        "Equal",
                                        "Less",
                                        "Greater",
                                        "LessOrEqual",
                                        "GreaterOrEqual",
                                        "Not",
                                        "And",
                                        "Or",
                                        "Xor",
                                        "Dropout",
                                        "DequantizeLinear"};
    /* of 32 or 64 bits, which do not wrap around with the numbers that networks have */
    static const char *const sums[] = {"Add", "Sub", "Mul", "Sum", "Neg", "Abs", "ReduceSum"};
    const char *mode = "";
    if (cvy_onnx_is_one_of(node, moves, CVY_COUNT(moves)))
        return 1;
    if ((strcmp(node->op, "Resize") == 0 || strcmp(node->op, "Upsample") == 0) &&
        cvy_onnx_string(node, "mode", &mode) == CVY_OK)
        return !*mode || strcmp(mode, "nearest") == 0;
    return (type == CVY_ONNX_INT32 || type == CVY_ONNX_INT64) && cvy_onnx_is_one_of(node, sums, CVY_COUNT(sums));
}

cvy_status cvy_onnx_check_types(const cvy_onnx_node *node)
{
    for (int i = 0; i < node->nin; i++) {
        const cvy_onnx_value *v = node->in[i];
        if (v && v->layer && v->whole)
            CVY_ONNX_CHECK(is_exact(node, v->whole), node,
                           "source %d (%s) has the data type %s; it is supported on real numbers only: cast the source "
                           "to FLOAT first",
                           i, v->name, cvy_onnx_type_name(v->whole));
    }
    return CVY_OK;
}

int64_t cvy_onnx_result_type(const cvy_onnx_node *node)
{
    int64_t to = 0;
    if (strcmp(node->op, "Cast") == 0)
        return cvy_onnx_cast_type(node, &to) == CVY_OK && cvy_onnx_type_is_whole(to) ? to : 0;
    if (strcmp(node->op, "CastLike") == 0)
        return node->in[1] ? node->in[1]->whole : 0;
    if (strcmp(node->op, "DequantizeLinear") == 0 ||
        (strcmp(node->op, "Gather") == 0 && node->in[0] && node->in[0]->constant))
        return 0;
    for (int i = 0; i < node->nin; i++)
        if (node->in[i] && node->in[i]->layer && node->in[i]->whole)
            return node->in[i]->whole;
    return 0;
}
