/*
 * report_study_origin.c: where the results of a study are from: the machines, the versions and the commits, and whether
 * they are those of a quick look.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "report/report_page.h"
#include "report/report_study.h"

enum { COMMITS_MAX = 8, SOURCES_MAX = 32 };

cvy_status cvy_study_sources(cvy_study_page *p, cvy_text *out, const char *between)
{
    const char *seen[SOURCES_MAX];
    int n = 0;
    for (int i = 0; i < p->results.n; i++) {
        const cvy_study_result_line *line = &p->results.line[i];
        char *text = NULL;
        const char *cpu = cvy_tree_text_at(line->environment, "cpu"),
                   *host = cvy_tree_text_at(line->environment, "host"),
                   *system = cvy_tree_text_at(line->environment, "system");
        CVY_TRY(cvy_pool_printf(
            p->pool, &text, "%s: %s, %g cores, %s; %s%s", host ? host : "?", cpu ? cpu : "?",
            cvy_tree_real_at(line->environment, "cores"), system ? system : "?",
            line->framework ? line->framework : "?",
            line->is_predicted || strcmp(line->machine, p->machine) == 0 ? "" : " (another machine: not shown above)"));
        if (cvy_study_know(seen, &n, SOURCES_MAX, text)) {
            cvy_text_add(out, "%s", n > 1 ? between : "");
            cvy_html_escape(out, text);
        }
    }
    return CVY_OK;
}

cvy_status cvy_study_environment(cvy_study_page *p)
{
    cvy_text_add(&p->html, "<section><h2>Where it was measured</h2>\n<ul><li>");
    CVY_TRY(cvy_study_sources(p, &p->html, "</li>\n<li>"));
    cvy_text_add(&p->html, "</li></ul></section>\n");
    return CVY_OK;
}

int cvy_study_has_quick(const cvy_study_page *p, const char *experiment)
{
    for (int i = 0; i < p->nrow; i++)
        if (cvy_study_shows(p, &p->row[i], experiment) && p->row[i].line[p->row[i].n - 1]->is_quick)
            return 1;
    return 0;
}

static void add_commits(cvy_text *text, const char *const *commit, int n)
{
    if (n == 0)
        return;
    cvy_text_add(text, n > 1 ? "The results are of several commits, which may differ in speed: " : "Commit ");
    for (int i = 0; i < n; i++)
        cvy_text_add(text, "%s%s", i ? ", " : "", commit[i]);
    cvy_text_add(text, ". ");
}

cvy_status cvy_study_origin(cvy_study_page *p, const char *experiment, const char **out)
{
    const char *commit[COMMITS_MAX];
    char *copy = NULL;
    cvy_text text = {0};
    int ncommit = 0, rows = 0, quick = 0, once = 0;
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        if (!cvy_study_shows(p, row, experiment ? experiment : row->first->experiment))
            continue;
        rows++;
        quick += row->line[row->n - 1]->is_quick;
        once += row->n == 1 && !row->first->is_predicted;
        for (int k = 0; k < row->n; k++) {
            const char *of = cvy_tree_text_at(row->line[k]->environment, "commit");
            if (of)
                cvy_study_know(commit, &ncommit, COMMITS_MAX, of);
        }
    }
    if (quick > 0)
        cvy_text_add(&text, "%s made with --quick: few cases and repeats. ",
                     quick == rows ? "All of it was" : "A part was");
    if (once > 0)
        cvy_text_add(&text, "%s measured once, so small differences mean nothing. ",
                     once == rows ? "Each case was" : "Some cases were");
    if (!experiment || ncommit > 1)
        add_commits(&text, commit, ncommit);
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(p->pool, text.data ? text.data : "", &copy);
    cvy_text_free(&text);
    *out = copy;
    return status;
}
