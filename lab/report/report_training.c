/*
 * report_training.c: the curves of the training: losses, metrics, learning rate, speed, and the time of a step by its
 * parts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"
#include "report/report_curve.h"
#include "report/report_page.h"
#include "report/report_svg.h"

/* Draws a curve over steps. If points were averaged, it has a band from minimum to maximum. */
static void step_chart(cvy_report *r, cvy_chart *chart, const char *column, int color)
{
    const double *x = cvy_frame_column(&r->steps, "step"), *y = cvy_frame_column(&r->steps, column);
    cvy_binned_curve b;
    if (!x || !y || cvy_curve_bin(r->pool, x, y, r->steps.nrow, &b) != CVY_OK)
        return;
    cvy_chart_add(chart, &(cvy_series){.draw = CVY_DRAW_LINE, .color = color, .x = b.x, .y = b.mean, .n = b.n}, 2);
    if (b.many)
        cvy_chart_add(
            chart,
            &(cvy_series){
                .draw = CVY_DRAW_AREA, .color = color, .faint = 1, .x = b.x, .y = b.high, .y_low = b.low, .n = b.n},
            2);
    if (b.many && !chart->from_zero)
        chart->note = "line: mean; band: smallest and largest value of neighbouring steps";
    chart->log_y = !chart->from_zero && cvy_chart_wants_log(chart);
    chart->x_label = "step";
    chart->x_what = "step";
    cvy_chart_write(&r->html, chart);
}

static double least(const double *y, int64_t n, int64_t *at)
{
    double low = NAN;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(y[i]) && !(y[i] >= low)) {
            low = y[i];
            *at = i;
        }
    return low;
}

static void epoch_chart(cvy_report *r, cvy_chart *chart, const char *const *column, const char *const *name, int n,
                        const double *scaled[])
{
    const double *epoch = cvy_frame_column(&r->epochs, "epoch");
    for (int i = 0; i < n && epoch; i++) {
        const double *y = scaled ? scaled[i] : cvy_frame_column(&r->epochs, column[i]);
        cvy_chart_add(
            chart,
            &(cvy_series){.name = name[i], .draw = CVY_DRAW_LINE, .color = i, .x = epoch, .y = y, .n = r->epochs.nrow},
            1);
    }
    chart->x_label = "epoch";
    chart->x_what = "epoch";
    chart->whole_x = 1;
}

static const char *const part_name[] = {"training", "validation", "test"};

static void losses(cvy_report *r)
{
    static const char *const column[] = {"train_loss", "val_loss", "test_loss"};
    char note[160] = "";
    cvy_chart chart = {.title = "Loss per epoch", .note = note, .y_label = "loss"};
    epoch_chart(r, &chart, column, part_name, 3, NULL);
    const double *val = cvy_frame_column(&r->epochs, "val_loss");
    int64_t at = 0;
    if (val) {
        const double low = least(val, r->epochs.nrow, &at);
        snprintf(
            note, sizeof note, "lowest validation loss %s, epoch %s", cvy_number_text(low, 4).at,
            cvy_number_text(cvy_frame_column(&r->epochs, "epoch") ? cvy_frame_column(&r->epochs, "epoch")[at] : NAN, 4)
                .at);
    }
    chart.log_y = cvy_chart_wants_log(&chart);
    cvy_chart_write(&r->html, &chart);
}

static cvy_status percent(cvy_report *r, const char *column, const double **out)
{
    const double *y = cvy_frame_column(&r->epochs, column);
    double *scaled = NULL;
    *out = NULL;
    if (!y)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(r->pool, sizeof *scaled * (size_t)r->epochs.nrow, &scaled));
    for (int64_t i = 0; i < r->epochs.nrow; i++)
        scaled[i] = 100 * y[i];
    *out = scaled;
    return CVY_OK;
}

static void accuracy(cvy_report *r)
{
    static const char *const column[] = {"train_accuracy", "val_accuracy", "test_accuracy"};
    const double *scaled[3] = {0};
    char note[160] = "";
    cvy_chart chart = {.title = "Accuracy per epoch", .note = note, .y_label = "correct, %"};
    for (int i = 0; i < 3; i++)
        if (percent(r, column[i], &scaled[i]) != CVY_OK)
            return;
    epoch_chart(r, &chart, column, part_name, 3, scaled);
    const double *y = scaled[1] ? scaled[1] : scaled[2], *epoch = cvy_frame_column(&r->epochs, "epoch");
    int64_t best = 0;
    for (int64_t i = 0; y && i < r->epochs.nrow; i++)
        if (isfinite(y[i]) && !(y[best] >= y[i]))
            best = i;
    if (y && epoch)
        snprintf(note, sizeof note, "best %s %.1f %%, epoch %s", scaled[1] ? "validation" : "test", y[best],
                 cvy_number_text(epoch[best], 4).at);
    cvy_chart_write(&r->html, &chart);
}

/* Draws every other val_<name>, with test_<name> and train_<name> if they exist. */
static void other_metrics(cvy_report *r)
{
    for (int i = 0; i < r->epochs.ncol; i++) {
        const char *what = strncmp(r->epochs.name[i], "val_", 4) == 0 ? r->epochs.name[i] + 4 : NULL;
        char column[3][64], title[80];
        if (!what || strcmp(what, "loss") == 0 || strcmp(what, "accuracy") == 0)
            continue;
        snprintf(column[0], sizeof column[0], "train_%s", what);
        snprintf(column[1], sizeof column[1], "val_%s", what);
        snprintf(column[2], sizeof column[2], "test_%s", what);
        snprintf(title, sizeof title, "%s per epoch", what);
        const char *const columns[] = {column[0], column[1], column[2]};
        cvy_chart chart = {.title = title, .y_label = what};
        epoch_chart(r, &chart, columns, part_name, 3, NULL);
        cvy_chart_write(&r->html, &chart);
    }
}

static void epoch_times(cvy_report *r)
{
    const double *epoch = cvy_frame_column(&r->epochs, "epoch"), *seconds = cvy_frame_column(&r->epochs, "seconds");
    double sum = 0;
    char note[80];
    cvy_chart chart = {.title = "Time per epoch",
                       .note = note,
                       .x_label = "epoch",
                       .y_label = "seconds",
                       .x_what = "epoch",
                       .whole_x = 1,
                       .from_zero = 1};
    if (!epoch || !seconds)
        return;
    for (int64_t i = 0; i < r->epochs.nrow; i++)
        sum += isfinite(seconds[i]) ? seconds[i] : 0;
    snprintf(note, sizeof note, "%s in all", cvy_number_seconds(sum).at);
    cvy_chart_add(&chart,
                  &(cvy_series){.draw = CVY_DRAW_BARS, .color = 0, .x = epoch, .y = seconds, .n = r->epochs.nrow}, 1);
    cvy_chart_write(&r->html, &chart);
}

void cvy_report_training(cvy_report *r)
{
    if (r->epochs.nrow == 0 && r->steps.nrow == 0)
        return;
    char note[80] = "";
    const double speed = cvy_frame_speed(&r->steps);
    if (isfinite(speed))
        snprintf(note, sizeof note, "%s a second on average", cvy_number_text(speed, 3).at);
    cvy_text_add(&r->html, "<section><h2>Training</h2>\n<div class=\"charts\">\n");
    losses(r);
    accuracy(r);
    other_metrics(r);
    step_chart(r, &(cvy_chart){.title = "Loss per step", .y_label = "training loss"}, "loss", 0);
    step_chart(r, &(cvy_chart){.title = "Learning rate", .y_label = "learning rate", .from_zero = 1}, "learning_rate",
               3);
    step_chart(r, &(cvy_chart){.title = "Throughput", .note = note, .y_label = "samples per second", .from_zero = 1},
               "images_per_s", 2);
    epoch_times(r);
    cvy_report_step_time(r);
    cvy_text_add(&r->html, "</div>\n");
    cvy_report_stages(r);
    cvy_text_add(&r->html, "</section>\n");
}
