/*
 * report_compare_charts.c: losses, scores and learning rates of several runs, each as one chart over epochs and one
 * over time. A run has the same colour everywhere.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_compare.h"
#include "report/report_curve.h"

enum { COLUMNS_MAX = 64 };

struct kind {
    const char *title, *y_label, *column;
    int of_steps; /* the column is one of logged steps, otherwise of epochs */
    int from_zero;
};

static void write_chart(cvy_comparison *c, const struct kind *kind, int over_time)
{
    char title[112], x_label[32];
    snprintf(title, sizeof title, "%s over %s", kind->title, over_time ? "time" : "epochs");
    snprintf(x_label, sizeof x_label, "time, %s", c->unit);
    cvy_chart chart = {.title = title,
                       .x_label = over_time ? x_label : "epoch",
                       .y_label = kind->y_label,
                       .x_what = over_time ? c->unit : "epoch",
                       .from_zero = kind->from_zero,
                       .whole_x = !over_time && !kind->of_steps};
    for (int i = 0; i < c->nruns; i++) {
        const cvy_compared *run = &c->run[i];
        const cvy_frame *f = kind->of_steps ? &run->files.steps : &run->files.epochs;
        const double *y = cvy_frame_column(f, kind->column), *time = kind->of_steps ? run->step_unit : run->epoch_unit,
                     *x = over_time ? time : cvy_frame_column(f, "epoch");
        cvy_binned_curve curve;
        if (!x || !y || cvy_curve_bin(c->pool, x, y, f->nrow, &curve) != CVY_OK)
            continue;
        cvy_chart_add(
            &chart,
            &(cvy_series){
                .name = run->name, .draw = CVY_DRAW_LINE, .color = i, .x = curve.x, .y = curve.mean, .n = curve.n},
            1);
    }
    chart.log_y = !chart.from_zero && cvy_chart_wants_log(&chart);
    cvy_chart_write(&c->html, &chart);
}

static void write_both(cvy_comparison *c, const struct kind *kind)
{
    write_chart(c, kind, 0);
    write_chart(c, kind, 1);
}

/* The score that a column of epochs holds, "top_k" of "val_top_k"; NULL: it holds none. */
static const char *score_of(const char *column, const char **part_out)
{
    static const struct {
        const char *prefix, *part;
    } parts[] = {{"val_", "Validation"}, {"test_", "Test"}};
    for (int i = 0; i < CVY_COUNT(parts); i++)
        if (strncmp(column, parts[i].prefix, strlen(parts[i].prefix)) == 0) {
            *part_out = parts[i].part;
            return column + strlen(parts[i].prefix);
        }
    return NULL;
}

/* Every score that any of the runs has, in the order of their logs. The numbers of bad samples are no score. */
static void write_scores(cvy_comparison *c)
{
    const char *known[COLUMNS_MAX];
    int count = 0;
    for (int i = 0; i < c->nruns; i++)
        for (int k = 0; k < c->run[i].files.epochs.ncol; k++) {
            const char *column = c->run[i].files.epochs.name[k], *part = NULL, *score = score_of(column, &part);
            char title[80];
            int is_known = !score || strcmp(score, "skipped") == 0 || count == COLUMNS_MAX;
            for (int j = 0; j < count && !is_known; j++)
                is_known = strcmp(known[j], column) == 0;
            if (is_known)
                continue;
            known[count++] = column;
            snprintf(title, sizeof title, "%s %.48s", part, score);
            write_both(c, &(struct kind){.title = title, .y_label = score, .column = column});
        }
}

void cvy_comparison_charts(cvy_comparison *c)
{
    cvy_text_add(&c->html, "<section><h2>Curves</h2>\n<div class=\"charts\">\n");
    write_both(c, &(struct kind){.title = "Training loss", .y_label = "loss", .column = "loss", .of_steps = 1});
    write_scores(c);
    write_both(c, &(struct kind){.title = "Learning rate",
                                 .y_label = "learning rate",
                                 .column = "learning_rate",
                                 .of_steps = 1,
                                 .from_zero = 1});
    cvy_text_add(&c->html, "</div></section>\n");
}
