/*
 * data_pictures.c: generates colour pictures with labels, any number of them, from a seed. For a loader they are like
 * ImageNet, without its files.
 *
 * The loader's threads call it; a picture is generated each time it is read. A class is a combination of shape,
 * texture, pitch of the texture, and hue. There are 1080 combinations in a fixed shuffled order, so several classes
 * share each property and no single one identifies a class. The object has a random position, rotation and scale, is
 * lit from a side, and is in front of a blotched background of other colours, with a smaller object of a random class
 * and with noise. Everything is a function of (seed, number). With `encode: jpeg` samples are JPEG files, so that the
 * whole path of decoding is used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/number/base_rng.h"
#include "data/data_reader.h"

#include <math.h>
#include <string.h>

#include "data/picture/data_encode.h"

enum { SHAPES = 8, TEXTURES = 5, PITCHES = 3, HUES = 9, LOOKS = SHAPES * TEXTURES * PITCHES * HUES };
enum { GRID = 7 };
enum { ENCODE_NONE, ENCODE_JPEG };

struct pictures_opts {
    cvy_ints size;
    int64_t classes, samples, first, seed, noise, quality;
    int encode;
};

#define ROW(key, type, fallback, valid, unit, help)                                                                    \
    {                                                                                                                  \
#key, type, CVY_FIELD(pictures_opts, key), fallback, valid, unit, help                                         \
    }
static const cvy_option pictures_opts[] = {
    ROW(size, CVY_TYPE_INTS, "64", "8..4096", "pixels",
        "sides: one number, or the range [low, high] that height and width are drawn from"),
    ROW(classes, CVY_TYPE_INT, "10", "1..1080", "", "number of classes"),
    ROW(samples, CVY_TYPE_INT, "1024", "1..", "samples", "number of pictures"),
    ROW(first, CVY_TYPE_INT, "0", "0..", "",
        "number of the first picture: sets with the same seed and ranges that do not overlap have none in common"),
    ROW(seed, CVY_TYPE_INT, "1", "0..", "", "seed of all random numbers; classes look the same under every seed"),
    ROW(noise, CVY_TYPE_INT, "24", "0..128", "", "largest noise of a pixel, on the scale of 0 to 255"),
    ROW(encode, CVY_TYPE_CHOICE, "none", "none|jpeg", "", "whether samples are plain bytes or JPEG files"),
    ROW(quality, CVY_TYPE_INT, "90", "1..100", "", "of these files"),
    {0},
};
#undef ROW

struct pictures {
    struct pictures_opts o;
    cvy_permutation looks;
};

/* ---- random numbers: four words of each Philox block in turn ---- */

struct draw {
    cvy_rng rng;
    uint64_t block;
    uint32_t word[4];
    int left;
};

static uint32_t draw_word(struct draw *d)
{
    if (d->left == 0) {
        cvy_rng_block(&d->rng, d->block++, d->word);
        d->left = 4;
    }
    return d->word[--d->left];
}

static float between(struct draw *d, float a, float b)
{
    return a + (b - a) * ((float)(draw_word(d) >> 8) * 0x1p-24f);
}

static int below(struct draw *d, int bound)
{
    return (int)((uint64_t)draw_word(d) * (uint64_t)bound >> 32);
}

/* fminf() and fmaxf() would be function calls, because they must handle NaN. */
static inline float clamp(float x, float most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* ---- the contents of a picture ---- */

struct colour {
    float rgb[3]; /* 0 .. 255 */
};

struct thing {
    int shape, texture;
    float pitch;               /* of the texture: waves across the object, times pi */
    struct colour colour[2];   /* between which the texture varies */
    float cx, cy, along, over; /* centre in pixels; cosine and sine of the rotation / radius */
};

struct scene {
    struct colour back[2];
    float blotch[GRID][GRID]; /* 0 .. 1: share of back[1] */
    struct thing thing[2];    /* the object and the distractor */
    float light, light_x, light_y;
};

static struct colour from_hue(float hue, float saturation, float value)
{
    struct colour c;
    for (int k = 0; k < 3; k++) {
        const float sector = fmodf(hue * 6 + (float)(k == 0 ? 5 : k == 1 ? 3 : 1), 6);
        c.rgb[k] = 255 * value * (1 - saturation * clamp(fminf(sector, 4 - sector), 1));
    }
    return c;
}

/* Draws a colour of this hue with saturation and value in these ranges. Here and below each number is drawn in a
 * statement of its own, because compilers may evaluate arguments in any order. */
static struct colour draw_colour(struct draw *d, float hue, float s0, float s1, float v0, float v1)
{
    const float saturation = between(d, s0, s1), value = between(d, v0, v1);
    return from_hue(hue, saturation, value);
}

/* Draws an object. Its centre is between `margin` and 1 - margin of the picture in x and y; its radius is between r0
 * and r1 of the shorter side. */
static struct thing make_thing(struct draw *d, int look, int64_t H, int64_t W, float margin, float r0, float r1)
{
    static const float pitches[PITCHES] = {4, 8, 14};
    struct thing t = {.shape = look % SHAPES, .texture = look / SHAPES % TEXTURES};
    const int pitch = look / (SHAPES * TEXTURES) % PITCHES, hue_class = look / (SHAPES * TEXTURES * PITCHES);
    const float radius = (float)CVY_MIN(H, W) * between(d, r0, r1), angle = between(d, 0, 6.2831853f);
    const float hue = ((float)hue_class + between(d, 0.1f, 0.9f)) / HUES;
    t.cx = (float)W * between(d, margin, 1 - margin);
    t.cy = (float)H * between(d, margin, 1 - margin);
    t.along = cosf(angle) / radius;
    t.over = sinf(angle) / radius;
    t.pitch = pitches[pitch] * between(d, 0.85f, 1.15f);
    t.colour[0] = draw_colour(d, hue, 0.6f, 1, 0.6f, 1);
    t.colour[1] = draw_colour(d, hue, 0.1f, 0.6f, 0.15f, 0.5f);
    return t;
}

static void make_scene(struct draw *d, int look, int64_t H, int64_t W, struct scene *s)
{
    const float hue = between(d, 0, 1), other_hue = hue + between(d, 0.1f, 0.4f);
    s->back[0] = draw_colour(d, hue, 0, 0.7f, 0.2f, 0.9f);
    s->back[1] = draw_colour(d, other_hue, 0, 0.7f, 0.2f, 0.9f);
    for (int i = 0; i < GRID * GRID; i++)
        s->blotch[i / GRID][i % GRID] = between(d, 0, 1);
    const int other_look = below(d, LOOKS);
    s->thing[0] = make_thing(d, look, H, W, 0.35f, 0.25f, 0.45f);
    s->thing[1] = make_thing(d, other_look, H, W, 0, 0.08f, 0.16f);
    s->light = between(d, 0.7f, 1.1f);
    s->light_x = between(d, -0.4f, 0.4f) / (float)W;
    s->light_y = between(d, -0.4f, 0.4f) / (float)H;
}

/* ---- drawing ---- */

/* u, v: the object's own coordinates, in which its radius is 1. */
static int is_inside(int shape, float u, float v)
{
    const float a = fabsf(u), b = fabsf(v), square = u * u + v * v;
    switch (shape) {
    case 0: return square < 1;                                                           /* disc */
    case 1: return square < 1 && square > 0.3f;                                          /* ring */
    case 2: return fmaxf(a, b) < 0.8f;                                                   /* square */
    case 3: return v < 0.5f && v > 1.732f * a - 1;                                       /* triangle */
    case 4: return fminf(a, b) < 0.3f && fmaxf(a, b) < 1;                                /* cross */
    case 5: return a < 1 && b < 0.35f;                                                   /* bar */
    case 6: return square < 1 && sqrtf(square) < 0.62f + 0.36f * cosf(5 * atan2f(v, u)); /* star */
    default: return square < 1 && (u - 0.5f) * (u - 0.5f) + v * v > 0.6f;                /* crescent */
    }
}

/* Returns 0 .. 1. */
static float texture_at(int texture, float pitch, float u, float v)
{
    switch (texture) {
    case 0: return 0.5f + 0.5f * sinf(pitch * u);                               /* striped */
    case 1: return sinf(pitch * u) * sinf(pitch * v) > 0 ? 1 : 0;               /* checked */
    case 2: return 0.5f + 0.5f * cosf(pitch * sqrtf(u * u + v * v));            /* ringed */
    case 3: return cosf(pitch * u) * cosf(pitch * v) > 0.35f ? 1 : 0;           /* dotted */
    default: return 0.5f + 0.5f * sinf(pitch * u + 2 * sinf(0.7f * pitch * v)); /* wavy */
    }
}

static struct colour mix(const struct colour two[2], float share)
{
    struct colour c;
    for (int k = 0; k < 3; k++)
        c.rgb[k] = two[0].rgb[k] + share * (two[1].rgb[k] - two[0].rgb[k]);
    return c;
}

/* The background's blotches, interpolated between the points of their grid. */
static float blotch_at(const struct scene *s, float x, float y)
{
    const int i = CVY_MIN((int)y, GRID - 2), k = CVY_MIN((int)x, GRID - 2);
    const float v = y - (float)i, u = x - (float)k;
    const float top = s->blotch[i][k] + u * (s->blotch[i][k + 1] - s->blotch[i][k]);
    const float bottom = s->blotch[i + 1][k] + u * (s->blotch[i + 1][k + 1] - s->blotch[i + 1][k]);
    return top + v * (bottom - top);
}

static struct colour colour_at(const struct scene *s, float x, float y, float step_x, float step_y)
{
    for (int i = 1; i >= 0; i--) { /* the distractor hides the object where they overlap */
        const struct thing *t = &s->thing[i];
        const float dx = x - t->cx, dy = y - t->cy;
        const float u = dx * t->along + dy * t->over, v = dy * t->along - dx * t->over;
        if (u * u + v * v < 2 && is_inside(t->shape, u, v))
            return mix(t->colour, texture_at(t->texture, t->pitch, u, v));
    }
    return mix(s->back, blotch_at(s, x * step_x, y * step_y));
}

static void paint(struct draw *d, const struct scene *s, int64_t H, int64_t W, int noise, uint8_t *x)
{
    const float step_x = (float)(GRID - 1) / (float)W, step_y = (float)(GRID - 1) / (float)H;
    for (int64_t i = 0; i < H; i++) {
        for (int64_t k = 0; k < W; k++) {
            const struct colour c = colour_at(s, (float)k, (float)i, step_x, step_y);
            const float light = s->light + s->light_x * (float)k + s->light_y * (float)i;
            const uint32_t word = draw_word(d);
            for (int p = 0; p < 3; p++) {
                const float spread = ((float)(word >> 8 * p & 255) - 127.5f) * (1 / 127.5f);
                const float value = light * c.rgb[p] + (float)noise * spread;
                x[(p * H + i) * W + k] = (uint8_t)clamp(value, 255);
            }
        }
    }
}

/* ---- the reader ---- */

static int pictures_probe(const char *path)
{
    return strcmp(path, "pictures") == 0 && !cvy_file_exists(path) ? 100 : 0;
}

static int32_t label_of(const struct pictures *p, int64_t event)
{
    return (int32_t)(event % p->o.classes);
}

static struct draw begin(const struct pictures *p, int64_t event)
{
    return (struct draw){.rng = cvy_rng_make((uint64_t)p->o.seed, "pictures", 0, (uint64_t)event)};
}

static void draw_size(const struct pictures *p, struct draw *d, int64_t *H, int64_t *W)
{
    const int64_t low = p->o.size.at[0], high = p->o.size.at[p->o.size.count - 1];
    *H = low + below(d, (int)(high - low + 1));
    *W = low + below(d, (int)(high - low + 1));
}

/* "fine-striped-red-ring". */
static cvy_status name_look(cvy_pool *pool, int look, const char **out)
{
    static const char *const shape[] = {"disc", "ring", "square", "triangle", "cross", "bar", "star", "crescent"};
    static const char *const texture[] = {"striped", "checked", "ringed", "dotted", "wavy"};
    static const char *const pitch[] = {"coarse", "medium", "fine"};
    static const char *const hue[] = {"red", "orange", "lime", "green", "mint", "azure", "blue", "violet", "pink"};
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(pool, &name, "%s-%s-%s-%s", pitch[look / (SHAPES * TEXTURES) % PITCHES],
                            texture[look / SHAPES % TEXTURES], hue[look / (SHAPES * TEXTURES * PITCHES)],
                            shape[look % SHAPES]));
    *out = name;
    return CVY_OK;
}

static int look_of(const struct pictures *p, int64_t class)
{
    return (int)cvy_permutation_at(&p->looks, (uint64_t) class);
}

static cvy_status pictures_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct pictures *p = NULL;
    const char **name = NULL;
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *p, &p));
    p->o = *(const struct pictures_opts *)args->options;
    const cvy_ints *size = &p->o.size;
    CVY_CHECK(size->count == 1 || (size->count == 2 && size->at[0] <= size->at[1]), CVY_E_CONFIG,
              "pictures size is one number or a range [low, high], got %d numbers", size->count);
    CVY_CHECK(
        CVY_HAVE_JPEG || p->o.encode == ENCODE_NONE, CVY_E_UNSUPPORTED,
        "pictures with encode: jpeg, and this build has no JPEG: install libjpeg-turbo's headers and build again");
    p->looks = cvy_permutation_make(0, 0, LOOKS);
    CVY_TRY(cvy_pool_alloc(info->pool, (size_t)p->o.classes * sizeof *name, &name));
    for (int64_t i = 0; i < p->o.classes; i++)
        CVY_TRY(name_look(info->pool, look_of(p, i), &name[i]));
    struct draw d = begin(p, p->o.first);
    info->shape = (cvy_shape){3, {3, 0, 0}};
    draw_size(p, &d, &info->shape.dim[1], &info->shape.dim[2]);
    info->nsamples = p->o.samples;
    info->dtype = CVY_DTYPE_U8;
    info->varying = p->o.encode != ENCODE_NONE || size->at[0] < size->at[size->count - 1];
    info->has_label = 1;
    info->nclasses = p->o.classes;
    info->class_name = name;
    *state_out = p;
    return CVY_OK;
}

/* Encodes the plain picture in x as a JPEG file in x. It uses the buffer of y, since these samples have no y. */
static cvy_status encode(const struct pictures *p, int64_t H, int64_t W, cvy_raw *raw)
{
    const cvy_picture picture = {.dtype = CVY_DTYPE_U8, .C = 3, .H = H, .W = W, .data = raw->x.data};
    CVY_TRY(cvy_picture_encode_jpeg(&picture, (int)p->o.quality, &raw->y));
    const cvy_bytes plain = raw->x;
    raw->x = raw->y;
    raw->y = plain;
    raw->y.bytes = 0;
    raw->coding = CVY_CODING_JPEG;
    return CVY_OK;
}

static cvy_status pictures_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct pictures *p = state;
    const int64_t event = p->o.first + number;
    struct draw d = begin(p, event);
    struct scene s;
    int64_t H = 0, W = 0;
    draw_size(p, &d, &H, &W);
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)(3 * H * W)));
    make_scene(&d, look_of(p, label_of(p, event)), H, W, &s);
    paint(&d, &s, H, W, (int)p->o.noise, raw->x.data);
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_U8;
    raw->shape = (cvy_shape){3, {3, H, W}};
    raw->label = label_of(p, event);
    return p->o.encode == ENCODE_JPEG ? encode(p, H, W, raw) : CVY_OK;
}

static cvy_status pictures_label(void *state, int64_t number, int32_t *label_out)
{
    const struct pictures *p = state;
    *label_out = label_of(p, p->o.first + number);
    return CVY_OK;
}

static void pictures_where(void *state, int64_t number, char *text, size_t room)
{
    snprintf(text, room, "generated picture %lld", (long long)(((const struct pictures *)state)->o.first + number));
}

static void pictures_hash(void *state, cvy_hasher *h)
{
    const struct pictures *p = state;
    cvy_hash_add(h, &p->o, sizeof p->o);
}

CVY_READER_DEFINE(pictures) = {
    .name = "pictures",
    .summary = "generated colour pictures with labels, plain or JPEG",
    .options = pictures_opts,
    .options_size = sizeof(struct pictures_opts),
    .probe = pictures_probe,
    .open = pictures_open,
    .read = pictures_read,
    .label = pictures_label,
    .where = pictures_where,
    .hash = pictures_hash,
};
