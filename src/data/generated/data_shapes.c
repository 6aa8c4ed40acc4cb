/*
 * data_shapes.c: a reader that generates maps of discs and squares on noise, or volumes of balls and cubes, from a
 * seed, with a label for each position: a small problem of segmentation.
 *
 * It runs in the loader's threads and makes a sample anew each time it is read. The value of x is 1 inside a shape and
 * 0 elsewhere, plus Gaussian noise, so only the outline tells the two kinds apart. The label y is 0 for the background,
 * 1 for discs and balls, 2 for squares and cubes. Later shapes cover earlier ones. Everything is a function of (seed,
 * number).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/number/base_rng.h"
#include "data/data_reader.h"

#include <math.h>
#include <string.h>

struct shapes_opts {
    int64_t size, dimensions, samples, first, seed, objects;
    double noise;
};

static const cvy_option shapes_opts[] = {
    {"size", CVY_TYPE_INT, CVY_FIELD(shapes_opts, size), "64", "8..4096", "positions", "positions along each axis"},
    {"dimensions", CVY_TYPE_INT, CVY_FIELD(shapes_opts, dimensions), "2", "2..3", "", "2: maps, 3: volumes"},
    {"samples", CVY_TYPE_INT, CVY_FIELD(shapes_opts, samples), "1024", "1..", "samples", "number of samples"},
    {"first", CVY_TYPE_INT, CVY_FIELD(shapes_opts, first), "0", "0..", "",
     "number of the first sample: sets with the same seed and ranges that do not overlap have no sample in common"},
    {"seed", CVY_TYPE_INT, CVY_FIELD(shapes_opts, seed), "1", "0..", "", "seed of all random numbers"},
    {"objects", CVY_TYPE_INT, CVY_FIELD(shapes_opts, objects), "4", "1..64", "",
     "largest number of shapes; 1 at least"},
    {"noise", CVY_TYPE_REAL, CVY_FIELD(shapes_opts, noise), "0.3", "0..", "", "standard deviation of the noise"},
    {0},
};

enum { BACKGROUND, ROUND, SQUARE };
enum { DRAW_COUNT, DRAW_FIRST }; /* numbers of the random draws; each shape has DRAWS of them */
enum { DRAW_KIND, DRAW_RADIUS, DRAW_CENTRE, DRAWS = DRAW_CENTRE + 3 };

struct shapes {
    struct shapes_opts o;
    cvy_shape x, y;
};

static int shapes_probe(const char *path)
{
    return strcmp(path, "shapes") == 0 && !cvy_file_exists(path) ? 100 : 0;
}

static cvy_status shapes_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct shapes *s = NULL;
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *s, &s));
    s->o = *(const struct shapes_opts *)args->options;
    s->y.ndim = (int)s->o.dimensions;
    for (int d = 0; d < s->y.ndim; d++)
        s->y.dim[d] = s->o.size;
    s->x = (cvy_shape){.ndim = s->y.ndim + 1, .dim = {1}};
    memcpy(s->x.dim + 1, s->y.dim, sizeof *s->y.dim * (size_t)s->y.ndim);
    info->nsamples = s->o.samples;
    info->dtype = CVY_DTYPE_F32;
    info->shape = s->x;
    info->has_y = 1;
    info->y_shape = s->y;
    *state_out = s;
    return CVY_OK;
}

struct object {
    int kind;
    double radius, centre[3];
};

static struct object draw_object(const struct shapes *s, const cvy_rng *rng, int64_t number)
{
    const uint64_t at = DRAW_FIRST + DRAWS * (uint64_t)number;
    const double size = (double)s->o.size;
    struct object object = {.kind = cvy_rng_uniform(rng, at + DRAW_KIND) < 0.5 ? ROUND : SQUARE,
                            .radius = size * (0.08 + 0.12 * cvy_rng_uniform(rng, at + DRAW_RADIUS))};
    for (int d = 0; d < s->y.ndim; d++)
        object.centre[d] = size * cvy_rng_uniform(rng, at + DRAW_CENTRE + (uint64_t)d);
    return object;
}

/* Writes the label of the shape to the positions inside it, which all lie in a box around it. A square has about the
 * area of a disc of the same radius. */
static void paint(const struct shapes *s, const struct object *object, float *y)
{
    const double reach = object->kind == ROUND ? object->radius : 0.88 * object->radius;
    const int ndim = s->y.ndim;
    int64_t low[3] = {0}, high[3] = {0};
    for (int d = 0; d < 3; d++) {
        const int in_axis = d < ndim;
        low[d] = in_axis ? CVY_MAX((int64_t)ceil(object->centre[d] - reach), 0) : 0;
        high[d] = in_axis ? CVY_MIN((int64_t)floor(object->centre[d] + reach), s->o.size - 1) : 0;
    }
    for (int64_t a = low[0]; a <= high[0]; a++)
        for (int64_t b = low[1]; b <= high[1]; b++)
            for (int64_t c = low[2]; c <= high[2]; c++) {
                const double at[3] = {(double)a, (double)b, (double)c};
                double square = 0;
                for (int d = 0; d < ndim; d++)
                    square += (at[d] - object->centre[d]) * (at[d] - object->centre[d]);
                if (object->kind == SQUARE || square <= reach * reach)
                    y[ndim == 2 ? a * s->o.size + b : (a * s->o.size + b) * s->o.size + c] = (float)object->kind;
            }
}

static cvy_status shapes_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct shapes *s = state;
    const uint64_t sample = (uint64_t)(s->o.first + number);
    const int64_t elems = cvy_shape_elems(&s->y);
    const cvy_rng rng = cvy_rng_make((uint64_t)s->o.seed, "shapes.objects", 0, sample),
                  noise = cvy_rng_make((uint64_t)s->o.seed, "shapes.noise", 0, sample);
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)elems * sizeof(float)));
    CVY_TRY(cvy_bytes_need(&raw->y, (size_t)elems * sizeof(float)));
    float *x = raw->x.data, *y = raw->y.data;
    const int64_t count =
        CVY_MIN(1 + (int64_t)((double)s->o.objects * cvy_rng_uniform(&rng, DRAW_COUNT)), s->o.objects);
    memset(y, 0, (size_t)elems * sizeof *y);
    for (int64_t i = 0; i < count; i++) {
        const struct object object = draw_object(s, &rng, i);
        paint(s, &object, y);
    }
    for (int64_t i = 0; i < elems; i++)
        x[i] = (float)((y[i] != BACKGROUND) + s->o.noise * cvy_rng_normal(&noise, (uint64_t)i));
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_F32;
    raw->shape = s->x;
    return CVY_OK;
}

static void shapes_where(void *state, int64_t number, char *text, size_t room)
{
    snprintf(text, room, "shapes sample %lld", (long long)(((const struct shapes *)state)->o.first + number));
}

static void shapes_hash(void *state, cvy_hasher *h)
{
    const struct shapes *s = state;
    cvy_hash_add(h, &s->o, sizeof s->o);
}

CVY_READER_DEFINE(shapes) = {
    .name = "shapes",
    .summary = "generated discs and squares on noise, with maps of labels",
    .options = shapes_opts,
    .options_size = sizeof(struct shapes_opts),
    .probe = shapes_probe,
    .open = shapes_open,
    .read = shapes_read,
    .where = shapes_where,
    .hash = shapes_hash,
};
