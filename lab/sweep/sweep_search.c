/*
 * sweep_search.c: the brackets and rungs of a search, which trial trains next, and which trials go on.
 *
 * Successive halving (Jamieson and Talwalkar 2016): of the trials of a rung, one of eta goes on to the next rung, which
 * is eta times as long. Hyperband (Li et al. 2018) has several brackets, which begin with many short trials or with few
 * long ones. A population has one bracket, in whose rungs all trials train (sweep_population.c). A rung is decided when
 * all its trials have ended, so that the result does not depend on the number of groups or on their speed. Groups that
 * would wait take trials of the next bracket.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/sweep_search.h"

/* ---- the rungs ---- */

static cvy_status reserve_rungs(const cvy_sweep_spec *spec, int nrungs, cvy_bracket *b)
{
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *b->width * (size_t)nrungs, &b->width));
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *b->epochs * (size_t)nrungs, &b->epochs));
    b->nrungs = nrungs;
    return CVY_OK;
}

/* The number of times by which `first` can be multiplied by eta without passing max. */
static int count_factors(const cvy_sweep_spec *spec, double first)
{
    int n = 0;
    for (double at = first * (double)spec->eta; llround(at) <= spec->max; at *= (double)spec->eta)
        n++;
    return n;
}

/* Rungs of first, first * eta, ... epochs; the last one has max. */
static cvy_status add_halving_rungs(const cvy_sweep_spec *spec, double first, cvy_bracket *b)
{
    double epochs = first, width = b->count;
    const int factors = count_factors(spec, first);
    const int ends_at_max = llround(first * pow((double)spec->eta, factors)) == spec->max;
    CVY_TRY(reserve_rungs(spec, factors + 1 + !ends_at_max, b));
    for (int r = 0; r < b->nrungs; r++) {
        b->epochs[r] = r == b->nrungs - 1 ? spec->max : llround(epochs);
        b->width[r] = CVY_MAX((int)(width + 1e-9), 1);
        epochs *= (double)spec->eta;
        width /= (double)spec->eta;
    }
    return CVY_OK;
}

/* Rungs of one interval; the last one may be shorter. */
static cvy_status add_population_rungs(const cvy_sweep_spec *spec, cvy_bracket *b)
{
    CVY_TRY(reserve_rungs(spec, (int)((spec->max + spec->min - 1) / spec->min), b));
    for (int r = 0; r < b->nrungs; r++) {
        b->epochs[r] = CVY_MIN(spec->min * (r + 1), spec->max);
        b->width[r] = b->count;
    }
    return CVY_OK;
}

/* ---- the brackets ---- */

/* Adds a bracket of `count` trials. first: epochs of its first rung. */
static cvy_status add_bracket(cvy_sweep *s, double count, double first)
{
    const cvy_sweep_spec *spec = &s->spec;
    cvy_bracket *b = &s->bracket[s->nbrackets++];
    CVY_CHECK(s->ntrials + count <= CVY_SWEEP_TRIALS_MAX, CVY_E_CONFIG,
              "%s: the search has %.0f trials or more, at most %d are possible: take fewer values or random points",
              spec->file, s->ntrials + count, CVY_SWEEP_TRIALS_MAX);
    b->first = s->ntrials;
    b->count = (int)count;
    s->ntrials += b->count;
    if (spec->search == CVY_SWEEP_POPULATION)
        return add_population_rungs(spec, b);
    if (spec->search >= CVY_SWEEP_HALVING)
        return add_halving_rungs(spec, first, b);
    CVY_TRY(reserve_rungs(spec, 1, b));
    b->width[0] = b->count;
    return CVY_OK;
}

static double count_combinations(const cvy_sweep_spec *spec)
{
    double count = 1;
    for (int k = 0; k < spec->nkey; k++)
        count *= spec->key[k].nvalues;
    return count;
}

static cvy_status make_brackets(cvy_sweep *s)
{
    const cvy_sweep_spec *spec = &s->spec;
    const int factors = spec->search == CVY_SWEEP_HYPERBAND ? count_factors(spec, (double)spec->min) : 0;
    const double eta = (double)spec->eta;
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *s->bracket * (size_t)(factors + 1), &s->bracket));
    if (spec->search == CVY_SWEEP_GRID)
        return add_bracket(s, count_combinations(spec), 0);
    if (spec->search != CVY_SWEEP_HYPERBAND)
        return add_bracket(s, (double)spec->trials, (double)spec->min);
    for (int i = factors; i >= 0; i--)
        CVY_TRY(add_bracket(s, ceil((double)(factors + 1) / (i + 1) * pow(eta, i) - 1e-9),
                            (double)spec->max * pow(eta, -i)));
    return CVY_OK;
}

/* ---- the list of trials ---- */

/* The text of a value at its place. */
static cvy_status print_value(const cvy_sweep_spec *spec, const cvy_sweep_key *key, double place, const char **out)
{
    if (key->kind != CVY_SWEEP_LIST && spec->points != CVY_SWEEP_GRID)
        return cvy_sweep_print(spec->pool, key, place, out);
    CVY_EXPECT(place >= 0 && place < key->nvalues);
    *out = key->value[(int)place];
    return CVY_OK;
}

/* The overrides of a trial: those of all trials, the length of a whole training, and the trial's values. */
static cvy_status make_sets(const cvy_sweep *s, const char *const *value, const char **set)
{
    const cvy_sweep_spec *spec = &s->spec;
    char *text = NULL;
    int n = 0;
    for (int i = 0; i < spec->nset; i++)
        set[n++] = spec->set[i];
    if (spec->search >= CVY_SWEEP_HALVING) {
        CVY_TRY(cvy_pool_printf(spec->pool, &text, "train.epochs=%lld", (long long)spec->max));
        set[n++] = text;
    }
    for (int k = 0; k < spec->nkey; k++) {
        CVY_TRY(cvy_pool_printf(spec->pool, &text, "%s=%s", spec->key[k].name, value[k]));
        set[n++] = text;
    }
    return CVY_OK;
}

cvy_status cvy_sweep_place(cvy_sweep *s, int number, const double *place)
{
    const cvy_sweep_spec *spec = &s->spec;
    cvy_trial *trial = &s->trial[number];
    const char **value = NULL, **set = NULL;
    double *copy = NULL;
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *copy * (size_t)spec->nkey, &copy));
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *value * (size_t)spec->nkey, &value));
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *set * (size_t)s->nset, &set));
    for (int k = 0; k < spec->nkey; k++) {
        copy[k] = place[k];
        CVY_TRY(print_value(spec, &spec->key[k], place[k], &value[k]));
    }
    CVY_TRY(make_sets(s, value, set));
    trial->place = copy;
    trial->value = value;
    trial->set = set;
    return CVY_OK;
}

static cvy_status make_trial(cvy_sweep *s, int number, int bracket)
{
    cvy_trial *trial = &s->trial[number];
    const size_t nrungs = (size_t)s->bracket[bracket].nrungs;
    double place[CVY_SWEEP_KEYS_MAX];
    trial->bracket = bracket;
    CVY_TRY(cvy_pool_alloc(s->spec.pool, sizeof *trial->score * nrungs, &trial->score));
    cvy_sweep_point(&s->spec, number, place);
    CVY_TRY(cvy_sweep_place(s, number, place));
    if (s->spec.search != CVY_SWEEP_POPULATION)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(s->spec.pool, sizeof *trial->generation * nrungs, &trial->generation));
    trial->generation[0] = (cvy_generation){.parent = -1, .value = trial->value};
    return CVY_OK;
}

cvy_status cvy_sweep_plan(cvy_sweep *s)
{
    CVY_TRY(make_brackets(s));
    s->nset = s->spec.nset + s->spec.nkey + (s->spec.search >= CVY_SWEEP_HALVING);
    CVY_TRY(cvy_pool_alloc(s->spec.pool, sizeof *s->trial * (size_t)s->ntrials, &s->trial));
    for (int b = 0; b < s->nbrackets; b++)
        for (int i = 0; i < s->bracket[b].count; i++)
            CVY_TRY(make_trial(s, s->bracket[b].first + i, b));
    return CVY_OK;
}

/* ---- decisions ---- */

int cvy_sweep_is_better(const cvy_sweep *s, int a, int b, int rung)
{
    const double x = s->trial[a].score[rung], y = s->trial[b].score[rung];
    if (isfinite(x) != isfinite(y))
        return isfinite(x);
    if (!isfinite(x) || x == y)
        return a < b;
    return s->higher ? x > y : x < y;
}

/* Whether all trials that train in this rung have ended it. One that has failed counts as ended; a population has such
 * members only if nobody is left whose copies they could become. */
static int has_ended(const cvy_sweep *s, const cvy_bracket *b, int rung)
{
    const cvy_trial *trial = &s->trial[b->first];
    const int is_population = s->spec.search == CVY_SWEEP_POPULATION;
    for (int i = 0; i < b->count; i++) {
        const int is_in = is_population || (trial[i].rung >= rung && trial[i].state != CVY_TRIAL_FAILED);
        if (is_in && trial[i].nscores <= rung)
            return 0;
    }
    return 1;
}

/* The number of trials of the bracket that were better than this one at the end of a rung. */
static int count_better(const cvy_sweep *s, const cvy_bracket *b, int number, int rung)
{
    int better = 0;
    for (int k = b->first; k < b->first + b->count; k++)
        better += k != number && s->trial[k].nscores > rung && isfinite(s->trial[k].score[rung]) &&
                  cvy_sweep_is_better(s, k, number, rung);
    return better;
}

/* Lets the best trials of `rung` - 1 train in `rung`, and ends the others. If failed trials were tried again, it is
 * called a second time: trials that went on then still do. */
static void promote(cvy_sweep *s, const cvy_bracket *b, int rung)
{
    for (int i = b->first; i < b->first + b->count; i++) {
        cvy_trial *trial = &s->trial[i];
        if (trial->nscores < rung)
            continue;
        if (isfinite(trial->score[rung - 1]) && count_better(s, b, i, rung - 1) < b->width[rung])
            trial->rung = CVY_MAX(trial->rung, rung);
        else if (trial->state == CVY_TRIAL_WAITING && trial->rung < rung)
            trial->state = CVY_TRIAL_FINISHED;
    }
}

cvy_status cvy_sweep_settle(cvy_sweep *s, int *done_out)
{
    int open = 0;
    for (cvy_bracket *b = s->bracket; b < s->bracket + s->nbrackets; b++)
        while (b->decided + 1 < b->nrungs && has_ended(s, b, b->decided)) {
            if (s->spec.search == CVY_SWEEP_POPULATION)
                CVY_TRY(cvy_sweep_evolve(s, b->decided + 1));
            else
                promote(s, b, b->decided + 1);
            b->decided++;
        }
    for (int i = 0; i < s->ntrials; i++)
        open += s->trial[i].state == CVY_TRIAL_WAITING || s->trial[i].state == CVY_TRIAL_RUNNING;
    *done_out = open == 0;
    return CVY_OK;
}

int cvy_sweep_next(const cvy_sweep *s, int64_t *epochs_out)
{
    for (int i = 0; i < s->ntrials; i++) {
        const cvy_trial *trial = &s->trial[i];
        if (trial->state != CVY_TRIAL_WAITING || trial->nscores > trial->rung)
            continue;
        *epochs_out = s->bracket[trial->bracket].epochs[trial->nscores];
        return i;
    }
    return -1;
}

void cvy_sweep_note(cvy_sweep *s, int number, double score)
{
    cvy_trial *trial = &s->trial[number];
    trial->score[trial->nscores++] = score;
    trial->state = trial->nscores == s->bracket[trial->bracket].nrungs ? CVY_TRIAL_FINISHED : CVY_TRIAL_WAITING;
}

cvy_status cvy_sweep_note_failure(cvy_sweep *s, int number, const char *error)
{
    cvy_trial *trial = &s->trial[number];
    char *copy = NULL;
    CVY_TRY(cvy_pool_strdup(s->spec.pool, error, &copy));
    trial->error = copy;
    trial->tries = 0;
    if (s->spec.search == CVY_SWEEP_POPULATION && trial->nscores + 1 < s->bracket[trial->bracket].nrungs)
        cvy_sweep_note(s, number, NAN);
    else
        trial->state = CVY_TRIAL_FAILED;
    return CVY_OK;
}

int cvy_sweep_retry(cvy_sweep *s)
{
    int n = 0;
    for (int i = 0; i < s->ntrials; i++) {
        cvy_trial *trial = &s->trial[i];
        if (trial->state != CVY_TRIAL_FAILED)
            continue;
        trial->state = CVY_TRIAL_WAITING;
        trial->error = NULL;
        trial->tries = 0;
        s->bracket[trial->bracket].decided = CVY_MIN(s->bracket[trial->bracket].decided, trial->nscores);
        n++;
    }
    return n;
}

/* ---- the ranking ---- */

double cvy_sweep_score(const cvy_sweep *s, int number)
{
    const cvy_trial *trial = &s->trial[number];
    return trial->state != CVY_TRIAL_FAILED && trial->nscores ? trial->score[trial->nscores - 1] : NAN;
}

typedef struct ranked {
    double score; /* a low one is better */
    int64_t epochs;
    int number;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    const int order = (x->number > y->number) - (x->number < y->number);
    if (isfinite(x->score) != isfinite(y->score))
        return isfinite(x->score) ? -1 : 1;
    if (!isfinite(x->score))
        return order;
    if (x->epochs != y->epochs)
        return x->epochs > y->epochs ? -1 : 1;
    return x->score == y->score ? order : x->score < y->score ? -1 : 1;
}

cvy_status cvy_sweep_rank(const cvy_sweep *s, int *order, int *nscored_out)
{
    ranked *all = NULL;
    int n = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *all * (size_t)s->ntrials, &all));
    for (int i = 0; i < s->ntrials; i++) {
        const cvy_trial *trial = &s->trial[i];
        const double score = cvy_sweep_score(s, i);
        all[i] = (ranked){.score = s->higher ? -score : score,
                          .epochs = trial->nscores ? s->bracket[trial->bracket].epochs[trial->nscores - 1] : 0,
                          .number = i};
        n += isfinite(score) != 0;
    }
    qsort(all, (size_t)s->ntrials, sizeof *all, compare_ranked);
    for (int i = 0; i < s->ntrials; i++)
        order[i] = all[i].number;
    cvy_mem_free(&all);
    *nscored_out = n;
    return CVY_OK;
}
