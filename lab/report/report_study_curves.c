/*
 * report_study_curves.c: lines of a figure whose points are lists in the results, such as the accuracy over the seconds
 * of a training: the median over the repeats, with their range behind it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_study.h"

enum { REPEATS = 32 };

static const cvy_tree *list_of(const cvy_study_result_line *line, const char *path)
{
    const cvy_tree *list = cvy_tree_at(line->result, path);
    return list && list->kind == CVY_TREE_LIST ? list : NULL;
}

static double number_of(const cvy_tree *list, int i)
{
    double value = NAN;
    return i < list->count && list->child[i]->text && cvy_text_real(list->child[i]->text, &value) == CVY_OK ? value
                                                                                                            : NAN;
}

/* Fills the i-th point from the repeats that have it; x is their mean. */
static void fill_point(const cvy_tree *const *x, const cvy_tree *const *y, int n, int i, cvy_study_band *to)
{
    double value[REPEATS], sum = 0;
    int found = 0;
    for (int k = 0; k < n; k++) {
        const double at = number_of(x[k], i), v = number_of(y[k], i);
        if (!isfinite(at) || !isfinite(v))
            continue;
        sum += at;
        value[found++] = v;
    }
    to->x[i] = found ? sum / found : NAN;
    const cvy_spread spread = cvy_spread_of(value, found);
    to->median[i] = spread.median;
    to->low[i] = spread.low;
    to->high[i] = spread.high;
}

cvy_status cvy_study_curve(cvy_study_page *p, const cvy_study_row *row, const char *x_path, const char *y_path,
                           cvy_study_band *out)
{
    const cvy_tree *x[REPEATS], *y[REPEATS];
    int n = 0, most = 0;
    for (int i = 0; i < row->n && n < REPEATS; i++) {
        x[n] = list_of(row->line[i], x_path);
        y[n] = list_of(row->line[i], y_path);
        if (!x[n] || !y[n])
            continue;
        most = CVY_MAX(most, CVY_MIN(x[n]->count, y[n]->count));
        n++;
    }
    CVY_TRY(cvy_study_band_new(p, most, out));
    for (int i = 0; i < most; i++)
        fill_point(x, y, n, i, out);
    out->n = most;
    return CVY_OK;
}

/* "val_accuracy >= 0.7". Returns whether the curve of the line gets there, and with which point. */
static int find_target(const cvy_study_row *row, const cvy_study_result_line *line, int *at_out)
{
    char name[64], path[80], how[3];
    double bound = 0;
    if (!row->of || !row->of->target || sscanf(row->of->target, "%63s %2[<>=] %lf", name, how, &bound) != 3)
        return 0;
    snprintf(path, sizeof path, "curve.%s", name);
    const cvy_tree *list = list_of(line, path);
    for (int i = 0; list && i < list->count; i++) {
        const double value = number_of(list, i);
        if (how[0] == '>' ? value >= bound : value <= bound) {
            *at_out = i;
            return 1;
        }
    }
    return 0;
}

double cvy_study_reached(const cvy_study_row *row, const cvy_study_result_line *line, const char *member)
{
    char path[80];
    int at = 0;
    snprintf(path, sizeof path, "curve.%s", strcmp(member, "target_epoch") == 0 ? "epoch" : "seconds");
    const cvy_tree *list = list_of(line, path);
    return list && find_target(row, line, &at) ? number_of(list, at) : NAN;
}
