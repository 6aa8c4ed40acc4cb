/*
 * score_fields.c: see score_fields.h. Samples are ordered by the root mean square error of a channel. Colours: viridis
 * (Smith and van der Walt 2015) for values, and RdBu (Brewer 2003) for differences, between a few anchors of each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "score/score_picture.h"

enum { CHANNELS_MAX = 4, SHOWN_MAX = 6, GENERATED_MAX = 8, SIDE = CVY_SCORE_PICTURE_SIDE };

struct ranked {
    double error;
    int64_t sample;
};

struct map { /* numbers of a plane, and their picture */
    float *value;
    uint8_t *pixel;
    int64_t H, W;
};

/* ---- which targets are fields ---- */

int cvy_fields_find(const cvy_scoring *s, int64_t output_elems, cvy_fields *out)
{
    const cvy_field *target = cvy_dataset_target(cvy_dataset_describe(s->session.test));
    const cvy_shape *shape = target ? &target->shape : NULL;
    if (s->nclasses > 0 || !shape || shape->ndim < 2 || cvy_shape_elems(shape) != output_elems)
        return 0;
    cvy_fields f = {.H = shape->dim[shape->ndim - 2], .W = shape->dim[shape->ndim - 1], .elems = output_elems};
    f.channels = shape->ndim > 2 ? shape->dim[0] : 1;
    f.stride = output_elems / f.channels;
    f.first = f.stride / (f.H * f.W) / 2 * f.H * f.W;
    if (f.H < 2 || f.W < 2)
        return 0;
    *out = f;
    return 1;
}

void cvy_fields_name(const cvy_fields *f, int64_t channel, char *text, size_t room)
{
    if (f->channels > 1)
        snprintf(text, room, "y[%lld]", (long long)channel);
    else
        snprintf(text, room, "y");
}

/* ---- which samples are shown ---- */

/* Positions that a mask leaves out have no target. A sample without any other has no error. */
static double error_of(const cvy_fields *f, const float *row, int64_t channel)
{
    const float *output = row + channel * f->stride, *target = output + f->elems;
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < f->stride; i++)
        if (!isnan(target[i])) {
            sum += ((double)output[i] - target[i]) * ((double)output[i] - target[i]);
            count++;
        }
    return count > 0 ? sqrt(sum / (double)count) : 0;
}

/* The largest error comes first, and of equal ones the first sample; an error that is not a number is the largest. */
static int by_error(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    const double u = isnan(x->error) ? INFINITY : x->error, v = isnan(y->error) ? INFINITY : y->error;
    return u != v ? (u < v) - (u > v) : (x->sample > y->sample) - (x->sample < y->sample);
}

/* ---- a map ---- */

static uint8_t between(const uint8_t (*anchor)[3], int count, double at, int c)
{
    const double x = CVY_MIN(CVY_MAX(at, 0), 1) * (count - 1);
    const int i = CVY_MIN((int)x, count - 2);
    return (uint8_t)(anchor[i][c] + (x - i) * (anchor[i + 1][c] - anchor[i][c]) + 0.5);
}

static void paint(struct map *m, double low, double high, int is_difference)
{
    static const uint8_t viridis[][3] = {{0x44, 0x01, 0x54}, {0x47, 0x2d, 0x7b}, {0x3b, 0x52, 0x8b},
                                         {0x2c, 0x72, 0x8e}, {0x21, 0x91, 0x8c}, {0x28, 0xae, 0x80},
                                         {0x5e, 0xc9, 0x62}, {0xad, 0xdc, 0x30}, {0xfd, 0xe7, 0x25}};
    static const uint8_t rdbu[][3] = {
        {0x21, 0x66, 0xac}, {0x92, 0xc5, 0xde}, {0xf7, 0xf7, 0xf7}, {0xf4, 0xa5, 0x82}, {0xb2, 0x18, 0x2b}};
    const int64_t plane = m->H * m->W;
    for (int64_t i = 0; i < plane; i++) {
        const double at = high > low ? (m->value[i] - low) / (high - low) : 0.5;
        for (int c = 0; c < 3; c++)
            m->pixel[c * plane + i] = !isfinite(at)   ? 128
                                      : is_difference ? between(rdbu, CVY_COUNT(rdbu), at, c)
                                                      : between(viridis, CVY_COUNT(viridis), at, c);
    }
}

/* Averages blocks of a plane, so that no side is longer than SIDE. minus: NULL, or a plane that is subtracted. */
static void reduce(const cvy_fields *f, const float *plane, const float *minus, struct map *m)
{
    const int64_t by = (CVY_MAX(f->H, f->W) + SIDE - 1) / SIDE;
    m->H = (f->H + by - 1) / by;
    m->W = (f->W + by - 1) / by;
    for (int64_t y = 0; y < m->H; y++)
        for (int64_t x = 0; x < m->W; x++) {
            const int64_t bottom = CVY_MIN((y + 1) * by, f->H), right = CVY_MIN((x + 1) * by, f->W);
            double sum = 0;
            for (int64_t i = y * by; i < bottom; i++)
                for (int64_t k = x * by; k < right; k++)
                    sum += (double)plane[i * f->W + k] - (minus ? minus[i * f->W + k] : 0);
            m->value[y * m->W + x] = (float)(sum / (double)((bottom - y * by) * (right - x * by)));
        }
}

static void find_range(const struct map *m, double *low, double *high)
{
    for (int64_t i = 0; i < m->H * m->W; i++)
        if (isfinite(m->value[i])) {
            *low = CVY_MIN(*low, m->value[i]);
            *high = CVY_MAX(*high, m->value[i]);
        }
}

static cvy_status add_map(struct map *m, const char *key, double low, double high, int is_difference,
                          cvy_score_picture *buffers, cvy_json *json)
{
    paint(m, low, high, is_difference);
    const cvy_picture p = {.dtype = CVY_DTYPE_U8, .C = 3, .H = m->H, .W = m->W, .data = m->pixel};
    return cvy_score_picture_add(buffers, key, &p, json);
}

static cvy_status add_maps(const cvy_fields *f, const float *row, int64_t channel, struct map *m,
                           cvy_score_picture *buffers, cvy_json *json)
{
    const float *output = row + channel * f->stride + f->first, *target = output + f->elems;
    double low = INFINITY, high = -INFINITY, least = 0, most = 0;
    reduce(f, target, NULL, m);
    find_range(m, &low, &high);
    reduce(f, output, NULL, m);
    find_range(m, &low, &high);
    CVY_TRY(add_map(m, "prediction", low, high, 0, buffers, json));
    reduce(f, target, NULL, m);
    CVY_TRY(add_map(m, "truth", low, high, 0, buffers, json));
    reduce(f, output, target, m);
    find_range(m, &least, &most);
    const double spread = CVY_MAX(-least, most);
    CVY_TRY(add_map(m, "difference", -spread, spread, 1, buffers, json));
    cvy_json_real(json, "low", low);
    cvy_json_real(json, "high", high);
    cvy_json_real(json, "spread", spread);
    return CVY_OK;
}

/* ---- the list ---- */

/* Ranks that are shown: the worst ones, then the middle, and of a single channel also the quarters, as far as there are
 * so many. */
static int choose(int64_t n, int64_t channels, int64_t *rank)
{
    const int worst = (int)CVY_MIN(n, channels == 1 ? 3 : channels == 2 ? 2 : 1);
    int count = 0;
    for (; count < worst; count++)
        rank[count] = count;
    for (int quarter = channels == 1 ? 1 : 2; quarter <= (channels == 1 ? 3 : 2); quarter++)
        if (quarter * n / 4 > rank[count - 1])
            rank[count++] = quarter * n / 4;
    return count;
}

static cvy_status add_channel(const cvy_scoring *s, const cvy_fields *f, const float *rows, int64_t n, int64_t channel,
                              struct ranked *ranked, struct map *m, cvy_score_picture *buffers, cvy_json *json)
{
    int64_t rank[SHOWN_MAX];
    char name[1024], field[32];
    for (int64_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){error_of(f, rows + 2 * f->elems * i, channel), i};
    qsort(ranked, (size_t)n, sizeof *ranked, by_error);
    cvy_fields_name(f, channel, field, sizeof field);
    const int count = choose(n, f->channels, rank);
    for (int i = 0; i < count; i++) {
        const int64_t sample = ranked[rank[i]].sample;
        cvy_dataset_where(s->session.test, sample, name, sizeof name);
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "field", field);
        cvy_json_string(json, "kind", rank[i] == i ? "worst" : "typical");
        cvy_json_int(json, "sample", sample);
        cvy_json_string(json, "name", name);
        cvy_json_real(json, "rmse", ranked[rank[i]].error);
        CVY_TRY(add_maps(f, rows + 2 * f->elems * sample, channel, m, buffers, json));
        cvy_json_close(json, '}');
    }
    return CVY_OK;
}

/* ---- generated maps ---- */

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The values of the true maps below which 1 %, and above which 1 %, of their pixels lie: bright points would leave
 * everything else dark. `value` has room for all their pixels. */
static void usual_range(const cvy_fields *f, const float *rows, int64_t shown, float *value, double *low, double *high)
{
    const int64_t plane = f->H * f->W;
    int64_t n = 0;
    for (int64_t i = 0; i < shown; i++) {
        const float *target = rows + 2 * f->elems * i + f->elems + f->first;
        for (int64_t k = 0; k < plane; k++)
            if (isfinite(target[k]))
                value[n++] = target[k];
    }
    qsort(value, (size_t)n, sizeof *value, ascending);
    *low = n ? value[n / 100] : 0;
    *high = n ? value[n - 1 - n / 100] : 1;
}

static cvy_status add_generated(const cvy_fields *f, const float *rows, int64_t shown, struct map *m, float *value,
                                cvy_score_picture *buffers, cvy_json *json)
{
    double low = 0, high = 1;
    usual_range(f, rows, shown, value, &low, &high);
    cvy_json_open(json, "generated", '{');
    cvy_json_real(json, "low", low);
    cvy_json_real(json, "high", high);
    cvy_json_open(json, "maps", '[');
    for (int64_t i = 0; i < shown; i++) {
        const float *output = rows + 2 * f->elems * i + f->first;
        cvy_json_open(json, NULL, '{');
        reduce(f, output, NULL, m);
        CVY_TRY(add_map(m, "output", low, high, 0, buffers, json));
        reduce(f, output + f->elems, NULL, m);
        CVY_TRY(add_map(m, "target", low, high, 0, buffers, json));
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
    cvy_json_close(json, '}');
    return CVY_OK;
}

cvy_status cvy_fields_add_generated(const cvy_fields *f, const float *rows, int64_t n, cvy_json *json)
{
    struct map m = {0};
    float *value = NULL;
    cvy_score_picture buffers = {0};
    cvy_status status = CVY_OK;
    const int64_t shown = CVY_MIN(n, GENERATED_MAX);
    if (!CVY_HAVE_SPNG || n == 0)
        return CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *value * (size_t)(shown * f->H * f->W), &value));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *m.value * (size_t)SIDE * SIDE, &m.value));
    CVY_TRY_OUT(cvy_mem_alloc(3 * (size_t)SIDE * SIDE, &m.pixel));
    CVY_TRY_OUT(add_generated(f, rows, shown, &m, value, &buffers, json));
out:
    cvy_score_picture_end(&buffers);
    cvy_mem_free(&value);
    cvy_mem_free(&m.value);
    cvy_mem_free(&m.pixel);
    return status;
}

cvy_status cvy_fields_add(const cvy_scoring *s, const cvy_fields *f, const float *rows, int64_t n, cvy_json *json)
{
    struct ranked *ranked = NULL;
    struct map m = {0};
    cvy_score_picture buffers = {0};
    cvy_status status = CVY_OK;
    const size_t pixels = (size_t)SIDE * SIDE;
    if (!CVY_HAVE_SPNG || n == 0)
        return CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *ranked * (size_t)n, &ranked));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *m.value * pixels, &m.value));
    CVY_TRY_OUT(cvy_mem_alloc(3 * pixels, &m.pixel));
    cvy_json_open(json, "fields", '[');
    for (int64_t c = 0; c < CVY_MIN(f->channels, CHANNELS_MAX); c++)
        CVY_TRY_OUT(add_channel(s, f, rows, n, c, ranked, &m, &buffers, json));
    cvy_json_close(json, ']');
out:
    cvy_score_picture_end(&buffers);
    cvy_mem_free(&ranked);
    cvy_mem_free(&m.value);
    cvy_mem_free(&m.pixel);
    return status;
}
