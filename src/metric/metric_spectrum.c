/*
 * metrics power_spectrum and power_spectrum_within: whether generated maps have the power spectrum of the true ones, as
 * a set: which map is compared with which does not matter. They run after each forward pass of a validation or test
 * pass.
 *
 * Each map gives its power at each wave number (base_spectrum.h), the mean over its channels. At each wave number,
 *
 *     power_spectrum         the distance of Kolmogorov and Smirnov between the powers of the outputs and those of the
 *                            targets; the mean over all wave numbers. 0: the same distribution; 1: they do not overlap
 *     power_spectrum_within  the share of the wave numbers at which the mean powers agree within `errors` standard
 * errors
 *
 * Detail of the first: "power_spectrum" {wave, output, target, error, ks, p}, lists over the wave numbers
 * (metric_samples.h). The comparison by distances at each wave number is that of Mustafa et al. 2019, "CosmoGAN:
 * creating high-fidelity weak lensing convergence maps using generative adversarial networks".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/number/base_spectrum.h"
#include "metric/metric_samples.h"

struct spectrum {
    cvy_within within;
    cvy_spectrum of;       /* made by spectrum_open() */
    float *map;            /* [h, w] */
    double *power;         /* [nbin] */
    cvy_samples *compared; /* [nbin] */
};

static const cvy_option spectrum_opts[] = {{0}};
static const cvy_option spectrum_within_opts[] = {CVY_WITHIN_ROW(spectrum), {0}};

static cvy_status spectrum_open(cvy_pool *pool, void *options, const cvy_shape *output)
{
    struct spectrum *o = options;
    const int64_t *dim = output->dim + output->ndim - 2;
    CVY_CHECK((output->ndim == 2 || output->ndim == 3) && dim[0] >= 2 && dim[1] >= 2, CVY_E_CONFIG,
              "a power spectrum needs outputs that are maps, [C, H, W] or [H, W], got %s", cvy_shape_text(output));
    CVY_TRY(cvy_spectrum_make(pool, dim[0], dim[1], &o->of));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *o->map * (size_t)(dim[0] * dim[1]), &o->map));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *o->compared * (size_t)o->of.nbin, &o->compared));
    return cvy_pool_alloc(pool, sizeof *o->power * (size_t)o->of.nbin, &o->power);
}

static int64_t bins_of(const cvy_shape *output)
{
    return CVY_MIN(output->dim[output->ndim - 2], output->dim[output->ndim - 1]) / 2;
}

static int64_t spectrum_width(const void *options, const cvy_shape *output)
{
    (void)options;
    return CVY_SAMPLES_SETS * bins_of(output);
}

static int spectrum_row(const void *options, const cvy_metric_rows *rows, int64_t i, float *cols)
{
    const struct spectrum *o = options;
    const int64_t plane = o->of.h * o->of.w, each = rows->output->elems / rows->n, channels = each / plane;
    for (int which = 0; which < CVY_SAMPLES_SETS; which++) {
        const cvy_span *maps = which == CVY_SAMPLES_OUTPUT ? rows->output : rows->target;
        for (int64_t b = 0; b < o->of.nbin; b++)
            o->power[b] = 0;
        for (int64_t c = 0; c < channels; c++) {
            for (int64_t j = 0; j < plane; j++)
                o->map[j] = (float)cvy_get(maps, i * each + c * plane + j);
            cvy_spectrum_add(&o->of, o->map, o->power);
        }
        for (int64_t b = 0; b < o->of.nbin; b++)
            cols[which * o->of.nbin + b] = (float)(o->power[b] / (double)channels);
    }
    return 1;
}

static void compare_all(const struct spectrum *o, const float *rows, int64_t nrows)
{
    for (int64_t b = 0; b < o->of.nbin; b++)
        cvy_samples_compare(rows, nrows, CVY_SAMPLES_SETS * o->of.nbin, b, o->of.nbin + b, &o->compared[b]);
}

static double spectrum_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                              int64_t nrows)
{
    const struct spectrum *o = options;
    double sum = 0;
    (void)output;
    (void)sums;
    compare_all(o, rows, nrows);
    for (int64_t b = 0; b < o->of.nbin; b++)
        sum += o->compared[b].distance;
    return sum / (double)o->of.nbin;
}

static double spectrum_within_finish(const void *options, const cvy_shape *output, const double *sums,
                                     const float *rows, int64_t nrows)
{
    const struct spectrum *o = options;
    int64_t agree = 0;
    (void)output;
    (void)sums;
    compare_all(o, rows, nrows);
    for (int64_t b = 0; b < o->of.nbin; b++)
        agree += cvy_samples_agree(&o->compared[b], o->within.errors);
    return nrows ? (double)agree / (double)o->of.nbin : NAN;
}

/* spectrum_finish() has compared the rows. */
static void spectrum_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                            int64_t nrows, cvy_json *json)
{
    const struct spectrum *o = options;
    (void)output;
    (void)sums;
    (void)rows;
    (void)nrows;
    cvy_json_open(json, "power_spectrum", '{');
    cvy_json_open(json, "wave", '[');
    for (int64_t b = 0; b < o->of.nbin; b++)
        cvy_json_int(json, NULL, b + 1);
    cvy_json_close(json, ']');
    cvy_samples_write(o->compared, o->of.nbin, json);
    cvy_json_close(json, '}');
}

CVY_METRIC_DEFINE(power_spectrum) = {
    .name = "power_spectrum",
    .summary = "distance between the power spectra of generated maps and those of true ones",
    .options = spectrum_opts,
    .options_size = sizeof(struct spectrum),
    .open = spectrum_open,
    .width = spectrum_width,
    .row = spectrum_row,
    .finish = spectrum_finish,
    .detail = spectrum_detail,
};

CVY_METRIC_DEFINE(power_spectrum_within) = {
    .name = "power_spectrum_within",
    .summary = "share of the wave numbers at which generated maps have the power of true ones, within their errors",
    .options = spectrum_within_opts,
    .options_size = sizeof(struct spectrum),
    .higher_is_better = 1,
    .open = spectrum_open,
    .width = spectrum_width,
    .row = spectrum_row,
    .finish = spectrum_within_finish,
};
