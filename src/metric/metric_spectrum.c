/*
 * metric spectrum: how well the outputs have the power spectrum of the targets, whatever the positions of details are.
 * It runs after each forward pass of a validation or test pass.
 *
 *     sqrt(mean of (10 log10(P_output[k] / P_target[k]))^2)       in dB, over channels and wave numbers k > 0
 *
 * P is the power of each wave number (base_spectrum.h), averaged over the samples with their weights, and over the
 * planes of a volume. A network that is trained on the mean squared error smooths what it cannot know, so its power
 * falls below that of the targets at high wave numbers. The detail, "spectrum", has the powers of each channel.
 *
 * Outputs are [H, W], or [C, .., H, W].
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/number/base_spectrum.h"
#include "base/text/base_json.h"
#include "metric/metric.h"

struct spectrum { /* no options, but what is prepared for an output */
    cvy_shape sample;
    cvy_spectrum *of_plane;
    double *power; /* [count] */
};

static const cvy_option spectrum_opts[] = {{0}};

/* sums[0] is the sum of weights; then for each channel the powers of the outputs, and those of the targets. */
enum { OUTPUT, TARGET, NKIND };

static int64_t side(const cvy_shape *output, int from_end)
{
    return output->ndim >= from_end ? output->dim[output->ndim - from_end] : 1;
}

static int64_t count_of(const cvy_shape *output)
{
    return cvy_spectrum_count(side(output, 2), side(output, 1));
}

static int64_t place_of(const cvy_shape *output, int64_t channel, int kind)
{
    return 1 + (channel * NKIND + kind) * count_of(output);
}

static cvy_status spectrum_check(const void *options, const cvy_shape *output)
{
    (void)options;
    CVY_CHECK(output->ndim >= 2 && side(output, 2) > 1 && side(output, 1) > 1, CVY_E_SHAPE,
              "metric spectrum compares fields [H, W] or [C, .., H, W], but the output of a sample is %s: leave it out",
              cvy_shape_text(output));
    return CVY_OK;
}

static cvy_status spectrum_prepare(void *options, const cvy_shape *output, cvy_pool *pool)
{
    struct spectrum *o = options;
    o->sample = *output;
    CVY_TRY(cvy_spectrum_create(pool, side(output, 2), side(output, 1), &o->of_plane));
    return cvy_pool_alloc(pool, sizeof *o->power * (size_t)count_of(output), &o->power);
}

static int64_t spectrum_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    return place_of(output, cvy_metric_parts(output), 0);
}

/* Adds the power of a channel of a sample, whose planes begin at element `first`. */
static void add_power(const struct spectrum *o, const cvy_span *from, int64_t first, int64_t planes, int64_t elems,
                      int64_t count, double weight, double *sums)
{
    double *plane = cvy_spectrum_plane(o->of_plane);
    for (int64_t p = 0; p < planes; p++) {
        for (int64_t i = 0; i < elems; i++)
            plane[i] = cvy_get(from, first + p * elems + i);
        cvy_spectrum_compute(o->of_plane, o->power);
        for (int64_t k = 0; k < count; k++)
            sums[k] += weight * o->power[k] / (double)planes;
    }
}

static void spectrum_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const struct spectrum *o = options;
    const cvy_shape *sample = &o->sample;
    const int64_t channels = cvy_metric_parts(sample), each = cvy_shape_elems(sample) / channels,
                  elems = side(sample, 2) * side(sample, 1), count = count_of(sample);
    for (int64_t i = 0; i < rows->n; i++) {
        const double weight = rows->weight ? rows->weight[i] : 1;
        if (weight == 0)
            continue;
        sums[0] += weight;
        for (int64_t c = 0; c < channels; c++) {
            const int64_t first = (i * channels + c) * each;
            add_power(o, rows->output, first, each / elems, elems, count, weight, sums + place_of(sample, c, OUTPUT));
            add_power(o, rows->target, first, each / elems, elems, count, weight, sums + place_of(sample, c, TARGET));
        }
    }
}

/* A wave number without power in output and target says nothing, and neither does the mean, k = 0. */
static double spectrum_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                              int64_t nrows)
{
    const int64_t channels = cvy_metric_parts(output), count = count_of(output);
    double sum = 0;
    int64_t n = 0;
    (void)options, (void)rows, (void)nrows;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t k = 1; k < count; k++) {
            const double a = sums[place_of(output, c, OUTPUT) + k], b = sums[place_of(output, c, TARGET) + k];
            if (a == 0 && b == 0)
                continue;
            const double decibels = 10 * log10(a / b);
            sum += decibels * decibels;
            n++;
        }
    return n > 0 ? sqrt(sum / (double)n) : 0;
}

static void add_list(const char *name, const double *power, double weight, int64_t count, cvy_json *json)
{
    cvy_json_open(json, name, '[');
    for (int64_t k = 0; k < count; k++)
        cvy_json_real(json, NULL, power[k] / weight);
    cvy_json_close(json, ']');
}

static void spectrum_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                            int64_t nrows, cvy_json *json)
{
    enum { SHOWN = 8 };
    const int64_t channels = cvy_metric_parts(output), count = count_of(output);
    (void)options, (void)rows, (void)nrows;
    cvy_json_open(json, "spectrum", '[');
    for (int64_t c = 0; c < CVY_MIN(channels, SHOWN); c++) {
        cvy_json_open(json, NULL, '{');
        add_list("prediction", sums + place_of(output, c, OUTPUT), sums[0], count, json);
        add_list("truth", sums + place_of(output, c, TARGET), sums[0], count, json);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

CVY_METRIC_DEFINE(spectrum) = {
    .name = "spectrum",
    .summary = "difference of the power spectra of fields, in dB",
    .options = spectrum_opts,
    .options_size = sizeof(struct spectrum),
    .check = spectrum_check,
    .prepare = spectrum_prepare,
    .nsums = spectrum_nsums,
    .add = spectrum_add,
    .finish = spectrum_finish,
    .detail = spectrum_detail,
};
