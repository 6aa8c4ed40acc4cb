/*
 * study_read_figures.c: reads the figures of a study file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/text/base_option.h"
#include "base/text/base_table.h"
#include "study/study_file.h"

typedef struct figure_fields {
    const char *title, *of, *x, *x_label, *y, *y_label, *lines;
    const cvy_tree *panels, *marks;
    int log_x, log_y, as;
} figure_fields;

#define ROW(field) offsetof(figure_fields, field)
static const cvy_option figure_rows[] = {
    {"title", CVY_TYPE_STRING, ROW(title), NULL, "", "", "above the charts"},
    {"of", CVY_TYPE_STRING, ROW(of), NULL, "", "", "the experiment"},
    {"x", CVY_TYPE_STRING, ROW(x), NULL, "", "", "the axis that is the horizontal axis, or a list of the results"},
    {"x_label", CVY_TYPE_STRING, ROW(x_label), "", "", "", "its name and unit; that of the axis if not given"},
    {"y", CVY_TYPE_STRING, ROW(y), "images_per_s", "", "", "the member of the results that is shown"},
    {"y_label", CVY_TYPE_STRING, ROW(y_label), "images/s", "", "", "its name and unit"},
    {"lines", CVY_TYPE_STRING, ROW(lines), "", "", "", "the axis whose values are lines of a chart"},
    {"panels", CVY_TYPE_TREE, ROW(panels), "", "", "", "axes: each combination of their values has a chart"},
    {"log_x", CVY_TYPE_BOOL, ROW(log_x), "false", "", "", "whether the horizontal axis is logarithmic"},
    {"as", CVY_TYPE_CHOICE, ROW(as), "value", "value|speedup|efficiency", "",
     "speedup: relative to the smallest x; efficiency: that, divided by the ratio of x"},
    {"log_y", CVY_TYPE_BOOL, ROW(log_y), "false", "", "", "whether the vertical axis is logarithmic"},
    {"marks", CVY_TYPE_TREE, ROW(marks), "", "", "", "a list of published figures that are drawn, too"},
    {0},
};
#undef ROW

typedef struct mark_fields {
    const char *metric, *network, *panel;
    double x;
} mark_fields;

#define ROW(field) offsetof(mark_fields, field)
static const cvy_option mark_rows[] = {
    {"metric", CVY_TYPE_STRING, ROW(metric), NULL, "", "", "as in published.csv"},
    {"network", CVY_TYPE_STRING, ROW(network), "", "", "", "as in published.csv; any if not given"},
    {"panel", CVY_TYPE_STRING, ROW(panel), "", "", "",
     "a text in the names of the charts that have it; all if not given"},
    {"x", CVY_TYPE_REAL, ROW(x), NULL, "", "", "where it is drawn"},
    {0},
};
#undef ROW

const cvy_experiment *cvy_study_experiment(const cvy_study_spec *spec, const char *name)
{
    for (int i = 0; i < spec->nexperiment; i++)
        if (strcmp(spec->experiment[i].name, name) == 0)
            return &spec->experiment[i];
    return NULL;
}

static cvy_status check_axis(const cvy_experiment *e, const char *name, const cvy_tree *at)
{
    const char *names[CVY_AXES_MAX];
    for (int i = 0; i < e->naxis; i++) {
        names[i] = e->axis[i].name;
        if (strcmp(names[i], name) == 0)
            return CVY_OK;
    }
    CVY_FAIL(CVY_E_CONFIG, "%s: experiment %s has no axis '%s'%s", cvy_tree_where(at), e->name, name,
             cvy_hint_name('\'', name, names, e->naxis).text);
}

const char *cvy_figure_curve(const cvy_figure *f)
{
    static const char *const curve[] = {"curve", "step_curve"};
    for (int i = 0; i < CVY_COUNT(curve); i++)
        if (strncmp(f->x, curve[i], strlen(curve[i])) == 0 && f->x[strlen(curve[i])] == '.')
            return curve[i];
    return NULL;
}

static cvy_status read_marks(const cvy_study_spec *spec, const cvy_tree *list, cvy_figure *out)
{
    CVY_CHECK(!list || list->kind == CVY_TREE_LIST, CVY_E_CONFIG, "%s: marks is a list of maps with metric and x",
              cvy_tree_where(list));
    for (int i = 0; list && i < list->count; i++) {
        mark_fields f;
        CVY_CHECK(i < CVY_MARKS_MAX, CVY_E_CONFIG, "%s: more than %d marks", cvy_tree_where(list), CVY_MARKS_MAX);
        CVY_CHECK(list->child[i]->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: a mark is a map with metric and x",
                  cvy_tree_where(list->child[i]));
        CVY_TRY(cvy_options_parse(spec->pool, "mark", mark_rows, list->child[i], NULL, &f, sizeof f));
        out->mark[out->nmark++] = (cvy_figure_mark){f.metric, f.network, f.panel, f.x};
    }
    return CVY_OK;
}

static cvy_status read_figure(const cvy_study_spec *spec, const cvy_tree *map, cvy_figure *out)
{
    figure_fields f;
    CVY_TRY(cvy_options_parse(spec->pool, "figure", figure_rows, map, NULL, &f, sizeof f));
    CVY_CHECK(f.title && f.of && f.x, CVY_E_CONFIG, "%s: the %s of a figure is empty", cvy_tree_where(map),
              !f.title ? "title"
              : !f.of  ? "experiment (of)"
                       : "axis x");
    const cvy_experiment *e = cvy_study_experiment(spec, f.of);
    CVY_CHECK(e, CVY_E_CONFIG, "%s: there is no experiment '%s'", cvy_tree_where(map), f.of);
    *out = (cvy_figure){.title = f.title,
                        .of = f.of,
                        .x = f.x,
                        .x_label = f.x_label ? f.x_label : f.x,
                        .y = f.y,
                        .y_label = f.y_label,
                        .lines = f.lines,
                        .log_x = f.log_x,
                        .log_y = f.log_y,
                        .as = (int)f.as};
    if (!cvy_figure_curve(out))
        CVY_TRY(check_axis(e, f.x, map));
    if (f.lines)
        CVY_TRY(check_axis(e, f.lines, map));
    const int is_list = f.panels && f.panels->kind == CVY_TREE_LIST;
    for (int i = 0; f.panels && i < (is_list ? f.panels->count : 1); i++) {
        const cvy_tree *panel = is_list ? f.panels->child[i] : f.panels;
        CVY_CHECK(panel->kind == CVY_TREE_SCALAR && panel->text && out->npanels < CVY_AXES_MAX, CVY_E_CONFIG,
                  "%s: panels is a list of axes", cvy_tree_where(panel));
        CVY_TRY(check_axis(e, panel->text, panel));
        out->panels[out->npanels++] = panel->text;
    }
    return read_marks(spec, f.marks, out);
}

cvy_status cvy_study_read_figures(cvy_study_spec *spec, const cvy_tree *list)
{
    CVY_CHECK(!list || list->kind == CVY_TREE_LIST, CVY_E_CONFIG, "%s: figures is a list", cvy_tree_where(list));
    for (int i = 0; list && i < list->count; i++) {
        CVY_CHECK(i < CVY_FIGURES_MAX, CVY_E_CONFIG, "%s: more than %d figures", cvy_tree_where(list), CVY_FIGURES_MAX);
        CVY_CHECK(list->child[i]->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: a figure is a map with title, of and x",
                  cvy_tree_where(list->child[i]));
        CVY_TRY(read_figure(spec, list->child[i], &spec->figure[i]));
        spec->nfigure++;
    }
    return CVY_OK;
}
