/*
 * report_publication.c: cvy_report_publication(): a page in Markdown that goes through a publication and puts what the
 * studies have measured and predicted beside it.
 *
 * A part of the publication has a counterpart in full, in part, or none. That follows from the results that are there
 * and from what the file says is lacking, so a page never claims a figure that nobody has made.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/text/base_text.h"
#include "report/report_markdown.h"
#include "report/report_page.h"
#include "report/report_publication.h"

enum state { IN_FULL, IN_PART, IS_MISSING };
static const char *const state_text[] = {"in full", "in part", "missing"};

struct writer {
    cvy_pool *pool;
    const char *folder;
    cvy_publication of;
    cvy_published_list published;
    cvy_study_page *study; /* [of.nstudy] */
    int is_there[CVY_PUBLICATION_STUDIES_MAX];
    cvy_text md;
};

/* ---- what there is ---- */

static cvy_study_page *find_study(struct writer *w, const char *name)
{
    for (int i = 0; i < w->of.nstudy; i++)
        if (strcmp(w->of.study[i], name) == 0)
            return w->is_there[i] ? &w->study[i] : NULL;
    return NULL;
}

static cvy_status open_studies(struct writer *w)
{
    CVY_TRY(cvy_pool_alloc(w->pool, sizeof *w->study * ((size_t)w->of.nstudy + 1), &w->study));
    for (int i = 0; i < w->of.nstudy; i++) {
        char *folder = NULL, *file = NULL;
        CVY_TRY(cvy_pool_printf(w->pool, &folder, "%s/%s", w->folder, w->of.study[i]));
        CVY_TRY(cvy_pool_printf(w->pool, &file, "%s/study.yaml", folder));
        w->study[i] = (cvy_study_page){.pool = w->pool, .folder = folder};
        w->is_there[i] = cvy_file_exists(file);
        if (w->is_there[i])
            CVY_TRY(cvy_study_page_read(&w->study[i]));
    }
    return CVY_OK;
}

/* Whether the row is in the table of an item. */
static int is_in_table(const cvy_study_page *p, const cvy_study_row *row, const cvy_part_item *item)
{
    char axis[128];
    if (!cvy_study_shows(p, row, item->experiment))
        return 0;
    if (!item->only)
        return 1;
    const size_t n = strcspn(item->only, "=");
    snprintf(axis, sizeof axis, "%.*s", (int)n, item->only);
    return item->only[n] && strcmp(cvy_study_value(row, axis), item->only + n + 1) == 0;
}

/* The charts or rows of an item that have results. A study that has no such figure or experiment is a mistake in the
 * file of the publication, or an older study. */
static cvy_status count_item(struct writer *w, const cvy_part_item *item, int *out)
{
    cvy_study_page *p = find_study(w, item->study);
    const char *const *panel = NULL;
    int n = 0;
    *out = 0;
    if (!p)
        return CVY_OK;
    if (item->experiment) {
        CVY_CHECK(cvy_study_experiment(&p->spec, item->experiment), CVY_E_CONFIG,
                  "%s: the study in %s has no experiment '%s'", w->of.file, p->folder, item->experiment);
        for (int i = 0; i < p->nrow; i++)
            *out += is_in_table(p, &p->row[i], item);
        return CVY_OK;
    }
    const cvy_figure *f = cvy_publication_find_figure(p, item->figure);
    CVY_CHECK(f, CVY_E_CONFIG, "%s: the study in %s has no figure '%s'", w->of.file, p->folder, item->figure);
    CVY_TRY(cvy_study_panels(p, f, &panel, &n));
    for (int i = 0; i < n; i++)
        *out += !item->panel || strstr(panel[i], item->panel) != NULL;
    return CVY_OK;
}

/* Whether a figure of the page has published points. */
static int has_marks(struct writer *w)
{
    for (int i = 0; i < w->of.npart; i++)
        for (int k = 0; k < w->of.part[i].nitem; k++) {
            const cvy_part_item *item = &w->of.part[i].item[k];
            const cvy_study_page *p = item->figure ? find_study(w, item->study) : NULL;
            const cvy_figure *f = p ? cvy_publication_find_figure(p, item->figure) : NULL;
            int drawn = 0;
            if (f && f->nmark > 0 && count_item(w, item, &drawn) == CVY_OK && drawn > 0)
                return 1;
        }
    return 0;
}

/* The experiment of an item of a study that is there. */
static const char *experiment_of(const cvy_study_page *p, const cvy_part_item *item)
{
    return item->experiment ? item->experiment : cvy_publication_find_figure(p, item->figure)->of;
}

struct verdict {
    enum state state;
    int lacking, quick;        /* items that have no results; that have those of a quick look */
    cvy_study_coverage covers; /* of the other items together */
    int stands_in;             /* whether predictions stand for what needs more cores than there are */
};

static void add_coverage(cvy_study_coverage *sum, const cvy_study_coverage *c)
{
    sum->points += c->points;
    sum->shown += c->shown;
    sum->few_cores += c->few_cores;
    sum->cores = c->cores;
    for (int i = 0; i < c->nwithout; i++)
        cvy_study_know(sum->without, &sum->nwithout, CVY_COUNT(sum->without), c->without[i]);
}

static cvy_status judge_item(struct writer *w, const cvy_part_item *item, struct verdict *v)
{
    const cvy_study_page *p = find_study(w, item->study);
    cvy_study_coverage covers;
    int n = 0;
    CVY_TRY(count_item(w, item, &n));
    if (n == 0) {
        v->lacking++;
        return CVY_OK;
    }
    const cvy_study_extent extent = {.experiment = experiment_of(p, item),
                                     .figure = item->figure ? cvy_publication_find_figure(p, item->figure) : NULL,
                                     .panel = item->panel,
                                     .only = item->only};
    v->quick += cvy_study_has_quick(p, extent.experiment);
    CVY_TRY(cvy_study_cover(p, &extent, &covers));
    add_coverage(&v->covers, &covers);
    v->stands_in |= item->stands_in && covers.shown == covers.points;
    return CVY_OK;
}

static cvy_status judge(struct writer *w, const cvy_part *part, struct verdict *out)
{
    *out = (struct verdict){.state = IS_MISSING};
    for (int i = 0; i < part->nitem; i++)
        CVY_TRY(judge_item(w, &part->item[i], out));
    const cvy_study_coverage *c = &out->covers;
    const int is_told = part->nitem == 0 && part->text && part->plots == 0;
    const int shown = c->shown + (out->stands_in ? c->few_cores : 0);
    const int is_short = out->lacking > 0 || out->quick > 0 || shown < c->points || c->nwithout > 0;
    if (out->lacking < part->nitem || is_told)
        out->state = is_short || part->lacks || part->needs ? IN_PART : IN_FULL;
    return CVY_OK;
}

/* ---- tables ---- */

static void add_axis_names(cvy_text *md, const cvy_experiment *e)
{
    cvy_text_add(md, "\n|");
    for (int a = 0; a < e->naxis; a++)
        cvy_md_cell(md, e->axis[a].name);
    cvy_md_cell(md, e->show_label);
    cvy_text_add(md, " range |");
    cvy_md_end_head(md, e->naxis + 2);
}

static void add_table(struct writer *w, const cvy_study_page *p, const cvy_part_item *item)
{
    const cvy_experiment *e = cvy_study_experiment(&p->spec, item->experiment);
    cvy_text *md = &w->md;
    add_axis_names(md, e);
    for (int i = 0; i < p->nrow; i++) {
        const cvy_study_row *row = &p->row[i];
        if (!is_in_table(p, row, item))
            continue;
        const cvy_spread s = cvy_study_spread(row, e->show);
        cvy_text_add(md, "|");
        for (int a = 0; a < e->naxis; a++)
            cvy_md_cell(md, cvy_study_name(p, e->axis[a].name, cvy_study_value(row, e->axis[a].name)));
        cvy_md_number(md, s.n > 0 ? s.median : NAN);
        if (s.n > 1)
            cvy_text_add(md, " %s to %s |\n", cvy_number_text(s.low, 3).at, cvy_number_text(s.high, 3).at);
        else
            cvy_text_add(md, " %s |\n",
                         s.n == 0 && e->target      ? "the target was not reached"
                         : row->first->is_predicted ? "predicted"
                                                    : "measured once");
    }
}

/* ---- parts ---- */

static void add_published(struct writer *w, const cvy_part *part)
{
    int n = 0;
    for (int i = 0; i < w->published.n; i++) {
        const cvy_published *row = &w->published.row[i];
        if (!part->metrics || !cvy_text_lists(part->metrics, ";", row->metric))
            continue;
        cvy_text_add(&w->md, n++ ? "; " : "\n**Published:** ");
        cvy_md_text(&w->md, row->network);
        cvy_text_add(&w->md, ", ");
        cvy_md_text(&w->md, row->metric);
        cvy_text_add(&w->md, *row->setting ? ", " : "");
        cvy_md_text(&w->md, row->setting);
        cvy_text_add(&w->md, ": ");
        cvy_md_text(&w->md, row->value_text);
        cvy_text_add(&w->md, " ");
        cvy_md_text(&w->md, row->unit);
        cvy_text_add(&w->md, " (");
        cvy_md_text(&w->md, row->framework);
        cvy_text_add(&w->md, ", ");
        cvy_md_text(&w->md, row->system);
        cvy_text_add(&w->md, ")");
    }
    cvy_text_add(&w->md, n ? ".\n" : "");
}

static cvy_status add_item(struct writer *w, const cvy_part_item *item)
{
    cvy_study_page *p = find_study(w, item->study);
    const char *origin = NULL;
    int n = 0;
    CVY_TRY(count_item(w, item, &n));
    if (n == 0) {
        cvy_text_add(&w->md, "\nNot measured here yet: `convoy study %s` makes \"%s\".\n", item->study,
                     item->figure ? item->figure : item->experiment);
        return CVY_OK;
    }
    if (item->experiment)
        add_table(w, p, item);
    else
        CVY_TRY(cvy_publication_figure(&w->md, p, item));
    CVY_TRY(cvy_study_origin(p, experiment_of(p, item), &origin));
    cvy_text_add(&w->md, "\n*From [`convoy study %s`](%s/report.html)", item->study, item->study);
    cvy_text_add(&w->md, *origin ? ". " : ".");
    cvy_text_add_bytes(&w->md, origin, strlen(origin) - (*origin ? 1 : 0));
    cvy_text_add(&w->md, "*\n");
    return CVY_OK;
}

/* Which points are missing, and why. */
static void say_coverage(cvy_text *md, const struct verdict *v)
{
    const cvy_study_coverage *c = &v->covers;
    const int left_out = c->points - c->shown - c->few_cores;
    if (c->shown < c->points)
        cvy_text_add(md, " %d of its %d points have results.", c->shown, c->points);
    if (c->few_cores > 0)
        cvy_text_add(md, " %d need more than the %g cores of this machine%s.", c->few_cores, c->cores,
                     v->stands_in ? "; a figure beside it has predictions of a larger node" : "");
    if (left_out > 0)
        cvy_text_add(md, " %d were not run.", left_out);
    for (int i = 0; i < c->nwithout; i++) {
        cvy_text_add(md, "%s", i ? ", " : " It has no results of ");
        cvy_md_text(md, c->without[i]);
    }
    cvy_text_add(md, c->nwithout ? "." : "");
}

static cvy_status add_part(struct writer *w, const cvy_part *part)
{
    cvy_text *md = &w->md;
    struct verdict v;
    CVY_TRY(judge(w, part, &v));
    cvy_text_add(md, "\n## %s\n\n**Shown:** %s\n", part->title, part->shows);
    add_published(w, part);
    cvy_text_add(md, "\n**Here:** %s.", state_text[v.state]);
    if (part->lacks)
        cvy_text_add(md, " It lacks this: %s.", part->lacks);
    if (part->needs)
        cvy_text_add(md, " It needs %s.", part->needs);
    if (v.lacking > 0)
        cvy_text_add(md, " %d of its %d figures and tables have no results yet.", v.lacking, part->nitem);
    if (v.quick > 0)
        cvy_text_add(md, " A quick look has left out cases of %d of its %d figures and tables.", v.quick, part->nitem);
    say_coverage(md, &v);
    cvy_text_add(md, "\n");
    if (part->text)
        cvy_text_add(md, "\n%s\n", part->text);
    for (int i = 0; i < part->nitem; i++)
        CVY_TRY(add_item(w, &part->item[i]));
    return CVY_OK;
}

/* ---- the page ---- */

static cvy_status add_contents(struct writer *w)
{
    int plots[3] = {0};
    cvy_text_add(&w->md, "\n| shown | plots | here |\n|---|---|---|\n");
    for (int i = 0; i < w->of.npart; i++) {
        const cvy_part *part = &w->of.part[i];
        struct verdict v;
        CVY_TRY(judge(w, part, &v));
        plots[v.state] += part->plots;
        cvy_text_add(&w->md, "| [%s](#", part->title);
        cvy_md_anchor(&w->md, part->title);
        if (part->plots > 0)
            cvy_text_add(&w->md, ") | %d | %s%s%s |\n", part->plots, state_text[v.state],
                         v.state == IS_MISSING && part->needs ? ": it needs " : "",
                         v.state == IS_MISSING && part->needs ? part->needs : "");
        else
            cvy_text_add(&w->md, ") | | %s |\n", state_text[v.state]);
    }
    const int all = plots[IN_FULL] + plots[IN_PART] + plots[IS_MISSING];
    if (all > 0)
        cvy_text_add(
            &w->md,
            "\nOf %d plots, %d have a counterpart in full, %d in part, %d none. In full: each point of the "
            "counterpart was measured or predicted, has failed, or has a prediction of a larger machine in its "
            "place. Networks, data, programs and machines may differ from those of the publication; the text of "
            "a part says so.\n",
            all, plots[IN_FULL], plots[IN_PART], plots[IS_MISSING]);
    return CVY_OK;
}

/* What the studies say about their figures. */
static void add_meanings(struct writer *w)
{
    int n = 0;
    for (int i = 0; i < w->of.nstudy; i++) {
        const char *meaning = w->is_there[i] ? w->study[i].spec.meaning : NULL;
        if (!meaning || !*meaning)
            continue;
        cvy_text_add(&w->md, "%s\n- `%s`: ", n++ ? "" : "\n## How to read the figures\n", w->of.study[i]);
        cvy_md_text(&w->md, meaning);
    }
    cvy_text_add(&w->md, n ? "\n" : "");
}

/* Where the results are from: each machine with each version of a framework once. */
static cvy_status add_machines(struct writer *w)
{
    cvy_text_add(&w->md, "\n## Where it was measured\n\n| study | machines, versions, commits |\n|---|---|\n");
    for (int i = 0; i < w->of.nstudy; i++) {
        cvy_study_page *p = &w->study[i];
        const char *origin = NULL;
        cvy_text_add(&w->md, "| `%s` | ", w->of.study[i]);
        if (!w->is_there[i] || p->results.n == 0) {
            cvy_text_add(&w->md, "not run |\n");
            continue;
        }
        CVY_TRY(cvy_study_sources(p, &w->md, "<br>"));
        CVY_TRY(cvy_study_origin(p, NULL, &origin));
        cvy_text_add(&w->md, "%s%s |\n", *origin ? "<br>" : "", origin);
    }
    return CVY_OK;
}

static cvy_status write_page(struct writer *w)
{
    cvy_text *md = &w->md;
    cvy_text_add(md, "# %s\n\n*%s*\n", w->of.title, w->of.source);
    if (w->of.summary)
        cvy_text_add(md, "\n%s\n", w->of.summary);
    cvy_text_add(md,
                 "\n`convoy study %s` makes the measurements that are missing and writes this page again. Solid lines "
                 "are measured, dashed ones predicted by a simulation or with kernels that wait%s.\n",
                 w->of.file, has_marks(w) ? "; grey points are published" : "");
    CVY_TRY(add_contents(w));
    for (int i = 0; i < w->of.npart; i++)
        CVY_TRY(add_part(w, &w->of.part[i]));
    add_meanings(w);
    CVY_TRY(add_machines(w));
    return md->status;
}

static cvy_status report(struct writer *w, const char *name, const char *text, const char *published)
{
    char *path = NULL;
    CVY_TRY(cvy_publication_read(w->pool, name, text, &w->of));
    if (published && w->of.published)
        CVY_TRY(cvy_published_read(w->pool, published, w->of.published, &w->published));
    CVY_TRY(open_studies(w));
    CVY_TRY(write_page(w));
    CVY_TRY(cvy_file_make_folder(w->folder));
    CVY_TRY(cvy_pool_printf(w->pool, &path, "%s/%s.md", w->folder, w->of.page));
    return cvy_file_replace(path, w->md.data, w->md.bytes);
}

cvy_status cvy_report_publication(const char *name, const char *text, const char *published, const char *folder)
{
    CVY_ENTRY();
    struct writer w = {.folder = folder};
    CVY_CHECK(name && text && folder, CVY_E_ARGUMENT, "a page of a publication needs its name, its text and a folder");
    CVY_TRY(cvy_pool_create(&w.pool));
    const cvy_status status = report(&w, name, text, published);
    cvy_text_free(&w.md);
    cvy_pool_destroy(&w.pool);
    return status;
}
