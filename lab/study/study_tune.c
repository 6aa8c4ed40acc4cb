/*
 * study_tune.c: cvy_run_tune(): finds ranks, threads, batch and the keys of communication with which a network
 * trains fastest on this machine, in few measurements.
 *
 * It goes from coarse to fine, one axis after the other: first the splits of the cores into ranks and threads; then the
 * batch, upwards and downwards from the first one as long as this gains; then the splits that were near the best one,
 * with that batch; then, if ranks wait for each other at all, the keys of communication. The best settings are measured
 * again before one is named. A measurement that is there is not made again, so an interrupted search goes on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_opts.h"
#include "base/machine/base_machine.h"
#include "study/study_measure.h"

/* A setting that gains less is not followed; a split that is worse by less may win with another batch; a reduction that
 * takes a smaller share of the step is not worth tuning. */
#define GAIN 0.01
#define NEAR 0.15
#define EXPOSED 0.03

enum { BATCHES_MAX = 16, SPLITS_MAX = 32, TRIALS_MAX = 256 };
enum { AXIS_NETWORK, AXIS_BATCH, AXIS_RANKS, AXIS_THREADS, AXIS_PROGRESS, AXIS_OVERLAP, AXIS_BUCKET, AXES };

typedef struct setting {
    int split, batch; /* indices */
    const char *progress, *overlap, *bucket;
} setting;

struct trial {
    setting at;
    double speed; /* images/s by the median step; the median of its measurements; 0: it failed */
    double exposed;
    int repeats;
    double all[8];
};

struct tune {
    cvy_tune_opts o;
    cvy_pool *pool;
    cvy_measurer m;
    cvy_experiment experiment;
    const char *batch[BATCHES_MAX];
    int nbatch;
    struct split {
        char ranks[16], threads[16];
        int nranks, nthreads;
    } split[SPLITS_MAX];
    int nsplit;
    struct trial trial[TRIALS_MAX];
    int ntrial;
};

/* ---- the axes ---- */

static cvy_status read_batches(struct tune *t)
{
    for (const char *at = t->o.batches; *at; at += strcspn(at, ","), at += *at == ',') {
        char *copy = NULL;
        int64_t n = 0;
        CVY_TRY(cvy_pool_printf(t->pool, &copy, "%.*s", (int)strcspn(at, ","), at));
        CVY_CHECK(cvy_text_int(copy, &n) == CVY_OK && n > 0 && t->nbatch < BATCHES_MAX, CVY_E_ARGUMENT,
                  "batches are '%s', expected up to %d numbers above 0 such as 32,64,128", t->o.batches, BATCHES_MAX);
        t->batch[t->nbatch++] = copy;
    }
    CVY_CHECK(t->nbatch > 0, CVY_E_ARGUMENT, "a search needs a batch, such as 32");
    return CVY_OK;
}

/* All cores in one rank, then in more and more ranks; at last half of them, for cores that share their units. */
static void add_split(struct tune *t, int ranks, int threads)
{
    struct split *s = &t->split[t->nsplit];
    if (t->nsplit == SPLITS_MAX || threads < 1)
        return;
    snprintf(s->ranks, sizeof s->ranks, "%d", ranks);
    snprintf(s->threads, sizeof s->threads, "%d", threads);
    s->nranks = ranks;
    s->nthreads = threads;
    t->nsplit++;
}

static void list_splits(struct tune *t)
{
    const int cores = t->m.cores;
    for (int ranks = 1; ranks <= cores; ranks++)
        if (cores % ranks == 0)
            add_split(t, ranks, cores / ranks);
    if (cores % 2 == 0)
        add_split(t, 1, cores / 2);
}

static void add_axis(struct tune *t, const char *name)
{
    t->experiment.axis[t->experiment.naxis++] = (cvy_study_axis){.name = name};
}

/* The keys of the job that the caller fixes are axes of one value. */
static cvy_status name_axes(struct tune *t)
{
    static const char *const names[AXES] = {NULL,           "batch",      "ranks", "threads", "comm.progress",
                                            "comm.overlap", "comm.bucket"};
    for (int a = 0; a < AXES; a++)
        add_axis(t, a == AXIS_NETWORK ? t->o.is_job ? "job" : "model" : names[a]);
    CVY_CHECK(t->o.nsets <= CVY_AXES_MAX - AXES - 1, CVY_E_ARGUMENT, "more than %d keys are set",
              CVY_AXES_MAX - AXES - 1);
    for (int i = 0; i < t->o.nsets; i++) {
        const char *word = t->o.sets[i];
        char *name = NULL;
        CVY_TRY(cvy_pool_printf(t->pool, &name, "set.%.*s", (int)strcspn(word, "="), word));
        add_axis(t, name);
    }
    add_axis(t, "framework");
    return CVY_OK;
}

/* ---- trials ---- */

static cvy_status make_case(struct tune *t, const setting *at, cvy_case *c)
{
    const struct split *s = &t->split[at->split];
    cvy_text key = {0};
    char *copy = NULL;
    const char *const value[AXES] = {t->o.network, t->batch[at->batch], s->ranks,  s->threads,
                                     at->progress, at->overlap,         at->bucket};
    c->of = &t->experiment;
    CVY_TRY(cvy_pool_alloc(t->pool, sizeof *c->value * (size_t)t->experiment.naxis, &c->value));
    for (int a = 0; a < t->experiment.naxis; a++) {
        const int set = a - AXES;
        c->value[a] = a < AXES           ? value[a]
                      : set < t->o.nsets ? t->o.sets[set] + strcspn(t->o.sets[set], "=") + 1
                      : t->o.is_job      ? "convoy-job"
                                         : "convoy";
        cvy_text_add(&key, "%s%s=%s", a ? " " : "tune ", t->experiment.axis[a].name, c->value[a]);
    }
    cvy_status status = key.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(t->pool, key.data, &copy);
    cvy_text_free(&key);
    c->key = copy;
    return status;
}

static int is_equal(const setting *a, const setting *b)
{
    return a->split == b->split && a->batch == b->batch && strcmp(a->progress, b->progress) == 0 &&
           strcmp(a->overlap, b->overlap) == 0 && strcmp(a->bucket, b->bucket) == 0;
}

static double median_of(const struct trial *trial)
{
    double x[CVY_COUNT(trial->all)];
    int n = 0;
    for (int i = 0; i < trial->repeats; i++) { /* sorted by insertion */
        int at = n++;
        for (; at > 0 && x[at - 1] > trial->all[i]; at--)
            x[at] = x[at - 1];
        x[at] = trial->all[i];
    }
    return n ? (x[(n - 1) / 2] + x[n / 2]) / 2 : 0;
}

/* Measures a setting until it has so many measurements. *out: its number among the trials. */
static cvy_status try_setting(struct tune *t, const setting *at, int repeats, int *out)
{
    int n = 0;
    cvy_case c;
    while (n < t->ntrial && !is_equal(&t->trial[n].at, at))
        n++;
    *out = n;
    CVY_CHECK(n < TRIALS_MAX, CVY_E_CONFIG, "more than %d settings", TRIALS_MAX);
    if (n == t->ntrial)
        t->trial[t->ntrial++] = (struct trial){.at = *at};
    struct trial *trial = &t->trial[n];
    CVY_TRY(make_case(t, at, &c));
    while (trial->repeats < CVY_MIN(repeats, CVY_COUNT(trial->all))) {
        const cvy_tree *result = NULL;
        CVY_TRY(cvy_measure(&t->m, &c, trial->repeats + 1, &result));
        const double batch = result ? cvy_tree_real_at(result, "batch") : NAN,
                     ms = result ? cvy_tree_real_at(result, "ms_median") : NAN;
        trial->all[trial->repeats++] = ms > 0 && batch > 0 ? 1e3 * batch / ms : 0;
        trial->exposed = result ? cvy_tree_real_at(result, "exposed_comm_ms") / ms : 0;
        if (!result)
            break;
    }
    trial->speed = median_of(trial);
    return CVY_OK;
}

/* Takes the setting if it gains. */
static cvy_status improve(struct tune *t, const setting *at, int *best, int *gained)
{
    int n = 0;
    CVY_TRY(try_setting(t, at, 1, &n));
    *gained = t->trial[n].speed > t->trial[*best].speed * (1 + GAIN);
    if (*gained)
        *best = n;
    return CVY_OK;
}

/* ---- the search ---- */

static cvy_status try_splits(struct tune *t, int *best)
{
    setting at = t->trial[*best].at;
    int gained = 0;
    for (at.split = 0; at.split < t->nsplit; at.split++)
        CVY_TRY(improve(t, &at, best, &gained));
    return CVY_OK;
}

static cvy_status follow_batch(struct tune *t, int step, int *best)
{
    setting at = t->trial[*best].at;
    int gained = 1;
    for (at.batch += step; gained && at.batch >= 0 && at.batch < t->nbatch; at.batch += step)
        CVY_TRY(improve(t, &at, best, &gained));
    return CVY_OK;
}

/* The batches before the first one are smaller, those after it larger. */
static cvy_status try_batches(struct tune *t, int *best)
{
    CVY_TRY(follow_batch(t, 1, best));
    return follow_batch(t, -1, best);
}

/* With another batch another split may be the best, but hardly one that was far behind. */
static cvy_status try_near_splits(struct tune *t, int first, int *best)
{
    setting at = t->trial[*best].at;
    const int usual = t->trial[first].at.batch, n = t->ntrial;
    double fastest = 0;
    int gained = 0;
    for (int i = 0; i < n; i++)
        if (t->trial[i].at.batch == usual)
            fastest = CVY_MAX(fastest, t->trial[i].speed);
    for (int i = 0; i < n && at.batch != usual; i++) {
        if (t->trial[i].at.batch != usual || t->trial[i].speed < (1 - NEAR) * fastest)
            continue;
        at.split = t->trial[i].at.split;
        CVY_TRY(improve(t, &at, best, &gained));
    }
    return CVY_OK;
}

static cvy_status try_communication(struct tune *t, int *best)
{
    static const char *const bucket[] = {"1 MiB", "4 MiB", "16 MiB"};
    setting at = t->trial[*best].at;
    int gained = 0;
    if (t->split[at.split].nranks == 1 || !(t->trial[*best].exposed > EXPOSED))
        return CVY_OK;
    at.overlap = "forward";
    CVY_TRY(improve(t, &at, best, &gained));
    at = t->trial[*best].at;
    at.progress = "thread";
    CVY_TRY(improve(t, &at, best, &gained));
    for (int i = 0; i < CVY_COUNT(bucket); i++) {
        at = t->trial[*best].at;
        at.bucket = bucket[i];
        CVY_TRY(improve(t, &at, best, &gained));
    }
    return CVY_OK;
}

/* Measures again what is near the best, and the default: the fastest of many measurements is the luckiest, too. */
static cvy_status measure_again(struct tune *t, int *best)
{
    const double bound = 0.97 * t->trial[*best].speed;
    int n = 0;
    for (int i = 0; i < t->ntrial; i++)
        if (t->trial[i].speed >= bound || i == 0) {
            const setting at = t->trial[i].at;
            CVY_TRY(try_setting(t, &at, 3, &n));
        }
    *best = 0;
    for (int i = 1; i < t->ntrial; i++)
        if (t->trial[i].repeats > 1 && t->trial[i].speed > t->trial[*best].speed)
            *best = i;
    return CVY_OK;
}

static cvy_status search(struct tune *t, int *best)
{
    const setting usual = {
        .split = 0, .batch = t->o.first_batch, .progress = "poll", .overlap = "true", .bucket = "auto"};
    int first = 0;
    CVY_TRY(try_setting(t, &usual, 1, &first));
    CVY_CHECK(t->trial[first].speed > 0, CVY_E_CONFIG, "%s cannot be measured; results.jsonl in %s says why",
              t->o.network, t->o.out);
    *best = first;
    CVY_TRY(try_splits(t, best));
    CVY_TRY(try_batches(t, best));
    CVY_TRY(try_near_splits(t, first, best));
    CVY_TRY(try_communication(t, best));
    return measure_again(t, best);
}

/* ---- what is left in the folder ---- */

static cvy_status write_profile(struct tune *t, const struct trial *best, const struct trial *usual)
{
    const struct split *s = &t->split[best->at.split];
    const setting *at = &best->at;
    cvy_text text = {0};
    char *path = NULL;
    cvy_text_add(&text,
                 "# convoy tune: the fastest settings of %d for %s on %s, %d cores.\n# %.4g images/s; the default has "
                 "%.4g. convoy train --profile takes them.\n",
                 t->ntrial, t->o.network, t->m.cpu, t->m.cores, best->speed, usual->speed);
    cvy_text_add(&text, "ranks: %s\nthreads: %s\nset:\n  train.batch: %s\n", s->ranks, s->threads, t->batch[at->batch]);
    if (s->nranks > 1)
        cvy_text_add(&text, "  comm.progress: %s\n  comm.overlap: %s\n  comm.bucket: %s\n", at->progress, at->overlap,
                     at->bucket);
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_printf(t->pool, &path, "%s/profile.yaml", t->o.out);
    if (status == CVY_OK)
        status = cvy_file_replace(path, text.data, text.bytes);
    cvy_text_free(&text);
    return status;
}

/* The page of the study shows all trials. */
static cvy_status write_study(struct tune *t)
{
    cvy_text text = {0};
    char *path = NULL;
    cvy_text_add(&text, "title: Tuning of ");
    cvy_text_add_quoted(&text, t->o.network);
    cvy_text_add(&text,
                 "\nquestion: With how many ranks, threads and samples is it fastest on this machine?\nmeaning: Images "
                 "per second of all ranks in training, by the median step.\nexperiments:\n  tune:\n");
    for (int a = 0; a < t->experiment.naxis; a++)
        cvy_text_add(&text, "    %s: [any]\n", t->experiment.axis[a].name);
    cvy_text_add(&text, "figures:\n- {title: Speed over the batch, of: tune, x: batch, lines: threads, panels: ranks, "
                        "log_x: true}\n");
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_printf(t->pool, &path, "%s/study.yaml", t->o.out);
    if (status == CVY_OK)
        status = cvy_file_replace(path, text.data, text.bytes);
    cvy_text_free(&text);
    return status;
}

static void fill_result(const struct tune *t, const struct trial *best, const struct trial *usual, cvy_tune_result *r)
{
    const struct split *s = &t->split[best->at.split];
    *r = (cvy_tune_result){.ranks = s->nranks,
                           .threads = s->nthreads,
                           .settings = t->ntrial,
                           .measurements = t->m.result.total,
                           .images_per_s = best->speed,
                           .images_per_s_default = usual->speed};
    (void)cvy_text_int(t->batch[best->at.batch], &r->batch);
    snprintf(r->progress, sizeof r->progress, "%s", best->at.progress);
    snprintf(r->overlap, sizeof r->overlap, "%s", best->at.overlap);
    snprintf(r->bucket, sizeof r->bucket, "%s", best->at.bucket);
}

static cvy_status run(struct tune *t, cvy_tune_result *result)
{
    int best = 0;
    t->experiment = (cvy_experiment){.name = "tune",
                                     .repeats = 1,
                                     .seconds = t->o.seconds > 0 ? t->o.seconds : 2,
                                     .limit_s = 1800,
                                     .show = "images_per_s",
                                     .show_label = "images/s"};
    CVY_TRY(cvy_file_make_folder(t->o.out));
    CVY_TRY(read_batches(t));
    CVY_CHECK(t->o.first_batch >= 0 && t->o.first_batch < t->nbatch, CVY_E_ARGUMENT, "there is no batch number %d",
              t->o.first_batch);
    CVY_TRY(cvy_measurer_open(&t->m));
    list_splits(t);
    CVY_TRY(name_axes(t));
    CVY_TRY(write_study(t));
    CVY_TRY(search(t, &best));
    fill_result(t, &t->trial[best], &t->trial[0], result);
    return write_profile(t, &t->trial[best], &t->trial[0]);
}

static cvy_status open_and_run(const cvy_tune_opts *opts, cvy_pool *pool, cvy_tune_result *result)
{
    struct tune *t = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *t, &t));
    CVY_TRY(CVY_OPTS_READ(cvy_tune_opts, opts, &t->o));
    CVY_CHECK(t->o.network && *t->o.network && t->o.out && t->o.frameworks && t->o.program && t->o.batches,
              CVY_E_ARGUMENT, "tuning needs network, batches, out, frameworks and program");
    t->pool = pool;
    t->m = (cvy_measurer){.pool = pool,
                          .paths = {.out = t->o.out},
                          .frameworks = t->o.frameworks,
                          .program = t->o.program,
                          .stop = t->o.stop,
                          .show = t->o.show,
                          .user = t->o.user};
    const cvy_status status = run(t, result);
    cvy_measurer_close(&t->m);
    return status;
}

cvy_status cvy_run_tune(const cvy_tune_opts *opts, cvy_tune_result *out)
{
    CVY_ENTRY();
    cvy_pool *pool = NULL;
    cvy_tune_result result = {.size = sizeof result};
    CVY_TRY(CVY_RESULT_CHECK(cvy_tune_result, out));
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = open_and_run(opts, pool, &result);
    cvy_pool_destroy(&pool);
    if (status == CVY_OK)
        cvy_result_write(out, &result, sizeof result);
    return status;
}

/* ---- profiles ---- */

static cvy_status read_profile(cvy_pool *pool, const char *path, cvy_profile *p)
{
    cvy_tree *root = NULL;
    CVY_TRY(cvy_tree_parse_file(pool, path, &root));
    CVY_CHECK(root->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s is not a profile of convoy tune", path);
    const double ranks = cvy_tree_real_at(root, "ranks"), threads = cvy_tree_real_at(root, "threads");
    const cvy_tree *set = cvy_tree_get(root, "set");
    CVY_CHECK(ranks >= 1 && ranks <= INT32_MAX && threads >= 1 && threads <= INT32_MAX && set &&
                  set->kind == CVY_TREE_MAP && set->count <= CVY_PROFILE_KEYS,
              CVY_E_CONFIG,
              "%s is not a profile of convoy tune: it needs ranks, threads and set, a map of up to %d keys", path,
              CVY_PROFILE_KEYS);
    p->ranks = (int)ranks;
    p->threads = (int)threads;
    for (int i = 0; i < set->count; i++) {
        CVY_CHECK(set->child[i]->text, CVY_E_CONFIG, "%s: %s has no value", path, set->key[i]);
        const int n = snprintf(p->key[i], sizeof p->key[i], "%s=%s", set->key[i], set->child[i]->text);
        CVY_CHECK(n < (int)sizeof p->key[i], CVY_E_CONFIG, "%s: %s is too long", path, set->key[i]);
    }
    p->nkeys = set->count;
    return CVY_OK;
}

cvy_status cvy_profile_read(const char *path, cvy_profile *out)
{
    CVY_ENTRY();
    cvy_profile p = {.size = sizeof p};
    cvy_pool *pool = NULL;
    CVY_CHECK(path, CVY_E_ARGUMENT, "a profile needs a path");
    CVY_TRY(CVY_RESULT_CHECK(cvy_profile, out));
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = read_profile(pool, path, &p);
    cvy_pool_destroy(&pool);
    if (status == CVY_OK)
        cvy_result_write(out, &p, sizeof p);
    return status;
}
