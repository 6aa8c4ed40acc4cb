/*
 * onnx_resize.c: Resize and Upsample of rows and columns, or of one row, in the modes that our layer has.
 *
 * Before operator set 11 the positions are asymmetric, and nearest rounds down.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

/* The new size of a Resize or Upsample: that of each position, or scales. */
struct resizing {
    int64_t size[2];
    double scale[2]; /* 0: the sizes are given */
    int n;           /* axes of positions, 1 or 2 */
};

/* Only positions change. */
static cvy_status check_axes(const cvy_onnx_node *node, const cvy_onnx_value *src, const cvy_onnx_tensor *given,
                             int is_scale)
{
    const int64_t *axes = NULL;
    const int ndim = src->shape.ndim;
    int n = 0;
    CVY_TRY(cvy_onnx_ints(node, "axes", -1, &axes, &n));
    CVY_ONNX_CHECK(
        given && given->elems == (n ? n : ndim) && (ndim == 3 || ndim == 4), node,
        "%lld sizes or scales for a source %s; only [N, C, rows, columns] and [N, C, positions] are supported",
        (long long)(given ? given->elems : 0), cvy_shape_text(&src->shape));
    CVY_ONNX_CHECK(n == 0 || n == ndim - 2, node, "%d axes for a source %s; only positions may change, all of them", n,
                   cvy_shape_text(&src->shape));
    for (int i = 0; i < n; i++)
        CVY_ONNX_CHECK(axes[i] == 2 + i || axes[i] == 2 + i - ndim, node,
                       "entry %d of axes is %lld; they should be rows and columns in this order", i,
                       (long long)axes[i]);
    for (int d = 0; d < 2 && n == 0; d++) {
        const double number = cvy_onnx_number(given, d);
        CVY_ONNX_CHECK(is_scale ? number == 1
                                : number == (double)(d == 0 ? CVY_ONNX_BATCH : src->shape.dim[1]) ||
                                      (d == 0 && number == (double)node->x->batch),
                       node, "axis %d gets the size or scale %g; only rows and columns may change", d, number);
    }
    return CVY_OK;
}

static cvy_status set_size(const cvy_onnx_node *node, const cvy_onnx_value *src, int i, double number, int is_scale,
                           struct resizing *out)
{
    CVY_ONNX_CHECK(number > 0 && number < 1e6, node, "a size or scale of %g", number);
    out->scale[i] = is_scale ? number : 0;
    out->size[i] = (int64_t)(is_scale ? number * (double)src->shape.dim[2 + i] : number);
    CVY_ONNX_CHECK(out->size[i] > 0, node, "a scale of %g leaves nothing of %lld positions", number,
                   (long long)src->shape.dim[2 + i]);
    return CVY_OK;
}

static cvy_status read_resizing(const cvy_onnx_node *node, const cvy_onnx_value *src, const cvy_onnx_tensor *scales,
                                const cvy_onnx_tensor *sizes, struct resizing *out)
{
    const cvy_onnx_tensor *given = sizes && sizes->elems > 0 ? sizes : scales;
    CVY_TRY(check_axes(node, src, given, given == scales));
    *out = (struct resizing){.n = src->shape.ndim - 2};
    for (int i = 0; i < out->n; i++)
        CVY_TRY(set_size(node, src, i, cvy_onnx_number(given, given->elems - out->n + i), given == scales, out));
    return CVY_OK;
}

/* Whether the scales give whole sizes. */
static int is_whole(const cvy_shape *src, const struct resizing *to)
{
    for (int i = 0; i < to->n; i++)
        if (to->scale[i] > 0 && (double)to->size[i] != to->scale[i] * (double)src->dim[2 + i])
            return 0;
    return 1;
}

/* Scales that do not give whole sizes are kept: positions are computed with them, and not with the sizes. A source with
 * one axis of positions is a row. */
static cvy_status add_resize(const cvy_onnx_node *node, const cvy_onnx_value *src, const char *words,
                             const struct resizing *to)
{
    const int64_t row[] = {src->shape.dim[1], 1, src->shape.dim[2]}, back[] = {src->shape.dim[1], to->size[0]};
    const int by_scale = !is_whole(&src->shape, to), is_row = to->n == 1, last = to->n - 1;
    char *options = NULL;
    const char *output = src->layer;
    if (is_row)
        CVY_TRY(cvy_onnx_reshape(node, output, row, 3, &output));
    if (by_scale)
        CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "scale: [%.9g, %.9g], %s", is_row ? 1 : to->scale[0],
                                to->scale[last], words));
    else
        CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "size: [%lld, %lld], %s",
                                is_row ? 1 : (long long)to->size[0], (long long)to->size[last], words));
    CVY_TRY(cvy_onnx_step(node, "resize", options, output, &output));
    if (is_row)
        CVY_TRY(cvy_onnx_reshape(node, output, back, 2, &output));
    return cvy_onnx_done(node, 0, output);
}

/* The layer's words for how places become positions. */
static cvy_status coordinates_of(const cvy_onnx_node *node, const cvy_shape *src, const char *place, int is_nearest,
                                 const struct resizing *to, const char **out)
{
    const int corners = strcmp(place, "align_corners") == 0, pytorch = strcmp(place, "pytorch_half_pixel") == 0,
              symmetric = strcmp(place, "half_pixel_symmetric") == 0, asymmetric = strcmp(place, "asymmetric") == 0;
    CVY_ONNX_CHECK(!*place || strcmp(place, "half_pixel") == 0 || asymmetric || pytorch || (corners && !is_nearest) ||
                       (symmetric && is_whole(src, to)),
                   node, "coordinate_transformation_mode %s with mode %s is not supported%s", place,
                   is_nearest ? "nearest" : "linear or cubic", symmetric ? " for this size" : "");
    CVY_ONNX_CHECK(!corners || is_whole(src, to), node, "%s",
                   "align_corners with scales that do not give whole sizes is not supported");
    for (int i = 0; i < to->n; i++)
        CVY_ONNX_CHECK(!pytorch || to->size[i] > 1 || src->dim[2 + i] == 1, node, "%s",
                       "pytorch_half_pixel with a result of one row or column is not supported");
    *out = corners ? "align_corners: true" : asymmetric ? "coordinates: asymmetric" : "coordinates: half_pixel";
    return CVY_OK;
}

static cvy_status rounding_of(const cvy_onnx_node *node, const char *word, const char **out)
{
    static const char *const words[][2] = {{"", "round_down"},
                                           {"round_prefer_floor", "round_down"},
                                           {"round_prefer_ceil", "round_up"},
                                           {"floor", "floor"},
                                           {"ceil", "ceil"}};
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (strcmp(words[i][0], word) == 0) {
            *out = words[i][1];
            return CVY_OK;
        }
    CVY_ONNX_FAIL(node, "nearest_mode %s is not known", word);
}

/* For whole factors the usual words of the layer say the same, and are shorter. */
static cvy_status add_nearest(const cvy_onnx_node *node, const cvy_onnx_value *src, const char *place,
                              const char *rounding, const struct resizing *to)
{
    const char *coordinates = NULL, *rounds = NULL;
    char *words = NULL;
    int multiples = is_whole(&src->shape, to);
    CVY_TRY(coordinates_of(node, &src->shape, place, 1, to, &coordinates));
    CVY_TRY(rounding_of(node, rounding, &rounds));
    for (int i = 0; i < to->n; i++)
        multiples &= to->size[i] % src->shape.dim[2 + i] == 0;
    const int centres = strcmp(coordinates, "coordinates: half_pixel") == 0, floors = strcmp(rounds, "floor") == 0;
    if (centres ? multiples && strncmp(rounds, "round_", 6) == 0 : floors)
        return add_resize(node, src, "mode: nearest", to);
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &words, "mode: nearest, %s, rounding: %s", coordinates, rounds));
    return add_resize(node, src, words, to);
}

static cvy_status add_smooth(const cvy_onnx_node *node, const cvy_onnx_value *src, const char *mode, const char *place,
                             const struct resizing *to)
{
    const char *coordinates = NULL;
    char *words = NULL;
    const int cubic = strcmp(mode, "cubic") == 0;
    CVY_ONNX_CHECK(cubic || strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0, node,
                   "mode %s is not known; nearest, linear and cubic are", mode);
    CVY_TRY(coordinates_of(node, &src->shape, place, 0, to, &coordinates));
    const char *more = strcmp(coordinates, "coordinates: half_pixel") == 0 ? "" : coordinates;
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &words, "mode: %s%s%s", cubic ? "bicubic" : "bilinear",
                            *more ? ", " : "", more));
    if (cubic)
        CVY_TRY(cvy_pool_printf(node->x->out->pool, &words, "%s, cubic_a: %.9g%s", words,
                                cvy_onnx_real(node, "cubic_coeff_a", -0.75),
                                cvy_onnx_int(node, "exclude_outside", 0) ? ", only_inside: true" : ""));
    return add_resize(node, src, words, to);
}

static cvy_status add_mode(const cvy_onnx_node *node, const cvy_onnx_value *src, const char *place,
                           const char *rounding, const struct resizing *to)
{
    const char *mode = NULL;
    CVY_TRY(cvy_onnx_string(node, "mode", &mode));
    return !*mode || strcmp(mode, "nearest") == 0 ? add_nearest(node, src, place, rounding, to)
                                                  : add_smooth(node, src, mode, place, to);
}

static cvy_status translate_resize(const cvy_onnx_node *node)
{
    const int is_old = node->x->opset < 11;
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *scales = NULL, *sizes = NULL;
    const char *place = "asymmetric", *rounding = "floor", *policy = NULL;
    struct resizing to;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(cvy_onnx_constant(node, is_old ? 1 : 2, &scales));
    if (!is_old) {
        CVY_TRY(cvy_onnx_constant(node, 3, &sizes));
        CVY_TRY(cvy_onnx_string(node, "coordinate_transformation_mode", &place));
        CVY_TRY(cvy_onnx_string(node, "nearest_mode", &rounding));
    }
    CVY_TRY(read_resizing(node, src, scales, sizes, &to));
    CVY_TRY(cvy_onnx_string(node, "keep_aspect_ratio_policy", &policy));
    CVY_ONNX_CHECK(!*policy || strcmp(policy, "stretch") == 0, node, "keep_aspect_ratio_policy %s is not supported",
                   policy);
    CVY_ONNX_CHECK(cvy_onnx_int(node, "antialias", 0) == 0, node, "%s", "antialias 1 is not supported");
    return add_mode(node, src, place, rounding, &to);
}
CVY_ONNX_DEFINE(resize) = {"Resize",
                           .attributes = "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
                                         "extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
                           .translate = translate_resize};

/* Operator set 1 has two attributes, 7 a list, and 9 a source. */
static cvy_status read_scales(const cvy_onnx_node *node, int ndim, const cvy_onnx_tensor **out)
{
    const Cvy__Onnx__AttributeProto *list = cvy_onnx_attribute(node, "scales");
    const int is_pair = cvy_onnx_attribute(node, "height_scale") && cvy_onnx_attribute(node, "width_scale");
    cvy_onnx_tensor *t = NULL;
    if (!list && !is_pair)
        return cvy_onnx_constant(node, 1, out);
    CVY_TRY(cvy_onnx_new(node->x, CVY_DTYPE_F32, &(cvy_shape){1, {list ? (int64_t)list->n_floats : ndim}}, &t));
    for (int64_t i = 0; i < t->elems; i++)
        ((float *)t->data)[i] = list ? list->floats[i] : 1;
    if (is_pair && t->elems == 4) {
        ((float *)t->data)[2] = (float)cvy_onnx_real(node, "height_scale", 1);
        ((float *)t->data)[3] = (float)cvy_onnx_real(node, "width_scale", 1);
    }
    *out = t;
    return CVY_OK;
}

static cvy_status translate_upsample(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const cvy_onnx_tensor *scales = NULL;
    struct resizing to;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(read_scales(node, src->shape.ndim, &scales));
    CVY_TRY(read_resizing(node, src, scales, NULL, &to));
    return add_mode(node, src, "asymmetric", "floor", &to);
}
CVY_ONNX_DEFINE(upsample) = {"Upsample", .attributes = "height_scale mode scales width_scale",
                             .translate = translate_upsample};
