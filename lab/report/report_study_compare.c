/*
 * report_study_compare.c: cvy_report_study_compare(): what is different between the results of two folders of a study,
 * such as before and after a change, or on two machines.
 *
 * A number has moved if the ranges over the repeats do not touch and the medians differ by more than a small bound:
 * with few repeats a range is all that is known of the noise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "report/report_page.h"
#include "report/report_study.h"

#define MOVED 0.02 /* a smaller difference of the medians is not called one */

struct change {
    const char *key;
    cvy_spread before, after;
    double ratio;
    int moved;
};

static const cvy_study_row *find_row(const cvy_study_page *p, const char *key)
{
    for (int i = 0; i < p->nrow; i++)
        if (strcmp(p->row[i].first->key, key) == 0 && cvy_study_shows(p, &p->row[i], p->row[i].first->experiment))
            return &p->row[i];
    return NULL;
}

static int by_ratio(const void *a, const void *b)
{
    const double x = fabs(log(((const struct change *)a)->ratio)), y = fabs(log(((const struct change *)b)->ratio));
    return (x < y) - (x > y);
}

/* The cases that both folders have, those with the largest change first. */
static cvy_status list_changes(cvy_study_page *a, cvy_study_page *b, struct change **out, int *n_out)
{
    struct change *all = NULL;
    int n = 0;
    CVY_TRY(cvy_pool_alloc(a->pool, sizeof *all * ((size_t)a->nrow + 1), &all));
    for (int i = 0; i < a->nrow; i++) {
        const cvy_study_row *before = &a->row[i], *after = NULL;
        if (!before->of || !cvy_study_shows(a, before, before->of->name))
            continue;
        after = find_row(b, before->first->key);
        if (!after)
            continue;
        struct change *c = &all[n];
        *c = (struct change){.key = before->first->key,
                             .before = cvy_study_spread(before, before->of->show),
                             .after = cvy_study_spread(after, before->of->show)};
        c->ratio = c->after.median / c->before.median;
        c->moved = fabs(c->ratio - 1) > MOVED && (c->after.low > c->before.high || c->after.high < c->before.low);
        n += isfinite(c->ratio) && c->ratio > 0;
    }
    qsort(all, (size_t)n, sizeof *all, by_ratio);
    *out = all;
    *n_out = n;
    return CVY_OK;
}

static void add_spread(cvy_text *html, const cvy_spread *s)
{
    cvy_text_add(html, "<td>%s", cvy_number_text(s->median, 4).at);
    if (s->n > 1)
        cvy_text_add(html, " (%s to %s)", cvy_number_text(s->low, 4).at, cvy_number_text(s->high, 4).at);
    cvy_text_add(html, "</td>");
}

static void add_place(cvy_text *html, const char *name, const cvy_study_page *p)
{
    const cvy_tree *environment = p->nrow > 0 ? p->row[p->nrow - 1].first->environment : NULL;
    const char *cpu = environment ? cvy_tree_text_at(environment, "cpu") : NULL,
               *host = environment ? cvy_tree_text_at(environment, "host") : NULL;
    cvy_text_add(html, "<li>%s: ", name);
    cvy_html_add(html, "%s, %s, %s</li>\n", p->folder, host ? host : "?", cpu ? cpu : "?");
}

static void write_page(cvy_study_page *a, const cvy_study_page *b, const struct change *all, int n)
{
    cvy_text *html = &a->html;
    int moved = 0;
    for (int i = 0; i < n; i++)
        moved += all[i].moved;
    cvy_page_begin(html, a->spec.title);
    cvy_html_add(html,
                 "<header><h1>%s</h1>\n<p class=\"verdict\">%d of %d cases moved beyond the noise.</p>\n<p "
                 "class=\"soft\">A case has moved if the ranges over the repeats do not touch and the medians differ "
                 "by more than %g %%.</p>\n<ul>\n",
                 a->spec.title, moved, n, 100 * MOVED);
    add_place(html, "before", a);
    add_place(html, "after", b);
    cvy_text_add(html, "</ul></header>\n<section><div class=\"wide\"><table class=\"runs\"><thead><tr><td>case</td>"
                       "<td>before</td><td>after</td><td>after to before</td><td></td></tr></thead><tbody>\n");
    for (int i = 0; i < n; i++) {
        cvy_html_add(html, "<tr><td class=\"long\">%s</td>", all[i].key);
        add_spread(html, &all[i].before);
        add_spread(html, &all[i].after);
        cvy_text_add(html, "<td>%.3f</td><td>%s</td></tr>\n", all[i].ratio, all[i].moved ? "moved" : "");
    }
    cvy_text_add(html, "</tbody></table></div></section>\n");
    cvy_page_end(html);
}

static cvy_status compare(cvy_study_page *a, cvy_study_page *b, const char *path, int *moved_out)
{
    struct change *all = NULL;
    int n = 0;
    CVY_TRY(cvy_study_page_read(a));
    CVY_TRY(cvy_study_page_read(b));
    CVY_TRY(list_changes(a, b, &all, &n));
    CVY_CHECK(n > 0, CVY_E_CONFIG, "%s and %s have no case in common", a->folder, b->folder);
    write_page(a, b, all, n);
    *moved_out = 0;
    for (int i = 0; i < n; i++)
        *moved_out += all[i].moved;
    CVY_TRY(a->html.status);
    return cvy_file_replace(path, a->html.data, a->html.bytes);
}

cvy_status cvy_report_study_compare(const char *before, const char *after, const char *path, int *moved_out)
{
    CVY_ENTRY();
    cvy_study_page a = {.folder = before}, b = {.folder = after};
    CVY_CHECK(before && after && path && moved_out, CVY_E_ARGUMENT, "a comparison needs two folders and a path");
    CVY_TRY(cvy_pool_create(&a.pool));
    b.pool = a.pool;
    const cvy_status status = compare(&a, &b, path, moved_out);
    cvy_text_free(&a.html);
    cvy_pool_destroy(&a.pool);
    return status;
}
