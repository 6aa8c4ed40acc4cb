/*
 * onnx_write_function.c: functions of each element, clamps, and trained tensors that are broadcast, as ONNX nodes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/onnx/onnx_write.h"
#include "op/pointwise/op_activation.h"
#include "op/pointwise/op_affine.h"
#include "op/pointwise/op_function.h"

CVY_ONNXOP_DEFINE(abs) = {"abs", .same = "Abs"};
CVY_ONNXOP_DEFINE(cos) = {"cos", .same = "Cos"};
CVY_ONNXOP_DEFINE(erf) = {"erf", .same = "Erf"};
CVY_ONNXOP_DEFINE(exp) = {"exp", .same = "Exp"};
CVY_ONNXOP_DEFINE(log) = {"log", .same = "Log"};
CVY_ONNXOP_DEFINE(reciprocal) = {"reciprocal", .same = "Reciprocal"};
CVY_ONNXOP_DEFINE(sin) = {"sin", .same = "Sin"};
CVY_ONNXOP_DEFINE(softsign) = {"softsign", .same = "Softsign"};
CVY_ONNXOP_DEFINE(sqrt) = {"sqrt", .same = "Sqrt"};

/* A node on the source and a number. */
static cvy_status with_number(cvy_onnx_writer *w, const cvy_node *node, const char *op, const char *what, double value)
{
    const char *src = NULL, *number = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    CVY_TRY(cvy_onnxw_real(w, what, value, &number));
    return CVY_ONNXW_NODE(w, op, cvy_onnxw_dst(w, node), src, number);
}

static cvy_status write_square(cvy_onnx_writer *w, const cvy_node *node)
{
    return with_number(w, node, "Pow", "exponent", 2);
}
CVY_ONNXOP_DEFINE(square) = {"square", .write = write_square};

static cvy_status write_power(cvy_onnx_writer *w, const cvy_node *node)
{
    return with_number(w, node, "Pow", "exponent", ((const cvy_function_opts *)node->options)->exponent);
}
CVY_ONNXOP_DEFINE(power) = {"power", .write = write_power};

static cvy_status write_offset(cvy_onnx_writer *w, const cvy_node *node)
{
    return with_number(w, node, "Add", "by", ((const struct cvy_offset *)node->options)->by);
}
CVY_ONNXOP_DEFINE(offset) = {"offset", .write = write_offset};

/* ---- bounds ---- */

static cvy_status write_clamp(cvy_onnx_writer *w, const cvy_node *node)
{
    const struct cvy_clamp *o = node->options;
    const char *src = NULL, *min = "", *max = NULL;
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    if (o->min > -CVY_CLAMP_NONE)
        CVY_TRY(cvy_onnxw_real(w, "min", o->min, &min));
    if (o->max < CVY_CLAMP_NONE)
        CVY_TRY(cvy_onnxw_real(w, "max", o->max, &max));
    return CVY_ONNXW_NODE(w, "Clip", cvy_onnxw_dst(w, node), src, min, max);
}
CVY_ONNXOP_DEFINE(clamp) = {"clamp", .write = write_clamp};

static cvy_status write_hard_sigmoid(cvy_onnx_writer *w, const cvy_node *node)
{
    const struct cvy_hard_sigmoid *o = node->options;
    CVY_TRY(cvy_onnxw_simple(w, node, "HardSigmoid"));
    CVY_TRY(cvy_onnxw_set_real(w, "alpha", o->alpha));
    return cvy_onnxw_set_real(w, "beta", o->beta);
}
CVY_ONNXOP_DEFINE(hard_sigmoid) = {"hard_sigmoid", .write = write_hard_sigmoid};

/* ---- trained tensors ---- */

/* The tensors have the axes of a sample, so ONNX aligns them rightly. */
static cvy_status write_affine(cvy_onnx_writer *w, const cvy_node *node)
{
    const cvy_affine_opts *o = node->options;
    const char *src = NULL, *scale = NULL, *shift = NULL, *scaled = cvy_onnxw_dst(w, node);
    CVY_TRY(cvy_onnxw_src(w, node, 0, &src));
    if (o->scale)
        CVY_TRY(cvy_onnxw_src(w, node, 1, &scale));
    if (o->shift)
        CVY_TRY(cvy_onnxw_src(w, node, 1 + o->scale, &shift));
    if (o->scale && o->shift)
        CVY_TRY(cvy_onnxw_name(w, "scaled", &scaled));
    if (o->scale)
        CVY_TRY(CVY_ONNXW_NODE(w, "Mul", scaled, src, scale));
    return o->shift ? CVY_ONNXW_NODE(w, "Add", cvy_onnxw_dst(w, node), o->scale ? scaled : src, shift) : CVY_OK;
}
CVY_ONNXOP_DEFINE(affine) = {"affine", .write = write_affine};
