/*
 * report_reliability.c: how sure a classifier is: accuracy against confidence on the test data, and how often each
 * confidence occurs, before and after the calibration of the run. The metric ece writes the bins into test.json.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "report/report_page.h"
#include "report/report_svg.h"

enum { PLAIN, CALIBRATED, KINDS };
enum { MEMBERS_SHOWN = 6 }; /* of an ensemble, as thin lines */

struct bins { /* of one kind; n 0: none */
    double *count, *confidence, *accuracy;
    int64_t n;
};

static void read_bins(cvy_report *r, const cvy_tree *from, const char *key, struct bins *b)
{
    const cvy_tree *tree = cvy_tree_at(from, key);
    int64_t n[3] = {0};
    if (tree && cvy_tree_reals(r->pool, cvy_tree_at(tree, "count"), &b->count, &n[0]) == CVY_OK &&
        cvy_tree_reals(r->pool, cvy_tree_at(tree, "confidence"), &b->confidence, &n[1]) == CVY_OK &&
        cvy_tree_reals(r->pool, cvy_tree_at(tree, "accuracy"), &b->accuracy, &n[2]) == CVY_OK && n[0] == n[1] &&
        n[0] == n[2])
        b->n = n[0];
}

/* Only bins with samples have a mean confidence and an accuracy. They are moved to the front. */
static void drop_empty(struct bins *b)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < b->n; i++)
        if (b->count[i] > 0 && isfinite(b->confidence[i]) && isfinite(b->accuracy[i])) {
            b->confidence[kept] = b->confidence[i];
            b->accuracy[kept++] = b->accuracy[i];
        }
    b->n = kept;
}

static void write_note(const cvy_report *r, int has_calibrated, char *note, size_t room)
{
    const double before = cvy_tree_real_at(r->test, "metrics.ece"),
                 after = cvy_tree_real_at(r->test, "metrics.ece_calibrated"),
                 temperature = cvy_tree_real_at(r->test, "temperature");
    if (has_calibrated && isfinite(before) && isfinite(after) && isfinite(temperature))
        snprintf(note, room, "expected calibration error %s, with the temperature %s it is %s",
                 cvy_number_percent(before).at, cvy_number_text(temperature, 4).at, cvy_number_percent(after).at);
    else if (isfinite(before))
        snprintf(note, room, "expected calibration error %s; below the diagonal the network is too sure",
                 cvy_number_percent(before).at);
}

/* The number of samples in each bin, as steps. */
static cvy_status counts(cvy_report *r, const struct bins *bins, const char *const *name)
{
    const int64_t n = bins[PLAIN].n;
    double *edge = NULL;
    cvy_chart chart = {.title = "Confidence of the answers",
                       .note = "number of test samples in each bin of confidence",
                       .x_label = "confidence (largest probability)",
                       .y_label = "samples",
                       .x_max = 1,
                       .from_zero = 1};
    CVY_TRY(cvy_pool_alloc(r->pool, sizeof *edge * (size_t)(n + 1), &edge));
    for (int64_t i = 0; i <= n; i++)
        edge[i] = (double)i / (double)n;
    for (int kind = 0; kind < KINDS; kind++)
        if (bins[kind].n == n)
            cvy_chart_add(
                &chart,
                &(cvy_series){
                    .name = name[kind], .draw = CVY_DRAW_STEP, .color = kind, .x = edge, .y = bins[kind].count, .n = n},
                1);
    cvy_chart_write(&r->html, &chart);
    return CVY_OK;
}

/* The lines of the members of an ensemble. */
static void add_members(cvy_report *r, cvy_chart *chart)
{
    const cvy_tree *members = cvy_tree_at(r->test, "members");
    for (int i = 0; members && members->kind == CVY_TREE_LIST && i < members->count && i < MEMBERS_SHOWN; i++) {
        struct bins b = {0};
        read_bins(r, members->child[i], "reliability", &b);
        drop_empty(&b);
        cvy_chart_add(chart,
                      &(cvy_series){.name = i == 0 ? "single networks" : NULL,
                                    .draw = CVY_DRAW_LINE,
                                    .color = -1,
                                    .faint = 1,
                                    .x = b.confidence,
                                    .y = b.accuracy,
                                    .n = b.n},
                      1);
    }
}

void cvy_report_reliability(cvy_report *r)
{
    static const double unit[] = {0, 1};
    struct bins bins[KINDS] = {{0}};
    char note[200] = "";
    read_bins(r, r->test, "reliability", &bins[PLAIN]);
    read_bins(r, r->test, "reliability_calibrated", &bins[CALIBRATED]);
    if (bins[PLAIN].n == 0)
        return;
    const int has_calibrated = bins[CALIBRATED].n > 0;
    const char *const name[] = {has_calibrated                    ? "as trained"
                                : cvy_tree_at(r->test, "members") ? "ensemble"
                                                                  : NULL,
                                "calibrated"};
    write_note(r, has_calibrated, note, sizeof note);
    if (counts(r, bins, name) != CVY_OK)
        return;
    cvy_chart chart = {.title = "Reliability",
                       .note = note,
                       .x_label = "confidence (largest probability)",
                       .y_label = "accuracy",
                       .x_what = "confidence",
                       .square = 1,
                       .x_max = 1,
                       .y_max = 1};
    for (int kind = 0; kind < KINDS; kind++) {
        drop_empty(&bins[kind]);
        cvy_chart_add(&chart,
                      &(cvy_series){.name = name[kind],
                                    .draw = CVY_DRAW_LINE,
                                    .color = kind,
                                    .x = bins[kind].confidence,
                                    .y = bins[kind].accuracy,
                                    .n = bins[kind].n},
                      1);
    }
    add_members(r, &chart);
    cvy_chart_add(&chart, &(cvy_series){.draw = CVY_DRAW_DASHED, .color = -1, .x = unit, .y = unit, .n = 2}, 2);
    cvy_chart_write(&r->html, &chart);
}
