/*
 * data_augment.c: the job's `data.augment` list: what happens to a sample's x between the reader and the batch.
 *
 * In the step: in the loader's threads, after decoding. Every random choice is drawn from (seed, "augment.<step>",
 * epoch, sample number), so it does not depend on ranks, threads or order. For test sets (random 0) mirrors fall away
 * and random crops become central. Pictures of bytes are divided by 255 on their way to f32, unless the list has a
 * `scale` step, which then sees 0 .. 255. Resizing is the separable triangle filter, widened where it shrinks (as
 * Pillow and torchvision with antialias do).
 */
#include "data/data_reader.h"

#include <math.h>
#include <string.h>

enum { STEPS_MAX = 32 };
enum { AXIS_WIDTH, AXIS_HEIGHT };
enum { FIT_COVER, FIT_STRETCH };

/* One struct for the options of all steps; each table names the fields it uses. */
struct step_opts {
    cvy_ints size;
    int64_t pad;
    double by, share;
    int on, axis, fit;
    cvy_reals mean, std;
};

static const cvy_option mirror_opts[] = {
    {"on", CVY_TYPE_BOOL, CVY_FIELD(step_opts, on), "true", "", "", "false switches the step off"},
    {"share", CVY_TYPE_REAL, CVY_FIELD(step_opts, share), "0.5", "0..1", "", "share of samples that are mirrored"},
    {"axis", CVY_TYPE_CHOICE, CVY_FIELD(step_opts, axis), "width", "width|height", "", "axis that is turned round"},
    {0},
};
static const cvy_option random_crop_opts[] = {
    {"size", CVY_TYPE_INTS, CVY_FIELD(step_opts, size), "[]", "1..", "pixels",
     "height and width, one number for both; the picture's own by default"},
    {"pad", CVY_TYPE_INT, CVY_FIELD(step_opts, pad), "0", "0..", "pixels", "zeros put round the picture before"},
    {0},
};
static const cvy_option center_crop_opts[] = {
    {"size", CVY_TYPE_INTS, CVY_FIELD(step_opts, size), NULL, "1..", "pixels", "height and width, one number for both"},
    {0},
};
static const cvy_option resize_opts[] = {
    {"size", CVY_TYPE_INTS, CVY_FIELD(step_opts, size), NULL, "1..", "pixels", "height and width, one number for both"},
    {"fit", CVY_TYPE_CHOICE, CVY_FIELD(step_opts, fit), "cover", "cover|stretch", "",
     "cover keeps proportions and cuts the overhang on both sides"},
    {0},
};
static const cvy_option scale_opts[] = {
    {"by", CVY_TYPE_REAL, CVY_FIELD(step_opts, by), NULL, "", "", "factor"},
    {0},
};
static const cvy_option log_opts[] = {
    {"by", CVY_TYPE_REAL, CVY_FIELD(step_opts, by), "1", ">0", "", "x becomes sign(x) ln(1 + |x| / by)"},
    {0},
};
static const cvy_option mean_opts[] = {
    {"values", CVY_TYPE_REALS, CVY_FIELD(step_opts, mean), NULL, "", "", "subtracted, one number or one a channel"},
    {0},
};
static const cvy_option std_opts[] = {
    {"values", CVY_TYPE_REALS, CVY_FIELD(step_opts, std), NULL, ">0", "", "divided by, one number or one a channel"},
    {0},
};
static const cvy_option normalize_opts[] = {
    {"mean", CVY_TYPE_REALS, CVY_FIELD(step_opts, mean), "0", "", "", "subtracted first, one number or one a channel"},
    {"std", CVY_TYPE_REALS, CVY_FIELD(step_opts, std), "1", ">0", "", "then divided by, one number or one a channel"},
    {0},
};

struct step;
struct work { /* a picture on its way */
    const cvy_augment *a;
    cvy_picture pic;
    cvy_bytes *scratch; /* two; the picture lies in neither or in scratch[1 - turn] */
    int turn;
    uint64_t epoch;
    int64_t number;
};
typedef cvy_status (*step_fn)(const struct step *s, struct work *w);

typedef struct step_def {
    const char *name;
    const cvy_option *options;
    const char *short_key; /* `resize: 64` means `resize: {size: 64}` */
    int spatial;           /* needs [C, H, W] */
    int only_random;       /* falls away for test sets */
    int fixes_size;        /* `size`, where given, is the picture's size afterwards */
    step_fn apply;
} step_def;

struct step {
    const step_def *def;
    struct step_opts o;
    uint64_t stream;
};

struct cvy_augment {
    cvy_pool *pool;
    struct step step[STEPS_MAX];
    int nstep, random, spatial, varying, has_scale;
    uint64_t seed;
    cvy_shape shape; /* afterwards */
};

/* ---- the picture's memory ---- */

static size_t picture_bytes(const cvy_picture *p)
{
    return (size_t)(p->C * p->H * p->W) * cvy_dtype_bytes(p->dtype);
}

/* A picture in the scratch that the current one does not use, `extra` bytes behind it. */
static cvy_status fresh(struct work *w, cvy_dtype dtype, int64_t H, int64_t W, size_t extra, cvy_picture *out)
{
    cvy_picture p = {.dtype = dtype, .C = w->pic.C, .H = H, .W = W};
    cvy_bytes *room = &w->scratch[w->turn];
    CVY_TRY(cvy_bytes_need(room, picture_bytes(&p) + extra));
    p.data = room->data;
    w->turn = 1 - w->turn;
    *out = p;
    return CVY_OK;
}

static void bytes_to_reals(const cvy_augment *a, const cvy_picture *p, float *out)
{
    const uint8_t *in = p->data;
    const float factor = a->has_scale ? 1.0f : 1.0f / 255.0f;
    const int64_t n = p->C * p->H * p->W;
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)in[i] * factor;
}

static cvy_status need_reals(struct work *w)
{
    cvy_picture p;
    if (w->pic.dtype == CVY_DTYPE_F32)
        return CVY_OK;
    CVY_TRY(fresh(w, CVY_DTYPE_F32, w->pic.H, w->pic.W, 0, &p));
    bytes_to_reals(w->a, &w->pic, p.data);
    w->pic = p;
    return CVY_OK;
}

/* ---- geometric steps ---- */

static void turn_row(void *row, int64_t n, size_t elem)
{
    if (elem == 1) {
        uint8_t *x = row;
        for (int64_t i = 0; i < n / 2; i++) {
            const uint8_t t = x[i];
            x[i] = x[n - 1 - i];
            x[n - 1 - i] = t;
        }
    } else {
        float *x = row;
        for (int64_t i = 0; i < n / 2; i++) {
            const float t = x[i];
            x[i] = x[n - 1 - i];
            x[n - 1 - i] = t;
        }
    }
}

static cvy_status mirror_apply(const struct step *s, struct work *w)
{
    const cvy_rng rng = cvy_rng_make_hashed(w->a->seed, s->stream, w->epoch, (uint64_t)w->number);
    cvy_picture *p = &w->pic, turned;
    const size_t elem = cvy_dtype_bytes(p->dtype), row = (size_t)p->W * elem;
    if (!s->o.on || cvy_rng_uniform(&rng, 0) >= s->o.share)
        return CVY_OK;
    if (s->o.axis == AXIS_WIDTH) {
        for (int64_t i = 0; i < p->C * p->H; i++)
            turn_row((char *)p->data + (size_t)i * row, p->W, elem);
        return CVY_OK;
    }
    CVY_TRY(fresh(w, p->dtype, p->H, p->W, 0, &turned));
    for (int64_t c = 0; c < p->C; c++)
        for (int64_t y = 0; y < p->H; y++)
            memcpy((char *)turned.data + (size_t)(c * p->H + y) * row,
                   (char *)p->data + (size_t)(c * p->H + p->H - 1 - y) * row, row);
    *p = turned;
    return CVY_OK;
}

/* Copies the window of H x W whose corner lies at (top, left) of the picture; what is outside becomes zero. */
static cvy_status crop(struct work *w, int64_t top, int64_t left, int64_t H, int64_t W)
{
    const cvy_picture from = w->pic;
    cvy_picture to;
    const size_t elem = cvy_dtype_bytes(from.dtype);
    const int64_t x0 = CVY_MAX(left, 0), x1 = CVY_MIN(left + W, from.W);
    CVY_TRY(fresh(w, from.dtype, H, W, 0, &to));
    for (int64_t c = 0; c < from.C; c++) {
        for (int64_t y = 0; y < H; y++) {
            char *row = (char *)to.data + (size_t)((c * H + y) * W) * elem;
            const int64_t from_y = y + top;
            if (x0 > left || x1 < left + W || from_y < 0 || from_y >= from.H)
                memset(row, 0, (size_t)W * elem);
            if (from_y >= 0 && from_y < from.H && x1 > x0)
                memcpy(row + (size_t)(x0 - left) * elem,
                       (char *)from.data + (size_t)((c * from.H + from_y) * from.W + x0) * elem,
                       (size_t)(x1 - x0) * elem);
        }
    }
    w->pic = to;
    return CVY_OK;
}

static cvy_status crop_fits(const char *name, int64_t H, int64_t W, int64_t pad, int64_t h, int64_t wd)
{
    CVY_CHECK(H + 2 * pad >= h && W + 2 * pad >= wd, CVY_E_SHAPE,
              "%s of %lldx%lld does not fit into a picture of %lldx%lld with pad %lld: put a resize before it", name,
              (long long)h, (long long)wd, (long long)H, (long long)W, (long long)pad);
    return CVY_OK;
}

static cvy_status random_crop_apply(const struct step *s, struct work *w)
{
    const cvy_picture *p = &w->pic;
    const int64_t H = cvy_ints_at(&s->o.size, 0, p->H), W = cvy_ints_at(&s->o.size, 1, p->W), pad = s->o.pad;
    CVY_TRY(crop_fits("random_crop", p->H, p->W, pad, H, W));
    const int64_t rows = p->H + 2 * pad - H, cols = p->W + 2 * pad - W;
    int64_t top = rows / 2, left = cols / 2;
    if (w->a->random) {
        const cvy_rng rng = cvy_rng_make_hashed(w->a->seed, s->stream, w->epoch, (uint64_t)w->number);
        top = (int64_t)cvy_rng_below(&rng, 0, (uint64_t)rows + 1);
        left = (int64_t)cvy_rng_below(&rng, 1, (uint64_t)cols + 1);
    }
    return crop(w, top - pad, left - pad, H, W);
}

static cvy_status center_crop_apply(const struct step *s, struct work *w)
{
    const int64_t H = cvy_ints_at(&s->o.size, 0, 0), W = cvy_ints_at(&s->o.size, 1, 0);
    CVY_TRY(crop_fits("center_crop", w->pic.H, w->pic.W, 0, H, W));
    return crop(w, (w->pic.H - H) / 2, (w->pic.W - W) / 2, H, W);
}

/* The filter of one axis: for each of n results its first source and `taps` weights (sum 1), for a window of `span`
 * sources from `start`. */
static void triangle_weights(int64_t n, double start, double span, int64_t nsource, int64_t taps, int32_t *first,
                             float *weight)
{
    const double step = span / (double)n, width = CVY_MAX(step, 1.0);
    for (int64_t i = 0; i < n; i++) {
        const double center = start + ((double)i + 0.5) * step;
        int64_t from = (int64_t)ceil(center - width - 0.5);
        from = CVY_MAX(CVY_MIN(from, nsource - 1), 0);
        double sum = 0;
        for (int64_t t = 0; t < taps; t++) {
            const double far = from + t < nsource ? fabs((double)(from + t) + 0.5 - center) / width : 1;
            weight[i * taps + t] = far < 1 ? (float)(1 - far) : 0;
            sum += weight[i * taps + t];
        }
        for (int64_t t = 0; t < taps; t++)
            weight[i * taps + t] = sum > 0 ? (float)(weight[i * taps + t] / sum) : (float)(t == 0);
        first[i] = (int32_t)from;
    }
}

static int64_t triangle_taps(int64_t n, double span)
{
    return (int64_t)ceil(2 * CVY_MAX(span / (double)n, 1.0)) + 1;
}

/* in [rows, width] -> out [rows, n], along the rows. */
static void resize_rows(const float *in, int64_t rows, int64_t width, int64_t n, int64_t taps, const int32_t *first,
                        const float *weight, float *out)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++) {
            const float *x = in + r * width + first[i], *f = weight + i * taps;
            const int64_t count = CVY_MIN(taps, width - first[i]);
            float sum = 0;
            for (int64_t t = 0; t < count; t++)
                sum += x[t] * f[t];
            out[r * n + i] = sum;
        }
    }
}

/* in [height, width] -> out [n, width], across the rows. */
static void resize_columns(const float *in, int64_t height, int64_t width, int64_t n, int64_t taps,
                           const int32_t *first, const float *weight, float *out)
{
    memset(out, 0, (size_t)(n * width) * sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t t = 0; t < taps && first[i] + t < height; t++) {
            const float f = weight[i * taps + t], *x = in + (first[i] + t) * width;
            for (int64_t j = 0; f != 0 && j < width; j++)
                out[i * width + j] += f * x[j];
        }
    }
}

static cvy_status resize_apply(const struct step *s, struct work *w)
{
    const int64_t h = cvy_ints_at(&s->o.size, 0, 0), wd = cvy_ints_at(&s->o.size, 1, 0);
    const int64_t H = w->pic.H, W = w->pic.W;
    cvy_picture half, full;
    if (H == h && W == wd)
        return CVY_OK;
    double span_y = (double)H, span_x = (double)W;
    if (s->o.fit == FIT_COVER) {
        const double scale = CVY_MIN(span_y / (double)h, span_x / (double)wd);
        span_y = scale * (double)h;
        span_x = scale * (double)wd;
    }
    const int64_t taps_x = triangle_taps(wd, span_x), taps_y = triangle_taps(h, span_y);
    const size_t extra = (size_t)(CVY_MAX(wd, h) + CVY_MAX(wd * taps_x, h * taps_y)) * sizeof(float);
    CVY_TRY(need_reals(w));
    const float *in = w->pic.data;
    CVY_TRY(fresh(w, CVY_DTYPE_F32, H, wd, extra, &half));
    int32_t *first = (int32_t *)(void *)((char *)half.data + picture_bytes(&half));
    float *weight = (float *)(void *)(first + CVY_MAX(wd, h));
    triangle_weights(wd, ((double)W - span_x) / 2, span_x, W, taps_x, first, weight);
    resize_rows(in, half.C * H, W, wd, taps_x, first, weight, half.data);
    triangle_weights(h, ((double)H - span_y) / 2, span_y, H, taps_y, first, weight);
    CVY_TRY(fresh(w, CVY_DTYPE_F32, h, wd, 0, &full));
    for (int64_t c = 0; c < full.C; c++)
        resize_columns((float *)half.data + c * H * wd, H, wd, h, taps_y, first, weight,
                       (float *)full.data + c * h * wd);
    w->pic = full;
    return CVY_OK;
}

/* ---- steps on values ---- */

static cvy_status affine(struct work *w, const cvy_reals *mean, const cvy_reals *std, double factor)
{
    CVY_TRY(need_reals(w));
    const int64_t plane = w->pic.H * w->pic.W;
    for (int64_t c = 0; c < w->pic.C; c++) {
        const int channel = (int)CVY_MIN(c, CVY_LIST_MAX - 1);
        const double m = mean && mean->count ? mean->at[mean->count == 1 ? 0 : channel] : 0;
        const double f = factor / (std && std->count ? std->at[std->count == 1 ? 0 : channel] : 1);
        const float by = (float)f, add = (float)(-m * f);
        float *x = (float *)w->pic.data + c * plane;
        for (int64_t i = 0; i < plane; i++)
            x[i] = x[i] * by + add;
    }
    return CVY_OK;
}

static cvy_status scale_apply(const struct step *s, struct work *w)
{
    return affine(w, NULL, NULL, s->o.by);
}

static cvy_status normalize_apply(const struct step *s, struct work *w)
{
    return affine(w, &s->o.mean, &s->o.std, 1);
}

static cvy_status log_apply(const struct step *s, struct work *w)
{
    CVY_TRY(need_reals(w));
    float *x = w->pic.data;
    const int64_t n = w->pic.C * w->pic.H * w->pic.W;
    const float by = (float)(1 / s->o.by);
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0) /* detector images are mostly empty */
            x[i] = copysignf(log1pf(fabsf(x[i]) * by), x[i]);
    return CVY_OK;
}

static const step_def step_defs[] = {
    {.name = "mirror",
     .options = mirror_opts,
     .short_key = "on",
     .spatial = 1,
     .only_random = 1,
     .apply = mirror_apply},
    {.name = "random_crop",
     .options = random_crop_opts,
     .short_key = "size",
     .spatial = 1,
     .fixes_size = 1,
     .apply = random_crop_apply},
    {.name = "center_crop",
     .options = center_crop_opts,
     .short_key = "size",
     .spatial = 1,
     .fixes_size = 1,
     .apply = center_crop_apply},
    {.name = "resize",
     .options = resize_opts,
     .short_key = "size",
     .spatial = 1,
     .fixes_size = 1,
     .apply = resize_apply},
    {.name = "scale", .options = scale_opts, .short_key = "by", .apply = scale_apply},
    {.name = "log", .options = log_opts, .short_key = "by", .apply = log_apply},
    {.name = "mean", .options = mean_opts, .short_key = "values", .apply = normalize_apply},
    {.name = "std", .options = std_opts, .short_key = "values", .apply = normalize_apply},
    {.name = "normalize", .options = normalize_opts, .apply = normalize_apply},
};

/* ---- the list ---- */

static cvy_status check_channels(const cvy_augment *a, const struct step *s, const cvy_reals *list, const cvy_tree *at)
{
    const int64_t channels = a->shape.ndim > 0 ? a->shape.dim[0] : 1;
    CVY_CHECK(list->count <= 1 || list->count == channels, CVY_E_CONFIG,
              "%s: %s has %d values, expected 1 or %lld (one a channel)", cvy_tree_where(at), s->def->name, list->count,
              (long long)channels);
    return CVY_OK;
}

/* Shape after the step, as far as it is known before a picture is seen. */
static cvy_status follow_shape(cvy_augment *a, const struct step *s, const cvy_tree *at, int *known)
{
    if (!s->def->fixes_size || s->o.size.count == 0)
        return CVY_OK;
    const int64_t H = cvy_ints_at(&s->o.size, 0, 0), W = cvy_ints_at(&s->o.size, 1, 0);
    if (*known && s->def->apply != resize_apply &&
        crop_fits(s->def->name, a->shape.dim[1], a->shape.dim[2], s->o.pad, H, W) != CVY_OK)
        return cvy_error_prefix(CVY_E_SHAPE, "%s", cvy_tree_where(at));
    a->shape.dim[1] = H;
    a->shape.dim[2] = W;
    *known = 1;
    return CVY_OK;
}

static cvy_status name_stream(cvy_augment *a, struct step *s)
{
    int nth = 1;
    char name[64];
    for (const struct step *before = a->step; before < s; before++)
        nth += before->def == s->def;
    if (nth == 1)
        snprintf(name, sizeof name, "augment.%s", s->def->name);
    else
        snprintf(name, sizeof name, "augment.%s.%d", s->def->name, nth);
    s->stream = cvy_rng_name(name);
    return CVY_OK;
}

static cvy_status find_step(const char *name, const cvy_tree *at, const step_def **out)
{
    const char *names[CVY_COUNT(step_defs)];
    for (int i = 0; i < CVY_COUNT(step_defs); i++) {
        names[i] = step_defs[i].name;
        if (strcmp(names[i], name) == 0) {
            *out = &step_defs[i];
            return CVY_OK;
        }
    }
    const char *near = cvy_text_nearest(name, names, CVY_COUNT(step_defs));
    CVY_FAIL(CVY_E_CONFIG,
             "%s: unknown augmentation \"%s\"%s%s%s; known are mirror, random_crop, center_crop, resize, scale, log, "
             "mean, std, normalize",
             cvy_tree_where(at), name, near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* name: {options}, or name: value for the step's main option, or the name alone. */
static cvy_status add_step(cvy_augment *a, const char *name, const cvy_tree *at, const cvy_tree *value, int *known)
{
    struct step *s = &a->step[a->nstep];
    const cvy_tree *map = value;
    char who[64];
    CVY_CHECK(a->nstep < STEPS_MAX, CVY_E_CONFIG, "%s: more than %d augmentation steps", cvy_tree_where(at), STEPS_MAX);
    CVY_TRY(find_step(name, at, &s->def));
    snprintf(who, sizeof who, "augmentation %s", name);
    const int empty = !value || (value->kind == CVY_TREE_SCALAR && (!value->text || !*value->text));
    if (empty) {
        map = NULL;
    } else if (value->kind != CVY_TREE_MAP) {
        cvy_tree *made = NULL;
        CVY_CHECK(s->def->short_key, CVY_E_CONFIG, "%s: %s needs a map of options", cvy_tree_where(value), name);
        CVY_TRY(cvy_tree_new_map(a->pool, value->file, &made));
        CVY_TRY(cvy_tree_set(a->pool, made, s->def->short_key, (cvy_tree *)value));
        map = made;
    }
    CVY_TRY(cvy_options_parse(a->pool, who, s->def->options, map, NULL, &s->o, sizeof s->o));
    CVY_CHECK(!s->def->spatial || a->spatial, CVY_E_CONFIG, "%s: %s needs samples of the shape [C, H, W], these are %s",
              cvy_tree_where(at), name, cvy_shape_text(&a->shape));
    CVY_CHECK(s->o.size.count <= 2, CVY_E_CONFIG, "%s: %s takes a size of one or two numbers, got %d",
              cvy_tree_where(at), name, s->o.size.count);
    CVY_CHECK(s->o.size.count == 0 ||
                  CVY_MAX(cvy_ints_at(&s->o.size, 0, 0), cvy_ints_at(&s->o.size, 1, 0)) <= CVY_PICTURE_SIDE_MAX,
              CVY_E_CONFIG, "%s: %s to more than %d pixels a side", cvy_tree_where(at), name, CVY_PICTURE_SIDE_MAX);
    CVY_CHECK(s->o.pad <= CVY_PICTURE_SIDE_MAX, CVY_E_CONFIG, "%s: %s with a pad of more than %d pixels",
              cvy_tree_where(at), name, CVY_PICTURE_SIDE_MAX);
    CVY_TRY(check_channels(a, s, &s->o.mean, at));
    CVY_TRY(check_channels(a, s, &s->o.std, at));
    if (s->def->only_random && !a->random)
        return CVY_OK;
    a->has_scale |= s->def->apply == scale_apply;
    CVY_TRY(name_stream(a, s));
    a->nstep++;
    return follow_shape(a, s, at, known);
}

static cvy_status add_steps(cvy_augment *a, const cvy_tree *steps)
{
    int known = !a->varying;
    if (!steps || (steps->kind == CVY_TREE_SCALAR && !steps->text))
        return CVY_OK;
    if (steps->kind == CVY_TREE_MAP) {
        for (int i = 0; i < steps->count; i++)
            CVY_TRY(add_step(a, steps->key[i], steps->key_at ? steps->key_at[i] : steps,
                             cvy_tree_get(steps, steps->key[i]), &known));
    } else if (steps->kind == CVY_TREE_SCALAR) {
        CVY_TRY(add_step(a, steps->text, steps, NULL, &known));
    } else {
        for (int i = 0; i < steps->count; i++) {
            cvy_tree *item = steps->child[i];
            item->used = 1;
            if (item->kind == CVY_TREE_SCALAR && item->text) {
                CVY_TRY(add_step(a, item->text, item, NULL, &known));
                continue;
            }
            CVY_CHECK(item->kind == CVY_TREE_MAP && item->count == 1, CVY_E_CONFIG,
                      "%s: an augmentation step is a name or `name: options`, one a list item", cvy_tree_where(item));
            CVY_TRY(add_step(a, item->key[0], item, cvy_tree_get(item, item->key[0]), &known));
        }
    }
    a->varying = !known;
    return CVY_OK;
}

cvy_status cvy_augment_create(const cvy_tree *steps, int random, uint64_t seed, const cvy_reader_info *info,
                              cvy_augment **out)
{
    cvy_augment *a = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *a, &a));
    a->random = random;
    a->seed = seed;
    a->shape = info->shape;
    a->spatial = info->shape.ndim == 3;
    a->varying = info->varying;
    cvy_status status = cvy_pool_create(&a->pool);
    if (status == CVY_OK)
        status = add_steps(a, steps);
    if (status != CVY_OK)
        cvy_augment_destroy(&a);
    else
        *out = a;
    return status;
}

const cvy_shape *cvy_augment_shape(const cvy_augment *a)
{
    return &a->shape;
}

cvy_status cvy_augment_apply(const cvy_augment *a, cvy_picture picture, uint64_t epoch, int64_t number,
                             cvy_bytes scratch[2], float *x_out)
{
    struct work w = {.a = a, .pic = picture, .scratch = scratch, .epoch = epoch, .number = number};
    for (int i = 0; i < a->nstep; i++)
        CVY_TRY(a->step[i].def->apply(&a->step[i], &w));
    if (a->spatial)
        CVY_CHECK(w.pic.C == a->shape.dim[0] && w.pic.H == a->shape.dim[1] && w.pic.W == a->shape.dim[2], CVY_E_SHAPE,
                  "a picture of %lldx%lld after augmentation, the set's samples are %lldx%lld: add `resize: {size: "
                  "N}`, or a crop, to data.augment",
                  (long long)w.pic.H, (long long)w.pic.W, (long long)a->shape.dim[1], (long long)a->shape.dim[2]);
    if (w.pic.dtype == CVY_DTYPE_U8)
        bytes_to_reals(a, &w.pic, x_out);
    else
        memcpy(x_out, w.pic.data, picture_bytes(&w.pic));
    return CVY_OK;
}

void cvy_augment_destroy(cvy_augment **a)
{
    if (!*a)
        return;
    cvy_pool_destroy(&(*a)->pool);
    cvy_mem_free(a);
}
