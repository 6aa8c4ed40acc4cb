/*
 * report_study.c: cvy_report_study(): the page of a study, report.html, and its table as results.csv.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "report/report_study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_index.h"
#include "base/machine/base_clock.h"
#include "report/report_page.h"

/* ---- rows ---- */

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

cvy_spread cvy_spread_of(double *value, int n)
{
    if (n == 0)
        return (cvy_spread){NAN, NAN, NAN, 0};
    qsort(value, (size_t)n, sizeof *value, compare_reals);
    return (cvy_spread){(value[(n - 1) / 2] + value[n / 2]) / 2, value[0], value[n - 1], n};
}

/* Images per second are those of the median step, where a framework tells it: its mean also has what other programs on
 * the machine did. */
static double number_of(const cvy_study_row *row, const cvy_study_result_line *line, const char *member)
{
    const double batch = cvy_tree_real_at(line->result, "batch"), ms = cvy_tree_real_at(line->result, "ms_median");
    if (strncmp(member, "target_", 7) == 0)
        return cvy_study_reached(row, line, member);
    if (strcmp(member, "images_per_s") == 0 && batch > 0 && ms > 0)
        return 1e3 * batch / ms;
    return cvy_tree_real_at(line->result, member);
}

cvy_spread cvy_study_spread(const cvy_study_row *row, const char *member)
{
    double value[128];
    int n = 0;
    for (int i = 0; i < row->n && n < CVY_COUNT(value); i++) {
        value[n] = number_of(row, row->line[i], member);
        n += isfinite(value[n]);
    }
    return cvy_spread_of(value, n);
}

const cvy_study_result_line *cvy_study_median_line(const cvy_study_row *row, const char *member)
{
    const cvy_study_result_line *best = NULL;
    const double median = cvy_study_spread(row, member).median;
    double least = INFINITY;
    for (int i = 0; i < row->n; i++) {
        const double value = cvy_tree_real_at(row->line[i]->result, member), off = fabs(value - median);
        if (off < least || (off == least && best && value < cvy_tree_real_at(best->result, member))) {
            least = off;
            best = row->line[i];
        }
    }
    return best;
}

/* Predictions may come from another machine, such as a login node. */
static int is_of_machine(const cvy_study_page *p, const cvy_study_row *row)
{
    if (strcmp(row->first->machine, p->machine) == 0)
        return 1;
    for (int i = 0; row->first->is_predicted && i < p->nrow; i++)
        if (strcmp(p->row[i].first->machine, p->machine) == 0 && strcmp(p->row[i].first->key, row->first->key) == 0)
            return 0;
    return row->first->is_predicted;
}

int cvy_study_shows(const cvy_study_page *p, const cvy_study_row *row, const char *experiment)
{
    return row->n > 0 && strcmp(row->first->experiment, experiment) == 0 && is_of_machine(p, row);
}

const char *cvy_study_value(const cvy_study_row *row, const char *axis)
{
    const cvy_tree *values = row->first->values;
    for (int i = 0; i < values->count; i++)
        if (strcmp(values->key[i], axis) == 0)
            return values->child[i]->text ? values->child[i]->text : "";
    return "";
}

double cvy_study_number(const cvy_study_row *row, const char *axis)
{
    double number = 1;
    return cvy_text_real(cvy_study_value(row, axis), &number) == CVY_OK ? number : 1;
}

int cvy_study_know(const char **list, int *n, int most, const char *text)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(list[i], text) == 0)
            return 0;
    if (*n == most)
        return 0;
    list[(*n)++] = text;
    return 1;
}

const char *cvy_study_name(const cvy_study_page *p, const char *axis, const char *value)
{
    const cvy_tree *of = p->spec.names ? cvy_tree_get(p->spec.names, axis) : NULL;
    const cvy_tree *name = of ? cvy_tree_get(of, value) : NULL;
    return name ? name->text : value;
}

/* The last line of a measurement counts: one that failed may have been made again. */
static cvy_status add_result(cvy_study_page *p, cvy_study_row *row, const cvy_study_result_line *line)
{
    if (!row->first) {
        row->first = line;
        row->of = cvy_study_experiment(&p->spec, line->experiment);
        CVY_TRY(cvy_pool_alloc(p->pool, sizeof *row->line * ((size_t)p->results.n + 1), &row->line));
    }
    for (int i = 0; i < row->n; i++)
        if (row->line[i]->repeat == line->repeat)
            row->line[i] = row->line[--row->n];
    row->failed = line->error;
    if (line->result)
        row->line[row->n++] = line;
    return CVY_OK;
}

static cvy_status gather(cvy_study_page *p)
{
    cvy_keys keys = {0};
    int any_measured = 0;
    cvy_status status = cvy_pool_alloc(p->pool, sizeof *p->row * ((size_t)p->results.n + 1), &p->row);
    for (int i = 0; i < p->results.n && status == CVY_OK; i++) {
        const cvy_study_result_line *line = &p->results.line[i];
        char *name = NULL;
        int number = 0;
        status = cvy_pool_printf(p->pool, &name, "%s @%s", line->key, line->machine);
        if (status == CVY_OK)
            status = cvy_keys_add(&keys, name, &number);
        if (status == CVY_OK)
            status = add_result(p, &p->row[number], line);
        if (!line->is_predicted || !any_measured)
            p->machine = line->machine;
        any_measured |= !line->is_predicted;
    }
    p->nrow = keys.count;
    cvy_keys_free(&keys);
    return status;
}

/* ---- tables ---- */

/* The case without its framework, as "model=vgg-a batch=16", which is a row of the table. */
static cvy_status name_setting(cvy_study_page *p, const cvy_study_row *row, char **out)
{
    const cvy_tree *values = row->first->values;
    cvy_text text = {0};
    for (int i = 0; i < values->count; i++)
        if (strcmp(values->key[i], "framework") != 0)
            cvy_text_add(&text, "%s\t",
                         cvy_study_name(p, values->key[i], values->child[i]->text ? values->child[i]->text : ""));
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(p->pool, text.data ? text.data : "", out);
    cvy_text_free(&text);
    return status;
}

/* What convoy says before it starts, what allocators of others say, and how the system ends a process that takes too
 * much. */
static int is_too_large(const char *error)
{
    static const char *const words[] = {"GiB are free", "memory", "exit code 137"};
    int found = 0;
    for (int i = 0; i < CVY_COUNT(words); i++)
        found |= strstr(error, words[i]) != NULL;
    return found;
}

int cvy_study_is_simulated(const char *framework)
{
    return strncmp(framework, "simulated", strlen("simulated")) == 0;
}

/* Why a framework has no result where another one has: the cores of the machine, if they are the reason. */
static void add_blank(cvy_text *html, const char *framework, const cvy_study_row *other)
{
    const double ranks = other ? cvy_study_number(other, "ranks") : 1,
                 threads = other ? cvy_study_number(other, "threads") : 1,
                 cores = other ? cvy_tree_real_at(other->first->environment, "cores") : NAN;
    if (other && !cvy_study_is_simulated(framework) && !other->of->oversubscribes && ranks * threads > cores)
        cvy_text_add(html, "<td class=\"soft\">needs %g cores</td>", ranks * threads);
    else
        cvy_text_add(html, "<td class=\"soft\">not run</td>");
}

static void add_cell(cvy_text *html, const char *framework, const cvy_study_row *row, const cvy_study_row *other)
{
    const cvy_spread s = row ? cvy_study_spread(row, row->of->show) : (cvy_spread){.n = 0};
    if (s.n > 0)
        cvy_text_add(html, "<td title=\"%d measurements, %s to %s\">%s</td>", s.n, cvy_number_text(s.low, 4).at,
                     cvy_number_text(s.high, 4).at, cvy_number_text(s.median, 4).at);
    else if (row && row->failed) {
        cvy_html_add(html, "<td title=\"%s", row->failed);
        cvy_text_add(html, "\">%s</td>", is_too_large(row->failed) ? "does not fit" : "failed");
    } else if (row && row->n > 0 && row->of->target)
        cvy_text_add(html, "<td class=\"soft\">not reached</td>");
    else
        add_blank(html, framework, other);
}

/* convoy to the fastest of the others that were measured, by medians. */
static void add_ratio(cvy_text *html, const cvy_study_row *const *cell, const char *const *name, int n)
{
    double own = NAN, best = NAN;
    for (int i = 0; i < n; i++) {
        const double speed = cell[i] ? cvy_study_spread(cell[i], "images_per_s").median : NAN;
        if (strcmp(name[i], "convoy") == 0)
            own = speed;
        else if (cell[i] && !cell[i]->first->is_predicted)
            best = fmax(best, speed);
    }
    if (isfinite(own / best))
        cvy_text_add(html, "<td>%s</td>", cvy_number_text(own / best, 3).at);
    else
        cvy_text_add(html, "<td></td>");
}

struct table {
    const char *name[16];       /* frameworks */
    int nname, npeer;           /* peers: those that are measured, besides convoy */
    const cvy_study_row **cell; /* [settings, 16] */
    cvy_keys settings;
};

static cvy_status fill_table(cvy_study_page *p, const cvy_experiment *e, struct table *t)
{
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *t->cell * (size_t)(16 * (p->nrow + 1)), &t->cell));
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        char *setting = NULL;
        int number = 0, column = 0;
        if (row->of != e || !is_of_machine(p, row))
            continue;
        while (column < t->nname && strcmp(t->name[column], cvy_study_value(row, "framework")) != 0)
            column++;
        if (column == CVY_COUNT(t->name))
            continue;
        t->name[column] = cvy_study_value(row, "framework");
        t->npeer += column == t->nname && !row->first->is_predicted && strcmp(t->name[column], "convoy") != 0;
        t->nname = CVY_MAX(t->nname, column + 1);
        CVY_TRY(name_setting(p, row, &setting));
        CVY_TRY(cvy_keys_add(&t->settings, setting, &number));
        t->cell[16 * number + column] = row;
    }
    return CVY_OK;
}

static void write_head(cvy_study_page *p, const cvy_experiment *e, const struct table *t)
{
    cvy_text *html = &p->html;
    cvy_text_add(html, "<div class=\"wide\"><table class=\"runs\"><thead><tr>");
    for (int a = 0; a < e->naxis; a++)
        if (strcmp(e->axis[a].name, "framework") != 0) {
            cvy_html_add(html, "<td>%s</td>", e->axis[a].name);
        }
    for (int i = 0; i < t->nname; i++) {
        cvy_html_add(html, "<td>%s</td>", t->name[i]);
    }
    cvy_text_add(html, t->npeer > 0 ? "<td>convoy to the fastest other</td></tr></thead><tbody>\n"
                                    : "</tr></thead><tbody>\n");
}

static void write_rows(cvy_study_page *p, const struct table *t)
{
    cvy_text *html = &p->html;
    for (int i = 0; i < t->settings.count; i++) {
        const cvy_study_row *const *cell = &t->cell[16 * i];
        cvy_text_add(html, "<tr>");
        for (const char *at = t->settings.text[i]; *at; at += strcspn(at, "\t"), at += *at == '\t') {
            char value[128];
            snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\t"), at);
            cvy_html_add(html, "<td>%s</td>", value);
        }
        const cvy_study_row *other = NULL;
        for (int k = 0; k < t->nname; k++)
            other = cell[k] ? cell[k] : other;
        for (int k = 0; k < t->nname; k++)
            add_cell(html, t->name[k], cell[k], other);
        if (t->npeer > 0)
            add_ratio(html, cell, t->name, t->nname);
        cvy_text_add(html, "</tr>\n");
    }
    cvy_text_add(html, "</tbody></table></div></section>\n");
}

static cvy_status write_tables(cvy_study_page *p)
{
    for (int i = 0; i < p->spec.nexperiment; i++) {
        const cvy_experiment *e = &p->spec.experiment[i];
        struct table t = {.nname = 0};
        cvy_status status = fill_table(p, e, &t);
        if (status == CVY_OK && t.settings.count > 0) {
            cvy_html_add(&p->html, "<section><h2>%s: %s", e->name, e->show_label);
            cvy_text_add(&p->html,
                         "</h2>\n<p class=\"soft\">Medians over the repeats%s. The range is in the tooltip of "
                         "a cell, and in results.csv. Not run: the case was left out, as by --quick or --only, or the "
                         "framework is not installed or cannot do it.</p>\n",
                         strcmp(e->show, "images_per_s") == 0 ? ", by the median step of each" : "");
            t.npeer = strcmp(e->show, "images_per_s") == 0 ? t.npeer : 0;
            write_head(p, e, &t);
            write_rows(p, &t);
        }
        cvy_keys_free(&t.settings);
        CVY_TRY(status);
    }
    return CVY_OK;
}

/* ---- faults ---- */

static void write_faults(cvy_study_page *p)
{
    int n = 0;
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        if (row->n > 0 || !row->failed)
            continue;
        cvy_text_add(&p->html, n++ == 0 ? "<section><h2>What failed</h2>\n<div class=\"wide\"><table class=\"runs\">"
                                          "<thead><tr><td>case</td><td>error</td></tr></thead><tbody>\n<tr><td>"
                                        : "<tr><td>");
        cvy_html_add(&p->html, "%s</td><td class=\"long\">%s</td></tr>\n", row->first->key, row->failed);
    }
    if (n > 0)
        cvy_text_add(&p->html, "</tbody></table></div></section>\n");
}

/* ---- the page ---- */

static void add_paragraph(cvy_text *html, const char *class, const char *before, const char *text)
{
    if (!text)
        return;
    cvy_text_add(html, "<p%s>%s", class, before);
    cvy_html_add(html, "%s</p>\n", text);
}

cvy_status cvy_study_sections(cvy_study_page *p)
{
    cvy_text *html = &p->html;
    const char *origin = NULL;
    cvy_html_add(html, "<header><h1>%s</h1>\n", p->spec.title);
    add_paragraph(html, " class=\"verdict\"", "", p->spec.question);
    add_paragraph(html, " class=\"soft\"", "After ", p->spec.source);
    CVY_TRY(cvy_study_origin(p, NULL, &origin));
    add_paragraph(html, " class=\"soft\"", "", *origin ? origin : NULL);
    cvy_text_add(html, "</header>\n");
    CVY_TRY(cvy_study_figures(p));
    add_paragraph(html, " class=\"soft\"", "", p->spec.meaning);
    CVY_TRY(cvy_study_limits(p));
    CVY_TRY(write_tables(p));
    CVY_TRY(cvy_study_work(p));
    cvy_study_published(p);
    write_faults(p);
    if (p->results.n > 0)
        CVY_TRY(cvy_study_environment(p));
    return html->status;
}

static cvy_status write_page(cvy_study_page *p)
{
    cvy_page_begin(&p->html, p->spec.title);
    CVY_TRY(cvy_study_sections(p));
    cvy_page_end(&p->html);
    return p->html.status;
}

/* ---- the table as a file ---- */

static void add_quoted(cvy_text *csv, const char *text)
{
    cvy_text_add(csv, "\"");
    for (; *text; text++)
        cvy_text_add(csv, *text == '"' ? "\"\"" : "%c", *text);
    cvy_text_add(csv, "\",");
}

static void add_csv_rows(cvy_study_page *p, const cvy_experiment *e, cvy_text *csv)
{
    const char *const members[] = {e->show, "ms_median"};
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        if (strcmp(row->first->experiment, e->name) != 0)
            continue;
        add_quoted(csv, e->name);
        for (int a = 0; a < e->naxis; a++)
            add_quoted(csv, cvy_study_value(row, e->axis[a].name));
        for (int m = 0; m < CVY_COUNT(members); m++) {
            const cvy_spread s = cvy_study_spread(row, members[m]);
            if (s.n > 0)
                cvy_text_add(csv, "%.6g,%.6g,%.6g,", s.median, s.low, s.high);
            else
                cvy_text_add(csv, ",,,");
        }
        cvy_text_add(csv, "%d,", row->n);
        add_quoted(csv, row->n == 0 && row->failed ? row->failed : "");
        add_quoted(csv, row->first->framework ? row->first->framework : "");
        cvy_text_add(csv, "%s\n", row->first->machine);
    }
}

/* Each experiment has a head of its own, because axes differ. */
static cvy_status write_csv(cvy_study_page *p)
{
    cvy_text csv = {0};
    char *path = NULL;
    for (int i = 0; i < p->spec.nexperiment; i++) {
        const cvy_experiment *e = &p->spec.experiment[i];
        cvy_text_add(&csv, "experiment,");
        for (int a = 0; a < e->naxis; a++)
            add_quoted(&csv, e->axis[a].name);
        cvy_text_add(&csv, "%s,lowest,highest,ms_median,lowest,highest,repeats,error,version,machine\n", e->show);
        add_csv_rows(p, e, &csv);
    }
    cvy_status status = csv.status;
    if (status == CVY_OK)
        status = cvy_pool_printf(p->pool, &path, "%s/results.csv", p->folder);
    if (status == CVY_OK)
        status = cvy_file_replace(path, csv.data, csv.bytes);
    cvy_text_free(&csv);
    return status;
}

/* ---- all ---- */

static cvy_status read_published(cvy_study_page *p)
{
    char *path = NULL, *data = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_pool_printf(p->pool, &path, "%s/published.csv", p->folder));
    if (!cvy_file_exists(path))
        return CVY_OK;
    CVY_TRY(cvy_file_read(path, 1 << 20, &data, &bytes));
    const cvy_status status = cvy_published_read(p->pool, data, NULL, &p->published);
    cvy_mem_free(&data);
    return status;
}

cvy_status cvy_study_page_read(cvy_study_page *p)
{
    char *path = NULL, *data = NULL, *text = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_pool_printf(p->pool, &path, "%s/study.yaml", p->folder));
    CVY_TRY(cvy_file_read(path, 16 << 20, &data, &bytes));
    cvy_status status = cvy_pool_strdup(p->pool, data, &text);
    cvy_mem_free(&data);
    CVY_TRY(status);
    CVY_TRY(cvy_study_read(p->pool, path, text, 0, &p->spec));
    CVY_TRY(read_published(p));
    CVY_TRY(cvy_study_results_read(p->pool, p->folder, &p->results));
    return gather(p);
}

static cvy_status report(cvy_study_page *p)
{
    char *path = NULL;
    CVY_TRY(cvy_study_page_read(p));
    CVY_TRY(write_page(p));
    CVY_TRY(cvy_pool_printf(p->pool, &path, "%s/report.html", p->folder));
    CVY_TRY(cvy_file_replace(path, p->html.data, p->html.bytes));
    CVY_TRY(cvy_study_write_latex(p));
    return write_csv(p);
}

cvy_status cvy_report_study(const char *folder)
{
    CVY_ENTRY();
    cvy_study_page p = {.folder = folder};
    CVY_CHECK(folder, CVY_E_ARGUMENT, "a report needs the folder of a study");
    CVY_TRY(cvy_pool_create(&p.pool));
    const cvy_status status = report(&p);
    cvy_text_free(&p.html);
    cvy_pool_destroy(&p.pool);
    return status;
}
