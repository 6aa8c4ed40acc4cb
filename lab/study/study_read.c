/*
 * study_read.c: reads a study file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/text/base_option.h"
#include "base/text/base_table.h"
#include "data/data_reader.h"
#include "study/study_file.h"

/* ---- experiments ---- */

/* Axes that convoy and adapters understand. */
static const char *const known_axes[] = {"framework", "model",          "job",    "data",    "augment",
                                         "batch",     "batch_per_rank", "mode",   "dtype",   "threads",
                                         "ranks",     "ranks_per_node", "device", "options", "wrap"};

typedef struct settings { /* members of an experiment that are not axes */
    int64_t repeats, seconds;
    double limit, once;
    int oversubscribe;
    const char *show, *show_label, *target;
    const cvy_tree *quick;
} settings;

#define ROW(field) offsetof(settings, field)
static const cvy_option setting_rows[] = {
    {"repeats", CVY_TYPE_INT, ROW(repeats), "3", "1..100", "", "how often each case is measured"},
    {"seconds", CVY_TYPE_INT, ROW(seconds), "5", "1..", "s", "of timed steps in a measurement"},
    {"limit", CVY_TYPE_REAL, ROW(limit), "900", ">0", "s", "after which a measurement is ended"},
    {"once", CVY_TYPE_REAL, ROW(once), "600", ">0", "s", "a case whose first measurement takes longer is not repeated"},
    {"oversubscribe", CVY_TYPE_BOOL, ROW(oversubscribe), "false", "", "",
     "whether cases are measured whose ranks times threads are more than the cores"},
    {"show", CVY_TYPE_STRING, ROW(show), "images_per_s", "", "", "the number of the results that the table has"},
    {"show_label", CVY_TYPE_STRING, ROW(show_label), "images/s", "", "", "its name and unit"},
    {"target", CVY_TYPE_STRING, ROW(target), "", "", "",
     "when a curve gets there, as target_seconds and target_epoch of the results: 'val_accuracy >= 0.7'"},
    {"quick", CVY_TYPE_TREE, ROW(quick), "", "", "", "members of this map replace others with --quick"},
    {0},
};
#undef ROW

static int is_setting(const char *key)
{
    int found = 0;
    for (const cvy_option *row = setting_rows; row->name; row++)
        found |= strcmp(row->name, key) == 0;
    return found;
}

static int is_axis(const char *key)
{
    int found = strchr(key, '.') != NULL;
    for (int i = 0; i < CVY_COUNT(known_axes); i++)
        found |= strcmp(known_axes[i], key) == 0;
    return found;
}

cvy_status cvy_study_read_words(cvy_pool *pool, const char *where, const char *name, const cvy_tree *list,
                                const char ***out)
{
    const char **word = NULL;
    CVY_CHECK(!list || (list->kind == CVY_TREE_LIST && list->count < CVY_STUDY_WORDS), CVY_E_CONFIG,
              "%s: %s is a list of up to %d words", where, name, CVY_STUDY_WORDS - 1);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *word * (list ? (size_t)list->count + 1 : 1), &word));
    for (int i = 0; list && i < list->count; i++) {
        CVY_CHECK(list->child[i]->kind == CVY_TREE_SCALAR && list->child[i]->text, CVY_E_CONFIG,
                  "%s: %s is a list of words", cvy_tree_where(list->child[i]), name);
        word[i] = list->child[i]->text;
    }
    *out = word;
    return CVY_OK;
}

static cvy_status read_value(cvy_pool *pool, const cvy_tree *node, const char **out)
{
    char *text = NULL, *line = NULL;
    if (node->kind == CVY_TREE_SCALAR && node->text)
        return cvy_pool_strdup(pool, node->text, (char **)(uintptr_t)out);
    CVY_TRY(cvy_tree_print_line(node, &line));
    const cvy_status status = cvy_pool_strdup(pool, line, &text);
    cvy_mem_free(&line);
    *out = text;
    return status;
}

static cvy_status read_axis(cvy_pool *pool, const cvy_tree *node, cvy_study_axis *axis)
{
    const int is_list = node->kind == CVY_TREE_LIST;
    axis->nvalue = is_list ? node->count : 1;
    CVY_CHECK(axis->nvalue > 0, CVY_E_CONFIG, "%s: %s has no values", cvy_tree_where(node), axis->name);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *axis->value * (size_t)axis->nvalue, &axis->value));
    for (int i = 0; i < axis->nvalue; i++) {
        CVY_TRY(read_value(pool, is_list ? node->child[i] : node, &axis->value[i]));
        for (int k = 0; k < i; k++)
            CVY_CHECK(strcmp(axis->value[k], axis->value[i]) != 0, CVY_E_CONFIG, "%s: %s has the value %s twice",
                      cvy_tree_where(is_list ? node->child[i] : node), axis->name, axis->value[i]);
    }
    return CVY_OK;
}

/* A copy of the map with the members of `quick` in place of its own. */
static cvy_status apply_quick(cvy_pool *pool, const cvy_tree *map, cvy_tree **out)
{
    const cvy_tree *quick = cvy_tree_get(map, "quick");
    CVY_TRY(cvy_tree_copy(pool, map, out));
    CVY_CHECK(!quick || quick->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: quick is a map, such as {batch: [16, 32]}",
              cvy_tree_where(quick));
    for (int i = 0; quick && i < quick->count; i++) {
        int at = 0;
        while (at < (*out)->count && strcmp((*out)->key[at], quick->key[i]) != 0)
            at++;
        CVY_CHECK(at < (*out)->count || is_setting(quick->key[i]), CVY_E_CONFIG,
                  "%s: quick.%s replaces nothing: the experiment has no %s", cvy_tree_where(quick->key_at[i]),
                  quick->key[i], quick->key[i]);
        if (at < (*out)->count)
            (*out)->child[at] = quick->child[i];
        else
            CVY_TRY(cvy_tree_set(pool, *out, quick->key[i], quick->child[i]));
    }
    return CVY_OK;
}

/* An experiment that names no framework is one of convoy. */
static cvy_status add_framework(cvy_pool *pool, cvy_experiment *e)
{
    cvy_study_axis *axis = &e->axis[e->naxis];
    for (int a = 0; a < e->naxis; a++)
        if (strcmp(e->axis[a].name, "framework") == 0)
            return CVY_OK;
    CVY_CHECK(e->naxis < CVY_AXES_MAX, CVY_E_CONFIG, "experiment %s has more than %d axes", e->name, CVY_AXES_MAX - 1);
    *axis = (cvy_study_axis){.name = "framework", .nvalue = 1};
    CVY_TRY(cvy_pool_alloc(pool, sizeof *axis->value, &axis->value));
    axis->value[0] = "convoy";
    e->naxis++;
    return CVY_OK;
}

static cvy_status read_experiment(cvy_pool *pool, const cvy_tree *map, int quick, cvy_experiment *e)
{
    const char *extra[CVY_AXES_MAX + 1] = {0};
    cvy_tree *all = NULL, *smaller = NULL;
    settings s;
    CVY_CHECK(map->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: experiment %s is a map of axes, such as {batch: [16, 32]}",
              cvy_tree_where(map), e->name);
    CVY_TRY(cvy_tree_copy(pool, map, &all));
    CVY_TRY(apply_quick(pool, map, &smaller)); /* mistakes in it are found without --quick, too */
    all = quick ? smaller : all;
    for (int i = 0; i < all->count; i++) {
        if (is_setting(all->key[i]))
            continue;
        CVY_CHECK(is_axis(all->key[i]), CVY_E_CONFIG,
                  "%s: there is no axis '%s'%s; a key of the job has a dot, as in train.accumulate",
                  cvy_tree_where(all->key_at[i]), all->key[i],
                  cvy_hint_name('\'', all->key[i], known_axes, CVY_COUNT(known_axes)).text);
        CVY_CHECK(e->naxis < CVY_AXES_MAX, CVY_E_CONFIG, "%s: experiment %s has more than %d axes", cvy_tree_where(all),
                  e->name, CVY_AXES_MAX);
        e->axis[e->naxis].name = extra[e->naxis] = all->key[i];
        CVY_TRY(read_axis(pool, all->child[i], &e->axis[e->naxis]));
        e->naxis++;
    }
    CVY_TRY(cvy_options_parse(pool, e->name, setting_rows, all, extra, &s, sizeof s));
    CVY_TRY(add_framework(pool, e));
    e->repeats = s.repeats;
    e->seconds = s.seconds;
    e->limit_s = s.limit;
    e->once_s = s.once;
    e->oversubscribes = s.oversubscribe;
    e->show = s.show;
    e->show_label = s.show_label;
    e->target = s.target;
    return CVY_OK;
}

static cvy_status read_experiments(cvy_study_spec *spec, const cvy_tree *map, int quick)
{
    CVY_CHECK(map && map->kind == CVY_TREE_MAP && map->count > 0, CVY_E_CONFIG,
              "%s: experiments is a map of names and experiments", map ? cvy_tree_where(map) : spec->file);
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *spec->experiment * (size_t)map->count, &spec->experiment));
    for (int i = 0; i < map->count; i++) {
        spec->experiment[i].name = map->key[i];
        CVY_TRY(read_experiment(spec->pool, map->child[i], quick, &spec->experiment[i]));
    }
    spec->nexperiment = map->count;
    return CVY_OK;
}

/* ---- the file ---- */

typedef struct fields {
    const char *title, *question, *source, *meaning, *published;
    const cvy_tree *experiments, *figures, *jobs, *prepare, *names;
} fields;

#define ROW(field) offsetof(fields, field)
static const cvy_option rows[] = {
    {"title", CVY_TYPE_STRING, ROW(title), NULL, "", "", "of the report"},
    {"question", CVY_TYPE_STRING, ROW(question), "", "", "", "what the study asks"},
    {"source", CVY_TYPE_STRING, ROW(source), "", "", "", "the publication whose tables it repeats"},
    {"meaning", CVY_TYPE_STRING, ROW(meaning), "", "", "", "what the numbers mean; below the figures"},
    {"published", CVY_TYPE_STRING, ROW(published), "", "", "", "name of a study in published.csv, shown beside"},
    {"experiments", CVY_TYPE_TREE, ROW(experiments), NULL, "", "", "a map of names and experiments"},
    {"figures", CVY_TYPE_TREE, ROW(figures), "", "", "", "a list of figures"},
    {"names", CVY_TYPE_TREE, ROW(names), "", "", "",
     "a map of axes, each with a map of its values and of what they are called on the page"},
    {"jobs", CVY_TYPE_TREE, ROW(jobs), "", "", "", "a map of names and jobs, which the axis job names"},
    {"prepare", CVY_TYPE_TREE, ROW(prepare), "", "", "",
     "a map of files and folders of the study's folder and of the commands that make them, each a list of words"},
    {0},
};

static cvy_status read_targets(cvy_study_spec *spec, const cvy_tree *map)
{
    CVY_CHECK(!map || map->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: prepare is a map of files and commands",
              cvy_tree_where(map));
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *spec->target * (map ? (size_t)map->count + 1 : 1), &spec->target));
    for (int i = 0; map && i < map->count; i++) {
        const char *name = map->key[i];
        CVY_CHECK(*name && *name != '/' && !cvy_data_goes_up(name, strlen(name)), CVY_E_CONFIG,
                  "%s: prepare: '%s' is not in the folder of the study: write a relative path without ..",
                  cvy_tree_where(map->key_at[i]), name);
        spec->target[i].name = name;
        CVY_TRY(cvy_study_read_words(spec->pool, spec->file, map->key[i], map->child[i], &spec->target[i].word));
        CVY_CHECK(spec->target[i].word[0], CVY_E_CONFIG, "%s: %s has no command", cvy_tree_where(map->key_at[i]),
                  map->key[i]);
        spec->ntarget++;
    }
    return CVY_OK;
}

static cvy_status check_jobs(const cvy_tree *jobs)
{
    CVY_CHECK(!jobs || jobs->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: jobs is a map of names and jobs",
              cvy_tree_where(jobs));
    for (int i = 0; jobs && i < jobs->count; i++) {
        CVY_CHECK(jobs->child[i]->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: the job %s is a map, as in a job file",
                  cvy_tree_where(jobs->key_at[i]), jobs->key[i]);
        CVY_CHECK(!strchr(jobs->key[i], '/'), CVY_E_CONFIG, "%s: the name of a job has no slash",
                  cvy_tree_where(jobs->key_at[i]));
    }
    return CVY_OK;
}

static cvy_status check_names(const cvy_tree *names)
{
    CVY_CHECK(!names || names->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: names is a map of axes", cvy_tree_where(names));
    for (int i = 0; names && i < names->count; i++) {
        const cvy_tree *of = names->child[i];
        CVY_CHECK(of->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: names: %s is a map of values and their names",
                  cvy_tree_where(names->key_at[i]), names->key[i]);
        for (int k = 0; k < of->count; k++)
            CVY_CHECK(of->child[k]->kind == CVY_TREE_SCALAR && of->child[k]->text, CVY_E_CONFIG,
                      "%s: names: the value %s of %s has no name", cvy_tree_where(of->key_at[k]), of->key[k],
                      names->key[i]);
    }
    return CVY_OK;
}

cvy_status cvy_study_read(cvy_pool *pool, const char *file, const char *text, int quick, cvy_study_spec *out)
{
    cvy_tree *root = NULL;
    fields f;
    *out = (cvy_study_spec){.pool = pool, .file = file};
    CVY_TRY(cvy_tree_parse_text(pool, file, text, strlen(text), &root));
    CVY_CHECK(root->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: a study file is a map with title and experiments", file);
    CVY_TRY(cvy_options_parse(pool, "study", rows, root, NULL, &f, sizeof f));
    CVY_CHECK(f.title, CVY_E_CONFIG, "%s: the title is empty", cvy_tree_where(root));
    out->title = f.title;
    out->question = f.question;
    out->source = f.source;
    out->meaning = f.meaning;
    out->published = f.published;
    out->jobs = f.jobs;
    out->names = f.names;
    CVY_TRY(check_names(f.names));
    CVY_TRY(check_jobs(f.jobs));
    CVY_TRY(read_targets(out, f.prepare));
    CVY_TRY(read_experiments(out, f.experiments, quick));
    return cvy_study_read_figures(out, f.figures);
}
