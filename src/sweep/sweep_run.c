/*
 * sweep_run.c: cvy_run_sweep(): reads the search on all ranks, splits them into groups, and lets the groups work.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_opts.h"
#include "monitor/monitor_run_layout.h"
#include "sweep/sweep_run.h"
#include "train/trainer.h"

/* ---- the folder ---- */

/* A lock file does not count: a search that was killed during its preparation leaves only that. */
static cvy_status is_unused(cvy_pool *pool, const char *folder, int *out)
{
    char **names = NULL;
    int64_t count = 0;
    CVY_TRY(cvy_file_list(pool, folder, &names, &count));
    *out = count == 0 || (count == 1 && strcmp(names[0], CVY_RUN_LOCK) == 0);
    return CVY_OK;
}

static cvy_status check_folder(const cvy_sweep_run *run, int holds_search)
{
    const char *out = run->opts->out;
    int is_new = 1;
    if (cvy_file_exists(out))
        CVY_TRY(is_unused(run->sweep.spec.pool, out, &is_new));
    CVY_CHECK(run->opts->resume || !holds_search, CVY_E_IO,
              "%s holds a search already: continue it with --resume, or choose another --out", out);
    CVY_CHECK(run->opts->resume || is_new, CVY_E_IO, "%s exists already: choose another --out", out);
    CVY_CHECK(!run->opts->resume || holds_search, CVY_E_IO, "%s holds no search, so there is nothing to resume", out);
    return CVY_OK;
}

/* On rank 0. The state is read under the lock: a search that still ran would write another one. */
static cvy_status open_folder(cvy_sweep_run *run)
{
    const char *out = run->opts->out;
    char state[CVY_SWEEP_PATH], *warning = NULL;
    snprintf(state, sizeof state, "%s/" CVY_SWEEP_STATE, out);
    CVY_TRY(check_folder(run, cvy_file_exists(state)));
    CVY_TRY(cvy_file_make_folder(out));
    const cvy_status status = cvy_run_lock(out, &run->lock, &warning);
    if (warning)
        cvy_log(run->all, CVY_LOG_WARN, "%s", warning);
    cvy_mem_free(&warning);
    CVY_TRY(status);
    CVY_TRY(check_folder(run, cvy_file_exists(state)));
    return run->opts->resume ? cvy_sweep_load(&run->sweep, out) : CVY_OK;
}

/* ---- reading ---- */

static cvy_status read_search(cvy_sweep_run *run, const char *path)
{
    const cvy_sweep_opts *o = run->opts;
    CVY_CHECK(path && *path, CVY_E_ARGUMENT, "a search needs a sweep file");
    CVY_CHECK(o->out && *o->out, CVY_E_ARGUMENT, "a search needs a folder for its trials: name it with --out");
    CVY_CHECK(strlen(o->out) < 500, CVY_E_ARGUMENT, "the name of the search's folder is longer than 499 characters");
    CVY_TRY(cvy_sweep_spec_read(path, o->sets, o->nsets, &run->sweep.spec));
    CVY_CHECK(
        run->sweep.spec.ranks <= run->comm->nranks, CVY_E_CONFIG,
        "%s: ranks_per_trial is %lld, but there %s only %d rank%s: start more of them with mpiexec, or take fewer "
        "for a trial",
        path, (long long)run->sweep.spec.ranks, run->comm->nranks == 1 ? "is" : "are", run->comm->nranks,
        run->comm->nranks == 1 ? "" : "s");
    return cvy_sweep_plan(&run->sweep);
}

static cvy_status differs(int line, const char *here, const char *there)
{
    CVY_FAIL(CVY_E_DISAGREE, "rank 0 has another search: part %d is \"%s\" here and \"%s\" there", line + 1,
             here ? here : "", there ? there : "");
}

/* All ranks must have read the same file. */
static cvy_status compare(const cvy_sweep_run *run)
{
    cvy_text text = {0};
    for (int i = 0; i < CVY_COUNT(run->sweep.spec.part); i++)
        cvy_text_add(&text, "%s\n", run->sweep.spec.part[i]);
    cvy_text_add(&text, "%lld\n%s\n", (long long)run->sweep.spec.ranks, run->opts->out);
    const cvy_status status = cvy_comm_compare(run->comm, &text, differs);
    cvy_text_free(&text);
    return status;
}

/* ---- groups ---- */

static void log_line(void *user, cvy_log_level level, const char *line)
{
    const cvy_sweep_run *run = user;
    cvy_log_local(run->all, level, "%s%s", run->line, line);
}

/* A fault inside a step of a group of one rank is known to the whole group, so it ends the trial only. */
static void on_fatal(void *user, cvy_status status, const char *text)
{
    const cvy_sweep_run *run = user;
    if ((run->context && run->context->comm->nranks == 1 && status != CVY_E_COMM) || !run->all->opts.fatal)
        return;
    run->all->opts.fatal(run->all->opts.fatal_user, status, text);
}

/* Neighbouring ranks are a group. The number of threads is that of the whole search: a group does not see which other
 * ranks share its cores. */
static cvy_status make_groups(cvy_sweep_run *run)
{
    const int each = (int)run->sweep.spec.ranks, nranks = run->comm->nranks;
    cvy_comm *comm = NULL;
    run->ngroups = nranks / each;
    run->first = nranks % each != 0;
    const int at = run->comm->rank - run->first;
    run->mine = at >= 0 && at / each < run->ngroups ? at / each : -1;
    CVY_TRY(cvy_comm_split(run->comm, run->mine >= 0 ? run->mine : CVY_NO_COLOR, run->comm->rank, &comm));
    cvy_context_opts opts = run->all->opts;
    opts.threads = run->all->threads;
    opts.log = log_line;
    opts.log_user = opts.fatal_user = run;
    opts.fatal = on_fatal;
    cvy_status status = CVY_OK;
    if (comm)
        status = cvy_context_create_over(comm, &opts, &run->context);
    if (run->context)
        run->context->cores_each = run->all->cores_each;
    if (status == CVY_OK && run->comm->rank == 0)
        status = cvy_mem_alloc(sizeof *run->group * (size_t)run->ngroups, &run->group);
    for (int g = 0; run->group && g < run->ngroups; g++)
        run->group[g] = (cvy_sweep_group){.leader = run->first + g * each, .trial = -1};
    return cvy_comm_agree(run->comm, status);
}

/* Whether no earlier trial has one of this trial's values of a list. Both ends of a range were checked by the job. */
static int has_new_value(const cvy_sweep *s, int trial)
{
    for (int k = 0; k < s->spec.nkey; k++) {
        int known = s->spec.key[k].kind != CVY_SWEEP_LIST;
        for (int i = 0; i < trial && !known; i++)
            known = s->trial[i].value[k] == s->trial[trial].value[k];
        if (!known)
            return 1;
    }
    return 0;
}

static cvy_status probe_trial(const cvy_sweep_run *run, int trial, int *higher_out)
{
    const cvy_sweep_spec *spec = &run->sweep.spec;
    const cvy_job_source job = cvy_sweep_source(spec, run->sweep.trial[trial].set, run->sweep.nset);
    const cvy_status status =
        cvy_trainer_probe(run->context, &job, spec->file, higher_out ? spec->metric : NULL, higher_out);
    return status == CVY_OK || higher_out ? status : cvy_error_prefix(status, "trial %d", trial + 1);
}

/* Makes the program of the first trial, so that faults of the job or its data are found before any trial begins. It
 * also tells whether a high score is good. Then the groups share the trials with values that are not checked yet: only
 * the network and the optimiser know what they accept. */
static cvy_status probe(cvy_sweep_run *run)
{
    cvy_sweep *s = &run->sweep;
    int higher = 0, n = 0;
    cvy_status status = run->context ? probe_trial(run, 0, &higher) : CVY_OK;
    CVY_TRY(cvy_comm_agree(run->comm, status));
    CVY_TRY(run->comm->ops->broadcast(run->comm, &higher, sizeof higher, run->first));
    s->higher = s->spec.goal == CVY_SWEEP_GOAL_AUTO ? higher : s->spec.goal == CVY_SWEEP_GOAL_MAX;
    for (int i = 1; i < s->ntrials && run->context && status == CVY_OK && !run->opts->resume; i++)
        if (has_new_value(s, i) && n++ % run->ngroups == run->mine)
            status = probe_trial(run, i, NULL);
    return cvy_comm_agree(run->comm, status);
}

/* ---- the search ---- */

static void say_begin(const cvy_sweep_run *run)
{
    char line[256];
    const cvy_sweep *s = &run->sweep;
    const int each = (int)s->spec.ranks, left = run->comm->nranks - each * run->ngroups;
    int n = snprintf(line, sizeof line, "%d trial%s on %d group%s of %d rank%s", s->ntrials, s->ntrials == 1 ? "" : "s",
                     run->ngroups, run->ngroups == 1 ? "" : "s", each, each == 1 ? "" : "s");
    if (left == 1)
        n += snprintf(line + n, sizeof line - (size_t)n, "; rank 0 is left over and only coordinates");
    else if (left > 1)
        n += snprintf(line + n, sizeof line - (size_t)n,
                      "; %d ranks are left over: rank 0 coordinates, and the others are idle", left);
    if (run->opts->line)
        run->opts->line(run->opts->user, line);
}

cvy_status cvy_sweep_meet(const cvy_comm *comm, cvy_request *request)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int done = 0;
    CVY_TRY(comm->reduce->start(request));
    while (!done) {
        CVY_TRY(comm->reduce->test(request, &done));
        if (!done)
            nanosleep(&pause, NULL);
    }
    return CVY_OK;
}

/* All ranks of the communicator make a request together. */
static cvy_status make_meeting(cvy_comm *comm, double *ready, cvy_request **out)
{
    const cvy_allreduce_opts reduce = {.algorithm = "library"}; /* one number: nothing needs to be measured for it */
    return comm->nranks == 1 ? CVY_OK : comm->reduce->create(comm, &reduce, ready, 1, CVY_DTYPE_F64, NULL, out);
}

static cvy_status prepare(cvy_sweep_run *run, const char *path)
{
    const int is_root = run->comm->rank == 0;
    CVY_TRY(cvy_comm_agree(run->comm, read_search(run, path)));
    CVY_TRY(compare(run));
    CVY_TRY(cvy_comm_agree(run->comm, is_root ? cvy_sweep_check(&run->sweep, (int)run->sweep.spec.ranks) : CVY_OK));
    CVY_TRY(make_groups(run));
    CVY_TRY(probe(run));
    CVY_TRY(cvy_comm_agree(run->comm, is_root ? open_folder(run) : CVY_OK));
    if (is_root)
        (void)cvy_sweep_settle(&run->sweep);
    CVY_TRY(cvy_comm_agree(run->comm, is_root ? cvy_sweep_save(&run->sweep, run->opts->out) : CVY_OK));
    CVY_TRY(cvy_comm_agree(run->comm, make_meeting(run->comm, &run->ready[0], &run->last)));
    cvy_status status = CVY_OK;
    if (run->context)
        status = make_meeting(run->context->comm, &run->ready[1], &run->together);
    if (status == CVY_OK)
        status = cvy_sweep_open_messages(run);
    return cvy_comm_agree(run->comm, status);
}

/* On rank 0, after all groups have ended. */
static cvy_status finish(cvy_sweep_run *run, cvy_sweep_result *result)
{
    const cvy_sweep *s = &run->sweep;
    int *order = NULL;
    if (run->fault != CVY_OK)
        return cvy_error_set(run->fault, "%s", run->fault_text);
    CVY_TRY(cvy_mem_alloc(sizeof *order * (size_t)s->ntrials, &order));
    const int nscored = cvy_sweep_rank(s, order);
    result->scored = nscored;
    result->best = nscored ? order[0] + 1 : 0;
    result->score = nscored ? cvy_sweep_score(s, order[0]) : NAN;
    for (int i = 0; i < s->ntrials; i++)
        result->failed += s->trial[i].state == CVY_TRIAL_FAILED;
    cvy_status status = cvy_sweep_save(s, run->opts->out);
    if (status == CVY_OK && nscored)
        status = cvy_sweep_write_best(s, run->opts->out, order[0]);
    cvy_mem_free(&order);
    CVY_TRY(status);
    return cvy_sweep_settle(&run->sweep) ? CVY_OK : CVY_STOPPED;
}

static cvy_status search(cvy_sweep_run *run, const char *path, cvy_sweep_result *result)
{
    CVY_TRY(prepare(run, path));
    if (run->comm->rank == 0)
        say_begin(run);
    cvy_train_control_say_idle(run->opts->control, 1);
    if (run->context)
        CVY_TRY(cvy_sweep_work(run));
    else if (run->comm->rank == 0)
        cvy_sweep_serve_own(run);
    if (run->fault == CVY_E_COMM)
        return cvy_error_set(run->fault, "%s", run->fault_text);
    if (run->last)
        CVY_TRY(cvy_sweep_meet(run->comm, run->last));
    result->trials = run->sweep.ntrials;
    result->idle_ranks = run->comm->nranks - run->ngroups * run->sweep.spec.ranks;
    const cvy_status status = cvy_comm_agree(run->comm, run->comm->rank == 0 ? finish(run, result) : CVY_OK);
    if (status >= 0)
        CVY_TRY(run->comm->ops->broadcast(run->comm, result, sizeof *result, 0));
    return status;
}

cvy_status cvy_run_sweep(cvy_context *context, const char *path, const cvy_sweep_opts *opts,
                         cvy_sweep_result *result_out)
{
    cvy_sweep_opts own;
    cvy_sweep_result result = {.size = sizeof result, .score = NAN};
    cvy_status status = CVY_OPTS_READ(cvy_sweep_opts, opts, &own);
    if (status == CVY_OK)
        status = CVY_RESULT_CHECK(cvy_sweep_result, result_out);
    CVY_TRY(cvy_comm_agree(context->comm, status));
    cvy_sweep_run run = {.all = context, .comm = context->comm, .opts = &own, .lock = -1, .mine = -1};
    status = search(&run, path, &result);
    if (result_out && status >= 0)
        cvy_result_write(result_out, &result, sizeof result);
    cvy_sweep_close_messages(&run);
    if (run.together)
        run.context->comm->reduce->destroy(&run.together);
    if (run.last)
        run.comm->reduce->destroy(&run.last);
    cvy_mem_free(&run.group);
    cvy_context_destroy(&run.context);
    cvy_pool_destroy(&run.sweep.spec.pool);
    if (run.lock >= 0)
        close(run.lock);
    return status;
}
