/*
 * sweep_spec.c: reads a sweep file: the job, fixed overrides, the space of the search, how it is searched, and the
 * score that counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/text/base_duration.h"
#include "base/text/base_option.h"
#include "base/text/base_table.h"
#include "sweep/sweep.h"

const char *const cvy_sweep_parts[6] = {"job", "set", "space", "search", "seed", "metric"};

typedef struct fields { /* the keys of the file */
    const char *job, *metric;
    const cvy_tree *set, *space, *search;
    int64_t ranks, seed;
    int goal, score;
} fields;

#define ROW(field) offsetof(fields, field)
static const cvy_option rows[] = {
    {"job", CVY_TYPE_STRING, ROW(job), NULL, "", "", "the job file; a relative path begins at this file's folder"},
    {"set", CVY_TYPE_TREE, ROW(set), "", "", "", "overrides for all trials, a map of keys and values"},
    {"space", CVY_TYPE_TREE, ROW(space), NULL, "", "", "a map of keys and lists or ranges of values"},
    {"search", CVY_TYPE_TREE, ROW(search), "grid", "", "", "grid, random, sobol, successive_halving or hyperband"},
    {"metric", CVY_TYPE_STRING, ROW(metric), NULL, "", "", "the score of the validation data that ranks trials"},
    {"goal", CVY_TYPE_CHOICE, ROW(goal), "auto", "auto|min|max", "", "whether a low or a high score is good"},
    {"score", CVY_TYPE_CHOICE, ROW(score), "last", "last|best", "", "which epoch of a trial counts"},
    {"ranks_per_trial", CVY_TYPE_INT, ROW(ranks), "1", "1..", "", "ranks that train a trial together"},
    {"seed", CVY_TYPE_INT, ROW(seed), "1", "0..", "", "of the points of the search"},
    {0},
};

typedef struct rungs {
    int64_t trials, eta;
    const char *min, *max;
    int points;
} rungs;
static const cvy_option halving_rows[] = {
    {"trials", CVY_TYPE_INT, offsetof(rungs, trials), NULL, "2..10000", "", "trials of the first rung"},
    {"eta", CVY_TYPE_INT, offsetof(rungs, eta), "3", "2..100", "", "one of so many trials goes on"},
    {"min", CVY_TYPE_STRING, offsetof(rungs, min), "1 epoch", "", "", "length of the first rung"},
    {"max", CVY_TYPE_STRING, offsetof(rungs, max), NULL, "", "", "length of a whole training"},
    {"points", CVY_TYPE_CHOICE, offsetof(rungs, points), "random", "random|sobol", "", "where trials are"},
    {0},
};

/* ---- the space ---- */

static cvy_status add_value(const cvy_sweep_spec *spec, cvy_sweep_key *key, const cvy_tree *item)
{
    char *line = NULL, *copy = NULL;
    CVY_TRY(cvy_tree_print_line(item, &line));
    const cvy_status status = cvy_pool_strdup(spec->pool, line, &copy);
    cvy_mem_free(&line);
    CVY_TRY(status);
    key->value[key->nvalues++] = copy;
    return CVY_OK;
}

static cvy_status read_list(const cvy_sweep_spec *spec, const cvy_tree *list, cvy_sweep_key *key)
{
    CVY_CHECK(list->count > 0, CVY_E_CONFIG, "%s: space.%s is an empty list: give it values, or leave it out",
              key->where, key->name);
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *key->value * (size_t)list->count, &key->value));
    for (int i = 0; i < list->count; i++)
        CVY_TRY(add_value(spec, key, list->child[i]));
    return CVY_OK;
}

/* The points of a range in a grid: both ends and points between, at equal distances or equal factors. */
static cvy_status make_points(const cvy_sweep_spec *spec, int64_t points, cvy_sweep_key *key)
{
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *key->value * (size_t)points, &key->value));
    for (int64_t i = 0; i < points; i++) {
        const double x = cvy_sweep_between(key, key->high, (double)i / (double)(points - 1));
        CVY_TRY(cvy_sweep_print(spec->pool, key, key->is_whole ? round(x) : x, &key->value[i]));
    }
    key->nvalues = (int)points;
    return CVY_OK;
}

/* {uniform: [a, b]}, {log_uniform: [a, b], points: 4} */
static cvy_status read_range(const cvy_sweep_spec *spec, const cvy_tree *map, cvy_sweep_key *key)
{
    static const struct {
        const char *word;
        int kind, is_whole;
    } kinds[] = {{"uniform", CVY_SWEEP_UNIFORM, 0},
                 {"log_uniform", CVY_SWEEP_LOG_UNIFORM, 0},
                 {"int_uniform", CVY_SWEEP_UNIFORM, 1},
                 {"int_log_uniform", CVY_SWEEP_LOG_UNIFORM, 1}};
    static const char *const known[] = {"uniform", "log_uniform", "int_uniform", "int_log_uniform", "points", NULL};
    const cvy_tree *ends = NULL, *points = cvy_tree_get(map, "points");
    int64_t n = 0;
    for (int i = 0; i < CVY_COUNT(kinds); i++) {
        const cvy_tree *node = cvy_tree_get(map, kinds[i].word);
        CVY_CHECK(!node || !ends, CVY_E_CONFIG, "%s: space.%s is a range of two kinds: leave one out", key->where,
                  key->name);
        if (!node)
            continue;
        ends = node;
        key->kind = kinds[i].kind;
        key->is_whole = kinds[i].is_whole;
    }
    if (ends)
        for (int i = 0; i < ends->count; i++)
            ends->child[i]->used = 1;
    CVY_TRY(cvy_tree_check_used(map, known));
    CVY_CHECK(ends && ends->kind == CVY_TREE_LIST && ends->count == 2, CVY_E_CONFIG,
              "%s: space.%s: expected a list of values, or a range such as {uniform: [0, 1]} or {log_uniform: [1e-4, "
              "0.1]}",
              key->where, key->name);
    CVY_TRY(cvy_tree_real(ends->child[0], &key->low));
    CVY_TRY(cvy_tree_real(ends->child[1], &key->high));
    CVY_CHECK(key->low < key->high && isfinite(key->high - key->low), CVY_E_CONFIG,
              "%s: space.%s goes from %g to %g: the first end must be below the second", key->where, key->name,
              key->low, key->high);
    CVY_CHECK(key->kind != CVY_SWEEP_LOG_UNIFORM || key->low > 0, CVY_E_CONFIG,
              "%s: space.%s begins at %g: the ends of a logarithmic range are above 0", key->where, key->name,
              key->low);
    CVY_CHECK(!key->is_whole || (key->low == floor(key->low) && key->high == floor(key->high)), CVY_E_CONFIG,
              "%s: space.%s goes from %g to %g, expected integers", key->where, key->name, key->low, key->high);
    if (!points)
        return CVY_OK;
    CVY_TRY(cvy_tree_int(points, &n));
    CVY_CHECK(n >= 2 && n <= CVY_SWEEP_TRIALS_MAX, CVY_E_CONFIG, "%s: space.%s has %lld points, expected 2 .. %d",
              key->where, key->name, (long long)n, CVY_SWEEP_TRIALS_MAX);
    CVY_CHECK(!key->is_whole || (double)n <= key->high - key->low + 1, CVY_E_CONFIG,
              "%s: space.%s has %lld points, but there are only %.0f integers from %g to %g", key->where, key->name,
              (long long)n, key->high - key->low + 1, key->low, key->high);
    return make_points(spec, n, key);
}

static cvy_status read_space(cvy_sweep_spec *spec, const cvy_tree *space)
{
    CVY_CHECK(!cvy_tree_is_null(space) && space->kind == CVY_TREE_MAP && space->count > 0, CVY_E_CONFIG,
              "%s: space is empty, expected a map of keys and values, such as {train.batch: [32, 64]}",
              space ? cvy_tree_where(space) : spec->file);
    CVY_CHECK(space->count <= CVY_SWEEP_KEYS_MAX, CVY_E_CONFIG, "%s: space has %d keys, at most %d can be searched",
              cvy_tree_where(space), space->count, CVY_SWEEP_KEYS_MAX);
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *spec->key * (size_t)space->count, &spec->key));
    for (int i = 0; i < space->count; i++) {
        cvy_sweep_key *key = &spec->key[spec->nkey++];
        char *where = NULL;
        const cvy_tree *values = cvy_tree_get(space, space->key[i]);
        CVY_TRY(cvy_pool_strdup(spec->pool, cvy_tree_where(space->key_at[i]), &where));
        key->name = space->key[i];
        key->where = where;
        CVY_CHECK(values->kind != CVY_TREE_SCALAR, CVY_E_CONFIG,
                  "%s: space.%s is one value, expected a list or a range; a fixed value belongs in set", where,
                  key->name);
        CVY_TRY(values->kind == CVY_TREE_LIST ? read_list(spec, values, key) : read_range(spec, values, key));
    }
    return CVY_OK;
}

/* ---- overrides ---- */

static int names_key(const char *set, const char *key)
{
    const size_t n = strlen(key);
    return strncmp(set, key, n) == 0 && set[n] == '=';
}

static cvy_status check_set(const cvy_sweep_spec *spec, const char *set)
{
    for (int i = 0; i < spec->nkey; i++)
        CVY_CHECK(!names_key(set, spec->key[i].name), CVY_E_CONFIG,
                  "%s: space.%s is fixed by the override %s: leave one of them out", spec->key[i].where,
                  spec->key[i].name, set);
    return CVY_OK;
}

static cvy_status read_sets(cvy_sweep_spec *spec, const cvy_tree *map, const char *const *sets, int nsets)
{
    const int nown = cvy_tree_is_null(map) ? 0 : map->count;
    CVY_CHECK(!nown || map->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: set is a list, expected a map of keys and values",
              cvy_tree_where(map));
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *spec->set * (size_t)(nown + nsets + 1), &spec->set));
    for (int i = 0; i < nown; i++) {
        char *line = NULL, *set = NULL;
        CVY_TRY(cvy_tree_print_line(map->child[i], &line));
        const cvy_status status = cvy_pool_printf(spec->pool, &set, "%s=%s", map->key[i], line);
        cvy_mem_free(&line);
        CVY_TRY(status);
        spec->set[spec->nset++] = set;
    }
    for (int i = 0; i < nsets; i++) {
        char *set = NULL;
        CVY_TRY(cvy_pool_strdup(spec->pool, sets[i], &set));
        spec->set[spec->nset++] = set;
    }
    for (int i = 0; i < spec->nset; i++)
        CVY_TRY(check_set(spec, spec->set[i]));
    return CVY_OK;
}

/* ---- the search ---- */

static cvy_status read_epochs(const cvy_tree *at, const char *key, const char *text, int64_t *out)
{
    cvy_duration d;
    if (cvy_duration_parse(text, &d) != CVY_OK)
        return cvy_error_prefix(CVY_E_CONFIG, "%s: search.%s", cvy_tree_where(at), key);
    CVY_CHECK(d.unit == CVY_DURATION_EPOCHS && d.amount == floor(d.amount) && d.amount >= 1 && d.amount <= 1e6,
              CVY_E_CONFIG, "%s: search.%s is \"%s\", expected whole epochs, such as 3 epochs", cvy_tree_where(at), key,
              text);
    *out = (int64_t)d.amount;
    return CVY_OK;
}

static cvy_status read_halving(cvy_sweep_spec *spec, const cvy_tree *map, const char *word)
{
    rungs r;
    CVY_TRY(cvy_options_parse(spec->pool, word, spec->search == CVY_SWEEP_HYPERBAND ? halving_rows + 1 : halving_rows,
                              map, NULL, &r, sizeof r));
    spec->trials = r.trials;
    spec->eta = r.eta;
    spec->points = r.points == 0 ? CVY_SWEEP_RANDOM : CVY_SWEEP_SOBOL;
    CVY_TRY(read_epochs(map, "min", r.min, &spec->min));
    CVY_TRY(read_epochs(map, "max", r.max, &spec->max));
    CVY_CHECK(spec->min < spec->max, CVY_E_CONFIG,
              "%s: search.min is %lld epochs and search.max %lld: min is below max", cvy_tree_where(map),
              (long long)spec->min, (long long)spec->max);
    for (int i = 0; i < spec->nkey; i++)
        CVY_CHECK(strcmp(spec->key[i].name, "train.epochs") != 0 && strcmp(spec->key[i].name, "train.steps") != 0,
                  CVY_E_CONFIG,
                  "%s: space.%s: with search: %s the search decides how long a trial trains; leave it out",
                  spec->key[i].where, spec->key[i].name, word);
    return CVY_OK;
}

static cvy_status read_count(cvy_sweep_spec *spec, const cvy_tree *node, const char *word)
{
    CVY_CHECK(node->kind == CVY_TREE_SCALAR, CVY_E_CONFIG, "%s: search.%s: expected a number of trials",
              cvy_tree_where(node), word);
    CVY_TRY(cvy_tree_int(node, &spec->trials));
    CVY_CHECK(spec->trials >= 1 && spec->trials <= CVY_SWEEP_TRIALS_MAX, CVY_E_CONFIG,
              "%s: search.%s is %lld, expected 1 .. %d trials", cvy_tree_where(node), word, (long long)spec->trials,
              CVY_SWEEP_TRIALS_MAX);
    return CVY_OK;
}

static cvy_status read_search(cvy_sweep_spec *spec, const cvy_tree *node)
{
    static const char *const words[] = {"grid", "random", "sobol", "successive_halving", "hyperband"};
    const int is_map = node && node->kind == CVY_TREE_MAP && node->count == 1;
    const char *word = is_map ? node->key[0] : node ? node->text : NULL;
    spec->search = -1;
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (word && strcmp(word, words[i]) == 0)
            spec->search = i;
    CVY_CHECK(spec->search >= 0, CVY_E_CONFIG,
              "%s: search: expected grid, {random: 20}, {sobol: 32}, {successive_halving: {...}} or {hyperband: "
              "{...}}%s",
              node ? cvy_tree_where(node) : spec->file,
              word ? cvy_hint_name('\'', word, words, CVY_COUNT(words)).text : "");
    CVY_CHECK(is_map || spec->search == CVY_SWEEP_GRID, CVY_E_CONFIG, "%s: search: %s needs a value: {%s: %s}",
              cvy_tree_where(node), word, word,
              spec->search <= CVY_SWEEP_SOBOL ? "20" : "{eta: 3, min: 1 epoch, max: 9 epochs}");
    spec->points = spec->search;
    const cvy_tree *value = is_map ? cvy_tree_get(node, word) : NULL;
    if (spec->search == CVY_SWEEP_RANDOM || spec->search == CVY_SWEEP_SOBOL)
        CVY_TRY(read_count(spec, value, word));
    if (spec->search >= CVY_SWEEP_HALVING)
        CVY_TRY(read_halving(spec, value, word));
    for (int i = 0; i < spec->nkey; i++)
        CVY_CHECK(spec->search != CVY_SWEEP_GRID || spec->key[i].nvalues, CVY_E_CONFIG,
                  "%s: space.%s is a range, and a grid needs points of it: add `points: 4`, or take another search",
                  spec->key[i].where, spec->key[i].name);
    CVY_CHECK(spec->points != CVY_SWEEP_SOBOL || spec->nkey <= CVY_SOBOL_DIMS, CVY_E_CONFIG,
              "%s: space has %d keys, and Sobol points have at most %d: take random points", spec->file, spec->nkey,
              CVY_SOBOL_DIMS);
    return CVY_OK;
}

/* ---- the file ---- */

/* A relative path begins at the folder of the sweep file. */
static cvy_status find_job(cvy_sweep_spec *spec, const char *path)
{
    char *text = NULL;
    const int folder = *path == '/' ? 0 : (int)(cvy_file_base_name(spec->file) - spec->file);
    CVY_TRY(cvy_pool_printf(spec->pool, &text, "%.*s%s", folder, spec->file, path));
    spec->job = text;
    return CVY_OK;
}

static cvy_status print_part(const cvy_sweep_spec *spec, const cvy_tree *node, const char **out)
{
    char *line = NULL, *copy = NULL;
    if (!cvy_tree_is_null(node))
        CVY_TRY(cvy_tree_print_line(node, &line));
    const cvy_status status = cvy_pool_strdup(spec->pool, line ? line : "", &copy);
    cvy_mem_free(&line);
    *out = copy;
    return status;
}

/* What makes the search what it is. The job is known by a hash of its file. */
static cvy_status make_parts(cvy_sweep_spec *spec, const fields *f)
{
    static const char *const goals[] = {"auto", "min", "max"}, *const scores[] = {"last", "best"};
    char *text = NULL, *data = NULL;
    size_t bytes = 0;
    cvy_text sets = {0};
    CVY_TRY(cvy_file_read(spec->job, 16 << 20, &data, &bytes));
    const uint64_t hash = cvy_hash(data, bytes);
    cvy_mem_free(&data);
    CVY_TRY(cvy_pool_printf(spec->pool, &text, "%s %016llx", cvy_file_base_name(spec->job), (unsigned long long)hash));
    spec->part[0] = text;
    for (int i = 0; i < spec->nset; i++)
        cvy_text_add(&sets, "%s%s", i ? " " : "", spec->set[i]);
    cvy_status status = sets.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(spec->pool, sets.data ? sets.data : "", &text);
    cvy_text_free(&sets);
    CVY_TRY(status);
    spec->part[1] = text;
    CVY_TRY(print_part(spec, f->space, &spec->part[2]));
    CVY_TRY(print_part(spec, f->search, &spec->part[3]));
    CVY_TRY(cvy_pool_printf(spec->pool, &text, "%lld", (long long)f->seed));
    spec->part[4] = text;
    CVY_TRY(
        cvy_pool_printf(spec->pool, &text, "%s, goal %s, score %s", spec->metric, goals[f->goal], scores[f->score]));
    spec->part[5] = text;
    return CVY_OK;
}

cvy_status cvy_sweep_spec_read(const char *path, const char *const *sets, int nsets, cvy_sweep_spec *spec)
{
    cvy_tree *root = NULL;
    char *copy = NULL;
    fields f;
    CVY_TRY(cvy_pool_create(&spec->pool));
    CVY_TRY(cvy_pool_strdup(spec->pool, path, &copy));
    spec->file = copy;
    CVY_TRY(cvy_tree_parse_file(spec->pool, spec->file, &root));
    CVY_CHECK(root->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: a sweep file is a map with the keys job, space, search and metric", spec->file);
    CVY_TRY(cvy_options_parse(spec->pool, "sweep", rows, root, NULL, &f, sizeof f));
    spec->metric = strncmp(f.metric, "val_", 4) == 0 ? f.metric + 4 : f.metric;
    spec->goal = f.goal;
    spec->score = f.score;
    spec->ranks = f.ranks;
    spec->seed = f.seed;
    CVY_TRY(find_job(spec, f.job));
    CVY_TRY(read_space(spec, f.space));
    CVY_TRY(read_sets(spec, f.set, sets, nsets));
    CVY_TRY(read_search(spec, f.search));
    return make_parts(spec, &f);
}

cvy_job_source cvy_sweep_source(const cvy_sweep_spec *spec, const char *const *sets, int nsets)
{
    static const char caffe[] = ".prototxt";
    const size_t n = strlen(spec->job), m = sizeof caffe - 1;
    const int is_caffe = n > m && strcmp(spec->job + n - m, caffe) == 0;
    return (cvy_job_source){.size = sizeof(cvy_job_source),
                            .path = is_caffe ? NULL : spec->job,
                            .caffe = is_caffe ? spec->job : NULL,
                            .sets = sets,
                            .nsets = nsets};
}
