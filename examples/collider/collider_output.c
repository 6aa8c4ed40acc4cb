/*
 * collider_output.c: the comparison as a table on the terminal, and as RUN/analysis.json, which the report page shows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collider.h"

enum { BINS = 40, CURVE_POINTS = 400, PATH_ROOM = 1024 };

/* ---- the table ---- */

static void print_measure(measure m)
{
    char text[48];
    snprintf(text, sizeof text, "%.4f +- %.4f", m.value, m.error);
    printf("  %-18s", text);
}

/* Prints a gain in standard errors of the paired difference. */
static void print_gain(measure gain)
{
    char text[48] = "";
    if (gain.error > 0)
        snprintf(text, sizeof text, "%+.4f (%+.1f se)", gain.value, gain.value / gain.error);
    printf("  %-18s", text);
}

void print_table(const analysis *a)
{
    static const measure none = {0, 0};
    char heading[64];
    snprintf(heading, sizeof heading, "efficiency at fpr %g", a->fpr);
    printf("%-20s  %-18s  %-18s  %-18s  %s\n", "", "area under ROC", "network's lead", heading, "network's lead");
    for (int i = -1; i < BASELINES; i++) {
        const comparison *c = &a->against[i < 0 ? 0 : i];
        const int side = i >= 0;
        printf("%-20s", side ? a->baseline[i].name : a->network.name);
        print_measure(c->area[side]);
        print_gain(side ? c->area_gain : none);
        print_measure(c->efficiency[side]);
        print_gain(side ? c->efficiency_gain : none);
        putchar('\n');
    }
}

/* ---- analysis.json: the members are described in docs/reference/collider.md ---- */

static void write_measure(FILE *f, const char *key, measure m)
{
    fprintf(f, ", \"%s\": %.9g, \"%s_error\": %.9g", key, m.value, key, m.error);
}

/* Writes one side of a curve, thinned to about CURVE_POINTS points. The last point stays. */
static void write_side(FILE *f, const char *key, const double *x, int64_t n)
{
    const int64_t stride = n > CURVE_POINTS ? n / CURVE_POINTS : 1;
    fprintf(f, ", \"%s\": [", key);
    for (int64_t i = 0; i < n - 1; i += stride)
        fprintf(f, "%.9g, ", x[i]);
    fprintf(f, "%.9g]", x[n - 1]);
}

static void write_classifiers(FILE *f, const analysis *a)
{
    fprintf(f, "\"network\": {\"at_fpr\": %g", a->fpr);
    write_measure(f, "area", a->against[0].area[0]);
    write_measure(f, "efficiency", a->against[0].efficiency[0]);
    fprintf(f, "},\n\"baselines\": [");
    for (int i = 0; i < BASELINES; i++) {
        const classifier *b = &a->baseline[i];
        const comparison *c = &a->against[i];
        curve curve = {0};
        b->rate(b, NULL, a->fpr, &curve);
        fprintf(f, "%s\n{\"name\": \"%s\", \"text\": \"%s\", \"at_fpr\": %g", i ? "," : "", b->name, b->text, a->fpr);
        write_measure(f, "area", c->area[1]);
        write_measure(f, "efficiency", c->efficiency[1]);
        write_measure(f, "area_gain", c->area_gain);
        write_measure(f, "efficiency_gain", c->efficiency_gain);
        write_side(f, "fpr", curve.fpr, curve.n);
        write_side(f, "tpr", curve.tpr, curve.n);
        fprintf(f, "}");
        curve_free(&curve);
    }
    fprintf(f, "]");
}

/* Writes one feature of the test events by class. The range is at most four standard deviations around the mean. */
static void write_histogram(FILE *f, const events *e, int feature)
{
    static const char *const class_name[] = {"background", "signal"};
    double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
    int64_t count[2][BINS] = {{0}};
    for (int64_t i = 0; i < e->n; i++) {
        const double x = e->feature[i * FEATURES + feature];
        sum += x;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    const double mean = sum / (double)e->n;
    for (int64_t i = 0; i < e->n; i++)
        squares += pow(e->feature[i * FEATURES + feature] - mean, 2);
    const double sd = sqrt(squares / (double)e->n);
    const double low = fmax(least, mean - 4 * sd), high = fmax(fmin(most, mean + 4 * sd), low + 1e-9);
    for (int64_t i = 0; i < e->n; i++) {
        const double at = (e->feature[i * FEATURES + feature] - low) / (high - low) * BINS;
        if (at >= 0 && at <= BINS)
            count[e->label[i] == 1][at < BINS ? (int)at : BINS - 1]++;
    }
    fprintf(f, "{\"name\": \"%s\", \"edges\": [", feature_name[feature]);
    for (int b = 0; b <= BINS; b++)
        fprintf(f, "%s%.9g", b ? ", " : "", low + (high - low) * b / BINS);
    fprintf(f, "], \"classes\": [");
    for (int k = 0; k < 2; k++) {
        fprintf(f, "%s{\"name\": \"%s\", \"counts\": [", k ? ", " : "", class_name[k]);
        for (int b = 0; b < BINS; b++)
            fprintf(f, "%s%lld", b ? ", " : "", (long long)count[k][b]);
        fprintf(f, "]}");
    }
    fprintf(f, "]}");
}

/* The file is complete under a temporary name before it replaces an earlier one. */
void write_analysis(const analysis *a, const char *checkpoint, const char *run)
{
    char path[PATH_ROOM], temporary[PATH_ROOM + 8];
    snprintf(path, sizeof path, "%s/analysis.json", run);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *f = fopen(temporary, "w");
    if (!f)
        fail("%s: %s", temporary, strerror(errno));
    fprintf(f, "{\"checkpoint\": \"%s\",\n", checkpoint);
    write_classifiers(f, a);
    fprintf(f, ",\n\"histograms\": [");
    for (int i = 0; i < FEATURES; i++) {
        fprintf(f, "%s\n", i ? "," : "");
        write_histogram(f, a->test, i);
    }
    fprintf(f, "]}\n");
    if (ferror(f) | fclose(f) || rename(temporary, path) != 0)
        fail("%s: %s", path, strerror(errno));
}
