/*
 * report_spectrum.c: the power of predictions and truth at each wave number, for each channel of a field. The metric
 * spectrum_error writes them into test.json.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "report/report_page.h"
#include "report/report_svg.h"

enum { SHOWN = 12 };

/* Only wave numbers with a positive power can be drawn on a logarithmic axis. Returns how many remain. */
static int64_t keep_waves(double *k, double *power, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (power[i] > 0 && isfinite(power[i])) {
            k[kept] = (double)(i + 1);
            power[kept++] = power[i];
        }
    return kept;
}

static cvy_status chart_of(cvy_report *r, const cvy_tree *channel, const char *field, double rmse)
{
    static const char *const key[] = {"target", "output"}, *const name[] = {"truth", "prediction"};
    char title[80], note[120] = "";
    snprintf(title, sizeof title, "%s: power spectrum", field);
    if (isfinite(rmse))
        snprintf(note, sizeof note, "root mean square error of the channel %s", cvy_number_text(rmse, 4).at);
    cvy_chart chart = {.title = title,
                       .note = *note ? note : NULL,
                       .x_label = "wave number (waves along the shorter side)",
                       .y_label = "mean power of a wave",
                       .x_what = "wave number",
                       .log_x = 1,
                       .log_y = 1};
    for (int i = 0; i < 2; i++) {
        double *power = NULL, *k = NULL;
        int64_t n = 0;
        CVY_TRY(cvy_tree_reals(r->pool, cvy_tree_at(channel, key[i]), &power, &n));
        CVY_TRY(cvy_pool_alloc(r->pool, sizeof *k * (size_t)(n + 1), &k));
        n = keep_waves(k, power, n);
        cvy_chart_add(&chart,
                      &(cvy_series){.name = name[i],
                                    .draw = i == 0 ? CVY_DRAW_DASHED : CVY_DRAW_LINE,
                                    .color = i == 0 ? -1 : 0,
                                    .x = k,
                                    .y = power,
                                    .n = n},
                      2);
    }
    if (chart.nseries > 0)
        cvy_chart_write(&r->html, &chart);
    return CVY_OK;
}

/* The error of a channel; that of all if there is one. NaN: not known. */
static double rmse_of(const cvy_report *r, int channel, int count)
{
    const cvy_tree *list = cvy_tree_at(r->test, "rmse_by_output");
    if (count == 1)
        return cvy_tree_real_at(r->test, "metrics.rmse");
    return list && list->kind == CVY_TREE_LIST && channel < list->count ? cvy_tree_real_or_nan(list->child[channel])
                                                                        : NAN;
}

void cvy_report_spectrum(cvy_report *r)
{
    const cvy_tree *list = cvy_tree_at(r->test, "spectrum");
    if (!list || list->kind != CVY_TREE_LIST || list->count == 0)
        return;
    cvy_text_add(&r->html, "<h3>Power spectra of the fields</h3>\n<p class=\"soft\">How strongly truth and prediction "
                           "vary at each scale, in all directions. A prediction that is too smooth lacks power at high "
                           "wave numbers.</p>\n<div class=\"charts\">\n");
    for (int i = 0; i < list->count && i < SHOWN; i++) {
        char field[32];
        snprintf(field, sizeof field, list->count > 1 ? "y[%d]" : "y", i);
        if (chart_of(r, list->child[i], field, rmse_of(r, i, list->count)) != CVY_OK)
            break;
    }
    cvy_text_add(&r->html, "</div>\n");
}
