/*
 * report_time.c: where the time of a step went: a chart over the run, and with a pipeline a table of its stages.
 *
 * The waits for other ranks have a part for each axis of the process grid that has any (train_axes.c). The rest of the
 * exposed communication is the agreement of all ranks before each step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_curve.h"
#include "report/report_page.h"
#include "report/report_svg.h"

static double mean(const double *y, int64_t n)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; y && i < n; i++)
        if (isfinite(y[i])) {
            sum += y[i];
            count++;
        }
    return count ? sum / (double)count : 0;
}

/* ---- the chart ---- */

struct part {
    const char *column, *name;
    int is_axis;
};

static const struct part parts[] = {
    {"seconds_compute", "compute", 0},
    {"seconds_exposed_data", "waiting for ranks with other samples", 1},
    {"seconds_exposed_pipeline", "waiting for other stages", 1},
    {"seconds_exposed_tensor", "waiting for other parts of a layer", 1},
    {"seconds_exposed_spatial", "waiting for other parts of a sample", 1},
    {"seconds_exposed_comm", "exposed communication", 0},
    {"seconds_data", "waiting for data", 0},
};
enum { NPARTS = CVY_COUNT(parts), EXPOSED = 5 };

/* The seconds of each part in each row, so that the parts add up; NULL: none. The exposed communication loses what the
 * axes have. */
static cvy_status columns_of(cvy_report *r, const double *column[NPARTS], int *has_axes_out)
{
    const int64_t n = r->steps.nrow;
    double *rest = NULL;
    *has_axes_out = 0;
    for (int i = 0; i < NPARTS; i++)
        column[i] = cvy_frame_column(&r->steps, parts[i].column);
    for (int i = 0; i < NPARTS; i++)
        *has_axes_out |= parts[i].is_axis && column[i];
    if (!*has_axes_out || !column[EXPOSED])
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(r->pool, sizeof *rest * (size_t)n, &rest));
    for (int64_t k = 0; k < n; k++) {
        rest[k] = column[EXPOSED][k];
        for (int i = 0; i < NPARTS; i++)
            rest[k] -= parts[i].is_axis && column[i] && isfinite(column[i][k]) ? column[i][k] : 0;
        rest[k] = CVY_MAX(rest[k], 0);
    }
    column[EXPOSED] = rest;
    return CVY_OK;
}

static const char *name_of(int i, int has_axes)
{
    return i == EXPOSED && has_axes ? "agreement of all ranks" : parts[i].name;
}

static void add_note(cvy_text *note, const cvy_report *r, const double *const column[NPARTS], int has_axes)
{
    const int64_t n = r->steps.nrow;
    const double compute = mean(column[0], n), exposed = mean(cvy_frame_column(&r->steps, "seconds_exposed_comm"), n),
                 hidden = mean(cvy_frame_column(&r->steps, "seconds_hidden_comm"), n);
    double all = 0;
    for (int i = 0; i < NPARTS; i++)
        all += mean(column[i], n);
    for (int i = 0; i < NPARTS; i++)
        if (column[i] || !parts[i].is_axis)
            cvy_text_add(note, "%s%s %s", i ? ", " : "", name_of(i, has_axes),
                         cvy_number_percent(mean(column[i], n) / all).at);
    if (cvy_frame_column(&r->steps, "steps_ready"))
        cvy_text_add(note, "; %s steps of samples ready ahead",
                     cvy_number_text(mean(cvy_frame_column(&r->steps, "steps_ready"), n), 2).at);
    if (hidden > 0)
        cvy_text_add(
            note,
            "; %s of the compute overlaps with communication; %s of the exposed part is the wait for the "
            "slowest rank",
            cvy_number_percent(hidden / compute).at,
            cvy_number_percent(exposed > 0 ? mean(cvy_frame_column(&r->steps, "seconds_wait_slowest"), n) / exposed : 0)
                .at);
    if (has_axes)
        cvy_text_add(note, "; of rank 0, which is in the first stage of a pipeline");
}

/* Returns 0 if there are too few points for an area. */
static int add_areas(cvy_report *r, cvy_chart *chart, const double *step, const double *const column[NPARTS],
                     int has_axes)
{
    cvy_binned_curve below = {0};
    for (int i = 0; i < NPARTS; i++) {
        cvy_binned_curve b;
        if (!column[i])
            continue;
        if (cvy_curve_bin(r->pool, step, column[i], r->steps.nrow, &b) != CVY_OK || b.n == 1)
            return 0;
        for (int64_t k = 0; k < b.n; k++)
            b.mean[k] = 1e3 * (isfinite(b.mean[k]) ? b.mean[k] : 0) + (below.n ? below.mean[k] : 0);
        cvy_chart_add(chart,
                      &(cvy_series){.name = name_of(i, has_axes),
                                    .draw = CVY_DRAW_AREA,
                                    .color = i == 0             ? 0
                                             : i == EXPOSED     ? 1
                                             : i == EXPOSED + 1 ? 2
                                                                : i + 2,
                                    .x = b.x,
                                    .y = b.mean,
                                    .y_low = below.mean,
                                    .n = b.n},
                      2);
        below = b;
    }
    return below.n > 0;
}

/* Draws compute, exposed communication and waiting for data, stacked, in milliseconds per step. */
void cvy_report_step_time(cvy_report *r)
{
    const double *step = cvy_frame_column(&r->steps, "step"), *column[NPARTS];
    cvy_text note = {0};
    double all = 0;
    int has_axes = 0;
    cvy_chart chart = {
        .title = "Where the time of a step goes", .x_label = "step", .y_label = "ms per step", .from_zero = 1};
    if (!step || columns_of(r, column, &has_axes) != CVY_OK)
        return;
    for (int i = 0; i < NPARTS; i++)
        all += mean(column[i], r->steps.nrow);
    if (all <= 0)
        return;
    add_note(&note, r, column, has_axes);
    chart.note = note.data ? note.data : "";
    if (add_areas(r, &chart, step, column, has_axes))
        cvy_chart_write(&r->html, &chart);
    cvy_text_free(&note);
}

/* ---- the stages ---- */

static const struct {
    const char *column, *head, *title;
} cells[] = {
    {"seconds_data", "data", "waiting for samples and copying them"},
    {"seconds_compute", "compute", "kernels"},
    {"seconds_exposed_data", "data axis", "waits for ranks with other samples: reductions of gradients"},
    {"seconds_exposed_pipeline", "pipeline", "messages and waits between stages"},
    {"seconds_exposed_tensor", "tensor", "waits for other parts of a layer"},
    {"seconds_exposed_spatial", "spatial", "waits for other parts of a sample"},
    {"seconds_agreement", "agreement", "the agreement of all ranks before each step"},
    {"seconds_bubble", "idle (bubble)", "the part of the pipeline's time in which the stage waits for another one"},
};

static double cell(const cvy_report *r, const char *column, int64_t row)
{
    const double *at = cvy_frame_column(&r->stages, column);
    return at && isfinite(at[row]) ? at[row] : 0;
}

static double all_s(const cvy_report *r, int64_t row)
{
    double sum = 0;
    for (int i = 0; i < CVY_COUNT(cells); i++)
        sum += strcmp(cells[i].column, "seconds_bubble") == 0 ? 0 : cell(r, cells[i].column, row);
    return sum;
}

static void add_row(cvy_report *r, int64_t row)
{
    const double all = all_s(r, row);
    cvy_text_add(&r->html, "<tr><th>%s</th><td>%s</td>", cvy_number_count(cell(r, "stage", row)).at,
                 cvy_number_count(cell(r, "ranks", row)).at);
    for (int i = 0; i < CVY_COUNT(cells); i++)
        if (cvy_frame_column(&r->stages, cells[i].column))
            cvy_text_add(&r->html, "<td>%s</td>", cvy_number_text(1e3 * cell(r, cells[i].column, row), 3).at);
    cvy_text_add(&r->html, "<td>%s</td></tr>\n",
                 cvy_number_percent(all > 0 ? cell(r, "seconds_bubble", row) / all : 0).at);
}

void cvy_report_stages(cvy_report *r)
{
    const double *epoch = cvy_frame_column(&r->stages, "epoch");
    const int64_t n = r->stages.nrow;
    int64_t first = n - 1;
    if (n == 0 || !epoch || !cvy_frame_column(&r->stages, "stage"))
        return;
    while (first > 0 && epoch[first - 1] == epoch[n - 1])
        first--;
    cvy_text_add(&r->html,
                 "<h3>The stages of the pipeline in epoch %s, ms per step, mean over the ranks of a stage</h3>\n"
                 "<div class=\"wide\"><table class=\"stages\"><thead><tr><th>stage</th><td>ranks</td>",
                 cvy_number_count(epoch[n - 1]).at);
    for (int i = 0; i < CVY_COUNT(cells); i++)
        if (cvy_frame_column(&r->stages, cells[i].column))
            cvy_text_add(&r->html, "<td title=\"%s\">%s</td>", cells[i].title, cells[i].head);
    cvy_text_add(&r->html, "<td>idle share</td></tr></thead><tbody>\n");
    for (int64_t row = first; row < n; row++)
        add_row(r, row);
    cvy_text_add(&r->html, "</tbody></table></div>\n");
}
