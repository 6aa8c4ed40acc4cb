/*
 * data_cosmology.c: a reader that generates maps or volumes of matter from a seed: log-normal fields with a power
 * spectrum of a few parameters.
 *
 * It runs in the loader's threads and makes a map anew each time it is read. A map is exp(g - sigma^2 / 2), with g a
 * Gaussian field on a torus with mean 0, variance sigma^2 and the power spectrum P(k) = A k^index exp(-(k / kc)^2), k
 * in waves for each side, without k = 0, kc = `cutoff` times the Nyquist frequency; so a map's mean is 1. index and
 * sigma are drawn for each map, uniformly from their ranges. A network is trained to find them (y); a class is an
 * interval of index. With `times` there are that many channels of one map, in which g grows in equal steps, as linear
 * structure does: channel c of T has c / T times g, and the last one is the map. Everything is a function of (seed,
 * number). Source: Coles and Jones, "A lognormal model for the cosmological mass distribution" (MNRAS 248, 1991).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/number/base_rng.h"
#include "data/data_reader.h"

#include <math.h>
#include <string.h>

#include "base/number/base_fft.h"

enum { TARGETS_AUTO, TARGETS_YES, TARGETS_NO };
enum { SIZE_MAX_CELLS = 2048, SIZE_MAX_VOLUME = 256, DRAW_INDEX = 0, DRAW_SIGMA = 1 };

struct cosmology_opts {
    int64_t size, dimensions, samples, first, seed, classes;
    cvy_reals index, sigma;
    double cutoff;
    int targets;
    int64_t times; /* the last one: cosmology_hash() */
};

#define ROW(key, type, fallback, valid, unit, help)                                                                    \
    {                                                                                                                  \
#key, type, CVY_FIELD(cosmology_opts, key), fallback, valid, unit, help                                        \
    }
static const cvy_option cosmology_opts[] = {
    ROW(size, CVY_TYPE_INT, "64", "8..2048", "cells",
        "cells along each side of a map, a power of two; at most 256 of a volume"),
    ROW(dimensions, CVY_TYPE_INT, "2", "2..3", "axes", "2: maps; 3: volumes"),
    ROW(samples, CVY_TYPE_INT, "1024", "1..", "samples", "number of maps"),
    ROW(first, CVY_TYPE_INT, "0", "0..", "",
        "number of the first map: sets with the same seed and ranges that do not overlap have no map in common"),
    ROW(seed, CVY_TYPE_INT, "1", "0..", "", "seed of all random numbers"),
    ROW(index, CVY_TYPE_REALS, "[-3, -1]", "-6..6", "",
        "power of the spectrum: one number, or the range it is drawn from"),
    ROW(sigma, CVY_TYPE_REALS, "[0.5, 1.5]", "0..4", "",
        "standard deviation of the log of a map: one number, or the range it is drawn from"),
    ROW(cutoff, CVY_TYPE_REAL, "0.5", ">0", "Nyquist frequencies", "where the spectrum falls off"),
    ROW(classes, CVY_TYPE_INT, "0", "0..1000", "",
        "number of classes, each an equal part of the range of index; 0: no classes"),
    ROW(targets, CVY_TYPE_CHOICE, "auto", "auto|true|false", "",
        "whether y holds [index, sigma]; auto: if there are no classes"),
    ROW(times, CVY_TYPE_INT, "1", "1..64", "channels",
        "channels of a sample: the map at so many times, while its structure grows to that of the last one"),
    {0},
};
#undef ROW

struct cosmology {
    struct cosmology_opts o;
    int has_y;
    cvy_shape shape;
    cvy_fft fft;
    int64_t depth, cells; /* of a field [depth, n, n]; 1 deep: a map */
    int64_t half, halfs;  /* n / 2 + 1, the number of waves 0 .. n/2 along an axis; and along all: [.., half, half] */
    const float *log_k;   /* [halfs]: log(k) */
    const float *fall;    /* [halfs]: (k / kc)^2 */
};

static int cosmology_probe(const char *path)
{
    return strcmp(path, "cosmology") == 0 && !cvy_file_exists(path) ? 100 : 0;
}

static cvy_status check_range(const char *name, const cvy_reals *range)
{
    CVY_CHECK(range->count == 1 || (range->count == 2 && range->at[0] <= range->at[1]), CVY_E_CONFIG,
              "cosmology %s is one number or a range [low, high], got %d numbers from %g to %g", name, range->count,
              range->count ? range->at[0] : 0, range->count ? range->at[range->count - 1] : 0);
    return CVY_OK;
}

/* A number of waves along each axis, from their index in [.., count, count]. */
struct wave {
    int64_t z, y, x;
};

static struct wave wave_at(int64_t i, int64_t count)
{
    return (struct wave){i / count / count, i / count % count, i % count};
}

/* Computes the values of each wave that the spectrum needs and that do not depend on the map. */
static cvy_status make_waves(struct cosmology *c, cvy_pool *pool)
{
    const double kc = c->o.cutoff * (double)c->o.size / 2;
    float *log_k = NULL, *fall = NULL;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)c->halfs * sizeof *log_k, &log_k));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)c->halfs * sizeof *fall, &fall));
    for (int64_t i = 1; i < c->halfs; i++) {
        const struct wave k = wave_at(i, c->half);
        const double square = (double)(k.z * k.z + k.y * k.y + k.x * k.x);
        log_k[i] = (float)(0.5 * log(square));
        fall[i] = (float)(square / (kc * kc));
    }
    c->log_k = log_k;
    c->fall = fall;
    return CVY_OK;
}

static cvy_status cosmology_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct cosmology *c = NULL;
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *c, &c));
    c->o = *(const struct cosmology_opts *)args->options;
    const int64_t n = c->o.size;
    CVY_CHECK((n & (n - 1)) == 0, CVY_E_CONFIG, "cosmology size %lld, expected a power of two from 8 to %d",
              (long long)n, SIZE_MAX_CELLS);
    CVY_CHECK(c->o.dimensions == 2 || n <= SIZE_MAX_VOLUME, CVY_E_CONFIG,
              "cosmology size %lld with dimensions 3, expected at most %d", (long long)n, SIZE_MAX_VOLUME);
    CVY_TRY(check_range("index", &c->o.index));
    CVY_TRY(check_range("sigma", &c->o.sigma));
    c->has_y = c->o.targets == TARGETS_YES || (c->o.targets == TARGETS_AUTO && c->o.classes == 0);
    CVY_CHECK(c->has_y || c->o.classes > 0, CVY_E_CONFIG, "cosmology without targets needs classes");
    CVY_CHECK(c->o.classes < 2 || c->o.index.count == 2, CVY_E_CONFIG,
              "cosmology classes are parts of the range of index, which is one number (%g)", c->o.index.at[0]);
    c->depth = c->o.dimensions == 3 ? n : 1;
    c->cells = c->depth * n * n;
    c->half = n / 2 + 1;
    c->halfs = c->half * c->half * (c->o.dimensions == 3 ? c->half : 1);
    c->shape = c->o.dimensions == 3 ? (cvy_shape){4, {c->o.times, n, n, n}} : (cvy_shape){3, {c->o.times, n, n}};
    CVY_TRY(cvy_fft_make(info->pool, n, &c->fft));
    CVY_TRY(make_waves(c, info->pool));
    info->nsamples = c->o.samples;
    info->dtype = CVY_DTYPE_F32;
    info->shape = c->shape;
    info->has_label = c->o.classes > 0;
    info->nclasses = c->o.classes;
    info->has_y = c->has_y;
    info->y_shape = (cvy_shape){1, {2}};
    *state_out = c;
    return CVY_OK;
}

static int32_t label_of(const struct cosmology *c, int64_t event)
{
    return c->o.classes > 0 ? (int32_t)(event % c->o.classes) : 0;
}

/* Draws index and sigma of a map; index comes from the interval of its class. */
static void draw_parameters(const struct cosmology *c, int64_t event, double *index, double *sigma)
{
    const cvy_rng rng = cvy_rng_make((uint64_t)c->o.seed, "cosmology.parameters", 0, (uint64_t)event);
    const cvy_reals *i = &c->o.index, *s = &c->o.sigma;
    const double stretch = (i->at[i->count - 1] - i->at[0]) / (double)CVY_MAX(c->o.classes, 1);
    *index = i->at[0] + stretch * (label_of(c, event) + cvy_rng_uniform(&rng, DRAW_INDEX));
    *sigma = s->at[0] + (s->at[s->count - 1] - s->at[0]) * cvy_rng_uniform(&rng, DRAW_SIGMA);
}

/* The spectrum is the same for k and -k, which is n - k. */
static inline int64_t fold(int64_t k, int64_t n)
{
    return k <= n / 2 ? k : n - k;
}

/* How many of the waves 0 .. n-1 have this one's length. */
static inline int copies(int64_t k, int64_t n)
{
    return k > 0 && 2 * k < n ? 2 : 1;
}

/* The root of the spectrum, [halfs], scaled so that the variance summed over all waves is sigma^2. */
static void make_spectrum(const struct cosmology *c, double index, double sigma, float *root)
{
    const int64_t n = c->o.size;
    double sum = 0;
    root[0] = 0;
    for (int64_t i = 1; i < c->halfs; i++) {
        const struct wave k = wave_at(i, c->half);
        root[i] = expf(0.5f * ((float)index * c->log_k[i] - c->fall[i]));
        sum += (double)(copies(k.z, n) * copies(k.y, n) * copies(k.x, n)) * root[i] * root[i];
    }
    const float scale = (float)(sigma / sqrt(sum));
    for (int64_t i = 1; i < c->halfs; i++)
        root[i] *= scale;
}

/* Draws two independent normal numbers for a wave, as Box and Muller. */
static inline void draw_normals(const cvy_rng *rng, int64_t wave, float *a, float *b)
{
    uint32_t word[4];
    cvy_rng_block(rng, (uint64_t)(wave / 2), word);
    const uint32_t *pair = word + wave % 2 * 2;
    const float u = ((float)(pair[0] >> 9) + 0.5f) * 0x1p-23f, angle = (float)(pair[1] >> 8) * (6.28318531f * 0x1p-24f);
    const float radius = sqrtf(-2 * logf(u));
    *a = radius * cosf(angle);
    *b = radius * sinf(angle);
}

/* Fills a row of the waves of a real field: the wave of -k is the conjugate of the wave of k. If both are the same
 * wave, it is real. */
static void fill_row(const struct cosmology *c, const cvy_rng *rng, int64_t z, int64_t y, const float *root, float *re,
                     float *im)
{
    const int64_t n = c->o.size, h = c->half, mirrored = ((c->depth - z) % c->depth * n + (n - y) % n) * n;
    for (int64_t x = 0; x < n; x++) {
        const int64_t wave = (z * n + y) * n + x, other = mirrored + (n - x) % n;
        float a = 0, b = 0;
        if (other < wave)
            continue;
        draw_normals(rng, wave, &a, &b);
        const float size = root[(fold(z, n) * h + fold(y, n)) * h + fold(x, n)] * (other == wave ? 1 : 0.70710678f);
        re[wave] = re[other] = size * a;
        im[wave] = other == wave ? 0 : size * b;
        im[other] = -im[wave];
    }
}

static void fill_waves(const struct cosmology *c, int64_t event, const float *root, float *re, float *im)
{
    const cvy_rng rng = cvy_rng_make((uint64_t)c->o.seed, "cosmology.waves", 0, (uint64_t)event);
    for (int64_t z = 0; z < c->depth; z++)
        for (int64_t y = 0; y < c->o.size; y++)
            fill_row(c, &rng, z, y, root, re, im);
}

static void transform(const struct cosmology *c, float *re, float *im)
{
    const int64_t plane = c->o.size * c->o.size;
    for (int64_t z = 0; z < c->depth; z++)
        cvy_fft_2d(&c->fft, re + z * plane, im + z * plane);
    if (c->depth > 1)
        cvy_fft_columns(&c->fft, plane, re, im, NULL);
}

/* Makes the channels of a sample from g, which is where the last one will be. */
static void grow(const struct cosmology *c, double sigma, float *sample)
{
    const int64_t T = c->o.times;
    const float *g = sample + (T - 1) * c->cells;
    for (int64_t t = 1; t <= T; t++) {
        const double growth = (double)t / (double)T;
        const float by = (float)growth, half = (float)(growth * growth * sigma * sigma / 2);
        float *map = sample + (t - 1) * c->cells;
        for (int64_t i = 0; i < c->cells; i++)
            map[i] = expf(by * g[i] - half);
    }
}

static cvy_status cosmology_read(void *state, int64_t number, cvy_raw *raw)
{
    const struct cosmology *c = state;
    const int64_t event = c->o.first + number, elems = c->o.times * c->cells;
    double index = 0, sigma = 0;
    /* The sample, and after it scratch memory: the imaginary part and the spectrum. */
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)(elems + c->cells + c->halfs) * sizeof(float)));
    raw->x.bytes = (size_t)elems * sizeof(float);
    float *sample = raw->x.data, *g = sample + elems - c->cells, *im = sample + elems, *root = im + c->cells;
    draw_parameters(c, event, &index, &sigma);
    make_spectrum(c, index, sigma, root);
    fill_waves(c, event, root, g, im);
    transform(c, g, im);
    grow(c, sigma, sample);
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_F32;
    raw->shape = c->shape;
    raw->label = label_of(c, event);
    if (!c->has_y)
        return CVY_OK;
    CVY_TRY(cvy_bytes_need(&raw->y, 2 * sizeof(float)));
    float *y = raw->y.data;
    y[0] = (float)index;
    y[1] = (float)sigma;
    return CVY_OK;
}

static cvy_status cosmology_label(void *state, int64_t number, int32_t *label_out)
{
    const struct cosmology *c = state;
    *label_out = label_of(c, c->o.first + number);
    return CVY_OK;
}

static void cosmology_where(void *state, int64_t number, char *text, size_t room)
{
    snprintf(text, room, "cosmology map %lld", (long long)(((const struct cosmology *)state)->o.first + number));
}

static void cosmology_hash(void *state, cvy_hasher *h)
{
    const struct cosmology *c = state;
    cvy_hash_add(h, &c->o, offsetof(struct cosmology_opts, times));
    if (c->o.times > 1) /* with one, the hash is that of versions without this option */
        cvy_hash_add(h, &c->o.times, sizeof c->o.times);
}

CVY_READER_DEFINE(cosmology) = {
    .name = "cosmology",
    .summary = "generated log-normal maps or volumes with a given power spectrum",
    .options = cosmology_opts,
    .options_size = sizeof(struct cosmology_opts),
    .probe = cosmology_probe,
    .open = cosmology_open,
    .read = cosmology_read,
    .label = cosmology_label,
    .where = cosmology_where,
    .hash = cosmology_hash,
};
