/*
 * report_study_coverage.c: how many points of a figure or a table have results, and why others have none.
 *
 * A point is a case apart from its framework: a figure that has several frameworks shows it if one of them has been
 * measured there, failed there, or is a prediction for it. Points on GPUs are not counted: they are parts of their own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "report/report_study.h"

static int is_framework(const cvy_case *c, int axis)
{
    return strcmp(c->of->axis[axis].name, "framework") == 0;
}

static int is_on_host(const cvy_case *c)
{
    const char *device = cvy_case_value(c, "device");
    return !device || strcmp(device, "host") == 0;
}

static int is_same_point(const cvy_case *a, const cvy_case *b)
{
    int same = a->of == b->of;
    for (int i = 0; same && i < a->of->naxis; i++)
        same = is_framework(a, i) || strcmp(a->value[i], b->value[i]) == 0;
    return same;
}

/* Whether the row has the values of the case, with any_framework apart from the framework. */
static int has_values(const cvy_study_row *row, const cvy_case *c, int any_framework)
{
    int same = 1;
    for (int i = 0; same && i < c->of->naxis; i++)
        same = (any_framework && is_framework(c, i)) ||
               strcmp(cvy_study_value(row, c->of->axis[i].name), c->value[i]) == 0;
    return same;
}

static int is_failure(const cvy_study_row *row, const cvy_case *c)
{
    return row->n == 0 && row->failed && strcmp(row->first->experiment, c->of->name) == 0;
}

static int has_result(const cvy_study_page *p, const cvy_study_row *row, const cvy_case *c)
{
    return (is_failure(row, c) || cvy_study_shows(p, row, c->of->name)) && has_values(row, c, 1);
}

/* The cores of the machine of the page; 0: unknown. */
static double cores_of(const cvy_study_page *p)
{
    for (int i = 0; i < p->results.n; i++)
        if (strcmp(p->results.line[i].machine, p->machine) == 0)
            return cvy_tree_real_at(p->results.line[i].environment, "cores");
    return 0;
}

static int needs_more_cores(const cvy_case *c, double cores)
{
    const char *framework = cvy_case_value(c, "framework");
    const int is_simulated = framework && cvy_study_is_simulated(framework);
    return cores > 0 && !is_simulated && !c->of->oversubscribes &&
           (double)(cvy_case_ranks(c) * cvy_case_threads(c)) > cores;
}

/* Whether an item has the case in its figure or table. */
static int is_wanted(const cvy_study_page *p, const cvy_study_extent *e, const cvy_case *c)
{
    char panel[CVY_STUDY_PANEL];
    if (strcmp(c->of->name, e->experiment) != 0 || !is_on_host(c))
        return 0;
    if (e->only) {
        const size_t n = strcspn(e->only, "=");
        for (int i = 0; i < c->of->naxis; i++)
            if (strncmp(c->of->axis[i].name, e->only, n) == 0 && !c->of->axis[i].name[n])
                return e->only[n] && strcmp(c->value[i], e->only + n + 1) == 0;
        return 0;
    }
    if (!e->figure || !e->panel)
        return 1;
    cvy_study_panel_of_case(p, c, e->figure, panel, sizeof panel);
    return strstr(panel, e->panel) != NULL;
}

static int is_first(const cvy_study_page *p, const cvy_study_extent *e, const cvy_case *c, int at)
{
    for (int i = 0; i < at; i++)
        if (is_same_point(&c[i], &c[at]) && is_wanted(p, e, &c[i]))
            return 0;
    return 1;
}

static void count_point(const cvy_study_page *p, const cvy_case *c, cvy_study_coverage *out)
{
    out->points++;
    for (int i = 0; i < p->nrow; i++)
        if (has_result(p, &p->row[i], c)) {
            out->shown++;
            return;
        }
    out->few_cores += needs_more_cores(c, out->cores);
}

/* A framework that has no result in the item at all, such as one that is not installed. */
static int lacks_framework(const cvy_study_page *p, const cvy_study_extent *e, const cvy_case *c, int n,
                           const char *name)
{
    for (int i = 0; i < n; i++) {
        const char *of = cvy_case_value(&c[i], "framework");
        if (!of || strcmp(of, name) != 0 || !is_wanted(p, e, &c[i]))
            continue;
        for (int k = 0; k < p->nrow; k++)
            if (strcmp(cvy_study_value(&p->row[k], "framework"), name) == 0 && has_result(p, &p->row[k], &c[i]))
                return 0;
    }
    return 1;
}

cvy_status cvy_study_cover(const cvy_study_page *p, const cvy_study_extent *e, cvy_study_coverage *out)
{
    cvy_case *c = NULL;
    int n = 0;
    *out = (cvy_study_coverage){.cores = cores_of(p)};
    CVY_TRY(cvy_study_cases(&p->spec, &c, &n));
    for (int i = 0; i < n; i++) {
        const char *name = cvy_case_value(&c[i], "framework");
        if (!is_wanted(p, e, &c[i]))
            continue;
        if (is_first(p, e, c, i))
            count_point(p, &c[i], out);
        if (name && lacks_framework(p, e, c, n, name))
            cvy_study_know(out->without, &out->nwithout, CVY_COUNT(out->without), cvy_study_name(p, "framework", name));
    }
    return CVY_OK;
}

/* ---- one point that is missing ---- */

static int is_point_of(const cvy_study_page *p, const cvy_figure *f, const cvy_case *c, const char *panel,
                       const char *line, double x)
{
    const char *of_line = f->lines ? cvy_case_value(c, f->lines) : line, *of_x = cvy_case_value(c, f->x);
    char name[CVY_STUDY_PANEL];
    double value = 0;
    cvy_study_panel_of_case(p, c, f, name, sizeof name);
    return of_line && of_x && strcmp(c->of->name, f->of) == 0 && strcmp(of_line, line) == 0 &&
           strcmp(name, panel) == 0 && cvy_text_real(of_x, &value) == CVY_OK && value == x;
}

static int has_failed(const cvy_study_page *p, const cvy_case *c)
{
    for (int i = 0; i < p->nrow; i++)
        if (is_failure(&p->row[i], c) && has_values(&p->row[i], c, 0))
            return 1;
    return 0;
}

cvy_status cvy_study_gap(const cvy_study_page *p, const cvy_figure *f, const char *panel, const char *line, double x,
                         char *text, size_t room)
{
    const double cores = cores_of(p);
    cvy_case *c = NULL;
    int n = 0;
    text[0] = 0;
    CVY_TRY(cvy_study_cases(&p->spec, &c, &n));
    for (int i = 0; i < n && !text[0]; i++)
        if (!is_point_of(p, f, &c[i], panel, line, x))
            continue;
        else if (has_failed(p, &c[i]))
            snprintf(text, room, "failed");
        else if (needs_more_cores(&c[i], cores))
            snprintf(text, room, "needs %g cores", (double)(cvy_case_ranks(&c[i]) * cvy_case_threads(&c[i])));
        else
            snprintf(text, room, "not run");
    return CVY_OK;
}
