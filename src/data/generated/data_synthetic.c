/*
 * data_synthetic.c: generates images of any shape, for tests and benchmarks without a file.
 *
 * Sample i has class i mod classes. Its x is the class's pattern (random values on a coarse grid, constant inside each
 * cell) plus noise, so a network can learn it. With targets there are no classes: y is a fixed random linear map of the
 * pattern's coarse values, which a regression can learn; or, if it has several axes, the coarse values themselves. With
 * `map`, y is a map of labels. With classes 0 there is x alone. Everything is a function of (seed, number). Only the
 * patterns, the linear map and a block of noise are stored. Each row of a sample reads the noise from its own random
 * offset, so making a sample costs little more than writing it and does not slow down training.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/number/base_rng.h"
#include "data/data_reader.h"

#include <math.h>
#include <string.h>

struct synthetic_opts {
    cvy_ints shape, targets, map;
    int64_t classes, samples, seed;
    double noise;
};

static const cvy_option synthetic_opts[] = {
    {"shape", CVY_TYPE_INTS, CVY_FIELD(synthetic_opts, shape), "[3, 32, 32]", "1..", "",
     "shape of a sample, channels first"},
    {"classes", CVY_TYPE_INT, CVY_FIELD(synthetic_opts, classes), "10", "0..", "",
     "number of classes; 0: samples have no label"},
    {"samples", CVY_TYPE_INT, CVY_FIELD(synthetic_opts, samples), "1024", "1..", "samples", "number of samples"},
    {"seed", CVY_TYPE_INT, CVY_FIELD(synthetic_opts, seed), "1", "0..", "", "seed of patterns and noise"},
    {"targets", CVY_TYPE_INTS, CVY_FIELD(synthetic_opts, targets), "", "0..", "",
     "number of real targets per sample, or their shape, instead of a class (regression); 0: none"},
    {"map", CVY_TYPE_INTS, CVY_FIELD(synthetic_opts, map), "", "1..", "",
     "shape of a map of labels in y, instead of a class (segmentation)"},
    {"noise", CVY_TYPE_REAL, CVY_FIELD(synthetic_opts, noise), "0.5", "0..", "",
     "standard deviation of the noise; the patterns' is 1"},
    {0},
};

enum {
    GRID = 4,      /* coarse cells along each spatial axis */
    NOISE = 65536, /* number of offsets in the block of noise */
};

struct synthetic {
    struct synthetic_opts o;
    cvy_shape shape, y;
    int64_t elems, ncell; /* ncell: cells of one pattern */
    int64_t nmapped;      /* targets that are a linear map of the pattern's cells */
    int64_t nrow, row;    /* number of rows of a sample along its last axis, and their length */
    int32_t *cell_in_row; /* [row]: position -> cell, counted from the row's first cell */
    float *cell;          /* [classes or 64, ncell] */
    float *map;           /* [targets, ncell] */
    float *noise;         /* [NOISE + row], uniform, which is as good as a Gaussian for training */
};

static int synthetic_probe(const char *path)
{
    return strcmp(path, "synthetic") == 0 && !cvy_file_exists(path) ? 100 : 0;
}

static int64_t npattern(const struct synthetic *s)
{
    return s->y.ndim > 0 || s->o.classes == 0 ? 64 : s->o.classes;
}

/* Makes the table from a row's positions to cells of the pattern, and the noise. */
static cvy_status make_rows(struct synthetic *s, cvy_pool *pool)
{
    const cvy_rng rng = cvy_rng_make((uint64_t)s->o.seed, "synthetic.noise", 0, 0);
    const double width = s->o.noise * sqrt(12.0);
    const int is_vector = s->shape.ndim == 1;
    s->row = s->shape.dim[s->shape.ndim - 1];
    s->nrow = s->elems / s->row;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)s->row * sizeof *s->cell_in_row, &s->cell_in_row));
    CVY_TRY(cvy_pool_alloc(pool, ((size_t)NOISE + (size_t)s->row) * sizeof *s->noise, &s->noise));
    for (int64_t i = 0; i < s->row; i++)
        s->cell_in_row[i] = (int32_t)(is_vector ? i : i * GRID / s->row);
    uint32_t word[4] = {0};
    for (int64_t i = 0; i < NOISE + s->row; i++) {
        if (i % 4 == 0)
            cvy_rng_block(&rng, (uint64_t)(i / 4), word);
        s->noise[i] = (float)(width * ((double)(word[i % 4] >> 8) * 0x1p-24 - 0.5));
    }
    return CVY_OK;
}

/* The shape of y, which has no axes if there is none. */
static cvy_status set_target(struct synthetic *s)
{
    const cvy_ints *from = s->o.map.count > 0 ? &s->o.map : &s->o.targets;
    const int is_none = from->count == 0 || (from->count == 1 && from->at[0] == 0);
    size_t bytes = sizeof(float);
    CVY_CHECK(s->o.map.count == 0 || s->o.targets.count == 0, CVY_E_CONFIG, "%s",
              "synthetic has targets and a map of labels; give one of them");
    CVY_CHECK(s->o.map.count == 0 || s->o.classes > 0, CVY_E_CONFIG, "%s",
              "synthetic has a map of labels of 0 classes");
    CVY_CHECK(from->count < CVY_NDIM_MAX, CVY_E_CONFIG, "synthetic target needs at most %d numbers, got %d",
              CVY_NDIM_MAX - 1, from->count);
    for (int i = 0; i < from->count && !is_none; i++) {
        CVY_CHECK(from->at[i] > 0, CVY_E_CONFIG, "dimension %d of the synthetic targets is 0", i);
        CVY_TRY(cvy_size_mul(bytes, (size_t)from->at[i], &bytes));
    }
    if (!is_none)
        s->y = cvy_shape_make(from->count, from->at);
    s->nmapped = s->o.map.count == 0 && s->y.ndim == 1 ? s->y.dim[0] : 0;
    return CVY_OK;
}

static cvy_status synthetic_open(const cvy_reader_args *args, cvy_reader_info *info, void **state_out)
{
    struct synthetic *s = NULL;
    CVY_TRY(cvy_pool_alloc(info->pool, sizeof *s, &s));
    s->o = *(const struct synthetic_opts *)args->options;
    CVY_CHECK(s->o.shape.count >= 1 && s->o.shape.count < CVY_NDIM_MAX, CVY_E_CONFIG,
              "synthetic shape needs 1 to %d numbers, got %d", CVY_NDIM_MAX - 1, s->o.shape.count);
    s->shape = cvy_shape_make(s->o.shape.count, s->o.shape.at);
    CVY_TRY(set_target(s));
    s->ncell = s->shape.dim[0];
    for (int i = 1; i < s->shape.ndim; i++)
        s->ncell *= GRID;
    size_t bytes = sizeof(float);
    for (int i = 0; i < s->shape.ndim; i++)
        CVY_TRY(cvy_size_mul(bytes, (size_t)s->shape.dim[i], &bytes));
    s->elems = cvy_shape_elems(&s->shape);
    CVY_CHECK(s->shape.dim[s->shape.ndim - 1] <= INT32_MAX / 2, CVY_E_CONFIG,
              "synthetic shape ends in %lld, expected at most %d", (long long)s->shape.dim[s->shape.ndim - 1],
              INT32_MAX / 2);
    CVY_TRY(make_rows(s, info->pool));
    CVY_TRY(cvy_size_mul((size_t)npattern(s) * sizeof(float), (size_t)s->ncell, &bytes));
    CVY_TRY(cvy_pool_alloc(info->pool, bytes, &s->cell));
    const cvy_rng rng = cvy_rng_make((uint64_t)s->o.seed, "synthetic.pattern", 0, 0);
    for (int64_t i = 0; i < npattern(s) * s->ncell; i++)
        s->cell[i] = (float)cvy_rng_normal(&rng, (uint64_t)i);
    CVY_TRY(cvy_size_mul((size_t)s->nmapped * sizeof(float), (size_t)s->ncell, &bytes));
    CVY_TRY(cvy_pool_alloc(info->pool, bytes, &s->map));
    const cvy_rng map = cvy_rng_make((uint64_t)s->o.seed, "synthetic.map", 0, 0);
    for (int64_t i = 0; i < s->nmapped * s->ncell; i++)
        s->map[i] = (float)(cvy_rng_normal(&map, (uint64_t)i) / sqrt((double)s->ncell));
    info->nsamples = s->o.samples;
    info->dtype = CVY_DTYPE_F32;
    info->shape = s->shape;
    info->has_y = s->y.ndim > 0;
    info->has_label = !info->has_y && s->o.classes > 0;
    info->nclasses = info->has_y ? 0 : s->o.classes;
    info->y_shape = s->y;
    *state_out = s;
    return CVY_OK;
}

static cvy_status synthetic_label(void *state, int64_t number, int32_t *label_out)
{
    *label_out = (int32_t)(number % npattern(state));
    return CVY_OK;
}

/* The first cell of a row of the pattern, from all axes but the last, innermost first. A vector is a single row, with
 * one cell for each element. */
static int64_t first_cell(const struct synthetic *s, int64_t row)
{
    int64_t at = 0, weight = s->shape.ndim > 1 ? GRID : 1;
    for (int d = s->shape.ndim - 2; d > 0; d--) {
        at += row % s->shape.dim[d] * GRID / s->shape.dim[d] * weight;
        weight *= GRID;
        row /= s->shape.dim[d];
    }
    return row * weight + at;
}

/* Row r of sample `number`: elements from .. from + n - 1. */
static void make_row(const struct synthetic *s, const cvy_rng *rng, const float *cell, int64_t r, int64_t from,
                     int64_t n, float *x)
{
    const float *base = cell + first_cell(s, r), *noise = s->noise + cvy_rng_u32(rng, (uint64_t)r) % NOISE;
    for (int64_t i = from; i < from + n; i++)
        *x++ = base[s->cell_in_row[i]] + noise[i];
}

static cvy_status make_target(const struct synthetic *s, int32_t pattern, cvy_raw *raw)
{
    const float *cell = s->cell + pattern * s->ncell;
    const int64_t n = s->y.ndim > 0 ? cvy_shape_elems(&s->y) : 0;
    CVY_TRY(cvy_bytes_need(&raw->y, (size_t)n * sizeof(float)));
    for (int64_t t = 0; t < n; t++) {
        float value = s->o.map.count > 0 ? (float)((pattern + t) % s->o.classes) : cell[t % s->ncell];
        if (s->nmapped > 0) {
            value = 0;
            for (int64_t k = 0; k < s->ncell; k++)
                value += s->map[t * s->ncell + k] * cell[k];
        }
        ((float *)raw->y.data)[t] = value;
    }
    return CVY_OK;
}

static cvy_status synthetic_read_part(void *state, int64_t number, const cvy_field_part *x_part,
                                      const cvy_field_part *y_part, cvy_raw *raw)
{
    const struct synthetic *s = state;
    const cvy_field_part whole = {.shape = s->shape, .tile.whole = s->shape},
                         *part = cvy_is_part(x_part) ? x_part : &whole;
    const int64_t n = part->shape.dim[s->shape.ndim - 1], elems = cvy_shape_elems(&part->shape);
    int32_t pattern = 0;
    (void)y_part; /* y is small: it is not split */
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)elems * sizeof(float)));
    CVY_TRY(synthetic_label(state, number, &pattern));
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_F32;
    raw->shape = part->shape;
    raw->label = pattern;
    const float *cell = s->cell + pattern * s->ncell;
    float *x = raw->x.data;
    const cvy_rng rng = cvy_rng_make((uint64_t)s->o.seed, "synthetic.noise", 0, (uint64_t)number);
    for (int64_t at = 0; at < elems; at += n) {
        const int64_t in_whole = cvy_tile_index(&part->tile, &part->shape, at);
        make_row(s, &rng, cell, in_whole / s->row, in_whole % s->row, n, x + at);
    }
    return make_target(s, pattern, raw);
}

static cvy_status synthetic_read(void *state, int64_t number, cvy_raw *raw)
{
    return synthetic_read_part(state, number, NULL, NULL, raw);
}

static void synthetic_where(void *state, int64_t number, char *text, size_t room)
{
    (void)state;
    snprintf(text, room, "synthetic sample %lld", (long long)number);
}

static void synthetic_hash(void *state, cvy_hasher *h)
{
    const struct synthetic *s = state;
    cvy_hash_add(h, &s->o.seed, sizeof s->o.seed);
    cvy_hash_add(h, &s->o.noise, sizeof s->o.noise);
}

CVY_READER_DEFINE(synthetic) = {
    .name = "synthetic",
    .summary = "generated images that a network can learn",
    .options = synthetic_opts,
    .options_size = sizeof(struct synthetic_opts),
    .probe = synthetic_probe,
    .open = synthetic_open,
    .read = synthetic_read,
    .read_part = synthetic_read_part,
    .label = synthetic_label,
    .where = synthetic_where,
    .hash = synthetic_hash,
};
