/*
 * sweep_spec.c: reads a sweep file: the job, how the space of its keys is searched, and the score that counts. The
 * space itself is read by sweep_space.c.
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
#include "sweep/sweep_search.h"

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
    {"search", CVY_TYPE_TREE, ROW(search), "grid", "", "",
     "grid, random, sobol, successive_halving, hyperband or population"},
    {"metric", CVY_TYPE_STRING, ROW(metric), NULL, "", "", "the score of the validation data that ranks trials"},
    {"goal", CVY_TYPE_CHOICE, ROW(goal), "auto", "auto|min|max", "", "whether a low or a high score is good"},
    {"score", CVY_TYPE_CHOICE, ROW(score), "last", "last|best", "", "which epoch of a trial counts"},
    {"ranks_per_trial", CVY_TYPE_INT, ROW(ranks), "1", "1..", "", "ranks that train a trial together"},
    {"seed", CVY_TYPE_INT, ROW(seed), "1", "0..", "", "of the points of the search"},
    {0},
};

/* ---- searches with rungs ---- */

typedef struct rungs {
    int64_t trials, eta;
    const char *min, *max;
    double share;
    cvy_reals factors;
    int points;
} rungs;

#define RUNGS(field) offsetof(rungs, field)
#define ROW_ETA                                                                                                        \
    {                                                                                                                  \
        "eta", CVY_TYPE_INT, RUNGS(eta), "3", "2..100", "", "one of so many trials goes on"                            \
    }
#define ROW_MIN                                                                                                        \
    {                                                                                                                  \
        "min", CVY_TYPE_STRING, RUNGS(min), "1 epoch", "", "", "length of the first rung"                              \
    }
#define ROW_MAX                                                                                                        \
    {                                                                                                                  \
        "max", CVY_TYPE_STRING, RUNGS(max), NULL, "", "", "length of a whole training"                                 \
    }
#define ROW_POINTS                                                                                                     \
    {                                                                                                                  \
        "points", CVY_TYPE_CHOICE, RUNGS(points), "random", "random|sobol", "", "where trials are"                     \
    }
static const cvy_option hyperband_rows[] = {ROW_ETA, ROW_MIN, ROW_MAX, ROW_POINTS, {0}};
static const cvy_option halving_rows[] = {
    {"trials", CVY_TYPE_INT, RUNGS(trials), NULL, "2..10000", "", "trials of the first rung"},
    ROW_ETA,
    ROW_MIN,
    ROW_MAX,
    ROW_POINTS,
    {0},
};
static const cvy_option population_rows[] = {
    {"size", CVY_TYPE_INT, RUNGS(trials), NULL, "2..10000", "", "members, which all train to the end"},
    {"interval", CVY_TYPE_STRING, RUNGS(min), "1 epoch", "", "", "training between two comparisons of the members"},
    ROW_MAX,
    {"share", CVY_TYPE_REAL, RUNGS(share), "0.25", ">0 0..0.5", "",
     "the part of the members that become copies of as many best ones"},
    {"factors", CVY_TYPE_REALS, RUNGS(factors), "[0.8, 1.2]", ">0", "",
     "by one of them, drawn at random, each value of a copy is multiplied"},
    ROW_POINTS,
    {0},
};

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

/* The search decides how long a trial trains. */
static cvy_status check_length_is_free(const cvy_sweep_spec *spec, const char *word)
{
    for (int i = 0; i < spec->nkey; i++)
        CVY_CHECK(strcmp(spec->key[i].name, "train.epochs") != 0 && strcmp(spec->key[i].name, "train.steps") != 0,
                  CVY_E_CONFIG,
                  "%s: space.%s: with search: %s the search decides how long a trial trains; leave it out",
                  spec->key[i].where, spec->key[i].name, word);
    return CVY_OK;
}

static cvy_status read_rungs(cvy_sweep_spec *spec, const cvy_tree *map, const char *word)
{
    const int is_population = spec->search == CVY_SWEEP_POPULATION;
    const char *const first = is_population ? "interval" : "min";
    const cvy_option *known = is_population                         ? population_rows
                              : spec->search == CVY_SWEEP_HYPERBAND ? hyperband_rows
                                                                    : halving_rows;
    rungs r;
    CVY_TRY(cvy_options_parse(spec->pool, word, known, map, NULL, &r, sizeof r));
    spec->trials = r.trials;
    spec->eta = r.eta;
    spec->share = r.share;
    spec->points = r.points == 0 ? CVY_SWEEP_RANDOM : CVY_SWEEP_SOBOL;
    CVY_TRY(read_epochs(map, first, r.min, &spec->min));
    CVY_TRY(read_epochs(map, "max", r.max, &spec->max));
    CVY_CHECK(spec->min < spec->max, CVY_E_CONFIG,
              "%s: search.%s is %lld epochs and search.max %lld: make %s smaller than max", cvy_tree_where(map), first,
              (long long)spec->min, (long long)spec->max, first);
    CVY_CHECK(!is_population || (spec->max - 1) / spec->min < CVY_SWEEP_RUNGS_MAX, CVY_E_CONFIG,
              "%s: search.max is %lld epochs, more than %d times search.interval (%lld): take a longer interval",
              cvy_tree_where(map), (long long)spec->max, CVY_SWEEP_RUNGS_MAX, (long long)spec->min);
    CVY_CHECK(r.factors.count <= CVY_SWEEP_FACTORS_MAX && (!is_population || r.factors.count > 0), CVY_E_CONFIG,
              "%s: search.factors has %d numbers, expected 1 to %d", cvy_tree_where(map), r.factors.count,
              CVY_SWEEP_FACTORS_MAX);
    spec->nfactor = r.factors.count;
    memcpy(spec->factor, r.factors.at, sizeof *spec->factor * (size_t)spec->nfactor);
    return check_length_is_free(spec, word);
}

/* ---- all searches ---- */

static cvy_status read_count(cvy_sweep_spec *spec, const cvy_tree *node, const char *word)
{
    CVY_CHECK(node->kind == CVY_TREE_SCALAR, CVY_E_CONFIG, "%s: search.%s: expected a number of trials, such as 20",
              cvy_tree_where(node), word);
    CVY_TRY(cvy_tree_int(node, &spec->trials));
    CVY_CHECK(spec->trials >= 1 && spec->trials <= CVY_SWEEP_TRIALS_MAX, CVY_E_CONFIG,
              "%s: search.%s is %lld, expected 1 .. %d trials", cvy_tree_where(node), word, (long long)spec->trials,
              CVY_SWEEP_TRIALS_MAX);
    return CVY_OK;
}

/* Whether the space has what the search needs of it. */
static cvy_status check_space(const cvy_sweep_spec *spec)
{
    for (int i = 0; i < spec->nkey; i++)
        CVY_CHECK(spec->search != CVY_SWEEP_GRID || spec->key[i].nvalues, CVY_E_CONFIG,
                  "%s: space.%s is a range, and a grid needs points of it: add `points: 4`, or take another search",
                  spec->key[i].where, spec->key[i].name);
    CVY_CHECK(spec->points != CVY_SWEEP_SOBOL || spec->nkey <= CVY_SOBOL_DIMS, CVY_E_CONFIG,
              "%s: space has %d keys, and Sobol points have at most %d: take random points", spec->file, spec->nkey,
              CVY_SOBOL_DIMS);
    return CVY_OK;
}

static cvy_status read_search(cvy_sweep_spec *spec, const cvy_tree *node)
{
    static const char *const words[] = {"grid", "random", "sobol", "successive_halving", "hyperband", "population"};
    static const char *const examples[] = {
        "grid", "20", "32", "{trials: 27, max: 9 epochs}", "{max: 9 epochs}", "{size: 8, max: 20 epochs}"};
    const int is_map = node && node->kind == CVY_TREE_MAP && node->count == 1;
    const char *word = is_map ? node->key[0] : node ? node->text : NULL;
    spec->search = -1;
    for (int i = 0; i < CVY_COUNT(words); i++)
        if (word && strcmp(word, words[i]) == 0)
            spec->search = i;
    CVY_CHECK(spec->search >= 0, CVY_E_CONFIG,
              "%s: search: expected grid, {random: 20}, {sobol: 32}, {successive_halving: {...}}, {hyperband: {...}} "
              "or {population: {...}}%s",
              node ? cvy_tree_where(node) : spec->file,
              word ? cvy_hint_name('\'', word, words, CVY_COUNT(words)).text : "");
    CVY_CHECK(is_map || spec->search == CVY_SWEEP_GRID, CVY_E_CONFIG, "%s: search: %s needs a value: {%s: %s}",
              cvy_tree_where(node), word, word, examples[spec->search]);
    CVY_CHECK(!is_map || spec->search != CVY_SWEEP_GRID, CVY_E_CONFIG,
              "%s: search: grid takes no value: write `search: grid`, and give ranges `points`", cvy_tree_where(node));
    spec->points = spec->search;
    const cvy_tree *value = is_map ? cvy_tree_get(node, word) : NULL;
    if (spec->search == CVY_SWEEP_RANDOM || spec->search == CVY_SWEEP_SOBOL)
        CVY_TRY(read_count(spec, value, word));
    if (spec->search >= CVY_SWEEP_HALVING)
        CVY_TRY(read_rungs(spec, value, word));
    return check_space(spec);
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

/* The job is known by a hash of its file. */
static cvy_status print_job(const cvy_sweep_spec *spec, char **out)
{
    char *data = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_file_read(spec->job, 16 << 20, &data, &bytes));
    const uint64_t hash = cvy_hash(data, bytes);
    cvy_mem_free(&data);
    return cvy_pool_printf(spec->pool, out, "%s %016llx", cvy_file_base_name(spec->job), (unsigned long long)hash);
}

static cvy_status print_sets(const cvy_sweep_spec *spec, char **out)
{
    cvy_text sets = {0};
    for (int i = 0; i < spec->nset; i++)
        cvy_text_add(&sets, "%s%s", i ? " " : "", spec->set[i]);
    cvy_status status = sets.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(spec->pool, sets.data ? sets.data : "", out);
    cvy_text_free(&sets);
    return status;
}

/* What makes the search what it is. */
static cvy_status make_parts(cvy_sweep_spec *spec, const fields *f)
{
    static const char *const goals[] = {"auto", "min", "max"}, *const scores[] = {"last", "best"};
    char *job = NULL, *sets = NULL, *seed = NULL, *metric = NULL;
    CVY_TRY(print_job(spec, &job));
    CVY_TRY(print_sets(spec, &sets));
    CVY_TRY(cvy_sweep_print_node(spec->pool, "", f->space, &spec->part[2]));
    CVY_TRY(cvy_sweep_print_node(spec->pool, "", f->search, &spec->part[3]));
    CVY_TRY(cvy_pool_printf(spec->pool, &seed, "%lld", (long long)f->seed));
    CVY_TRY(
        cvy_pool_printf(spec->pool, &metric, "%s, goal %s, score %s", spec->metric, goals[f->goal], scores[f->score]));
    spec->part[0] = job;
    spec->part[1] = sets;
    spec->part[4] = seed;
    spec->part[5] = metric;
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
    CVY_CHECK(strlen(spec->metric) < CVY_SWEEP_METRIC, CVY_E_CONFIG,
              "%s: metric has %zu characters, and no score has a name of more than %d: expected a name such as "
              "accuracy",
              spec->file, strlen(spec->metric), CVY_SWEEP_METRIC - 1);
    spec->goal = f.goal;
    spec->score = f.score;
    spec->ranks = f.ranks;
    spec->seed = f.seed;
    CVY_TRY(find_job(spec, f.job));
    CVY_TRY(cvy_sweep_read_space(spec, f.space));
    CVY_TRY(cvy_sweep_read_sets(spec, f.set, sets, nsets));
    CVY_TRY(read_search(spec, f.search));
    return make_parts(spec, &f);
}

cvy_job_source cvy_sweep_source(const cvy_sweep_spec *spec, const char *const *sets, int nsets)
{
    return (cvy_job_source){.size = sizeof(cvy_job_source), .path = spec->job, .sets = sets, .nsets = nsets};
}
