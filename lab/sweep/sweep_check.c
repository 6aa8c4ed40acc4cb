/*
 * sweep_check.c: what can be said about all trials before the first one begins: whether the job has the keys, and
 * whether it accepts each value and each combination.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "sweep/sweep_search.h"

/* Reads the job with some overrides. */
static cvy_status read_job(const cvy_sweep *s, const char *const *sets, int nsets, int nranks)
{
    const cvy_job_source source = cvy_sweep_source(&s->spec, sets, nsets);
    cvy_job_about about = {.size = sizeof about};
    return cvy_run_read_job(&source, nranks, &about);
}

/* The job as all trials have it, with one value of one key. The other keys keep the value that the job gives them. */
static cvy_status check_value(const cvy_sweep *s, const cvy_sweep_key *key, const char *value, int nranks)
{
    const cvy_sweep_spec *spec = &s->spec;
    const char **sets = NULL;
    char *set = NULL;
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *sets * (size_t)(spec->nset + 1), &sets));
    CVY_TRY(cvy_pool_printf(spec->pool, &set, "%s=%s", key->name, value));
    for (int i = 0; i < spec->nset; i++)
        sets[i] = spec->set[i];
    sets[spec->nset] = set;
    const cvy_status status = read_job(s, sets, spec->nset + 1, nranks);
    return status == CVY_OK ? status : cvy_error_prefix(status, "%s: space.%s", key->where, key->name);
}

/* Both ends of a range, and a value inside it, which may be no integer although the ends are. */
static cvy_status check_range(const cvy_sweep *s, const cvy_sweep_key *key, int nranks)
{
    const double inside = cvy_sweep_between(key, key->high, 0.382);
    const double places[] = {key->low, key->high, key->is_whole ? round(inside) : inside};
    for (int i = 0; i < CVY_COUNT(places); i++) {
        const char *value = NULL;
        CVY_TRY(cvy_sweep_print(s->spec.pool, key, places[i], &value));
        const cvy_status status = check_value(s, key, value, nranks);
        if (status != CVY_OK && i == 2 && !key->is_whole)
            return cvy_error_prefix(status, "%s is inside the range, for integers take int_%s", value,
                                    key->kind == CVY_SWEEP_UNIFORM ? "uniform" : "log_uniform");
        CVY_TRY(status);
    }
    return CVY_OK;
}

static cvy_status check_key(const cvy_sweep *s, const cvy_sweep_key *key, int nranks)
{
    if (!key->nvalues)
        return check_range(s, key, nranks);
    for (int i = 0; i < key->nvalues; i++)
        CVY_TRY(check_value(s, key, key->value[i], nranks));
    return CVY_OK;
}

/* A member of a population goes on from the checkpoint of another. So it must have the same weights, states and order
 * of samples, whatever its values are. */
static cvy_status check_population(const cvy_sweep *s)
{
    static const char *const may_change[] = {"train.optimizer.", "train.schedule", "train.loss",  "train.clip_norm",
                                             "train.clip_value", "train.l1",       "data.augment"};
    for (int k = 0; k < s->spec.nkey; k++) {
        const cvy_sweep_key *key = &s->spec.key[k];
        int is_known = 0;
        for (int i = 0; i < CVY_COUNT(may_change); i++)
            is_known |= strncmp(key->name, may_change[i], strlen(may_change[i])) == 0;
        CVY_CHECK(is_known && strcmp(key->name, "train.optimizer.name") != 0, CVY_E_CONFIG,
                  "%s: space.%s cannot change while a trial trains, and members of a population copy checkpoints: "
                  "expected keys of train.optimizer (but its name), train.schedule or train.loss, train.clip_norm, "
                  "train.clip_value, train.l1 or data.augment",
                  key->where, key->name);
    }
    return CVY_OK;
}

/* Rungs count epochs, and a job that counts steps has none to be cut. */
static cvy_status check_length(const cvy_sweep *s, const cvy_job_source *job)
{
    char *steps = NULL;
    if (s->spec.search < CVY_SWEEP_HALVING)
        return CVY_OK;
    CVY_TRY(cvy_run_job_value(job, "train.steps", &steps));
    const int64_t n = strtoll(steps, NULL, 10);
    cvy_text_release(&steps);
    CVY_CHECK(n == 0, CVY_E_CONFIG,
              "%s: train.steps is %lld, but the search counts in epochs: give train.epochs instead", s->spec.job,
              (long long)n);
    return CVY_OK;
}

/* A trial writes into its run folder, and events into a folder of its name, but a trace into a file that all of them
 * would share. */
static cvy_status check_trace(const cvy_sweep *s, const cvy_job_source *job)
{
    char *trace = NULL;
    CVY_TRY(cvy_run_job_value(job, "log.trace", &trace));
    const int is_given = strcmp(trace, "null") != 0;
    if (is_given)
        cvy_error_set(CVY_E_CONFIG,
                      "%s: log.trace is %s, and all trials would write that file: switch it off with set: {log.trace: "
                      "null} in %s",
                      s->spec.job, trace, s->spec.file);
    cvy_text_release(&trace);
    return is_given ? CVY_E_CONFIG : CVY_OK;
}

cvy_status cvy_sweep_check(const cvy_sweep *s, int nranks)
{
    const cvy_job_source job = cvy_sweep_source(&s->spec, s->spec.set, s->spec.nset);
    CVY_TRY(read_job(s, s->spec.set, s->spec.nset, nranks));
    CVY_TRY(check_length(s, &job));
    CVY_TRY(check_trace(s, &job));
    if (s->spec.search == CVY_SWEEP_POPULATION)
        CVY_TRY(check_population(s));
    for (int k = 0; k < s->spec.nkey; k++)
        CVY_TRY(check_key(s, &s->spec.key[k], nranks));
    for (int i = 0; i < s->ntrials; i++) {
        const cvy_status status = read_job(s, s->trial[i].set, s->nset, nranks);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "%s: trial %d", s->spec.file, i + 1);
    }
    return CVY_OK;
}
