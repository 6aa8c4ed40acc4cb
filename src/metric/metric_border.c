/*
 * metric border_rmse: the root mean squared error of the positions of a field that are near its border, where a network
 * sees zeros instead of the field. It runs after each forward pass of a validation or test pass.
 *
 * The distance of a position is 0 on the border, and its smallest index from either end of an axis elsewhere. The
 * result is the error of the distances below `width`. The detail "rmse_by_distance" has the error at each of them, and
 * last that of all positions further inside, null if there are none; so a network without an effect of the border has
 * equal numbers.
 *
 *     sqrt(sum weight * (output - target)^2 / sum weight)     over samples, channels and positions at these distances
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/text/base_json.h"
#include "metric/metric.h"

struct border {
    int64_t width;
};

static const cvy_option border_opts[] = {
    {"width", CVY_TYPE_INT, CVY_FIELD(border, width), "8", "1..4096", "positions",
     "positions from the border that count"},
    {0},
};

/* These follow for each distance, and then for the rest: */
enum { ERROR2, WEIGHT, NEACH };

/* The first spatial axis of a sample: a map [H, W] has no channels. */
static int first_axis(int ndim)
{
    return ndim == 2 ? 0 : 1;
}

static cvy_status border_check(const void *options, const cvy_shape *output)
{
    (void)options;
    CVY_CHECK(output->ndim >= 2, CVY_E_CONFIG, "border_rmse needs outputs with positions, [C, H, W] or [H, W], got %s",
              cvy_shape_text(output));
    return CVY_OK;
}

static int64_t border_nsums(const void *options, const cvy_shape *output)
{
    (void)output;
    return NEACH * (((const struct border *)options)->width + 1);
}

/* The distance of an element, which counts within a sample of `ndim` axes. */
static int64_t distance_of(const int64_t *dim, int ndim, int64_t element)
{
    int64_t nearest = INT64_MAX;
    for (int d = ndim - 1; d >= first_axis(ndim); d--) {
        const int64_t at = element % dim[d];
        nearest = CVY_MIN(nearest, CVY_MIN(at, dim[d] - 1 - at));
        element /= dim[d];
    }
    return nearest;
}

static void border_add(const void *options, const cvy_metric_rows *rows, double *sums)
{
    const struct border *o = options;
    const int64_t each = rows->output->elems / rows->n;
    for (int64_t j = 0; j < each; j++) {
        double *s = sums + NEACH * CVY_MIN(distance_of(rows->output->dim + 1, rows->output->ndim - 1, j), o->width);
        for (int64_t i = 0; i < rows->n; i++) {
            const double weight = cvy_rows_weight(rows, i, j);
            if (weight == 0)
                continue;
            const double d = cvy_get(rows->output, i * each + j) - cvy_get(rows->target, i * each + j);
            s[ERROR2] += weight * d * d;
            s[WEIGHT] += weight;
        }
    }
}

static double border_finish(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                            int64_t nrows)
{
    const struct border *o = options;
    double error2 = 0, weight = 0;
    (void)output;
    (void)rows;
    (void)nrows;
    for (int64_t k = 0; k < o->width; k++) {
        error2 += sums[NEACH * k + ERROR2];
        weight += sums[NEACH * k + WEIGHT];
    }
    return sqrt(error2 / weight);
}

static void border_detail(const void *options, const cvy_shape *output, const double *sums, const float *rows,
                          int64_t nrows, cvy_json *json)
{
    const struct border *o = options;
    (void)output;
    (void)rows;
    (void)nrows;
    cvy_json_open(json, "rmse_by_distance", '[');
    for (int64_t k = 0; k <= o->width; k++)
        cvy_json_real(json, NULL, sqrt(sums[NEACH * k + ERROR2] / sums[NEACH * k + WEIGHT]));
    cvy_json_close(json, ']');
}

CVY_METRIC_DEFINE(border_rmse) = {
    .name = "border_rmse",
    .summary = "root mean squared error of a field near its border",
    .options = border_opts,
    .options_size = sizeof(struct border),
    .check = border_check,
    .nsums = border_nsums,
    .add = border_add,
    .finish = border_finish,
    .detail = border_detail,
};
