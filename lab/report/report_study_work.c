/*
 * report_study_work.c: whether all frameworks did the same work: parameters, multiply-adds of a sample, and the loss of
 * the first step, as each of them counts or computes it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_page.h"
#include "report/report_study.h"

struct work { /* of a framework for a network */
    const char *model, *framework;
    double parameters, macs, loss; /* NaN: not told */
};

/* Multiply-adds are counted from shapes and must agree. First weights are random, and their size is each framework's
 * own choice, so first losses are shown and need not agree. */
#define MACS_BOUND 0.01
#define LOSS_BOUND 0.25

static int is_near(double a, double b, double bound)
{
    return !isfinite(a) || !isfinite(b) || fabs(a - b) <= bound * fabs(b);
}

static int read_work(const cvy_study_row *row, struct work *w)
{
    *w = (struct work){.model = cvy_study_value(row, "model"),
                       .framework = cvy_study_value(row, "framework"),
                       .parameters = cvy_tree_real_at(row->line[0]->result, "parameters"),
                       .macs = cvy_tree_real_at(row->line[0]->result, "macs"),
                       .loss = cvy_tree_real_at(row->line[0]->result, "loss_first")};
    return isfinite(w->parameters) && !row->first->is_predicted;
}

static struct work *find(struct work *all, int n, const char *model, const char *framework)
{
    for (int i = 0; i < n; i++)
        if (strcmp(all[i].model, model) == 0 && strcmp(all[i].framework, framework) == 0)
            return &all[i];
    return NULL;
}

static void add_verdict(cvy_text *html, const struct work *w, const struct work *own)
{
    const char *what = !own || own == w                           ? ""
                       : w->parameters != own->parameters         ? "parameters differ"
                       : !is_near(w->macs, own->macs, MACS_BOUND) ? "multiply-adds differ"
                       : !isfinite(w->loss)                       ? "equal; it tells no loss"
                       : !is_near(w->loss, own->loss, LOSS_BOUND) ? "equal; other first weights"
                                                                  : "equal";
    cvy_text_add(html, "<td>%s</td></tr>\n", what);
}

static void add_count(cvy_text *html, double x)
{
    if (isfinite(x))
        cvy_text_add(html, "<td>%.0f</td>", x);
    else
        cvy_text_add(html, "<td></td>");
}

static void write_table(cvy_study_page *p, struct work *all, int n)
{
    cvy_text *html = &p->html;
    cvy_text_add(
        html, "<section><h2>Equal work</h2>\n<p class=\"soft\">What each framework says of its own network. The "
              "work of a step is equal if parameters and multiply-adds are. The loss of the first step depends on how "
              "the first weights are drawn, which each framework does in its own way.</p>\n"
              "<div class=\"wide\"><table class=\"runs\"><thead><tr><td>network</td><td>framework</td>"
              "<td>parameters</td><td>multiply-adds of a sample</td><td>first loss</td>"
              "<td>beside convoy</td></tr></thead><tbody>\n");
    for (int i = 0; i < n; i++) {
        cvy_html_add(html, "<tr><td>%s</td><td>%s</td>", all[i].model, all[i].framework);
        add_count(html, all[i].parameters);
        add_count(html, all[i].macs);
        cvy_text_add(html, "<td>%s</td>", isfinite(all[i].loss) ? cvy_number_text(all[i].loss, 4).at : "");
        add_verdict(html, &all[i], find(all, n, all[i].model, "convoy"));
    }
    cvy_text_add(html, "</tbody></table></div></section>\n");
}

cvy_status cvy_study_work(cvy_study_page *p)
{
    struct work *all = NULL, one;
    int n = 0, npeer = 0;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *all * ((size_t)p->nrow + 1), &all));
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        if (row->n == 0 || strcmp(row->first->machine, p->machine) != 0 || !read_work(row, &one))
            continue;
        struct work *known = find(all, n, one.model, one.framework);
        if (known && !isfinite(known->loss)) /* an evaluation has none */
            known->loss = one.loss;
        if (known)
            continue;
        npeer += strcmp(one.framework, "convoy") != 0;
        all[n++] = one;
    }
    if (npeer > 0)
        write_table(p, all, n);
    return CVY_OK;
}
