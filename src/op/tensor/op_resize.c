/*
 * resize: upsampling and downsampling of pictures [N, C, H, W]. Networks for segmentation and generators have it.
 * Source: torch.nn.functional.interpolate of PyTorch, with the same options and results; the other coordinates and
 * roundings are those of ONNX's Resize. Cubic: Keys 1981, "Cubic convolution interpolation".
 *
 *     dst  = sum of src over rows and columns, by the weights of both dimensions
 *     dsrc = sum of ddst by the same weights
 *
 * Place x of the result is place p(x) of the source. With `ratio` = source positions / result positions or, if `scale`
 * is given, 1 / scale:
 *
 *     nearest                      p(x) = floor(x * ratio), in f32 as in PyTorch
 *     bilinear                     p(x) = (x + 1/2) * ratio - 1/2, at least 0: corners of pixels are aligned
 *     bicubic                      p(x) = (x + 1/2) * ratio - 1/2
 *     align_corners                p(x) = x * (source positions - 1) / (result positions - 1): centres of the outermost
 *                                  pixels are aligned
 *     coordinates: half_pixel      p(x) = (x + 1/2) * ratio - 1/2
 *     coordinates: asymmetric      p(x) = x * ratio
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_resize.h"

#include <math.h>

#include "graph/graph_grad.h"

static const cvy_option resize_rows[] = {
    {"mode", CVY_TYPE_CHOICE, CVY_FIELD(cvy_resize_opts, mode), "nearest", "nearest|bilinear|bicubic", "",
     "nearest: the value of one source position; bilinear: linear between two in each dimension; bicubic: cubic over "
     "four"},
    {"size", CVY_TYPE_INTS, CVY_FIELD(cvy_resize_opts, size), "", "1..", "",
     "positions of the result, one number or [rows, columns]"},
    {"scale", CVY_TYPE_REALS, CVY_FIELD(cvy_resize_opts, scale), "", ">0", "",
     "factor on the positions in place of size, one number or [rows, columns]; the result is rounded down"},
    {"align_corners", CVY_TYPE_BOOL, CVY_FIELD(cvy_resize_opts, align_corners), "false", "", "",
     "bilinear, bicubic: the centres of the corner pixels keep their place, not the corners of the picture"},
    {"coordinates", CVY_TYPE_CHOICE, CVY_FIELD(cvy_resize_opts, coordinates), "usual", "usual|half_pixel|asymmetric",
     "",
     "half_pixel: corners of pixels are aligned, asymmetric: the first pixel keeps its place; usual: half_pixel, of "
     "nearest asymmetric"},
    {"rounding", CVY_TYPE_CHOICE, CVY_FIELD(cvy_resize_opts, rounding), "floor", "floor|ceil|round_down|round_up", "",
     "nearest: how a place becomes a position; round_down and round_up say where halves go"},
    {"cubic_a", CVY_TYPE_REAL, CVY_FIELD(cvy_resize_opts, cubic_a), "-0.75", "", "",
     "bicubic: the coefficient of the polynomials"},
    {"only_inside", CVY_TYPE_BOOL, CVY_FIELD(cvy_resize_opts, only_inside), "false", "", "",
     "bicubic: positions outside the picture have no weight; else they have the value at its edge"},
    {0},
};

static double scale_at(const cvy_resize_opts *o, int d)
{
    return o->scale.at[o->scale.count == 1 ? 0 : d];
}

/* The step in the source for one place of the result. */
static double ratio_of(const cvy_resize_opts *o, int d, int64_t src, int64_t dst)
{
    if (o->align_corners)
        return dst > 1 ? (double)(src - 1) / (double)(dst - 1) : 0;
    return o->scale.count ? 1 / scale_at(o, d) : (double)src / (double)dst;
}

/* p(x). With a size, halves of half_pixel come out exactly. */
static double place_of(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, int64_t at)
{
    const double ratio = ratio_of(o, d, src, dst);
    const int halves = o->coordinates == CVY_RESIZE_HALF_PIXEL ||
                       (o->coordinates == CVY_RESIZE_USUAL && o->mode != CVY_RESIZE_NEAREST);
    if (o->align_corners || !halves)
        return (double)at * ratio;
    return o->scale.count || o->coordinates == CVY_RESIZE_USUAL ? ((double)at + 0.5) * ratio - 0.5
                                                                : ((double)at + 0.5) * (double)src / (double)dst - 0.5;
}

static cvy_resize_tap nearest(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, int64_t at)
{
    const double place = place_of(o, d, src, dst, at);
    double rounded = floor(place);
    switch (o->rounding) {
    case CVY_RESIZE_CEIL: rounded = ceil(place); break;
    case CVY_RESIZE_ROUND_DOWN: rounded = ceil(place - 0.5); break;
    case CVY_RESIZE_ROUND_UP: rounded = floor(place + 0.5); break;
    default:
        if (o->coordinates == CVY_RESIZE_USUAL)
            rounded = floorf((float)at * (float)ratio_of(o, d, src, dst));
    }
    const int64_t position = (int64_t)fmin(fmax(rounded, 0), (double)(src - 1));
    return (cvy_resize_tap){position, position, {1}};
}

static cvy_resize_tap bilinear(double place, int64_t src)
{
    place = fmax(place, 0);
    const int64_t low = CVY_MIN((int64_t)place, src - 1);
    const double weight = fmin(place - (double)low, 1);
    if (low == src - 1)
        return (cvy_resize_tap){low, low, {1}};
    return (cvy_resize_tap){low, low + 1, {1 - weight, weight}};
}

/* The weight of a position at this distance. */
static double cubic(double a, double distance)
{
    const double t = fabs(distance);
    return t <= 1 ? ((a + 2) * t - (a + 3)) * t * t + 1 : t < 2 ? ((t - 5) * t + 8) * t * a - 4 * a : 0;
}

static cvy_resize_tap bicubic(const cvy_resize_opts *o, double place, int64_t src)
{
    const int64_t first = (int64_t)floor(place) - 1;
    cvy_resize_tap tap = {
        CVY_MIN(CVY_MAX(first, (int64_t)0), src - 1), CVY_MIN(CVY_MAX(first + 3, (int64_t)0), src - 1), {0}};
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        const int64_t position = first + k, inside = CVY_MIN(CVY_MAX(position, (int64_t)0), src - 1);
        const double weight = o->only_inside && inside != position ? 0 : cubic(o->cubic_a, place - (double)position);
        tap.weight[inside - tap.low] += weight;
        sum += weight;
    }
    for (int k = 0; k < 4 && o->only_inside; k++)
        tap.weight[k] /= sum;
    return tap;
}

cvy_resize_tap cvy_resize_tap_at(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, int64_t at)
{
    if (o->mode == CVY_RESIZE_NEAREST)
        return nearest(o, d, src, dst, at);
    const double place = place_of(o, d, src, dst, at);
    return o->mode == CVY_RESIZE_BILINEAR ? bilinear(place, src) : bicubic(o, place, src);
}

/* The first place of the result whose tap reaches `position`. Taps never go back from one place to the next. */
static int64_t first_place(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, int64_t position, int by_low)
{
    int64_t low = 0, high = dst;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const cvy_resize_tap tap = cvy_resize_tap_at(o, d, src, dst, middle);
        if ((by_low ? tap.low : tap.high) < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void cvy_resize_places(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, int64_t position, int64_t *first_out,
                       int64_t *end_out)
{
    *first_out = first_place(o, d, src, dst, position, 0);
    *end_out = first_place(o, d, src, dst, position + 1, 1);
}

static cvy_status resize_infer(cvy_node *node)
{
    const cvy_resize_opts *o = node->options;
    const cvy_shape *src = cvy_node_src(node, 0);
    cvy_shape dst = *src;
    CVY_CHECK(src->ndim == 4, CVY_E_SHAPE, "resize needs a source [N, C, H, W], got %s", cvy_shape_text(src));
    CVY_CHECK((o->size.count > 0) != (o->scale.count > 0), CVY_E_CONFIG,
              "resize: give either `size` or `scale`, got %s", o->size.count ? "both" : "neither");
    CVY_CHECK(o->size.count <= 2 && o->scale.count <= 2, CVY_E_CONFIG,
              "resize: `%s` has %d entries; give one for rows and columns or one for each",
              o->size.count ? "size" : "scale", o->size.count + o->scale.count);
    CVY_CHECK(o->mode != CVY_RESIZE_NEAREST || !o->align_corners, CVY_E_CONFIG,
              "resize: `align_corners` is for mode: bilinear and bicubic");
    CVY_CHECK(!o->align_corners || o->coordinates == CVY_RESIZE_USUAL, CVY_E_CONFIG,
              "resize: `align_corners` and `coordinates` say two things; give one of them");
    CVY_CHECK(o->mode == CVY_RESIZE_NEAREST || o->rounding == CVY_RESIZE_FLOOR, CVY_E_CONFIG,
              "resize: `rounding` is for mode: nearest");
    CVY_CHECK(o->mode == CVY_RESIZE_BICUBIC || !o->only_inside, CVY_E_CONFIG,
              "resize: `only_inside` is for mode: bicubic");
    for (int d = 0; d < 2; d++) {
        const double by_scale = o->scale.count ? floor((double)src->dim[2 + d] * scale_at(o, d)) : 1;
        CVY_CHECK(by_scale >= 1 && by_scale <= INT32_MAX, CVY_E_SHAPE,
                  "resize: dimension %d of source %s would have %.0f positions with `scale` %g, expected 1 to %d",
                  2 + d, cvy_shape_text(src), by_scale, scale_at(o, d), INT32_MAX);
        dst.dim[2 + d] = o->size.count ? cvy_ints_at(&o->size, d, 1) : (int64_t)by_scale;
    }
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &dst);
}

static cvy_status resize_grad(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    const cvy_resize_grad_opts opts = {*(const cvy_resize_opts *)fwd->options, *cvy_node_src(fwd, 0)};
    CVY_TRY(cvy_grad_emit(g, fwd, "resize_grad", &opts, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

static cvy_cost cost_of(const cvy_resize_opts *o, int64_t small, int64_t large)
{
    return (cvy_cost){.flop = o->mode == CVY_RESIZE_NEAREST    ? 0
                              : o->mode == CVY_RESIZE_BILINEAR ? 7 * large
                                                               : 35 * large,
                      .read_elems = small,
                      .write_elems = large};
}

static void resize_cost(const cvy_node *node, cvy_cost *cost_out)
{
    *cost_out = cost_of(node->options, cvy_shape_elems(cvy_node_src(node, 0)), cvy_shape_elems(cvy_node_dst(node, 0)));
}

static cvy_status resize_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_resize_opts *o = node->options;
    const int64_t H = src->dim[2], W = src->dim[3], rows = dst->dim[2], columns = dst->dim[3];
    for (int64_t e = 0; e < dst->elems; e++) {
        const cvy_resize_tap y = cvy_resize_tap_at(o, 0, H, rows, e / columns % rows),
                             x = cvy_resize_tap_at(o, 1, W, columns, e % columns);
        double sum = 0;
        for (int64_t r = y.low; r <= y.high; r++)
            for (int64_t c = x.low; c <= x.high; c++)
                sum += cvy_resize_weight(&y, r) * cvy_resize_weight(&x, c) *
                       cvy_get(src, (e / (rows * columns) * H + r) * W + c);
        cvy_set(dst, e, sum);
    }
    return CVY_OK;
}

static const cvy_sample resize_samples[] = {
    {.src = "2x3x4x5", .options = "scale: 2"},
    {.src = "2x19x3x4", .options = "size: [7, 3]"},
    {.src = "2x3x4x5", .options = "scale: 2, mode: bilinear"},
    {.src = "1x20x5x6", .options = "scale: 2, mode: bilinear, align_corners: true"},
    {.src = "2x3x7x9", .options = "size: [3, 4], mode: bilinear"},
    {.src = "2x16x6x5", .options = "size: [4, 12], mode: bilinear, align_corners: true"},
    {.src = "1x33x4x3", .options = "scale: [1.7, 2.6], mode: bilinear"},
    {.src = "1x2x9x8", .options = "scale: 0.4, mode: bilinear"},
    {.src = "1x4x3x3", .options = "size: 1, mode: bilinear, align_corners: true"},
    {.src = "1x2x1x3", .options = "size: [3, 40], mode: bilinear"},
    {.src = "2x3x4x5", .options = "scale: 2, mode: bicubic"},
    {.src = "1x17x7x5", .options = "size: [4, 9], mode: bicubic, cubic_a: -0.5, only_inside: true"},
    {.src = "1x2x1x6", .options = "size: [5, 3], mode: bicubic, align_corners: true"},
    {.src = "1x18x4x3", .options = "scale: [1.7, 2], mode: bilinear, coordinates: asymmetric"},
    {.src = "2x3x4x5", .options = "size: [6, 3], coordinates: half_pixel, rounding: round_down"},
    {.src = "2x16x4x5", .options = "size: [7, 8], coordinates: half_pixel, rounding: ceil"},
    {.src = "2x2x3x5", .options = "size: [5, 8], coordinates: asymmetric, rounding: round_up"},
    {.src = "8x64x56x56", .options = "scale: 2, mode: bilinear", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(resize) = {
    .name = "resize",
    .summary = "upsampling or downsampling of pictures",
    .options = resize_rows,
    .options_size = sizeof(cvy_resize_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = resize_infer,
    .grad = resize_grad,
    .cost = resize_cost,
    .reference = resize_reference,
    .samples = resize_samples,
};

/* resize_grad: ddst -> dsrc. It is tested with the samples of resize, through its gradient. */
static cvy_status resize_grad_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, node->src[0]->dtype, &((const cvy_resize_grad_opts *)node->options)->src);
}

static void resize_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_resize_grad_opts *o = node->options;
    *cost_out = cost_of(&o->resize, cvy_shape_elems(cvy_node_dst(node, 0)), cvy_shape_elems(cvy_node_src(node, 0)));
    const int64_t read = cost_out->write_elems;
    cost_out->write_elems = cost_out->read_elems;
    cost_out->read_elems = read;
}

/* Elements of ddst that one element of dsrc may sum over. */
static int64_t resize_grad_summands(const cvy_node *node)
{
    const cvy_resize_grad_opts *o = node->options;
    int64_t count = 1;
    for (int d = 2; d < 4; d++)
        count *= (o->resize.mode == CVY_RESIZE_BICUBIC ? 4 : 2) * (cvy_node_src(node, 0)->dim[d] / o->src.dim[d] + 2);
    return count;
}

/* Sum of ddst over the places whose taps have row y and column x of the source. first: element 0 of the plane. */
static double gather(const cvy_resize_grad_opts *o, const cvy_span *ddst, int64_t first, int64_t y, int64_t x)
{
    const int64_t H = o->src.dim[2], W = o->src.dim[3], rows = ddst->dim[2], columns = ddst->dim[3];
    int64_t y0, y1, x0, x1;
    double sum = 0;
    cvy_resize_places(&o->resize, 0, H, rows, y, &y0, &y1);
    cvy_resize_places(&o->resize, 1, W, columns, x, &x0, &x1);
    for (int64_t r = y0; r < y1; r++) {
        const cvy_resize_tap down = cvy_resize_tap_at(&o->resize, 0, H, rows, r);
        for (int64_t c = x0; c < x1; c++) {
            const cvy_resize_tap along = cvy_resize_tap_at(&o->resize, 1, W, columns, c);
            sum += cvy_resize_weight(&down, y) * cvy_resize_weight(&along, x) * cvy_get(ddst, first + r * columns + c);
        }
    }
    return sum;
}

static cvy_status resize_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_resize_grad_opts *o = node->options;
    const int64_t H = dst->dim[2], W = dst->dim[3];
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, gather(o, src, i / (H * W) * src->dim[2] * src->dim[3], i / W % H, i % W));
    return CVY_OK;
}

CVY_OP_DEFINE(resize_grad) = {
    .name = "resize_grad",
    .summary = "gradient of resize",
    .options = resize_rows,
    .options_size = sizeof(cvy_resize_grad_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS,
    .infer = resize_grad_infer,
    .cost = resize_grad_cost,
    .reference = resize_grad_reference,
    .summands = resize_grad_summands,
};
