/*
 * data_augment_geometry.c: steps that move pixels: mirror, rotate90, the crops, resize, random_resized_crop.
 *
 * They run in the loader's threads, on bytes as long as the picture is bytes. The part of the picture that a step needs
 * is a pure function of (seed, epoch, number) and the picture's size, so it is known before decoding. `choose_window`
 * tells it to the decoder, which decodes only that part and may return a reduced picture; the step computes the same
 * position again and finds it there. random_resized_crop follows Szegedy et al., "Going deeper with convolutions"
 * (2015), as in torchvision.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/number/base_rng.h"
#include "data/augment/data_augment.h"

#include <math.h>
#include <string.h>

#include "data/data_vector.h"
#include "data/picture/data_resize.h"

enum { AXIS_WIDTH, AXIS_HEIGHT /* of volumes also the depth */ };
enum { FIT_COVER, FIT_STRETCH };
enum { DECODE_REDUCED, DECODE_FULL };
enum { CROP_TRIES = 10 };

#define SIZE_HELP                                                                                                      \
    "height and width, one number for both; of a volume also its depth before them, of a series its length"
#define DECODE_ROW                                                                                                     \
    {                                                                                                                  \
        "decode", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, decode), "reduced", "reduced|full", "",               \
            "for the first step: reduced decodes only the part of a JPEG that is needed, at a reduced size if that "   \
            "is enough; full decodes the whole picture"                                                                \
    }
#define FILTER_ROW                                                                                                     \
    {                                                                                                                  \
        "filter", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, filter), "triangle", CVY_FILTER_WORDS, "",            \
            "triangle: linear, over more pixels if the picture shrinks; bilinear: the nearest pixels only; area: the " \
            "mean; nearest: one pixel"                                                                                 \
    }

static const cvy_option mirror_opts[] = {
    {"on", CVY_TYPE_BOOL, CVY_FIELD(cvy_operation_opts, on), "true", "", "", "false switches the step off"},
    {"share", CVY_TYPE_REAL, CVY_FIELD(cvy_operation_opts, share), "0.5", "0..1", "",
     "share of samples that are mirrored"},
    {"axis", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, axis), "width", "width|height|depth", "",
     "axis that is mirrored; the depth is that of volumes, and the width of a series is its time"},
    {0},
};
static const cvy_option rotate90_opts[] = {
    {"on", CVY_TYPE_BOOL, CVY_FIELD(cvy_operation_opts, on), "true", "", "", "false switches the step off"},
    {"share", CVY_TYPE_REAL, CVY_FIELD(cvy_operation_opts, share), "0.75", "0..1", "",
     "share of samples that are rotated, by 90, 180 or 270 degrees with equal chance; pictures that are not square by "
     "180"},
    {"about", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, about), "depth", "depth|height|width", "",
     "of volumes: the axis that stays as it is"},
    {0},
};
static const cvy_option random_crop_opts[] = {
    {"size", CVY_TYPE_INTS, CVY_FIELD(cvy_operation_opts, size), "[]", "1..", "pixels",
     SIZE_HELP "; the picture's own by default"},
    {"pad", CVY_TYPE_INT, CVY_FIELD(cvy_operation_opts, pad), "0", "0..", "pixels",
     "zeros that are added around the picture first"},
    DECODE_ROW,
    {0},
};
static const cvy_option center_crop_opts[] = {
    {"size", CVY_TYPE_INTS, CVY_FIELD(cvy_operation_opts, size), NULL, "1..", "pixels", SIZE_HELP},
    DECODE_ROW,
    {0},
};
static const cvy_option resize_opts[] = {
    {"size", CVY_TYPE_INTS, CVY_FIELD(cvy_operation_opts, size), NULL, "1..", "pixels", SIZE_HELP},
    {"fit", CVY_TYPE_CHOICE, CVY_FIELD(cvy_operation_opts, fit), "cover", "cover|stretch", "",
     "cover keeps the proportions and cuts off what is too long on both sides; stretch changes them"},
    FILTER_ROW,
    DECODE_ROW,
    {0},
};
static const cvy_option random_resized_crop_opts[] = {
    {"size", CVY_TYPE_INTS, CVY_FIELD(cvy_operation_opts, size), NULL, "1..", "pixels", SIZE_HELP},
    {"scale", CVY_TYPE_REALS, CVY_FIELD(cvy_operation_opts, range), "[0.08, 1]", ">0 ..1", "",
     "smallest and largest share of the picture's area that the window has"},
    {"ratio", CVY_TYPE_REALS, CVY_FIELD(cvy_operation_opts, ratio), "[0.75, 1.3333333333333333]", ">0", "",
     "smallest and largest ratio of width to height of the window"},
    {"center", CVY_TYPE_REAL, CVY_FIELD(cvy_operation_opts, center), "0.875", ">0 ..1", "",
     "for test sets: a central window, of which each side is this share of that of the largest window with the "
     "proportions of `size`"},
    FILTER_ROW,
    DECODE_ROW,
    {0},
};

/* ---- whether an operation moves pixels ---- */

static int always(const cvy_operation *s)
{
    (void)s;
    return 1;
}

/* mirror and rotate90: `mirror: no` moves nothing. */
static int is_on(const cvy_operation *s)
{
    return s->o.on && s->o.share > 0;
}

/* ---- where pixels go ---- */

/* Records a move after those that are recorded: (row, column) becomes (a row + b column + c, d row + e column + f). */
static void record_move(cvy_augment_work *w, const double row[3], const double column[3])
{
    const cvy_move m = w->move;
    for (int i = 0; i < 3; i++) {
        w->move.row[i] = row[0] * m.row[i] + row[1] * m.column[i] + (i == 2 ? row[2] : 0);
        w->move.column[i] = column[0] * m.row[i] + column[1] * m.column[i] + (i == 2 ? column[2] : 0);
    }
}

/* The same for a mirror or a rotation that has been done; vectors in x turn with it. */
static cvy_status record_turn(cvy_augment_work *w, const cvy_move *m)
{
    record_move(w, m->row, m->column);
    return w->vectors ? cvy_vectors_turn(w, m) : CVY_OK;
}

/* The same for a move along the axes: row becomes (row - top) / step_y. */
static void record_shift(cvy_augment_work *w, double top, double left, double step_y, double step_x)
{
    record_move(w, (const double[]){1 / step_y, 0, -top / step_y}, (const double[]){0, 1 / step_x, -left / step_x});
}

/* ---- mirror and rotate90 ---- */

CVY_VECTOR static void augment_reverse_bytes(const uint8_t *restrict in, int64_t n, uint8_t *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = in[n - 1 - i];
}

CVY_VECTOR static void augment_reverse_reals(const float *restrict in, int64_t n, float *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = in[n - 1 - i];
}

static void reverse(const void *in, int64_t n, size_t elem, void *out)
{
    if (elem == 1)
        augment_reverse_bytes(in, n, out);
    else
        augment_reverse_reals(in, n, out);
}

static cvy_status mirror_apply(const cvy_operation *s, cvy_augment_work *w)
{
    const cvy_rng rng = cvy_operation_rng(w->a, s, w->epoch, w->number);
    const cvy_picture p = w->pic;
    const size_t elem = cvy_dtype_bytes(p.dtype), row = (size_t)p.W * elem;
    cvy_picture out;
    if (!s->o.on || cvy_rng_uniform(&rng, 0) >= s->o.share)
        return CVY_OK;
    CVY_TRY(cvy_augment_fresh(w, p.dtype, p.H, p.W, 0, &out, NULL));
    for (int64_t i = 0; i < p.C * p.H; i++) {
        const int64_t across = i / p.H * p.H + p.H - 1 - i % p.H;
        if (s->o.axis == AXIS_WIDTH)
            reverse((const char *)p.data + (size_t)i * row, p.W, elem, (char *)out.data + (size_t)i * row);
        else
            memcpy((char *)out.data + (size_t)i * row, (const char *)p.data + (size_t)across * row, row);
    }
    w->pic = out;
    if (s->o.axis == AXIS_WIDTH)
        return record_turn(w, &(cvy_move){{1, 0, 0}, {0, -1, (double)p.W}});
    return record_turn(w, &(cvy_move){{-1, 0, (double)p.H}, {0, 1, 0}});
}

/* A quarter turn to the left, from in [H, W] to out [W, H]; with `back`, to the right. */
static void quarter(const char *in, int64_t H, int64_t W, size_t elem, int back, char *out)
{
    for (int64_t y = 0; y < W; y++) {
        for (int64_t x = 0; x < H; x++) {
            const int64_t from = back ? (H - 1 - x) * W + y : x * W + W - 1 - y, to = y * H + x;
            if (elem == 1)
                out[to] = in[from];
            else
                ((float *)(void *)out)[to] = ((const float *)(const void *)in)[from];
        }
    }
}

static cvy_status rotate90_apply(const cvy_operation *s, cvy_augment_work *w)
{
    const cvy_rng rng = cvy_operation_rng(w->a, s, w->epoch, w->number);
    const cvy_picture p = w->pic;
    const size_t elem = cvy_dtype_bytes(p.dtype), plane = (size_t)(p.H * p.W) * elem;
    cvy_picture out;
    if (!s->o.on || cvy_rng_uniform(&rng, 0) >= s->o.share)
        return CVY_OK;
    const int quarters = p.H == p.W ? 1 + (int)cvy_rng_below(&rng, 1, 3) : 2;
    CVY_TRY(cvy_augment_fresh(w, p.dtype, p.H, p.W, 0, &out, NULL));
    for (int64_t c = 0; c < p.C; c++) {
        const char *from = (const char *)p.data + (size_t)c * plane;
        char *to = (char *)out.data + (size_t)c * plane;
        if (quarters == 2)
            reverse(from, p.H * p.W, elem, to);
        else
            quarter(from, p.H, p.W, elem, quarters == 3, to);
    }
    w->pic = out;
    if (quarters == 1)
        return record_turn(w, &(cvy_move){{0, -1, (double)p.W}, {1, 0, 0}});
    if (quarters == 2)
        return record_turn(w, &(cvy_move){{-1, 0, (double)p.H}, {0, -1, (double)p.W}});
    return record_turn(w, &(cvy_move){{0, 1, 0}, {-1, 0, (double)p.H}});
}

/* ---- crops ---- */

struct box { /* pixels of the whole picture; with a pad the box may be partly outside */
    int64_t top, left, height, width;
};

static int64_t whole_height(const cvy_picture *p)
{
    return p->eighths ? p->whole_h : p->H;
}

static int64_t whole_width(const cvy_picture *p)
{
    return p->eighths ? p->whole_w : p->W;
}

cvy_status cvy_crop_fits(const char *name, int64_t H, int64_t W, int64_t pad, int64_t h, int64_t wd)
{
    CVY_CHECK(H + 2 * pad >= h && W + 2 * pad >= wd, CVY_E_SHAPE,
              "%s of %lldx%lld does not fit into a picture of %lldx%lld with pad %lld: put a resize before it", name,
              (long long)h, (long long)wd, (long long)H, (long long)W, (long long)pad);
    return CVY_OK;
}

/* The box of a crop; the crop must fit. */
static struct box crop_box(const cvy_augment *a, const cvy_operation *s, uint64_t epoch, int64_t number, int64_t H,
                           int64_t W)
{
    const int64_t h = cvy_ints_at(&s->o.size, 0, H), wd = cvy_ints_at(&s->o.size, 1, W), pad = s->o.pad;
    const int64_t rows = H + 2 * pad - h, columns = W + 2 * pad - wd;
    struct box b = {rows / 2 - pad, columns / 2 - pad, h, wd};
    if (a->random && s->def->random_position) {
        const cvy_rng rng = cvy_operation_rng(a, s, epoch, number);
        b.top = (int64_t)cvy_rng_below(&rng, 0, (uint64_t)rows + 1) - pad;
        b.left = (int64_t)cvy_rng_below(&rng, 1, (uint64_t)columns + 1) - pad;
    }
    return b;
}

/* Fills a row of pixels that are outside the picture, at least in part. */
static void fill_outside(const cvy_augment_work *w, void *row, int64_t n)
{
    memset(row, 0, (size_t)n * cvy_dtype_bytes(w->pic.dtype));
    for (int64_t i = 0; i < n && w->is_label_map; i++)
        ((float *)row)[i] = CVY_LABEL_OUTSIDE;
}

/* Copies the window; pixels outside the picture become zero, or the label for that. */
static cvy_status cut(cvy_augment_work *w, const struct box *b)
{
    const cvy_picture from = w->pic;
    const int64_t top = b->top - from.top, left = b->left - from.left, W = b->width;
    const int64_t x0 = CVY_MAX(left, 0), x1 = CVY_MIN(left + W, from.W);
    const size_t elem = cvy_dtype_bytes(from.dtype);
    cvy_picture to;
    CVY_TRY(cvy_augment_fresh(w, from.dtype, b->height, W, 0, &to, NULL));
    for (int64_t i = 0; i < from.C * b->height; i++) {
        const int64_t c = i / b->height, y = i % b->height + top;
        char *row = (char *)to.data + (size_t)(i * W) * elem;
        if (x0 > left || x1 < left + W || y < 0 || y >= from.H)
            fill_outside(w, row, W);
        if (y >= 0 && y < from.H && x1 > x0)
            memcpy(row + (size_t)(x0 - left) * elem,
                   (const char *)from.data + (size_t)((c * from.H + y) * from.W + x0) * elem, (size_t)(x1 - x0) * elem);
    }
    w->pic = to;
    return CVY_OK;
}

static cvy_status crop_apply(const cvy_operation *s, cvy_augment_work *w)
{
    const int64_t H = whole_height(&w->pic), W = whole_width(&w->pic);
    CVY_TRY(cvy_crop_fits(s->def->name, H, W, s->o.pad, cvy_ints_at(&s->o.size, 0, H), cvy_ints_at(&s->o.size, 1, W)));
    const struct box b = crop_box(w->a, s, w->epoch, w->number, H, W);
    const int is_padded = b.top < 0 || b.left < 0 || b.top + b.height > H || b.left + b.width > W;
    record_shift(w, (double)b.top, (double)b.left, 1, 1);
    if (is_padded && w->affine.n > 0)
        CVY_TRY(cvy_augment_reals(w));
    if (b.top == w->pic.top && b.left == w->pic.left && b.height == w->pic.H && b.width == w->pic.W) {
        w->pic.eighths = 0;
        return CVY_OK;
    }
    return cut(w, &b);
}

static int crop_window(const cvy_augment *a, const cvy_operation *s, uint64_t epoch, int64_t number, int64_t H,
                       int64_t W, cvy_picture_window *out)
{
    const int64_t h = cvy_ints_at(&s->o.size, 0, H), wd = cvy_ints_at(&s->o.size, 1, W);
    if (s->o.decode == DECODE_FULL || H + 2 * s->o.pad < h || W + 2 * s->o.pad < wd)
        return 0;
    const struct box b = crop_box(a, s, epoch, number, H, W);
    const int64_t y0 = CVY_MAX(b.top, 0), y1 = CVY_MIN(b.top + b.height, H);
    const int64_t x0 = CVY_MAX(b.left, 0), x1 = CVY_MIN(b.left + b.width, W);
    *out = (cvy_picture_window){.top = y0, .left = x0, .height = y1 - y0, .width = x1 - x0, .scale = 1};
    return y1 > y0 && x1 > x0;
}

/* ---- resize and random_resized_crop ---- */

struct view { /* h x w results; (i, j) has its centre at (top + (i + 0.5) step_y, left + (j + 0.5) step_x) */
    double top, left, step_y, step_x;
    int64_t h, w;
    struct box within; /* source pixels that may be used */
};

/* The view of the middle: `share` of the largest window with the proportions of `size`, or, if `fit` is stretch, the
 * whole picture. */
static struct view middle_view(const cvy_operation *s, double share, int64_t H, int64_t W)
{
    const int64_t h = cvy_ints_at(&s->o.size, 0, 0), wd = cvy_ints_at(&s->o.size, 1, 0);
    double step_y = (double)H / (double)h, step_x = (double)W / (double)wd;
    if (s->o.fit == FIT_COVER)
        step_y = step_x = CVY_MIN(step_y, step_x) * share;
    return (struct view){.top = ((double)H - step_y * (double)h) / 2,
                         .left = ((double)W - step_x * (double)wd) / 2,
                         .step_y = step_y,
                         .step_x = step_x,
                         .h = h,
                         .w = wd,
                         .within = {0, 0, H, W}};
}

/* Draws a share of the area and a ratio of the sides, up to ten times. If no box fits, it is the middle, cut to the
 * nearest allowed ratio. */
static struct box random_box(const cvy_operation *s, const cvy_rng *rng, int64_t H, int64_t W)
{
    const cvy_reals *scale = &s->o.range, *ratio = &s->o.ratio;
    const double least = scale->at[0], most = scale->at[scale->count - 1];
    const double narrow = ratio->at[0], wide = ratio->at[ratio->count - 1];
    for (uint64_t k = 0; k < CROP_TRIES; k++) {
        const double area = (double)H * (double)W * (least + (most - least) * cvy_rng_uniform(rng, 4 * k));
        const double r = exp(log(narrow) + (log(wide) - log(narrow)) * cvy_rng_uniform(rng, 4 * k + 1));
        const int64_t wd = (int64_t)floor(sqrt(area * r) + 0.5), h = (int64_t)floor(sqrt(area / r) + 0.5);
        if (wd > 0 && h > 0 && wd <= W && h <= H)
            return (struct box){(int64_t)cvy_rng_below(rng, 4 * k + 2, (uint64_t)(H - h) + 1),
                                (int64_t)cvy_rng_below(rng, 4 * k + 3, (uint64_t)(W - wd) + 1), h, wd};
    }
    int64_t h = H, wd = W;
    if ((double)W < narrow * (double)H)
        h = CVY_MAX((int64_t)floor((double)W / narrow + 0.5), 1);
    else if ((double)W > wide * (double)H)
        wd = CVY_MAX((int64_t)floor((double)H * wide + 0.5), 1);
    return (struct box){(H - h) / 2, (W - wd) / 2, h, wd};
}

/* The view that the step takes of a picture of H x W, with its inner crop. */
static struct view view_of(const cvy_augment *a, const cvy_operation *s, uint64_t epoch, int64_t number, int64_t H,
                           int64_t W)
{
    const int is_crop = s->def->random_position;
    struct view v = middle_view(s, is_crop ? s->o.center : 1, H, W);
    if (is_crop && a->random) {
        const cvy_rng rng = cvy_operation_rng(a, s, epoch, number);
        const struct box b = random_box(s, &rng, H, W);
        v = (struct view){.top = (double)b.top,
                          .left = (double)b.left,
                          .step_y = (double)b.height / (double)v.h,
                          .step_x = (double)b.width / (double)v.w,
                          .h = v.h,
                          .w = v.w,
                          .within = b};
    }
    if (s->inner) {
        const struct box b = crop_box(a, s->inner, epoch, number, v.h, v.w);
        v.top += (double)b.top * v.step_y;
        v.left += (double)b.left * v.step_x;
        v.h = b.height;
        v.w = b.width;
    }
    return v;
}

/* One axis of the view in the decoded picture, which has `size` pixels from `offset` on, scaled by k. */
static cvy_resize_axis axis_of(double start, double step, int64_t n, int64_t lo, int64_t count, double k,
                               int64_t offset, int64_t size)
{
    cvy_resize_axis a = {.n = n, .start = start * k - (double)offset, .step = step * k};
    a.lo = CVY_MAX((int64_t)floor((double)lo * k) - offset, 0);
    a.hi = CVY_MIN((int64_t)ceil((double)(lo + count) * k) - offset, size);
    return a;
}

static cvy_status view_apply(const cvy_operation *s, cvy_augment_work *w)
{
    const cvy_picture p = w->pic;
    const struct view v = view_of(w->a, s, w->epoch, w->number, whole_height(&p), whole_width(&p));
    const struct box *in = &v.within;
    const double k = p.eighths ? p.eighths / 8.0 : 1;
    const cvy_filter filter = w->is_label_map ? CVY_FILTER_NEAREST : (cvy_filter)s->o.filter;
    const cvy_resize_axis y = axis_of(v.top, v.step_y, v.h, in->top, in->height, k, p.top, p.H);
    const cvy_resize_axis x = axis_of(v.left, v.step_x, v.w, in->left, in->width, k, p.left, p.W);
    cvy_picture to;
    void *scratch = NULL;
    record_shift(w, v.top, v.left, v.step_y, v.step_x);
    if (p.H == v.h && p.W == v.w && y.start == 0 && x.start == 0 && y.step == 1 && x.step == 1) {
        w->pic.eighths = 0;
        w->pic.top = w->pic.left = 0;
        return CVY_OK;
    }
    CVY_CHECK(y.lo < y.hi && x.lo < x.hi, CVY_E_INTERNAL, "%s: the window is not in what was decoded", s->def->name);
    CVY_TRY(cvy_augment_fresh(w, p.dtype, v.h, v.w, cvy_resize_scratch(filter, &y, &x), &to, &scratch));
    cvy_resize(filter, &p, &y, &x, scratch, &to);
    w->pic = to;
    return CVY_OK;
}

/* The pixels that n results of this axis need: *size pixels from *from on. A filter reaches one step, and at least one
 * pixel, beyond the centres. */
static void reach(double start, double step, int64_t n, int64_t lo, int64_t count, int64_t *from, int64_t *size)
{
    const double radius = CVY_MAX(step, 1.0) + 1;
    *from = CVY_MAX((int64_t)floor(start - radius), lo);
    *size = CVY_MIN((int64_t)ceil(start + step * (double)n + radius), lo + count) - *from;
}

static int view_window(const cvy_augment *a, const cvy_operation *s, uint64_t epoch, int64_t number, int64_t H,
                       int64_t W, cvy_picture_window *out)
{
    if (s->o.decode == DECODE_FULL)
        return 0;
    const struct view v = view_of(a, s, epoch, number, H, W);
    cvy_picture_window win = {.scale = CVY_MAX(1 / v.step_y, 1 / v.step_x)};
    reach(v.top, v.step_y, v.h, v.within.top, v.within.height, &win.top, &win.height);
    reach(v.left, v.step_x, v.w, v.within.left, v.within.width, &win.left, &win.width);
    *out = win;
    return win.height > 0 && win.width > 0;
}

CVY_AUGMENT_DEFINE(mirror) = {
    .name = "mirror",
    .options = mirror_opts,
    .short_key = "on",
    .spatial = 1,
    .only_random = 1,
    .turns = CVY_TURN_SIGNS,
    .moves_pixels = is_on,
    .apply = mirror_apply,
    .apply_space = cvy_space_mirror,
};

CVY_AUGMENT_DEFINE(rotate90) = {
    .name = "rotate90",
    .options = rotate90_opts,
    .short_key = "on",
    .spatial = 1,
    .only_random = 1,
    .turns = CVY_TURN_EXCHANGE,
    .moves_pixels = is_on,
    .apply = rotate90_apply,
    .apply_space = cvy_space_rotate90,
};

CVY_AUGMENT_DEFINE(random_crop) = {
    .name = "random_crop",
    .options = random_crop_opts,
    .short_key = "size",
    .spatial = 1,
    .fixes_size = 1,
    .random_position = 1,
    .moves_pixels = always,
    .apply = crop_apply,
    .apply_space = cvy_space_crop,
    .choose_window = crop_window,
};

CVY_AUGMENT_DEFINE(center_crop) = {
    .name = "center_crop",
    .options = center_crop_opts,
    .short_key = "size",
    .spatial = 1,
    .fixes_size = 1,
    .moves_pixels = always,
    .apply = crop_apply,
    .apply_space = cvy_space_crop,
    .choose_window = crop_window,
};

CVY_AUGMENT_DEFINE(resize) = {
    .name = "resize",
    .options = resize_opts,
    .short_key = "size",
    .spatial = 1,
    .fixes_size = 1,
    .any_size = 1,
    .moves_pixels = always,
    .apply = view_apply,
    .choose_window = view_window,
};

CVY_AUGMENT_DEFINE(random_resized_crop) = {
    .name = "random_resized_crop",
    .options = random_resized_crop_opts,
    .short_key = "size",
    .spatial = 1,
    .fixes_size = 1,
    .random_position = 1,
    .any_size = 1,
    .moves_pixels = always,
    .apply = view_apply,
    .choose_window = view_window,
};
