/*
 * sweep_population.c: population-based training (Jaderberg et al. 2017): all members train at once, and at the end of
 * each rung the worst ones become copies of the best ones (truncation selection) and change the values of their keys a
 * little. So the search finds a schedule of values and not only one value.
 *
 * All draws depend on the seed, the rung and the member. So the rungs of a search that was killed are decided again, in
 * the same way, from the scores that were kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>

#include "base/number/base_rng.h"
#include "sweep/sweep_search.h"

/* ---- other values ---- */

/* A value of a list moves to a neighbour, and stays if it is the last one in that direction. */
static double move(const cvy_sweep_key *key, double place, const cvy_rng *rng, uint64_t draw)
{
    const double next = place + (cvy_rng_below(rng, draw, 2) ? 1 : -1);
    return fmin(fmax(next, 0), key->nvalues - 1);
}

/* A number of a range is multiplied by one of the factors, and stays in the range. An integer changes by 1 at least. */
static double multiply(const cvy_sweep_spec *spec, const cvy_sweep_key *key, double place, const cvy_rng *rng,
                       uint64_t draw)
{
    const double factor = spec->factor[cvy_rng_below(rng, draw, (uint64_t)spec->nfactor)];
    double next = place * factor;
    if (key->is_whole) {
        next = round(next);
        if (next == place && factor != 1)
            next += (factor > 1) == (place >= 0) ? 1 : -1; /* away from 0, or towards it */
    }
    return fmin(fmax(next, key->low), key->high);
}

static void explore(const cvy_sweep_spec *spec, const cvy_rng *rng, const double *from, double *to)
{
    for (int k = 0; k < spec->nkey; k++) {
        const cvy_sweep_key *key = &spec->key[k];
        const uint64_t draw = (uint64_t)k + 1;
        to[k] = key->kind == CVY_SWEEP_LIST ? move(key, from[k], rng, draw) : multiply(spec, key, from[k], rng, draw);
    }
}

/* ---- a rung ---- */

typedef struct member {
    const cvy_sweep *sweep;
    int number, rung;
} member;

static int compare_members(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->number == y->number)
        return 0;
    return cvy_sweep_is_better(x->sweep, x->number, y->number, x->rung) ? -1 : 1;
}

/* Nobody is left whose copy a member could become: all have failed. The score that the failure stood for is taken
 * back, so that the rung can be tried again. */
static void end_all(cvy_sweep *s)
{
    for (int i = 0; i < s->ntrials; i++) {
        s->trial[i].state = CVY_TRIAL_FAILED;
        s->trial[i].nscores--;
    }
}

/* Lets a member begin the rung, as a copy of `parent` or, if that is -1, as it is. */
static cvy_status begin(cvy_sweep *s, int number, int rung, int parent, const cvy_rng *rng)
{
    cvy_trial *trial = &s->trial[number];
    double place[CVY_SWEEP_KEYS_MAX];
    if (parent >= 0) {
        explore(&s->spec, rng, s->trial[parent].place, place);
        CVY_TRY(cvy_sweep_place(s, number, place));
        trial->epochs = fmax(trial->epochs, (double)s->bracket[trial->bracket].epochs[rung - 1]);
    }
    trial->rung = rung;
    trial->generation[rung] = (cvy_generation){.parent = parent, .value = trial->value};
    return CVY_OK;
}

/* order: the members, the best one first; nscored of them have a score. The share is half of them at most, so a parent
 * is no copy itself. */
static cvy_status begin_all(cvy_sweep *s, const member *order, int nscored, int rung)
{
    const int nworst = CVY_MAX((int)(s->spec.share * s->ntrials + 1e-9), 1), nbest = CVY_MIN(nworst, nscored);
    for (int i = 0; i < s->ntrials; i++) {
        const int number = order[i].number;
        const cvy_rng rng = cvy_rng_make((uint64_t)s->spec.seed, "population", (uint64_t)rung, (uint64_t)number);
        const int is_scored = isfinite(s->trial[number].score[rung - 1]);
        const int is_copy = !is_scored || i >= s->ntrials - nworst;
        const int parent = is_copy ? order[cvy_rng_below(&rng, 0, (uint64_t)nbest)].number : -1;
        CVY_TRY(begin(s, number, rung, parent, &rng));
    }
    return CVY_OK;
}

cvy_status cvy_sweep_evolve(cvy_sweep *s, int rung)
{
    member *order = NULL;
    int nscored = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *order * (size_t)s->ntrials, &order));
    for (int i = 0; i < s->ntrials; i++) {
        order[i] = (member){s, i, rung - 1};
        nscored += isfinite(s->trial[i].score[rung - 1]) != 0;
    }
    qsort(order, (size_t)s->ntrials, sizeof *order, compare_members);
    cvy_status status = CVY_OK;
    if (nscored)
        status = begin_all(s, order, nscored, rung);
    else
        end_all(s);
    cvy_mem_free(&order);
    return status;
}
