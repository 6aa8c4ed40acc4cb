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

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "monitor/monitor_run_layout.h"
#include "sweep/sweep_run.h"
#include "train/trainer.h"

/* ---- waiting ---- */

void cvy_sweep_pause(int round)
{
    const struct timespec pause = {.tv_nsec = 200000L << CVY_MIN(round, 5)}; /* 0.2 to 6.4 ms */
    nanosleep(&pause, NULL);
}

cvy_status cvy_sweep_meet(const cvy_comm *comm, cvy_request *request)
{
    int done = request == NULL;
    if (request)
        CVY_TRY(comm->reduce->start(request));
    for (int round = 0; !done; round++) {
        CVY_TRY(comm->reduce->test(request, &done));
        if (!done)
            cvy_sweep_pause(round);
    }
    return CVY_OK;
}

/* All ranks of the communicator make a request together. */
static cvy_status make_meeting(cvy_comm *comm, cvy_sweep_meeting *out)
{
    const cvy_allreduce_opts reduce = {.algorithm = "library"}; /* one number: nothing needs to be measured for it */
    return comm->nranks == 1 ? CVY_OK
                             : comm->reduce->create(comm, &reduce, &out->ready, 1, CVY_DTYPE_F64, NULL, &out->request);
}

/* ---- the folder ---- */

static int is_resumed(const cvy_sweep_run *run)
{
    return run->opts->resume || run->opts->retry;
}

/* A lock file does not count: a search that was killed during its preparation leaves only that. */
static cvy_status is_unused(cvy_pool *pool, const char *folder, int *out)
{
    char **names = NULL;
    int64_t count = 0;
    CVY_TRY(cvy_file_list(pool, folder, &names, &count));
    *out = 1;
    for (int64_t i = 0; i < count; i++)
        *out &= cvy_run_is_lock(names[i]);
    return CVY_OK;
}

static cvy_status check_folder(const cvy_sweep_run *run)
{
    const char *out = run->opts->out;
    char state[CVY_SWEEP_PATH];
    int is_new = 1;
    snprintf(state, sizeof state, "%s/" CVY_SWEEP_STATE, out);
    const int holds_search = cvy_file_exists(state), resumes = is_resumed(run);
    if (cvy_file_exists(out))
        CVY_TRY(is_unused(run->sweep.spec.pool, out, &is_new));
    CVY_CHECK(resumes || !holds_search, CVY_E_IO,
              "%s holds a search already: continue it with --resume, or choose another --out", out);
    CVY_CHECK(resumes || is_new, CVY_E_IO, "%s exists already and is not empty: choose another --out", out);
    CVY_CHECK(!resumes || holds_search, CVY_E_IO,
              "%s holds no search, so there is nothing to resume: name the folder of a search with --out, or begin one "
              "without --resume",
              out);
    return CVY_OK;
}

/* On rank 0. The state is read under the lock: a search that still ran would write another one. */
static cvy_status open_folder(cvy_sweep_run *run)
{
    const char *out = run->opts->out;
    char *warning = NULL;
    CVY_TRY(check_folder(run));
    CVY_TRY(cvy_file_make_folder(out));
    const cvy_status status = cvy_run_lock(out, &run->lock, &warning);
    if (warning)
        cvy_log(run->all, CVY_LOG_WARN, "%s", warning);
    cvy_mem_free(&warning);
    cvy_context_say_protections(run->all);
    CVY_TRY(status);
    CVY_TRY(check_folder(run));
    if (is_resumed(run))
        CVY_TRY(cvy_sweep_load(&run->sweep, out));
    if (run->opts->retry)
        run->nretried = cvy_sweep_retry(&run->sweep);
    run->is_done = cvy_sweep_advance(run);
    CVY_TRY(cvy_sweep_first_fault(run));
    return cvy_sweep_save(&run->sweep, out);
}

/* ---- reading ---- */

static cvy_status read_search(cvy_sweep_run *run, const char *path)
{
    const cvy_sweep_opts *o = run->opts;
    const int nranks = run->comm->nranks;
    CVY_CHECK(path && *path, CVY_E_ARGUMENT, "a search needs a sweep file: name it");
    CVY_CHECK(o->out && *o->out, CVY_E_ARGUMENT, "a search needs a folder for its trials: name it with --out");
    CVY_CHECK(strlen(o->out) < CVY_SWEEP_OUT_MAX, CVY_E_ARGUMENT,
              "the name of the search's folder has %zu characters, expected fewer than %d: choose another --out",
              strlen(o->out), CVY_SWEEP_OUT_MAX);
    CVY_TRY(cvy_sweep_spec_read(path, o->sets, o->nsets, &run->sweep.spec));
    CVY_CHECK(
        run->sweep.spec.ranks <= nranks, CVY_E_CONFIG,
        "%s: ranks_per_trial is %lld, but there %s only %d rank%s: start more of them with mpiexec, or take fewer "
        "for a trial",
        path, (long long)run->sweep.spec.ranks, nranks == 1 ? "is" : "are", nranks, nranks == 1 ? "" : "s");
    return cvy_sweep_plan(&run->sweep);
}

/* Lines of the text that all ranks compare: the parts of the search, and what these words name. */
static cvy_status differs(int line, const char *here, const char *there)
{
    static const char *const others[] = {"ranks_per_trial", "--out", "--resume or --retry"};
    const int nparts = CVY_COUNT(cvy_sweep_parts);
    const char *what = line < nparts                       ? cvy_sweep_parts[line]
                       : line < nparts + CVY_COUNT(others) ? others[line - nparts]
                                                           : "a line";
    CVY_FAIL(
        CVY_E_DISAGREE,
        "rank 0 has another search: %s is \"%s\" here and \"%s\" there; start all ranks with the same command line "
        "and files",
        what, here ? here : "", there ? there : "");
}

/* All ranks must have read the same file, with the same options. */
static cvy_status compare(const cvy_sweep_run *run)
{
    const cvy_sweep_opts *o = run->opts;
    cvy_text text = {0};
    for (int i = 0; i < CVY_COUNT(run->sweep.spec.part); i++)
        cvy_text_add(&text, "%s\n", run->sweep.spec.part[i]);
    cvy_text_add(&text, "%lld\n%s\n%d%d\n", (long long)run->sweep.spec.ranks, o->out, o->resume != 0, o->retry != 0);
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
    CVY_CALLBACK();
    run->all->opts.fatal(run->all->opts.fatal_user, status, text);
}

/* The number of threads is that of the whole search: a group does not see which other ranks share its cores. */
static cvy_status make_context(cvy_sweep_run *run, cvy_comm *comm)
{
    cvy_context_opts opts = run->all->opts;
    opts.threads = run->all->threads;
    opts.log = log_line;
    opts.log_user = opts.fatal_user = run;
    opts.fatal = on_fatal;
    opts.device = run->all->device;
    CVY_TRY(cvy_context_create_over(comm, &opts, &run->context));
    run->context->turn = run->all->turn;
    run->context->cores_each = run->all->cores_each;
    run->context->sharing = run->all->sharing;
    return CVY_OK;
}

/* Neighbouring ranks are a group. */
static cvy_status make_groups(cvy_sweep_run *run)
{
    const int each = (int)run->sweep.spec.ranks, nranks = run->comm->nranks;
    cvy_comm *comm = NULL;
    run->ngroups = nranks / each;
    run->first = nranks % each != 0;
    const int at = run->comm->rank - run->first;
    run->mine = at >= 0 && at / each < run->ngroups ? at / each : -1;
    CVY_TRY(cvy_comm_split(run->comm, run->mine >= 0 ? run->mine : CVY_NO_COLOR, run->comm->rank, &comm));
    cvy_status status = comm ? make_context(run, comm) : CVY_OK;
    if (status == CVY_OK && run->comm->rank == 0)
        status = cvy_mem_alloc(sizeof *run->group * (size_t)run->ngroups, &run->group);
    for (int g = 0; run->group && g < run->ngroups; g++)
        run->group[g] = (cvy_sweep_group){.leader = run->first + g * each};
    CVY_TRY(cvy_comm_agree(run->comm, status));
    if (run->context)
        status = make_meeting(run->context->comm, &run->group_meeting);
    if (status == CVY_OK)
        status = cvy_sweep_open_messages(run);
    return cvy_comm_agree(run->comm, status);
}

/* ---- trying trials out ---- */

/* Marks, in *is_new_out [trials], those that are the first ones with some value of a list. Both ends of a range were
 * checked by the job. */
static cvy_status find_new_values(const cvy_sweep *s, char **is_new_out)
{
    char *is_new = NULL, *seen = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)s->ntrials, &is_new));
    for (int k = 0; k < s->spec.nkey; k++) {
        if (s->spec.key[k].kind != CVY_SWEEP_LIST)
            continue;
        CVY_TRY_OUT(cvy_mem_alloc((size_t)s->spec.key[k].nvalues, &seen));
        for (int i = 0; i < s->ntrials; i++) {
            const int value = (int)s->trial[i].place[k];
            is_new[i] |= !seen[value];
            seen[value] = 1;
        }
        cvy_mem_free(&seen);
    }
    *is_new_out = is_new;
    is_new = NULL;
out:
    cvy_mem_free(&is_new);
    return status;
}

/* The members of a population must have the same variables, because they copy checkpoints. The leader compares those of
 * its rank with those of the leader of the first group. */
static cvy_status check_variables(const cvy_sweep_run *run, int trial, uint64_t variables)
{
    cvy_comm *comm = run->context->comm;
    cvy_status status = CVY_OK;
    cvy_text values = {0};
    if (comm->rank == 0 && variables != run->variables) {
        cvy_sweep_add_values(&run->sweep, trial, &values);
        status =
            cvy_error_set(CVY_E_CONFIG,
                          "its values (%s) give the network or the optimiser other variables than those of trial 1, "
                          "and a member of a population goes on from the checkpoint of another: leave such values "
                          "out, or take another search",
                          values.data ? values.data : "");
    }
    cvy_text_free(&values);
    return cvy_comm_agree(comm, status);
}

/* With higher_out it is the first trial. */
static cvy_status probe_trial(cvy_sweep_run *run, int trial, int *higher_out)
{
    const cvy_sweep_spec *spec = &run->sweep.spec;
    const cvy_job_source job = cvy_sweep_source(spec, run->sweep.trial[trial].set, run->sweep.nset);
    const int is_population = spec->search == CVY_SWEEP_POPULATION;
    uint64_t variables = 0;
    cvy_status status = cvy_trainer_probe(run->context, &job, spec->file, higher_out ? spec->metric : NULL, higher_out,
                                          is_population ? &variables : NULL);
    if (higher_out) {
        run->variables = variables;
        return status;
    }
    if (status == CVY_OK && is_population)
        status = check_variables(run, trial, variables);
    return status == CVY_OK ? status : cvy_error_prefix(status, "trial %d", trial + 1);
}

/* The first group makes the program of the first trial, while the others sleep. So faults of the job or its data are
 * found before any trial begins. It also tells whether a high score is good. */
static cvy_status probe_first(cvy_sweep_run *run)
{
    cvy_sweep *s = &run->sweep;
    int higher = 0;
    const cvy_status status = run->mine == 0 ? probe_trial(run, 0, &higher) : CVY_OK;
    CVY_TRY(cvy_sweep_meet(run->comm, run->meeting.request));
    CVY_TRY(cvy_comm_agree(run->comm, status));
    CVY_TRY(run->comm->ops->broadcast(run->comm, &higher, sizeof higher, run->first));
    CVY_TRY(run->comm->ops->broadcast(run->comm, &run->variables, sizeof run->variables, run->first));
    s->higher = s->spec.goal == CVY_SWEEP_GOAL_AUTO ? higher : s->spec.goal == CVY_SWEEP_GOAL_MAX;
    return CVY_OK;
}

/* The groups share the trials with values that are not checked yet: only the network and the optimiser know what they
 * accept. */
static cvy_status probe_others(cvy_sweep_run *run)
{
    const cvy_sweep *s = &run->sweep;
    char *is_new = NULL;
    int n = 0;
    cvy_status status = cvy_comm_agree(run->comm, find_new_values(s, &is_new));
    for (int i = 1; i < s->ntrials && run->context && status == CVY_OK; i++)
        if (is_new[i] && n++ % run->ngroups == run->mine)
            status = probe_trial(run, i, NULL);
    cvy_mem_free(&is_new);
    return cvy_comm_agree(run->comm, status);
}

/* ---- the search ---- */

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

static void say_begin(const cvy_sweep_run *run)
{
    const cvy_sweep *s = &run->sweep;
    const int each = (int)s->spec.ranks, left = run->comm->nranks - each * run->ngroups;
    const int idle = run->ngroups - s->ntrials;
    cvy_text line = {0};
    cvy_text_add(&line, "%d trial%s on %d group%s of %d rank%s", s->ntrials, plural(s->ntrials), run->ngroups,
                 plural(run->ngroups), each, plural(each));
    if (left == 1)
        cvy_text_add(&line, "; rank 0 is left over and only coordinates");
    else if (left > 1)
        cvy_text_add(&line, "; %d ranks are left over: rank 0 coordinates, and the others are idle", left);
    if (idle > 0)
        cvy_text_add(&line, "; %d group%s no trial: take fewer ranks, or more for a trial (ranks_per_trial)", idle,
                     idle == 1 ? " gets" : "s get");
    if (run->opts->retry)
        cvy_text_add(&line, "; %d failed trial%s tried again", run->nretried, run->nretried == 1 ? " is" : "s are");
    if (line.status == CVY_OK && run->opts->line) {
        CVY_CALLBACK();
        run->opts->line(run->opts->user, line.data);
    }
    cvy_text_free(&line);
}

static cvy_status prepare(cvy_sweep_run *run, const char *path)
{
    const int is_root = run->comm->rank == 0;
    CVY_TRY(cvy_comm_agree(run->comm, read_search(run, path)));
    CVY_TRY(compare(run));
    CVY_TRY(cvy_comm_agree(run->comm, make_meeting(run->comm, &run->meeting)));
    cvy_status status = is_root ? check_folder(run) : CVY_OK;
    if (status == CVY_OK && is_root)
        status = cvy_sweep_check(&run->sweep, (int)run->sweep.spec.ranks);
    CVY_TRY(cvy_sweep_meet(run->comm,
                           run->meeting.request)); /* the others sleep while rank 0 reads the job of each trial */
    CVY_TRY(cvy_comm_agree(run->comm, status));
    run->end_time = run->opts->end_time;
    CVY_TRY(run->comm->ops->broadcast(run->comm, &run->end_time, sizeof run->end_time, 0));
    CVY_TRY(make_groups(run));
    CVY_TRY(probe_first(run));
    if (!is_resumed(run))
        CVY_TRY(probe_others(run));
    status = is_root ? open_folder(run) : CVY_OK; /* it may wait for processes of an earlier start */
    CVY_TRY(cvy_sweep_meet(run->comm, run->meeting.request));
    return cvy_comm_agree(run->comm, status);
}

/* On rank 0, after all groups have ended. */
static cvy_status finish(cvy_sweep_run *run, cvy_sweep_result *result)
{
    const cvy_sweep *s = &run->sweep;
    int *order = NULL, nscored = 0;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_sweep_first_fault(run));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *order * (size_t)s->ntrials, &order));
    CVY_TRY_OUT(cvy_sweep_rank(s, order, &nscored));
    result->scored = nscored;
    result->best = nscored ? order[0] + 1 : 0;
    result->score = nscored ? cvy_sweep_score(s, order[0]) : NAN;
    for (int i = 0; i < s->ntrials; i++)
        result->failed += s->trial[i].state == CVY_TRIAL_FAILED;
    CVY_TRY_OUT(cvy_sweep_save(s, run->opts->out));
    if (nscored)
        CVY_TRY_OUT(cvy_sweep_write_best(s, run->opts->out, order[0]));
out:
    cvy_mem_free(&order);
    return status != CVY_OK || run->is_done ? status : CVY_STOPPED;
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
        return cvy_sweep_first_fault(run);
    CVY_TRY(cvy_sweep_meet(run->comm, run->meeting.request));
    result->trials = run->sweep.ntrials;
    result->idle_ranks = run->comm->nranks - run->ngroups * run->sweep.spec.ranks;
    const cvy_status status = cvy_comm_agree(run->comm, run->comm->rank == 0 ? finish(run, result) : CVY_OK);
    if (status >= 0)
        CVY_TRY(run->comm->ops->broadcast(run->comm, result, sizeof *result, 0));
    return status;
}

static void close_run(cvy_sweep_run *run)
{
    cvy_sweep_close_messages(run);
    if (run->group_meeting.request)
        run->context->comm->reduce->destroy(&run->group_meeting.request);
    if (run->meeting.request)
        run->comm->reduce->destroy(&run->meeting.request);
    cvy_mem_free(&run->group);
    cvy_context_destroy(&run->context);
    cvy_pool_destroy(&run->sweep.spec.pool);
    cvy_run_unlock(run->opts->out, &run->lock);
}

cvy_status cvy_run_sweep(cvy_context *context, const char *path, const cvy_sweep_opts *opts,
                         cvy_sweep_result *result_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_sweep_opts own;
    cvy_sweep_result result = {.size = sizeof result, .score = NAN};
    cvy_status status = CVY_OPTS_READ(cvy_sweep_opts, opts, &own);
    if (status == CVY_OK)
        status = CVY_RESULT_CHECK(cvy_sweep_result, result_out);
    if (status == CVY_OK && own.control)
        status = cvy_handle_check(own.control, CVY_HANDLE_TRAIN_CONTROL, "opts.control");
    CVY_TRY(cvy_comm_agree(context->comm, status));
    cvy_sweep_run run = {.all = context, .comm = context->comm, .opts = &own, .lock = -1, .mine = -1};
    status = cvy_comm_agree(run.comm, cvy_handle_add(&run.control, CVY_HANDLE_TRAIN_CONTROL));
    if (status == CVY_OK)
        status = search(&run, path, &result);
    cvy_handle_remove(&run.control);
    if (result_out && status >= 0)
        cvy_result_write(result_out, &result, sizeof result);
    close_run(&run);
    return status;
}
