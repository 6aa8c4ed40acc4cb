/*
 * metric spectrum_error: whether the outputs, which are fields, vary as much as the targets at each scale.
 * It runs after each forward pass of a validation or test pass.
 *
 *     sqrt(mean of (10 log10(P_output[k] / P_target[k]))^2)       in dB, over channels and wave numbers k
 *
 * P is the power at each wave number (base_spectrum.h), averaged over the samples with their weights, and over the
 * planes of a volume. A network that is trained on the mean squared error smooths what it cannot know, so its power
 * falls below that of the targets at high wave numbers. The detail, "spectrum", has the powers of each channel. The
 * metric power_spectrum compares generated maps with true ones as a set, by the distributions of their powers.
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
    cvy_spectrum of;
    float *plane;  /* [H, W] */
    double *power; /* [nbin] */
};

static const cvy_option spectrum_error_opts[] = {{0}};

/* sums[0] is the sum of weights; then for each channel the powers of the outputs, and those of the targets. */
enum { OUTPUT, TARGET, NKIND };

static int64_t side(const cvy_shape *output, int from_end)
{
    return output->dim[output->ndim - from_end];
}

static int64_t bins_of(const cvy_shape *output)
{
    return CVY_MIN(side(output, 2), side(output, 1)) / 2;
}

static int64_t place_of(const cvy_shape *output, int64_t channel, int kind)
{
    return 1 + (channel * NKIND + kind) * bins_of(output);
}

static cvy_status spectrum_error_open(cvy_pool *pool, void *options, const cvy_shape *output)
{
    struct spectrum *o = options;
    CVY_CHECK(
        output->ndim >= 2 && side(output, 2) > 1 && side(output, 1) > 1, CVY_E_SHAPE,
        "metric spectrum_error compares fields [H, W] or [C, .., H, W], but the output of a sample is %s: leave it "
        "out",
        cvy_shape_text(output));
    o->sample = *output;
    CVY_TRY(cvy_spectrum_make(pool, side(output, 2), side(output, 1), &o->of));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *o->plane * (size_t)(o->of.h * o->of.w), &o->plane));
    return cvy_pool_alloc(pool, sizeof *o->power * (size_t)o->of.nbin, &o->power);
}

static int64_t spectrum_error_nsums(const void *options, const cvy_shape *output)
{
    (void)options;
    return place_of(output, cvy_metric_parts(output), 0);
}

/* Adds the power of a channel, whose planes begin at element `first`. The mean of a plane, which no wave has, is
 * subtracted first: in f32 its rounding errors could be larger than the power at high wave numbers. */
static void add_power(const struct spectrum *o, const cvy_span *from, int64_t first, int64_t planes, double weight,
                      double *sums)
{
    const int64_t elems = o->of.h * o->of.w;
    for (int64_t p = 0; p < planes; p++, first += elems) {
        double mean = 0;
        for (int64_t i = 0; i < elems; i++)
            mean += cvy_get(from, first + i) / (double)elems;
        for (int64_t i = 0; i < elems; i++)
            o->plane[i] = (float)(cvy_get(from, first + i) - mean);
        for (int64_t k = 0; k < o->of.nbin; k++)
            o->power[k] = 0;
        cvy_spectrum_add(&o->of, o->plane, o->power);
        for (int64_t k = 0; k < o->of.nbin; k++)
            sums[k] += weight * o->power[k] / (double)planes;
    }
}

static void spectrum_error_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const struct spectrum *o = options;
    const int64_t channels = cvy_metric_parts(&o->sample), each = cvy_shape_elems(&o->sample) / channels,
                  planes = each / (o->of.h * o->of.w);
    for (int64_t i = 0; i < rows->n; i++) {
        const double weight = cvy_rows_sample_weight(rows, i);
        if (weight == 0)
            continue;
        sums[0] += weight;
        for (int64_t c = 0; c < channels; c++) {
            const int64_t first = (i * channels + c) * each;
            add_power(o, rows->output, first, planes, weight, sums + place_of(&o->sample, c, OUTPUT));
            add_power(o, rows->target, first, planes, weight, sums + place_of(&o->sample, c, TARGET));
        }
    }
}

/* A wave number without power in output and target says nothing. */
static double spectrum_error_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                                    int64_t nrows)
{
    const int64_t channels = cvy_metric_parts(output), count = bins_of(output);
    double sum = 0;
    int64_t n = 0;
    (void)options;
    (void)rows;
    (void)nrows;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t k = 0; k < count; k++) {
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

static void spectrum_error_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                                  int64_t nrows, cvy_json *json)
{
    enum { SHOWN = 8 };
    const int64_t channels = cvy_metric_parts(output), count = bins_of(output);
    (void)options;
    (void)rows;
    (void)nrows;
    cvy_json_open(json, "spectrum", '[');
    for (int64_t c = 0; c < CVY_MIN(channels, SHOWN); c++) {
        cvy_json_open(json, NULL, '{');
        add_list("output", sums + place_of(output, c, OUTPUT), sums[0], count, json);
        add_list("target", sums + place_of(output, c, TARGET), sums[0], count, json);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

CVY_METRIC_DEFINE(spectrum_error) = {
    .name = "spectrum_error",
    .summary = "difference of the power spectra of fields, in dB",
    .options = spectrum_error_opts,
    .options_size = sizeof(struct spectrum),
    .open = spectrum_error_open,
    .nsums = spectrum_error_nsums,
    .add = spectrum_error_add,
    .finish = spectrum_error_finish,
    .detail = spectrum_error_detail,
};
