/*
 * kit_page.c: the page of a kit: what came back, what was predicted before, the two beside each other, and the sections
 * of each study.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "kit/kit_file.h"
#include "report/report_page.h"
#include "report/report_study.h"

struct study {
    cvy_study_page page;
    int is_read;       /* the results can be shown */
    const char *fault; /* why not; NULL: there are none yet */
};

struct writer {
    cvy_kit_page *p;
    cvy_pool *pool;
    cvy_text html;
    struct study *study; /* [nstudy] */
    double *error;       /* [compared]: of the predictions, absolute */
};

/* ---- the results ---- */

/* A study whose results are damaged is named, and the others are shown. */
static cvy_status read_study(struct writer *w, int i)
{
    const cvy_kit *kit = w->p->kit;
    struct study *s = &w->study[i];
    char *folder = NULL, *file = NULL;
    CVY_TRY(cvy_kit_path(kit, &folder, "results/%s", kit->study[i]));
    CVY_TRY(cvy_kit_path(kit, &file, "results/%s/study.yaml", kit->study[i]));
    if (!cvy_file_exists(file))
        return CVY_OK;
    s->page = (cvy_study_page){.pool = w->pool, .folder = folder};
    const cvy_status status = cvy_study_page_read(&s->page);
    s->is_read = status == CVY_OK;
    char *fault = NULL;
    if (status != CVY_E_FORMAT && status != CVY_E_CONFIG && status != CVY_E_IO)
        return status;
    CVY_TRY(cvy_pool_printf(w->pool, &fault, "%s%s", cvy_error_text(), cvy_kit_advice(cvy_error_text())));
    s->fault = fault;
    return CVY_OK;
}

/* ---- predicted and measured ---- */

/* Whether two rows differ in these axes at most. */
static int is_same(const cvy_study_row *a, const cvy_study_row *b, const char *free_axis, const char *other)
{
    const cvy_tree *values = a->first->values;
    int same = strcmp(a->first->experiment, b->first->experiment) == 0;
    for (int i = 0; i < values->count && same; i++)
        if (strcmp(values->key[i], free_axis) != 0 && (!other || strcmp(values->key[i], other) != 0))
            same = strcmp(cvy_study_value(a, values->key[i]), cvy_study_value(b, values->key[i])) == 0;
    return same;
}

static int is_shown(const cvy_study_page *p, const cvy_study_row *row)
{
    return row->of && cvy_study_shows(p, row, row->first->experiment);
}

static const cvy_study_row *prediction_of(const cvy_study_page *p, const cvy_study_row *measured)
{
    for (int i = 0; i < p->nrow; i++)
        if (p->row[i].first->is_predicted && is_shown(p, &p->row[i]) &&
            is_same(measured, &p->row[i], "framework", NULL))
            return &p->row[i];
    return NULL;
}

/* The row of the same line with the fewest ranks that was measured and predicted. */
static const cvy_study_row *begin_of(const cvy_study_page *p, const cvy_study_row *measured)
{
    const cvy_study_row *first = measured;
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        if (!row->first->is_predicted && is_shown(p, row) &&
            cvy_study_number(row, "ranks") < cvy_study_number(first, "ranks") &&
            is_same(measured, row, "ranks", NULL) && prediction_of(p, row))
            first = row;
    }
    return first;
}

static double speed_of(const cvy_study_row *row)
{
    return cvy_study_spread(row, row->of->show).median;
}

static void add_percent(cvy_text *html, double share)
{
    if (isfinite(share))
        cvy_text_add(html, "<td>%.1f %%</td>", 100 * share);
    else
        cvy_text_add(html, "<td></td>");
}

/* The values of the axes, without that of the framework: "model=resnet-50 ranks=4". */
static void add_case(cvy_text *html, const cvy_study_row *row)
{
    const cvy_tree *values = row->first->values;
    cvy_text_add(html, "<td class=\"long\">");
    for (int i = 0; i < values->count; i++)
        if (strcmp(values->key[i], "framework") != 0)
            cvy_html_add(html, "%s=%s ", values->key[i], cvy_study_value(row, values->key[i]));
    cvy_text_add(html, "</td>");
}

static void add_compared(struct writer *w, const char *study, const cvy_study_page *p, const cvy_study_row *measured,
                         const cvy_study_row *predicted)
{
    const cvy_study_row *first = begin_of(p, measured);
    const cvy_study_row *first_predicted = prediction_of(p, first);
    const double is = speed_of(measured), said = speed_of(predicted), error = said / is - 1,
                 more = cvy_study_number(measured, "ranks") / cvy_study_number(first, "ranks");
    const cvy_spread range = cvy_study_spread(measured, measured->of->show);
    cvy_html_add(&w->html, "<tr><td>%s</td>", study);
    add_case(&w->html, measured);
    cvy_text_add(&w->html, "<td>%s</td><td title=\"%d measurements, %s to %s\">%s</td><td>%+.1f %%</td>",
                 cvy_number_text(said, 4).at, range.n, cvy_number_text(range.low, 4).at,
                 cvy_number_text(range.high, 4).at, cvy_number_text(is, 4).at, 100 * error);
    add_percent(&w->html, more > 1 && first_predicted ? said / speed_of(first_predicted) / more : NAN);
    add_percent(&w->html, more > 1 ? is / speed_of(first) / more : NAN);
    cvy_text_add(&w->html, "</tr>\n");
    if (isfinite(error))
        w->error[w->p->result.compared++] = fabs(error);
}

static void write_comparison(struct writer *w)
{
    cvy_text_add(
        &w->html,
        "<section><h2>Predicted and measured</h2>\n<p class=\"soft\">Medians over the repeats. The error is that "
        "of the prediction, relative to the measurement. Efficiency is the speed relative to the fewest ranks "
        "of the same line, divided by the ratio of the ranks: it does not depend on how fast one node is taken "
        "to be.</p>\n");
    for (int i = 0; i < w->p->kit->nstudy; i++) {
        const cvy_study_page *p = &w->study[i].page;
        for (int k = 0; w->study[i].is_read && k < p->nrow; k++) {
            const cvy_study_row *row = &p->row[k], *predicted = !row->first->is_predicted && is_shown(p, row)
                                                                    ? prediction_of(p, row)
                                                                    : NULL;
            if (!predicted)
                continue;
            if (w->p->result.compared == 0)
                cvy_text_add(&w->html,
                             "<div class=\"wide\"><table class=\"runs\"><thead><tr><td>study</td><td>case</td>"
                             "<td>predicted</td><td>measured</td><td>error</td><td>predicted efficiency</td>"
                             "<td>measured efficiency</td></tr></thead><tbody>\n");
            add_compared(w, w->p->kit->study[i], p, row, predicted);
        }
    }
    cvy_text_add(&w->html, w->p->result.compared > 0 ? "</tbody></table></div></section>\n"
                                                     : "<p>No case has both.</p></section>\n");
    if (w->p->result.compared > 0)
        w->p->result.median_error = cvy_spread_of(w->error, w->p->result.compared).median;
}

/* ---- what came back ---- */

static void add_state(cvy_text *html, const cvy_kit_part *part)
{
    static const char again[] = "sh submit.sh in the folder of the kit goes on";
    switch (part->state) {
    case CVY_KIT_NOT_BEGUN: cvy_text_add(html, "<td>not begun</td><td>%s</td>", again); return;
    case CVY_KIT_BROKEN_OFF: cvy_text_add(html, "<td>broken off</td><td>%s</td>", again); return;
    case CVY_KIT_STOPPED:
        cvy_text_add(html, "<td>stopped in time, %lld left</td><td>%s</td>", (long long)part->left, again);
        return;
    case CVY_KIT_PARTLY:
        cvy_text_add(html, "<td>%lld of %lld results came back</td><td>copy the folder results of the kit again</td>",
                     (long long)part->results, (long long)part->made);
        return;
    case CVY_KIT_COMPLETE: cvy_text_add(html, "<td>complete</td><td></td>");
    }
}

static void write_parts(struct writer *w)
{
    const cvy_kit *kit = w->p->kit;
    cvy_text_add(&w->html, "<section><h2>What came back</h2>\n<div class=\"wide\"><table class=\"runs\"><thead><tr>"
                           "<td>study</td><td>nodes</td><td>results</td><td>failed</td><td>left "
                           "out</td><td>state</td><td>how to go on</td>"
                           "</tr></thead><tbody>\n");
    for (int i = 0; i < kit->nstudy; i++)
        for (int k = 0; k < kit->nnodes; k++) {
            const cvy_kit_part *part = &w->p->part[i * kit->nnodes + k];
            if (!part->is_wanted)
                continue;
            cvy_html_add(&w->html, "<tr><td>%s</td><td>%lld</td><td>%lld</td><td>%lld</td><td>%lld</td>", kit->study[i],
                         (long long)kit->nodes[k], (long long)part->results, (long long)part->failed,
                         (long long)part->left_out);
            add_state(&w->html, part);
            cvy_text_add(&w->html, "</tr>\n");
        }
    cvy_text_add(&w->html,
                 "</tbody></table></div>\n<p class=\"soft\">Left out are cases that need more cores than a node "
                 "has, or a framework that is not there: the output of the job names it.</p>\n");
    for (int i = 0; i < kit->nstudy; i++)
        if (w->study[i].fault)
            cvy_html_add(&w->html, "<p class=\"notes\">%s cannot be shown: %s</p>\n", kit->study[i], w->study[i].fault);
    cvy_text_add(&w->html, "</section>\n");
}

/* ---- the predictions ---- */

/* The first job that measured, as the journals say it. */
static const cvy_kit_part *first_part(const cvy_kit_page *p)
{
    const cvy_kit_part *first = NULL;
    for (int i = 0; i < p->kit->nstudy * p->kit->nnodes; i++)
        if (p->part[i].began && (!first || strcmp(p->part[i].began, first->began) < 0))
            first = &p->part[i];
    return first;
}

/* The jobs that found another seal than the one that came back. */
static int count_others(const cvy_kit_page *p)
{
    int n = 0;
    for (int k = 0; k < p->kit->nnodes; k++)
        for (int i = 0; i < p->kit->nstudy; i++) {
            const cvy_kit_part *part = &p->part[i * p->kit->nnodes + k];
            if (part->seal && strcmp(part->seal, p->seal.hash) != 0) {
                n++;
                break;
            }
        }
    return n;
}

static void write_predictions(struct writer *w)
{
    const cvy_kit_page *p = w->p;
    const cvy_kit_part *first = first_part(p);
    const int others = count_others(p);
    cvy_text_add(&w->html, "<section><h2>The predictions</h2>\n");
    if (!p->seal.made) {
        cvy_text_add(&w->html, "<p>Nothing was predicted before the measurements: there is no %s.</p></section>\n",
                     CVY_KIT_SEAL);
        return;
    }
    cvy_html_add(&w->html, "<ul><li>made %s</li>\n", p->seal.made);
    cvy_html_add(&w->html, "<li>on the platform %s</li>\n",
                 *p->kit->platform ? p->kit->platform : "that the first job has measured (platform.yaml)");
    cvy_html_add(&w->html, "<li>seal %s (%s; <code>sha256sum -c</code> checks what it covers)</li>\n", p->seal.hash,
                 CVY_KIT_SEAL);
    if (first)
        cvy_html_add(&w->html, "<li>the first measurements began %s; their job %s</li>\n", first->began,
                     strcmp(first->seal, p->seal.hash) == 0 ? "found this seal" : "found another seal");
    cvy_text_add(&w->html, "</ul>\n");
    if (p->seal.changed)
        cvy_html_add(
            &w->html,
            "<p class=\"notes\">Changed since the seal was made: %s. These predictions were not made before.</p>\n",
            p->seal.changed);
    if (others > 0)
        cvy_text_add(&w->html,
                     "<p class=\"notes\">%d job%s of measurements found another seal: this one was made later.</p>\n",
                     others, others > 1 ? "s" : "");
    w->p->result.is_sealed = !p->seal.changed && others == 0;
    cvy_text_add(&w->html, "</section>\n");
}

/* ---- versions and machines ---- */

static const char *text_or(const cvy_tree *map, const char *member, const char *otherwise)
{
    const char *text = cvy_tree_text_at(map, member);
    return text ? text : otherwise;
}

static cvy_status name_origin(const struct writer *w, const cvy_study_result_line *line, char **out)
{
    const cvy_tree *e = line->environment;
    const cvy_kit *kit = w->p->kit;
    const char *version = text_or(e, "convoy", "?"), *commit = text_or(e, "commit", "");
    const int is_other = strcmp(version, kit->version) != 0 || strcmp(commit, kit->commit) != 0;
    return cvy_pool_printf(w->pool, out, "%s on %s, %s, %g cores: convoy %s%s%s%s",
                           line->is_predicted ? "predicted" : "measured", text_or(e, "host", "?"),
                           text_or(e, "cpu", "?"), cvy_tree_real_at(e, "cores"), version, *commit ? ", commit " : "",
                           commit, is_other ? ", another version than that of the kit" : "");
}

/* Names each machine and version once. */
static cvy_status write_origins(struct writer *w)
{
    const char *known[64];
    int n = 0;
    for (int i = 0; i < w->p->kit->nstudy; i++)
        for (int k = 0; w->study[i].is_read && k < w->study[i].page.results.n; k++) {
            const cvy_study_result_line *line = &w->study[i].page.results.line[k];
            char *text = NULL;
            int is_known = n == CVY_COUNT(known);
            CVY_TRY(name_origin(w, line, &text));
            for (int m = 0; m < n && !is_known; m++)
                is_known = strcmp(known[m], text) == 0;
            if (!is_known)
                known[n++] = text;
        }
    if (n > 0)
        cvy_text_add(&w->html, "<section><h2>Machines and versions</h2>\n<ul>\n");
    for (int m = 0; m < n; m++)
        cvy_html_add(&w->html, "<li>%s</li>\n", known[m]);
    if (n > 0)
        cvy_text_add(&w->html, "</ul></section>\n");
    return w->html.status;
}

/* ---- all ---- */

/* The sections of a study, and its own page with its tables and figures as files. */
static cvy_status write_study(struct writer *w, int i)
{
    struct study *s = &w->study[i];
    if (!s->is_read || s->page.results.n == 0)
        return CVY_OK;
    const size_t before = w->html.bytes;
    s->page.html = w->html;
    cvy_status status = cvy_study_sections(&s->page);
    w->html = s->page.html;
    s->page.html = (cvy_text){0};
    if (status == CVY_OK)
        status = cvy_report_study(s->page.folder);
    if (status == CVY_E_FORMAT || status == CVY_E_CONFIG) {
        w->html.bytes = before;
        w->html.data[before] = '\0';
        cvy_html_add(&w->html, "<p class=\"notes\">%s cannot be shown: %s</p>\n", w->p->kit->study[i],
                     cvy_error_text());
        status = CVY_OK;
    }
    return status;
}

static cvy_status write_all(struct writer *w)
{
    const cvy_kit *kit = w->p->kit;
    char *title = NULL, *path = NULL;
    int rows = 0;
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *w->study * (size_t)kit->nstudy, &w->study));
    for (int i = 0; i < kit->nstudy; i++) {
        CVY_TRY(read_study(w, i));
        rows += w->study[i].is_read ? w->study[i].page.nrow : 0;
    }
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *w->error * ((size_t)rows + 1), &w->error));
    CVY_TRY(cvy_pool_printf(w->pool, &title, "Kit %s", w->p->name));
    cvy_page_begin(&w->html, title);
    cvy_html_add(&w->html,
                 "<header><h1>%s</h1>\n<p class=\"verdict\">%d of %d parts came back complete, with %d results.</p>\n",
                 title, w->p->result.complete, w->p->result.all, w->p->result.measured);
    cvy_html_add(
        &w->html,
        "<p class=\"soft\">Made %s by convoy %s%s%s, for up to %lld nodes with %lld ranks each%s%s%s.</p></header>\n",
        kit->made, kit->version, *kit->commit ? ", commit " : "", kit->commit, (long long)kit->nodes[kit->nnodes - 1],
        (long long)kit->ranks_per_node, *kit->scheduler ? ", for " : "", kit->scheduler,
        kit->quick ? "; a quick look, made with --quick" : "");
    write_parts(w);
    write_predictions(w);
    write_comparison(w);
    CVY_TRY(write_origins(w));
    for (int i = 0; i < kit->nstudy; i++)
        CVY_TRY(write_study(w, i));
    cvy_page_end(&w->html);
    CVY_TRY(w->html.status);
    CVY_TRY(cvy_kit_path(kit, &path, "report.html"));
    return cvy_file_replace(path, w->html.data, w->html.bytes);
}

cvy_status cvy_kit_write_page(cvy_kit_page *page)
{
    struct writer w = {.p = page, .pool = page->kit->pool};
    const cvy_status status = write_all(&w);
    cvy_text_free(&w.html);
    return status;
}
