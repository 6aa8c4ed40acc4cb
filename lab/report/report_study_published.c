/*
 * report_study_published.c: figures that others have published, in a table of their own. They are never mixed with
 * what was measured here. Beside a figure of a GPU stands how many times the speed of the host a GPU has had in this
 * study, or that nothing of the kind was measured.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "report/report_page.h"
#include "report/report_study.h"

static void add_cell(cvy_text *html, const char *text)
{
    cvy_html_add(html, "<td>%s</td>", text);
}

static int is_of_gpu(const char *system)
{
    static const char *const gpu[] = {"k40", "k80", "p100", "v100"};
    int found = 0;
    for (int i = 0; i < CVY_COUNT(gpu); i++)
        found |= strstr(system, gpu[i]) != NULL;
    return found;
}

/* The row that differs from this one in the device alone, which is the host; NULL: this row is of the host or of
 * another program than convoy, or there is none. */
static const cvy_study_row *find_host(const cvy_study_page *p, const cvy_study_row *on_gpu)
{
    const cvy_tree *values = on_gpu->first->values;
    const char *device = cvy_study_value(on_gpu, "device");
    if (!*device || strcmp(device, "host") == 0 || strcmp(cvy_study_value(on_gpu, "framework"), "convoy") != 0)
        return NULL;
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        int is_same = cvy_study_shows(p, row, on_gpu->first->experiment);
        for (int k = 0; is_same && k < values->count; k++) {
            const char *key = values->key[k], *value = cvy_study_value(row, key);
            is_same = strcmp(value, strcmp(key, "device") == 0 ? "host" : cvy_study_value(on_gpu, key)) == 0;
        }
        if (is_same)
            return row;
    }
    return NULL;
}

/* The speed of convoy on a GPU over that on the host, of the networks that the figure is about. */
static void add_measured(const cvy_study_page *p, const char *networks, cvy_text *html)
{
    const int is_any = strncmp(networks, "any", 3) == 0 || strncmp(networks, "four", 4) == 0;
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *on_gpu = &p->row[i], *on_host = find_host(p, on_gpu);
        const char *model = cvy_study_value(on_gpu, "model");
        if (!on_host || !cvy_study_shows(p, on_gpu, on_gpu->first->experiment) || !(is_any || strstr(networks, model)))
            continue;
        const double ratio =
            cvy_study_spread(on_gpu, "images_per_s").median / cvy_study_spread(on_host, "images_per_s").median;
        low = fmin(low, ratio);
        high = fmax(high, ratio);
    }
    if (low > high)
        cvy_text_add(html, "<td>published only</td>");
    else
        cvy_text_add(html, "<td>%s to %s times the host</td>", cvy_number_text(low, 3).at, cvy_number_text(high, 3).at);
}

static void add_row(const cvy_study_page *p, cvy_text *html, const cvy_published *row)
{
    const char *const plain[] = {row->system, row->framework, row->network, row->metric, row->setting};
    cvy_text_add(html, "<tr>");
    for (int i = 0; i < CVY_COUNT(plain); i++)
        add_cell(html, plain[i]);
    cvy_html_add(html, "<td>%s %s</td>", row->value_text, row->unit);
    if (is_of_gpu(row->system))
        add_measured(p, row->network, html);
    else
        cvy_text_add(html, "<td></td>");
    cvy_text_add(html, "</tr>\n");
}

void cvy_study_published(cvy_study_page *p)
{
    if (p->published.n == 0)
        return;
    cvy_text_add(&p->html, "<section><h2>What others have published</h2>\n<p class=\"soft\">On their machines "
                           "and with their settings: for comparison, not measured here.</p>\n"
                           "<div class=\"wide\"><table class=\"runs\"><thead><tr><td>system</td>"
                           "<td>framework</td><td>network</td><td>metric</td><td>setting</td>"
                           "<td>value</td><td>convoy on a GPU here</td></tr></thead><tbody>\n");
    for (int i = 0; i < p->published.n; i++)
        add_row(p, &p->html, &p->published.row[i]);
    cvy_text_add(&p->html, "</tbody></table></div></section>\n");
}
