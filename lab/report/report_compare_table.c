/*
 * report_compare_table.c: a table with a column for each run: the keys of the jobs that are not equal, the state, and
 * the scores. The best number of a row is bold.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/job_table.h"
#include "report/report_compare.h"

enum { PATH_ROOM = 200, VALUE_ROOM = 240, KEYS_MAX = 200, COLUMNS_MAX = 64 };

static void row_begin(cvy_comparison *c, const char *what)
{
    cvy_html_add(&c->html, "<tr><th>%s</th>", what);
}

static void cell(cvy_comparison *c, const char *text, int is_best)
{
    enum { LONG = 28 };
    cvy_text_add(&c->html, "<td%s>%s", strlen(text) > LONG ? " class=\"long\"" : "", is_best ? "<b>" : "");
    cvy_html_escape(&c->html, text);
    cvy_text_add(&c->html, is_best ? "</b></td>" : "</td>");
}

static void row_end(cvy_comparison *c)
{
    cvy_text_add(&c->html, "</tr>\n");
}

/* A head for the rows that follow. */
static void part(cvy_comparison *c, const char *what)
{
    cvy_text_add(&c->html, "<tr class=\"part\"><th colspan=\"%d\">%s</th></tr>\n", c->nruns + 1, what);
}

/* ---- numbers ---- */

typedef cvy_number (*format_fn)(double x);

static cvy_number four_digits(double x)
{
    return cvy_number_text(x, 4);
}

static cvy_number three_digits(double x)
{
    return cvy_number_text(x, 3);
}

/* Adds a row if a run has the number. better: 1: the highest is bold, -1: the lowest, 0: none. */
static void numbers(cvy_comparison *c, const char *what, const double *x, int better, format_fn format)
{
    double best = NAN;
    int known = 0, equal = 1;
    for (int i = 0; i < c->nruns; i++) {
        if (!isfinite(x[i]))
            continue;
        equal = equal && (known == 0 || x[i] == best);
        best = known == 0 || better * x[i] > better * best ? x[i] : best;
        known++;
    }
    if (known == 0)
        return;
    row_begin(c, what);
    for (int i = 0; i < c->nruns; i++)
        cell(c, format(x[i]).at, better != 0 && known > 1 && !equal && x[i] == best);
    row_end(c);
}

/* ---- keys of the jobs ---- */

struct keys {
    char *path[KEYS_MAX];
    int count;
};

static cvy_status add_key(cvy_comparison *c, struct keys *keys, const char *path)
{
    for (int i = 0; i < keys->count; i++)
        if (strcmp(keys->path[i], path) == 0)
            return CVY_OK;
    return keys->count < KEYS_MAX ? cvy_pool_strdup(c->pool, path, &keys->path[keys->count++]) : CVY_OK;
}

/* The value at a place in one line, cut off if it is long; "–" if there is none. */
static void value_text(const cvy_tree *node, char text[VALUE_ROOM])
{
    char *line = NULL;
    size_t n = 0;
    if (cvy_tree_is_null(node))
        snprintf(text, VALUE_ROOM, "–");
    else if (node->kind == CVY_TREE_SCALAR)
        n = (size_t)snprintf(text, VALUE_ROOM, "%s", node->text);
    else if (cvy_tree_print_line(node, &line) == CVY_OK)
        n = (size_t)snprintf(text, VALUE_ROOM, "%s", line);
    else
        snprintf(text, VALUE_ROOM, "?");
    if (n >= VALUE_ROOM)
        snprintf(text + VALUE_ROOM - 5, 5, "…");
    cvy_mem_free(&line);
}

static int are_equal(const cvy_tree *const *node, int count)
{
    char *first = NULL, *other = NULL;
    int equal = 1;
    for (int i = 1; i < count && equal; i++) {
        if (cvy_tree_is_null(node[0]) || cvy_tree_is_null(node[i])) {
            equal = cvy_tree_is_null(node[0]) && cvy_tree_is_null(node[i]);
            continue;
        }
        equal = cvy_tree_print(node[0], &first) == CVY_OK && cvy_tree_print(node[i], &other) == CVY_OK &&
                strcmp(first, other) == 0;
        cvy_mem_free(&first);
        cvy_mem_free(&other);
    }
    return equal;
}

/* Goes down into maps that all runs have at this place, and lists the places where the runs differ. */
static cvy_status find_keys(cvy_comparison *c, const cvy_tree *const *node, const char *path, struct keys *keys)
{
    int all_maps = 1;
    if (are_equal(node, c->nruns))
        return CVY_OK;
    for (int i = 0; i < c->nruns; i++)
        all_maps = all_maps && node[i] && node[i]->kind == CVY_TREE_MAP;
    if (!all_maps)
        return add_key(c, keys, path);
    for (int i = 0; i < c->nruns; i++)
        for (int k = 0; k < node[i]->count; k++) {
            const cvy_tree *below[CVY_REPORT_RUNS_MAX];
            char longer[PATH_ROOM];
            snprintf(longer, sizeof longer, "%s%s%s", path, *path ? "." : "", node[i]->key[k]);
            for (int j = 0; j < c->nruns; j++)
                below[j] = cvy_tree_get(node[j], node[i]->key[k]);
            CVY_TRY(find_keys(c, below, longer, keys));
        }
    return CVY_OK;
}

static cvy_status key_rows(cvy_comparison *c)
{
    const cvy_tree *job[CVY_REPORT_RUNS_MAX];
    struct keys *keys = NULL;
    cvy_text old_words = {0};
    cvy_status status = CVY_OK;
    for (int i = 0; i < c->nruns; i++) {
        cvy_report *files = &c->run[i].files;
        if (files->job &&
            cvy_job_read_old_words(c->pool, (cvy_tree *)(uintptr_t)files->job, &old_words) == CVY_E_MEMORY)
            status = CVY_E_MEMORY;
        job[i] = files->job;
    }
    cvy_text_free(&old_words);
    CVY_TRY(status);
    CVY_TRY(cvy_pool_alloc(c->pool, sizeof *keys, &keys));
    CVY_TRY(find_keys(c, job, "", keys));
    if (keys->count == 0)
        return CVY_OK;
    part(c, "what differs in the jobs");
    for (int k = 0; k < keys->count; k++) {
        row_begin(c, keys->path[k][0] ? keys->path[k] : "the job");
        for (int i = 0; i < c->nruns; i++) {
            char text[VALUE_ROOM];
            value_text(keys->path[k][0] ? cvy_tree_at(job[i], keys->path[k]) : NULL, text);
            cell(c, !keys->path[k][0] && job[i] ? "known" : text, 0);
        }
        row_end(c);
    }
    return CVY_OK;
}

/* ---- scores ---- */

static double last_of(const cvy_frame *f, const char *column)
{
    const double *y = cvy_frame_column(f, column);
    for (int64_t i = f->nrow - 1; y && i >= 0; i--)
        if (isfinite(y[i]))
            return y[i];
    return NAN;
}

/* The last value of every score in the logs. */
static void last_scores(cvy_comparison *c)
{
    static const char *const prefixes[] = {"train_", "val_", "test_"};
    const char *known[COLUMNS_MAX];
    int count = 0;
    for (int p = 0; p < CVY_COUNT(prefixes); p++)
        for (int i = 0; i < c->nruns; i++)
            for (int k = 0; k < c->run[i].files.epochs.ncol; k++) {
                const char *column = c->run[i].files.epochs.name[k];
                double x[CVY_REPORT_RUNS_MAX];
                char what[80];
                int is_known = strncmp(column, prefixes[p], strlen(prefixes[p])) != 0 || count == COLUMNS_MAX ||
                               strstr(column, "_skipped") != NULL;
                for (int j = 0; j < count && !is_known; j++)
                    is_known = strcmp(known[j], column) == 0;
                if (is_known)
                    continue;
                known[count++] = column;
                for (int j = 0; j < c->nruns; j++)
                    x[j] = last_of(&c->run[j].files.epochs, column);
                snprintf(what, sizeof what, "last %s", column);
                numbers(c, what, x, cvy_run_score_is_higher_better(column) ? 1 : -1, four_digits);
            }
}

/* What `convoy test` has written. */
static void test_scores(cvy_comparison *c)
{
    double x[CVY_REPORT_RUNS_MAX];
    const char *known[COLUMNS_MAX];
    int count = 0;
    for (int i = 0; i < c->nruns; i++)
        x[i] = cvy_tree_real_at(c->run[i].files.test, "loss");
    numbers(c, "test.json loss", x, -1, four_digits);
    for (int i = 0; i < c->nruns; i++) {
        const cvy_tree *metrics = cvy_tree_at(c->run[i].files.test, "metrics");
        for (int k = 0; metrics && metrics->kind == CVY_TREE_MAP && k < metrics->count; k++) {
            const char *name = metrics->key[k];
            char what[80], column[80];
            int is_known = count == COLUMNS_MAX;
            for (int j = 0; j < count && !is_known; j++)
                is_known = strcmp(known[j], name) == 0;
            if (is_known)
                continue;
            known[count++] = name;
            for (int j = 0; j < c->nruns; j++) {
                const cvy_tree *map = cvy_tree_at(c->run[j].files.test, "metrics");
                x[j] = cvy_tree_real_or_nan(map && map->kind == CVY_TREE_MAP ? cvy_tree_get(map, name) : NULL);
            }
            snprintf(what, sizeof what, "test.json %.60s", name);
            snprintf(column, sizeof column, "test_%.60s", name);
            numbers(c, what, x, cvy_run_score_is_higher_better(column) ? 1 : -1, four_digits);
        }
    }
}

/* The score by which each run was selected. Two runs may have different ones. */
static void best_scores(cvy_comparison *c)
{
    for (int i = 0; i < c->nruns; i++) {
        const char *metric = c->run[i].summary.metric;
        double x[CVY_REPORT_RUNS_MAX], epoch[CVY_REPORT_RUNS_MAX];
        char what[96];
        int is_known = !metric[0];
        for (int j = 0; j < i && !is_known; j++)
            is_known = strcmp(metric, c->run[j].summary.metric) == 0;
        if (is_known)
            continue;
        for (int j = 0; j < c->nruns; j++) {
            const int same = strcmp(metric, c->run[j].summary.metric) == 0;
            x[j] = same ? c->run[j].summary.best : NAN;
            epoch[j] = same ? c->run[j].summary.best_epoch : NAN;
        }
        snprintf(what, sizeof what, "best %s", metric);
        numbers(c, what, x, c->run[i].summary.best_higher ? 1 : -1, four_digits);
        numbers(c, "after epoch", epoch, 0, cvy_number_count);
    }
}

static void run_rows(cvy_comparison *c)
{
    double epochs[CVY_REPORT_RUNS_MAX], steps[CVY_REPORT_RUNS_MAX], ranks[CVY_REPORT_RUNS_MAX],
        nodes[CVY_REPORT_RUNS_MAX], seconds[CVY_REPORT_RUNS_MAX], speed[CVY_REPORT_RUNS_MAX];
    row_begin(c, "state");
    for (int i = 0; i < c->nruns; i++) {
        const cvy_run_summary *s = &c->run[i].summary;
        cell(c, cvy_run_state_text(s->state), 0);
        epochs[i] = s->epoch;
        steps[i] = (double)s->step;
        nodes[i] = s->nodes ? s->nodes : NAN;
        ranks[i] = s->ranks ? s->ranks : NAN;
        seconds[i] = s->seconds;
        speed[i] = s->images_per_s;
    }
    row_end(c);
    numbers(c, "epochs", epochs, 0, three_digits);
    numbers(c, "steps", steps, 0, cvy_number_count);
    numbers(c, "nodes", nodes, 0, cvy_number_count);
    numbers(c, "ranks", ranks, 0, cvy_number_count);
    numbers(c, "time", seconds, 0, cvy_number_seconds);
    numbers(c, "samples per second", speed, 1, three_digits);
}

cvy_status cvy_comparison_table(cvy_comparison *c)
{
    cvy_text_add(&c->html, "<section><h2>Runs</h2>\n<div class=\"wide\"><table class=\"runs\"><thead><tr><td></td>");
    for (int i = 0; i < c->nruns; i++) {
        cvy_html_add(&c->html, "<td><i class=\"key c%d\"></i>%s</td>", i, c->run[i].name);
    }
    cvy_text_add(&c->html, "</tr></thead><tbody>\n");
    CVY_TRY(key_rows(c));
    part(c, "scores");
    best_scores(c);
    last_scores(c);
    test_scores(c);
    part(c, "runs");
    run_rows(c);
    cvy_text_add(&c->html, "</tbody></table></div></section>\n");
    return c->html.status;
}
