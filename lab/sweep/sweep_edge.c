/*
 * sweep_edge.c: whether the best trial of a search has the smallest or the largest value of a key that was tried. Then
 * a better value may lie outside, which tables and pages say.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "sweep/sweep_search.h"

/* Values of a range count as at its edge within this share of the width that was tried. */
#define NEAR 0.05
enum { VALUES_MIN = 3 }; /* of two different values one is always the largest */

/* 1, -1: the best value is the largest, the smallest; 0: neither, or it is no number. */
static int edge_of(const cvy_sweep_summary *s, int key, double *low_out, double *high_out)
{
    double low = INFINITY, high = -INFINITY, best = 0, between = NAN;
    const char *dot = strrchr(s->key[key], '.');
    if (strcmp(dot ? dot + 1 : s->key[key], "seed") == 0) /* a name, and no amount */
        return 0;
    for (int i = 0; i < s->nranked; i++) {
        double x = 0;
        if (cvy_text_real(s->row[i].value[key], &x) != CVY_OK)
            return 0;
        best = i == 0 ? x : best;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    for (int i = 0; i < s->nranked; i++) {
        double x = 0;
        if (cvy_text_real(s->row[i].value[key], &x) == CVY_OK && x > low && x < high)
            between = x;
    }
    if (isnan(between) || s->nranked < VALUES_MIN)
        return 0;
    const int is_log = s->is_log[key] && low > 0;
    const double width = is_log ? log(high / low) : high - low, near = s->is_list[key] ? 0 : NEAR * width;
    *low_out = low;
    *high_out = high;
    if ((is_log ? log(high / best) : high - best) <= near)
        return 1;
    return (is_log ? log(best / low) : best - low) <= near ? -1 : 0;
}

void cvy_sweep_add_edge(const cvy_sweep_summary *s, int key, cvy_text *text)
{
    double low = 0, high = 0;
    const int side = edge_of(s, key, &low, &high);
    if (side == 0)
        return;
    cvy_text_add(
        text,
        "%s of the best trial, %s, is at the %s end of the values tried, %g to %g: a %s one may be better still\n",
        s->key[key], s->row[0].value[key], side > 0 ? "upper" : "lower", low, high, side > 0 ? "larger" : "smaller");
}
