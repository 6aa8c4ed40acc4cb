/*
 * onnx_resize.c: Resize and Upsample of rows and columns, in the modes that our layer has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

/* The new size of a Resize or Upsample: sizes (4 numbers, or 2 of the positions), or scales. */
struct resizing {
    int64_t rows, columns;
    double row_scale, column_scale; /* 0: the sizes are given */
};

/* Only rows and columns change. */
static cvy_status check_axes(const cvy_onnx_node *node, const cvy_onnx_value *src, const cvy_onnx_tensor *given,
                             int is_scale)
{
    const int64_t *axes = NULL;
    int n = 0;
    CVY_TRY(cvy_onnx_ints(node, "axes", -1, &axes, &n));
    CVY_ONNX_CHECK(given && given->elems == (n ? n : 4) && src->shape.ndim == 4, node,
                   "%lld sizes or scales for a source %s; only [N, C, rows, columns] is supported",
                   (long long)(given ? given->elems : 0), cvy_shape_text(&src->shape));
    CVY_ONNX_CHECK(n == 0 || (n == 2 && (axes[0] == 2 || axes[0] == -2) && (axes[1] == 3 || axes[1] == -1)), node, "%s",
                   "its axes are not rows and columns in this order");
    for (int d = 0; d < 2 && n == 0; d++) {
        const double number = cvy_onnx_number(given, d);
        CVY_ONNX_CHECK(is_scale ? number == 1
                                : number == (double)(d == 0 ? CVY_ONNX_BATCH : src->shape.dim[1]) ||
                                      (d == 0 && number == (double)node->x->batch),
                       node, "axis %d gets the size or scale %g; only rows and columns may change", d, number);
    }
    return CVY_OK;
}

static cvy_status read_resizing(const cvy_onnx_node *node, const cvy_onnx_value *src, int scales_at, int sizes_at,
                                struct resizing *out)
{
    const cvy_onnx_tensor *scales = NULL, *sizes = NULL;
    CVY_TRY(cvy_onnx_constant(node, scales_at, &scales));
    if (sizes_at >= 0)
        CVY_TRY(cvy_onnx_constant(node, sizes_at, &sizes));
    const cvy_onnx_tensor *given = sizes && sizes->elems > 0 ? sizes : scales;
    CVY_TRY(check_axes(node, src, given, given == scales));
    const double r = cvy_onnx_number(given, given->elems - 2), c = cvy_onnx_number(given, given->elems - 1);
    CVY_ONNX_CHECK(r > 0 && c > 0 && r < 1e6 && c < 1e6, node, "a size or scale of %g and %g", r, c);
    *out = (struct resizing){(int64_t)r, (int64_t)c, 0, 0};
    if (given == scales)
        *out =
            (struct resizing){(int64_t)(r * (double)src->shape.dim[2]), (int64_t)(c * (double)src->shape.dim[3]), r, c};
    return CVY_OK;
}

/* Whether the scales give whole sizes. */
static int is_whole(const cvy_shape *src, const struct resizing *to)
{
    return (double)to->rows == to->row_scale * (double)src->dim[2] &&
           (double)to->columns == to->column_scale * (double)src->dim[3];
}

/* Scales that do not give whole sizes are kept: positions are computed with them, and not with the sizes. */
static cvy_status add_resize(const cvy_onnx_node *node, const cvy_onnx_value *src, const char *mode, int corners,
                             const struct resizing *to)
{
    char *options = NULL, *size = NULL;
    const char *output = NULL;
    cvy_pool *pool = node->x->out->pool;
    if (to->row_scale > 0 && !is_whole(&src->shape, to) && !corners)
        CVY_TRY(cvy_pool_printf(pool, &size, "scale: [%.9g, %.9g]", to->row_scale, to->column_scale));
    else
        CVY_TRY(cvy_pool_printf(pool, &size, "size: [%lld, %lld]", (long long)to->rows, (long long)to->columns));
    CVY_TRY(cvy_pool_printf(pool, &options, "mode: %s, %s%s", mode, size, corners ? ", align_corners: true" : ""));
    CVY_TRY(cvy_onnx_step(node, "resize", options, src->layer, &output));
    return cvy_onnx_done(node, 0, output);
}

/* Nearest: the value of the source position below, as in PyTorch. For whole factors, rounding the centre of a pixel
 * gives the same position. */
static cvy_status check_nearest(const cvy_onnx_node *node, const char *place, const char *nearest, int is_whole)
{
    const int floors = strcmp(nearest, "floor") == 0, rounds = !*nearest || strncmp(nearest, "round_", 6) == 0;
    const int centres = !*place || strcmp(place, "half_pixel") == 0 || strcmp(place, "pytorch_half_pixel") == 0;
    CVY_ONNX_CHECK((strcmp(place, "asymmetric") == 0 && floors) || (is_whole && centres && rounds), node,
                   "nearest with %s and %s is not supported%s", *place ? place : "half_pixel",
                   *nearest ? nearest : "round_prefer_floor", is_whole ? "" : " for this size");
    return CVY_OK;
}

static cvy_status check_linear(const cvy_onnx_node *node, const cvy_shape *src, const char *mode, const char *place,
                               const struct resizing *to)
{
    CVY_ONNX_CHECK(
        node->x->opset >= 11, node, "%s",
        "linear of operator set 10, whose positions are asymmetric, is not supported: export the network with "
        "operator set 11 or newer");
    const int corners = strcmp(place, "align_corners") == 0, pytorch = strcmp(place, "pytorch_half_pixel") == 0;
    CVY_ONNX_CHECK(strcmp(mode, "linear") == 0 && (!*place || corners || pytorch || strcmp(place, "half_pixel") == 0),
                   node, "mode %s with %s is not supported", mode, *place ? place : "half_pixel");
    CVY_ONNX_CHECK(!corners || to->row_scale == 0 || is_whole(src, to), node, "%s",
                   "align_corners with scales that do not give whole sizes is not supported");
    CVY_ONNX_CHECK(!pytorch || ((to->rows > 1 || src->dim[2] == 1) && (to->columns > 1 || src->dim[3] == 1)), node,
                   "%s", "pytorch_half_pixel with a result of one row or column is not supported");
    return CVY_OK;
}

static cvy_status translate_resize(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const char *mode = NULL, *place = NULL, *nearest = NULL, *policy = NULL;
    struct resizing to;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_string(node, "mode", &mode));
    CVY_TRY(cvy_onnx_string(node, "coordinate_transformation_mode", &place));
    CVY_TRY(cvy_onnx_string(node, "nearest_mode", &nearest));
    CVY_TRY(read_resizing(node, src, node->x->opset < 11 ? 1 : 2, node->x->opset < 11 ? -1 : 3, &to));
    CVY_TRY(cvy_onnx_string(node, "keep_aspect_ratio_policy", &policy));
    CVY_ONNX_CHECK((!*policy || strcmp(policy, "stretch") == 0) && cvy_onnx_int(node, "antialias", 0) == 0, node, "%s",
                   "keep_aspect_ratio_policy and antialias are not supported");
    const int is_nearest = !*mode || strcmp(mode, "nearest") == 0, corners = strcmp(place, "align_corners") == 0;
    const int whole = to.rows % src->shape.dim[2] == 0 && to.columns % src->shape.dim[3] == 0;
    if (is_nearest)
        CVY_TRY(check_nearest(node, place, nearest, whole));
    else
        CVY_TRY(check_linear(node, &src->shape, mode, place, &to));
    return add_resize(node, src, is_nearest ? "nearest" : "bilinear", !is_nearest && corners, &to);
}
CVY_ONNX_DEFINE(resize) = {"Resize",
                           .attributes = "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
                                         "extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
                           .translate = translate_resize};

static cvy_status translate_upsample(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const char *mode = NULL;
    struct resizing to;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_string(node, "mode", &mode));
    CVY_ONNX_CHECK(!*mode || strcmp(mode, "nearest") == 0, node, "mode %s is not supported", mode);
    CVY_TRY(read_resizing(node, src, 1, -1, &to));
    return add_resize(node, src, "nearest", 0, &to);
}
CVY_ONNX_DEFINE(upsample) = {"Upsample", .attributes = "mode", .translate = translate_upsample};
