/*
 * report_study_limits.c: where the time of more ranks goes. A line of rows that differ only in the number of ranks has
 * a table: the efficiency, and how many points of it each part of the step has lost.
 *
 * A step has parts that add up to it (forward_ms and so on, docs/guide/speed.md). On n ranks with batch b, the ideal
 * part is that of the fewest ranks n0 with batch b0, times (b / b0) * (n0 / n). The efficiency is the ideal step
 * divided by the step, and what a part is longer than ideal, divided by the step, is what it has lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_page.h"
#include "report/report_study.h"

enum { PARTS = 6, LINE_MAX = 64 };

static const struct part {
    const char *member, *name, *column, *advice;
} parts[PARTS] = {
    {"forward_ms", "forward", "forward", NULL},
    {"backward_ms", "backward", "backward", NULL},
    {"update_ms", "update", "update", "update: zero1 lets each rank update its part of the weights"},
    {"communication_ms", "communication", "communication",
     "comm.progress: thread, comm.overlap: forward and a larger batch for each rank hide more of it, comm.wire: bf16 "
     "halves the bytes, and another grid (convoy plan --ranks N) or update: delayed sends at other times"},
    {"imbalance_ms", "waiting for the slowest rank", "slowest rank",
     "convoy doctor on the same nodes names slow ones; other programs, noise and uneven shares of the batch also cause "
     "it"},
    {"other_ms", "time between kernels", "other", "this is time between kernels: fewer, larger steps have less of it"},
};
static const char kernels_advice[] =
    "kernels are slower than on fewer ranks: with a fixed global batch a rank has few samples, and ranks of one node "
    "share its memory and its clock; fewer ranks with more threads, or a larger batch, help";

struct point {
    double ranks, batch, step, part[PARTS];
    int is_predicted;
};

static int by_ranks(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    return (p->ranks > q->ranks) - (p->ranks < q->ranks);
}

/* Reads the repeat whose step is the median, so that its parts add up. Returns whether it has parts. */
static int read_point(const cvy_study_row *row, struct point *out)
{
    const cvy_study_result_line *middle = cvy_study_median_line(row, "ms_mean");
    if (!middle)
        return 0;
    *out = (struct point){.ranks = cvy_tree_real_at(middle->result, "ranks"),
                          .batch = cvy_tree_real_at(middle->result, "batch"),
                          .step = cvy_tree_real_at(middle->result, "ms_mean"),
                          .is_predicted = middle->is_predicted};
    int good = out->ranks > 0 && out->batch > 0 && out->step > 0;
    for (int i = 0; i < PARTS; i++) {
        out->part[i] = cvy_tree_real_at(middle->result, parts[i].member);
        good &= isfinite(out->part[i]);
    }
    return good;
}

/* ---- lines ---- */

/* The values of all axes but ranks: "resnet-50, batch_per_rank 32, simulated:cori-like". */
static cvy_status name_line(cvy_study_page *p, const cvy_experiment *e, const cvy_study_row *row, char **out)
{
    cvy_text text = {0};
    for (int a = 0; a < e->naxis; a++)
        if (strcmp(e->axis[a].name, "ranks") != 0)
            cvy_text_add(&text, "%s%s %s", text.bytes ? ", " : "",
                         strcmp(e->axis[a].name, "framework") == 0 || strcmp(e->axis[a].name, "model") == 0
                             ? ""
                             : e->axis[a].name,
                         cvy_study_value(row, e->axis[a].name));
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(p->pool, text.data ? text.data : e->name, out);
    cvy_text_free(&text);
    return status;
}

/* ---- the table of a line ---- */

static void lost_points(const struct point *first, const struct point *at, double lost[PARTS])
{
    const double share = at->batch / first->batch * (first->ranks / at->ranks);
    for (int i = 0; i < PARTS; i++)
        lost[i] = 100 * (at->part[i] - share * first->part[i]) / at->step;
}

static double efficiency_of(const struct point *first, const struct point *at)
{
    return 100 * first->step / at->step * (at->batch / first->batch) * (first->ranks / at->ranks);
}

static void add_number(cvy_text *html, double x, int digits)
{
    cvy_text_add(html, "<td>%s</td>", cvy_number_text(x, digits).at);
}

static void add_points(cvy_text *html, double points)
{
    cvy_text_add(html, "<td>%.1f</td>", fabs(points) < 0.05 ? 0.0 : points);
}

/* "At 128 ranks 31 points of the efficiency are lost. 29 of them are communication: .." */
static void add_sentence(cvy_text *html, const struct point *first, const struct point *last)
{
    double lost[PARTS], most = 0;
    int worst = -1;
    lost_points(first, last, lost);
    const double kernels = lost[0] + lost[1];
    for (int i = 2; i < PARTS; i++)
        if (lost[i] > most) {
            most = lost[i];
            worst = i;
        }
    const double all = 100 - efficiency_of(first, last);
    const char *name = kernels > most ? "slower kernels" : worst >= 0 ? parts[worst].name : NULL;
    cvy_text_add(html, "<p>With %g ranks, ", last->ranks);
    if (all < 3 || !name) {
        cvy_text_add(html, "%.1f %% of the speed of %g %s are kept: little limits this run.</p>\n", 100 - all,
                     first->ranks, first->ranks > 1 ? "ranks" : "rank");
        return;
    }
    cvy_text_add(html,
                 "%.1f points of the efficiency are lost. <strong>%.1f of them are %s.</strong> What to try: ", all,
                 CVY_MAX(kernels, most), name);
    cvy_html_add(html, "%s.</p>\n", kernels > most ? kernels_advice : parts[worst].advice);
}

static void write_line(cvy_text *html, const char *name, const struct point *at, int n)
{
    cvy_html_add(html, "<h3>%s", name);
    cvy_text_add(html, "%s</h3>\n", at[n - 1].is_predicted ? " (predicted)" : "");
    add_sentence(html, &at[0], &at[n - 1]);
    cvy_text_add(html, "<div class=\"wide\"><table class=\"runs\"><thead><tr><td>ranks</td><td>batch</td>"
                       "<td>step, ms</td><td>efficiency, %%</td><td>lost to:</td>");
    for (int i = 0; i < PARTS; i++)
        cvy_text_add(html, "<td>%s</td>", parts[i].column);
    cvy_text_add(html, "</tr></thead><tbody>\n");
    for (int k = 0; k < n; k++) {
        double lost[PARTS];
        lost_points(&at[0], &at[k], lost);
        cvy_text_add(html, "<tr>");
        add_number(html, at[k].ranks, 6);
        add_number(html, at[k].batch, 7);
        add_number(html, at[k].step, 4);
        add_points(html, efficiency_of(&at[0], &at[k]));
        cvy_text_add(html, "<td></td>");
        for (int i = 0; i < PARTS; i++)
            add_points(html, lost[i]);
        cvy_text_add(html, "</tr>\n");
    }
    cvy_text_add(html, "</tbody></table></div>\n");
}

/* ---- all ---- */

/* Gathers the rows with the line's name, in the order of their ranks. */
static cvy_status gather_line(cvy_study_page *p, const cvy_experiment *e, const char *name, struct point *at, int *n)
{
    *n = 0;
    for (int i = 0; i < p->nrow && *n < LINE_MAX; i++) {
        char *other = NULL;
        if (!cvy_study_shows(p, &p->row[i], e->name))
            continue;
        CVY_TRY(name_line(p, e, &p->row[i], &other));
        if (strcmp(other, name) == 0)
            *n += read_point(&p->row[i], &at[*n]);
    }
    qsort(at, (size_t)*n, sizeof *at, by_ranks);
    return CVY_OK;
}

static cvy_status write_experiment(cvy_study_page *p, const cvy_experiment *e, int *has_head)
{
    const char **seen = NULL;
    struct point at[LINE_MAX];
    int nseen = 0, n = 0;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *seen * ((size_t)p->nrow + 1), &seen));
    for (int i = 0; i < p->nrow; i++) {
        char *name = NULL;
        int known = 0;
        if (!cvy_study_shows(p, &p->row[i], e->name))
            continue;
        CVY_TRY(name_line(p, e, &p->row[i], &name));
        for (int k = 0; k < nseen; k++)
            known |= strcmp(seen[k], name) == 0;
        if (known)
            continue;
        seen[nseen++] = name;
        CVY_TRY(gather_line(p, e, name, at, &n));
        if (n < 2 || at[0].ranks == at[n - 1].ranks)
            continue;
        if (!*has_head)
            cvy_text_add(&p->html, "<section><h2>What limits more ranks</h2>\n<p class=\"soft\">How many points of the "
                                   "efficiency each part of a step has lost, relative to the fewest ranks. A negative "
                                   "number is a gain. The points and the efficiency add up to 100.</p>\n");
        *has_head = 1;
        write_line(&p->html, name, at, n);
    }
    return CVY_OK;
}

cvy_status cvy_study_limits(cvy_study_page *p)
{
    int has_head = 0;
    for (int i = 0; i < p->spec.nexperiment; i++)
        CVY_TRY(write_experiment(p, &p->spec.experiment[i], &has_head));
    if (has_head)
        cvy_text_add(&p->html, "</section>\n");
    return CVY_OK;
}
