/*
 * sweep_search.c: the brackets and rungs of a search, which trial trains next, and which trials go on.
 *
 * Successive halving (Jamieson and Talwalkar 2016): of the trials of a rung, one of eta goes on to the next rung, which
 * is eta times as long. Hyperband (Li et al. 2018) has several brackets, which begin with many short trials or with few
 * long ones. A rung is decided when all its trials have ended, so that the result does not depend on the number of
 * groups or on their speed. Groups that would wait take trials of the next bracket.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/sweep.h"

/* ---- the list of trials ---- */

/* Rungs of min, min * eta, ... epochs; the last one has max. */
static void add_rungs(const cvy_sweep_spec *spec, double first, cvy_bracket *b)
{
    double epochs = first, width = b->count;
    for (b->nrungs = 0; b->nrungs < CVY_SWEEP_RUNGS_MAX; b->nrungs++) {
        const int is_last = llround(epochs) >= spec->max || b->nrungs == CVY_SWEEP_RUNGS_MAX - 1;
        b->epochs[b->nrungs] = is_last ? spec->max : llround(epochs);
        b->width[b->nrungs] = CVY_MAX((int)(width + 1e-9), 1);
        epochs *= (double)spec->eta;
        width /= (double)spec->eta;
        if (is_last) {
            b->nrungs++;
            return;
        }
    }
}

/* The number of times by which min can be multiplied by eta without passing max. */
static int count_factors(const cvy_sweep_spec *spec)
{
    int n = 0;
    for (double at = (double)spec->min * (double)spec->eta; at <= (double)spec->max && n < CVY_SWEEP_RUNGS_MAX - 1;
         at *= (double)spec->eta)
        n++;
    return n;
}

static cvy_status make_brackets(cvy_sweep *s)
{
    const cvy_sweep_spec *spec = &s->spec;
    const int factors = spec->search == CVY_SWEEP_HYPERBAND ? count_factors(spec) : 0;
    double count = (double)spec->trials;
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *s->bracket * (size_t)(factors + 1), &s->bracket));
    if (spec->search == CVY_SWEEP_GRID) {
        count = 1;
        for (int k = 0; k < spec->nkey; k++)
            count *= spec->key[k].nvalues;
    }
    double all = 0;
    for (int i = factors; i >= 0; i--) {
        cvy_bracket *b = &s->bracket[s->nbrackets++];
        if (spec->search == CVY_SWEEP_HYPERBAND)
            count = ceil((double)(factors + 1) / (i + 1) * pow((double)spec->eta, i) - 1e-9);
        all += count;
        CVY_CHECK(all <= CVY_SWEEP_TRIALS_MAX, CVY_E_CONFIG,
                  "%s: the search has %.0f trials or more, at most %d are possible: take fewer values or random points",
                  spec->file, all, CVY_SWEEP_TRIALS_MAX);
        b->first = s->ntrials;
        b->count = (int)count;
        s->ntrials += b->count;
        if (spec->search >= CVY_SWEEP_HALVING)
            add_rungs(spec,
                      spec->search == CVY_SWEEP_HYPERBAND ? (double)spec->max * pow((double)spec->eta, -i)
                                                          : (double)spec->min,
                      b);
        else
            *b = (cvy_bracket){.first = b->first, .count = b->count, .nrungs = 1, .width = {b->count}};
    }
    return CVY_OK;
}

/* The overrides of a trial: those of all trials, the length of a whole training, and the trial's values. */
static cvy_status make_trial(cvy_sweep *s, int number)
{
    const cvy_sweep_spec *spec = &s->spec;
    cvy_trial *trial = &s->trial[number];
    char *text = NULL;
    int n = 0;
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *trial->value * (size_t)spec->nkey, &trial->value));
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *trial->set * (size_t)s->nset, &trial->set));
    CVY_TRY(cvy_sweep_point(spec, number, trial->value));
    for (int i = 0; i < spec->nset; i++)
        trial->set[n++] = spec->set[i];
    if (spec->search >= CVY_SWEEP_HALVING) {
        CVY_TRY(cvy_pool_printf(spec->pool, &text, "train.epochs=%lld", (long long)spec->max));
        trial->set[n++] = text;
    }
    for (int k = 0; k < spec->nkey; k++) {
        CVY_TRY(cvy_pool_printf(spec->pool, &text, "%s=%s", spec->key[k].name, trial->value[k]));
        trial->set[n++] = text;
    }
    return CVY_OK;
}

cvy_status cvy_sweep_plan(cvy_sweep *s)
{
    CVY_TRY(make_brackets(s));
    s->nset = s->spec.nset + s->spec.nkey + (s->spec.search >= CVY_SWEEP_HALVING);
    CVY_TRY(cvy_pool_alloc(s->spec.pool, sizeof *s->trial * (size_t)s->ntrials, &s->trial));
    for (int b = 0; b < s->nbrackets; b++)
        for (int i = 0; i < s->bracket[b].count; i++) {
            s->trial[s->bracket[b].first + i].bracket = b;
            CVY_TRY(make_trial(s, s->bracket[b].first + i));
        }
    return CVY_OK;
}

/* ---- decisions ---- */

/* Whether trial a was better than b at the end of a rung. Trials without a score are last; equal ones go by number. */
static int is_better(const cvy_sweep *s, int a, int b, int rung)
{
    const double x = s->trial[a].score[rung], y = s->trial[b].score[rung];
    if (isfinite(x) != isfinite(y))
        return isfinite(x);
    if (!isfinite(x) || x == y)
        return a < b;
    return s->higher ? x > y : x < y;
}

/* Whether the trial has ended this rung with a score. */
static int has_score(const cvy_trial *trial, int rung)
{
    return trial->nscores > rung && isfinite(trial->score[rung]);
}

/* Lets the best trials of `rung` - 1 train in `rung`, and ends the others. Returns 0 if that cannot be decided yet. */
static int decide(cvy_sweep *s, const cvy_bracket *b, int rung)
{
    cvy_trial *trial = &s->trial[b->first];
    for (int i = 0; i < b->count; i++)
        if (trial[i].rung >= rung - 1 && trial[i].nscores < rung && trial[i].state != CVY_TRIAL_FAILED)
            return 0;
    for (int i = 0; i < b->count; i++) {
        int better = 0;
        if (trial[i].rung < rung - 1 || trial[i].nscores < rung)
            continue;
        for (int k = 0; k < b->count; k++)
            better += k != i && trial[k].rung >= rung - 1 && has_score(&trial[k], rung - 1) &&
                      is_better(s, b->first + k, b->first + i, rung - 1);
        if (has_score(&trial[i], rung - 1) && better < b->width[rung])
            trial[i].rung = CVY_MAX(trial[i].rung, rung);
        else if (trial[i].state == CVY_TRIAL_WAITING)
            trial[i].state = CVY_TRIAL_FINISHED;
    }
    return 1;
}

int cvy_sweep_settle(cvy_sweep *s)
{
    int open = 0;
    for (int b = 0; b < s->nbrackets; b++)
        for (int rung = 1; rung < s->bracket[b].nrungs && decide(s, &s->bracket[b], rung); rung++) {
        }
    for (int i = 0; i < s->ntrials; i++)
        open += s->trial[i].state == CVY_TRIAL_WAITING || s->trial[i].state == CVY_TRIAL_RUNNING;
    return open == 0;
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

/* ---- the ranking ---- */

double cvy_sweep_score(const cvy_sweep *s, int number)
{
    const cvy_trial *trial = &s->trial[number];
    return trial->state != CVY_TRIAL_FAILED && trial->nscores ? trial->score[trial->nscores - 1] : NAN;
}

static int64_t rank_epochs(const cvy_sweep *s, int number)
{
    const cvy_trial *trial = &s->trial[number];
    return trial->nscores ? s->bracket[trial->bracket].epochs[trial->nscores - 1] : 0;
}

static int is_before(const cvy_sweep *s, int a, int b)
{
    const double x = cvy_sweep_score(s, a), y = cvy_sweep_score(s, b);
    if (isfinite(x) != isfinite(y))
        return isfinite(x);
    if (!isfinite(x))
        return a < b;
    if (rank_epochs(s, a) != rank_epochs(s, b))
        return rank_epochs(s, a) > rank_epochs(s, b);
    return x == y ? a < b : s->higher ? x > y : x < y;
}

int cvy_sweep_rank(const cvy_sweep *s, int *order)
{
    int n = 0;
    for (int i = 0; i < s->ntrials; i++) { /* insertion: the list is short, or nearly in order */
        int at = i;
        for (; at > 0 && is_before(s, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
        n += isfinite(cvy_sweep_score(s, i)) != 0;
    }
    return n;
}
