/*
 * report_run_json.c: cvy_report_json(): what a run has reached, its curves over epochs, and where its time went, as
 * JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/text/base_json.h"
#include "monitor/monitor_metrics_read.h"
#include "report/report.h"

/* Columns of lines of kind "epoch" that are curves. */
static int is_curve(const char *name)
{
    static const char *const prefixes[] = {"train_", "val_", "test_", "images_per_s"};
    int found = 0;
    for (int i = 0; i < CVY_COUNT(prefixes); i++)
        found |= strncmp(name, prefixes[i], strlen(prefixes[i])) == 0;
    return found;
}

static double last_of(const cvy_frame *f, const char *name)
{
    const double *y = cvy_frame_column(f, name);
    return y && f->nrow > 0 ? y[f->nrow - 1] : NAN;
}

static double sum_of(const cvy_frame *f, const char *name)
{
    const double *y = cvy_frame_column(f, name);
    double sum = 0;
    for (int64_t i = 0; y && i < f->nrow; i++)
        sum += isfinite(y[i]) ? y[i] : 0;
    return sum;
}

static void add_list(cvy_json *json, const char *name, const double *y, int64_t n, int sums)
{
    double sum = 0;
    cvy_json_open(json, name, '[');
    for (int64_t i = 0; i < n; i++) {
        sum = sums ? sum + y[i] : y[i];
        cvy_json_real(json, NULL, sum);
    }
    cvy_json_close(json, ']');
}

/* The seconds of a curve are those since the beginning of the training, with validation; epoch_seconds those of the
 * epoch. */
static void add_curves(cvy_json *json, const cvy_frame *epochs)
{
    const double *epoch = cvy_frame_column(epochs, "epoch"), *seconds = cvy_frame_column(epochs, "seconds");
    cvy_json_open(json, "curve", '{');
    if (epoch)
        add_list(json, "epoch", epoch, epochs->nrow, 0);
    if (seconds)
        add_list(json, "seconds", seconds, epochs->nrow, 1);
    if (seconds)
        add_list(json, "epoch_seconds", seconds, epochs->nrow, 0);
    for (int i = 0; i < epochs->ncol; i++)
        if (is_curve(epochs->name[i]))
            add_list(json, epochs->name[i], epochs->at[i], epochs->nrow, 0);
    cvy_json_close(json, '}');
}

/* A curve has at most so many steps; of a longer training it has every second step, every third one, and so on. */
enum { CURVE_STEPS = 2000 };

/* Of the logged steps: their loss, and the mean time of the steps since the point before. The seconds are those of the
 * steps alone, without validation. */
static void add_step_curve(cvy_json *json, const cvy_frame *steps)
{
    static const char *const name[] = {"step", "seconds", "loss", "step_ms"};
    const double *step = cvy_frame_column(steps, "step"), *samples = cvy_frame_column(steps, "samples");
    const double *loss = cvy_frame_column(steps, "loss"), *rate = cvy_frame_column(steps, "images_per_s");
    const int64_t each = (steps->nrow + CURVE_STEPS - 1) / CURVE_STEPS;
    if (!step || !samples || !loss || !rate)
        return;
    cvy_json_open(json, "step_curve", '{');
    for (int c = 0; c < CVY_COUNT(name); c++) {
        double seconds = 0, before_s = 0, before_step = 0;
        cvy_json_open(json, name[c], '[');
        for (int64_t i = 0; i < steps->nrow; i++) {
            const double n = samples[i] - (i > 0 ? samples[i - 1] : 0);
            seconds += rate[i] > 0 && n > 0 ? n / rate[i] : 0;
            if ((i + 1) % each != 0 && i + 1 < steps->nrow)
                continue;
            const double ms = 1e3 * (seconds - before_s) / (step[i] - before_step);
            cvy_json_real(json, NULL, c == 0 ? step[i] : c == 1 ? seconds : c == 2 ? loss[i] : ms);
            before_s = seconds;
            before_step = step[i];
        }
        cvy_json_close(json, ']');
    }
    cvy_json_close(json, '}');
}

/* Means over the logged steps, in ms, of rank 0. */
static void add_parts(cvy_json *json, const cvy_frame *steps)
{
    static const char *const column[][2] = {{"seconds_data", "data_wait_ms"},
                                            {"seconds_compute", "compute_ms"},
                                            {"seconds_exposed_comm", "exposed_comm_ms"},
                                            {"seconds_hidden_comm", "hidden_comm_ms"},
                                            {"seconds_wait_slowest", "wait_slowest_ms"}};
    for (int i = 0; i < CVY_COUNT(column) && steps->nrow > 0; i++)
        cvy_json_real(json, column[i][1], 1e3 * sum_of(steps, column[i][0]) / (double)steps->nrow);
}

static void write_run(cvy_json *json, const char *folder, const cvy_frame *steps, const cvy_frame *epochs)
{
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "run", folder);
    cvy_json_real(json, "steps", CVY_MAX(last_of(steps, "step"), last_of(epochs, "step")));
    cvy_json_real(json, "epochs", last_of(epochs, "epoch"));
    cvy_json_real(json, "seconds", sum_of(epochs, "seconds"));
    cvy_json_real(json, "seconds_per_epoch", epochs->nrow ? sum_of(epochs, "seconds") / (double)epochs->nrow : NAN);
    cvy_json_real(json, "images_per_s", cvy_frame_speed(steps));
    for (int i = 0; i < epochs->ncol; i++)
        if (is_curve(epochs->name[i]) && strcmp(epochs->name[i], "images_per_s") != 0)
            cvy_json_real(json, epochs->name[i], epochs->nrow ? epochs->at[i][epochs->nrow - 1] : NAN);
    add_parts(json, steps);
    add_curves(json, epochs);
    add_step_curve(json, steps);
    cvy_json_close(json, '}');
}

cvy_status cvy_report_json(const char *run_folder, char **text_out)
{
    CVY_ENTRY();
    cvy_frame steps = {0}, epochs = {0};
    cvy_json json = {0};
    char path[4096];
    CVY_CHECK(run_folder && text_out, CVY_E_ARGUMENT, "a report needs the folder of a run");
    snprintf(path, sizeof path, "%s/metrics.jsonl", run_folder);
    CVY_CHECK(cvy_file_exists(path), CVY_E_IO, "%s is not the folder of a run: there is no %s", run_folder, path);
    cvy_status status = cvy_frames_read(path, &steps, &epochs, NULL);
    if (status == CVY_OK) {
        write_run(&json, run_folder, &steps, &epochs);
        status = cvy_text_take(&json.text, text_out);
    }
    cvy_frame_free(&steps);
    cvy_frame_free(&epochs);
    return status;
}
