/*
 * resize: upsampling and downsampling of pictures [N, C, H, W]. Networks for segmentation and generators have it.
 * Source: torch.nn.functional.interpolate of PyTorch, with the same options and results.
 *
 *     dst  = sum of src over rows and columns, by the weights of both dimensions
 *     dsrc = sum of ddst by the same weights
 *
 * Place x of the result is place p(x) of the source. With `ratio` = source positions / result positions or, if `scale`
 * is given, 1 / scale:
 *
 *     nearest                      p(x) = floor(x * ratio), in f32 as in PyTorch
 *     bilinear                     p(x) = (x + 1/2) * ratio - 1/2, at least 0: corners of pixels are aligned
 *     bilinear, align_corners      p(x) = x * (source positions - 1) / (result positions - 1): centres of the outermost
 *                                  pixels are aligned
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_resize.h"

#include <math.h>

#include "graph/graph_grad.h"

static const cvy_option resize_rows[] = {
    {"mode", CVY_TYPE_CHOICE, CVY_FIELD(cvy_resize_opts, mode), "nearest", "nearest|bilinear", "",
     "nearest: the value of one source position; bilinear: linear between two in each dimension"},
    {"size", CVY_TYPE_INTS, CVY_FIELD(cvy_resize_opts, size), "", "1..", "",
     "positions of the result, one number or [rows, columns]"},
    {"scale", CVY_TYPE_REALS, CVY_FIELD(cvy_resize_opts, scale), "", ">0", "",
     "factor on the positions in place of size, one number or [rows, columns]; the result is rounded down"},
    {"align_corners", CVY_TYPE_BOOL, CVY_FIELD(cvy_resize_opts, align_corners), "false", "", "",
     "bilinear: the centres of the corner pixels keep their place, not the corners of the picture"},
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

cvy_resize_tap cvy_resize_tap_at(const cvy_resize_opts *o, int d, int64_t src, int64_t dst, int64_t at)
{
    const double ratio = ratio_of(o, d, src, dst);
    if (o->mode == CVY_RESIZE_NEAREST) {
        const int64_t place = CVY_MIN((int64_t)floorf((float)at * (float)ratio), src - 1);
        return (cvy_resize_tap){place, place, 0};
    }
    const double place = o->align_corners ? (double)at * ratio : fmax(((double)at + 0.5) * ratio - 0.5, 0);
    const int64_t low = CVY_MIN((int64_t)place, src - 1);
    return (cvy_resize_tap){low, CVY_MIN(low + 1, src - 1), fmin(place - (double)low, 1)};
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
    CVY_CHECK(o->mode == CVY_RESIZE_BILINEAR || !o->align_corners, CVY_E_CONFIG,
              "resize: `align_corners` is for mode: bilinear");
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
    return (cvy_cost){
        .flop = o->mode == CVY_RESIZE_BILINEAR ? 7 * large : 0, .read_elems = small, .write_elems = large};
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
        const int64_t low = (e / (rows * columns) * H + y.low) * W, high = low + (y.high - y.low) * W;
        const double upper = (1 - x.weight) * cvy_get(src, low + x.low) + x.weight * cvy_get(src, low + x.high),
                     lower = (1 - x.weight) * cvy_get(src, high + x.low) + x.weight * cvy_get(src, high + x.high);
        cvy_set(dst, e, (1 - y.weight) * upper + y.weight * lower);
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
        count *= 2 * (cvy_node_src(node, 0)->dim[d] / o->src.dim[d] + 2);
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
