/*
 * train_folder.c: the run folder: what a training run writes and what a resumed one reads. Only rank 0 writes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "job/job_table.h"
#include "monitor/monitor_heartbeat.h"
#include "monitor/monitor_run_layout.h"
#include "train/trainer.h"

static int is_root(const cvy_trainer *t)
{
    return t->session.context->comm->rank == 0;
}

static void join_path(const cvy_trainer *t, const char *name, char path[CVY_RUN_PATH])
{
    cvy_run_path(t->folder.path, name, path);
}

/* ---- making and finding the folder ---- */

static cvy_status lock_folder(cvy_trainer *t)
{
    char *warning = NULL;
    const cvy_status status = cvy_run_lock(t->folder.path, &t->folder.lock, &warning);
    if (warning)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", warning);
    cvy_mem_free(&warning);
    cvy_context_say_protections(t->session.context);
    return status;
}

/* Takes the next free number. The folder is made at once, so that two jobs that start together do not share one. */
static cvy_status new_numbered_folder(cvy_trainer *t)
{
    if (cvy_file_make_folder("runs") != CVY_OK) {
        char reason[512];
        snprintf(reason, sizeof reason, "%s", cvy_error_text());
        return cvy_error_set(CVY_E_IO, "%s; name another with --out", reason);
    }
    for (int n = 1; n < 1000000; n++) {
        snprintf(t->folder.path, sizeof t->folder.path, "runs/%.200s-%03d", t->session.job->name, n);
        if (mkdir(t->folder.path, 0777) == 0)
            return cvy_file_sync_folder("runs");
        CVY_CHECK(errno == EEXIST, CVY_E_IO, "%s: cannot make the folder: %s; name another with --out", t->folder.path,
                  strerror(errno));
    }
    return cvy_error_set(CVY_E_IO, "runs/ is full of runs of %s: name another folder with --out", t->session.job->name);
}

/* A lock file does not count: a run that was killed during its preparation leaves only that. */
static int is_empty_folder(const char *path)
{
    DIR *dir = opendir(path);
    int others = 0;
    for (const struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        others += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && !cvy_run_is_lock(e->d_name);
    if (dir)
        closedir(dir);
    return dir && others == 0;
}

static cvy_status take_folder(cvy_trainer *t)
{
    const char *out = t->opts->out;
    CVY_CHECK(out || !t->opts->resume, CVY_E_ARGUMENT, "to resume, name the run folder with --out");
    if (!out) {
        CVY_TRY(new_numbered_folder(t));
        t->folder.is_new = 1;
        return CVY_OK;
    }
    CVY_CHECK(*out, CVY_E_ARGUMENT, "the run folder's name is empty");
    CVY_CHECK(strlen(out) < sizeof t->folder.path, CVY_E_ARGUMENT,
              "the run folder's name is longer than %zu characters", sizeof t->folder.path - 1);
    CVY_CHECK(!cvy_file_exists(out) || t->opts->resume || is_empty_folder(out), CVY_E_IO,
              "%s exists already: choose another --out, or continue in it with --resume", out);
    CVY_CHECK(cvy_file_exists(out) || !t->opts->resume, CVY_E_IO, "%s does not exist, so there is nothing to resume",
              out);
    snprintf(t->folder.path, sizeof t->folder.path, "%s", out);
    /* an empty folder that existed before the run must not be removed at a failure */
    const int is_there = cvy_file_exists(out);
    CVY_TRY(cvy_file_make_folder(out));
    t->folder.is_new = !is_there;
    return CVY_OK;
}

static cvy_status find_checkpoint(cvy_trainer *t)
{
    char path[CVY_RUN_PATH];
    join_path(t, CVY_RUN_CHECKPOINTS, path);
    const cvy_status status = cvy_checkpoint_find(path, NULL, &t->folder.resume);
    for (int i = 0; i < t->folder.resume.nmessage; i++)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", t->folder.resume.message[i]);
    if (status == CVY_END)
        return cvy_error_set(
            CVY_E_IO, "%s holds no checkpoint, so there is nothing to resume; start the job again with another --out",
            t->folder.path);
    return status;
}

/* A run that was begun without momentum has none in its checkpoints. It continues without, unless its job gives one. */
static cvy_status keep_momentum(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    char path[CVY_RUN_PATH];
    int had_none = 0, changed = 0;
    join_path(t, CVY_RUN_JOB, path);
    if (is_root(t))
        had_none = cvy_job_has_no_momentum(path);
    CVY_TRY(comm->ops->broadcast(comm, &had_none, sizeof had_none, 0));
    if (!had_none)
        return CVY_OK;
    CVY_TRY(cvy_comm_agree(comm, cvy_job_leave_out_momentum(t->session.job, &changed)));
    if (changed)
        cvy_text_add(&t->session.notes, "%s was begun with sgd without momentum, so it continues with momentum: 0\n",
                     t->folder.path);
    return t->session.notes.status;
}

cvy_status cvy_trainer_open_folder(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    cvy_status status = is_root(t) ? take_folder(t) : CVY_OK;
    if (status == CVY_OK && is_root(t)) {
        status = lock_folder(t);
        /* otherwise the folder belongs to another run and must not be removed */
        t->folder.is_new &= status == CVY_OK;
    }
    if (status == CVY_OK && is_root(t) && t->opts->resume)
        status = find_checkpoint(t);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->broadcast(comm, t->folder.path, sizeof t->folder.path, 0));
    if (!t->opts->resume)
        return CVY_OK;
    CVY_TRY(keep_momentum(t));
    return cvy_checkpoint_share(comm, CVY_OK, &t->folder.resume);
}

static cvy_status state_real(const cvy_tree *state, const char *key, double *out)
{
    const cvy_tree *node = cvy_tree_get(state, key);
    *out = NAN;
    return !node || !node->text || cvy_tree_is_null(node) ? CVY_OK : cvy_tree_real(node, out);
}

cvy_sampling cvy_trainer_sampling(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    cvy_sampling c = {t->order.nsamples,          t->order.batch,    t->order.accumulate,
                      (int64_t)job->program.seed, job->data.shuffle, job->data.window,
                      job->data.balance,          job->data.tail,    ""};
    snprintf(c.data, sizeof c.data, "%016llx", (unsigned long long)cvy_dataset_hash(t->session.train));
    return c;
}

static cvy_status check_sampling(const cvy_trainer *t)
{
    const cvy_sampling now = cvy_trainer_sampling(t);
    const struct {
        const char *key, *what;
        int64_t now;
    } numbers[] = {{"train_samples", "a number of training samples of", now.samples},
                   {"batch", "train.batch", now.batch},
                   {"accumulate", "train.accumulate", now.accumulate},
                   {"seed", "train.seed", now.seed},
                   {"shuffle", "data.shuffle (0 false, 1 true, 2 window)", now.shuffle},
                   {"window", "data.window", now.window},
                   {"balance", "data.balance (0 none, 1 class)", now.balance},
                   {"tail", "data.tail (0 keep, 1 drop)", now.tail}};
    const cvy_tree *data = cvy_tree_get(t->folder.resume.state, "train_data");
    for (int i = 0; i < CVY_COUNT(numbers); i++) {
        const cvy_tree *node = cvy_tree_get(t->folder.resume.state, numbers[i].key);
        int64_t then = numbers[i].now;
        if (node)
            CVY_TRY(cvy_tree_int(node, &then));
        CVY_CHECK(
            then == numbers[i].now, CVY_E_CONFIG,
            "%s was saved with %s %lld, this job has %lld: resume with the job as it was, or start a new run with "
            "train.init: %s",
            t->folder.resume.path, numbers[i].what, (long long)then, (long long)numbers[i].now,
            t->folder.resume.weights_path[0]);
    }
    CVY_CHECK(!data || !data->text || strcmp(data->text, now.data) == 0, CVY_E_CONFIG,
              "%s was saved with other training data than this job has: resume with the data as they were, or start "
              "anew with train.init: %s",
              t->folder.resume.path, t->folder.resume.weights_path[0]);
    return CVY_OK;
}

/* Whether the value under `key` names this metric. Scores of different metrics cannot be compared. */
static int is_of(const cvy_tree *state, const char *key, const char *metric)
{
    const cvy_tree *node = cvy_tree_get(state, key);
    return !node || !node->text || !metric || strcmp(node->text, metric) == 0;
}

/* Restores early stopping. A run that has already stopped early has nothing left to do. */
static cvy_status restore_stop(cvy_trainer *t)
{
    const struct cvy_job_stop *stop = &t->session.job->train.stop;
    const cvy_tree *state = t->folder.resume.state, *bad = cvy_tree_get(state, "stop_bad_epochs");
    if (!is_of(state, "stop_metric", stop->metric))
        return CVY_OK;
    CVY_TRY(state_real(state, "stop_best", &t->state.stop_best));
    if (bad)
        CVY_TRY(cvy_tree_int(bad, &t->state.stop_bad_epochs));
    return cvy_trainer_restore_stop(t);
}

/* If a run was killed after it saved a best set and before it marked the set, the mark is missing and is made now. */
static cvy_status restore_best(cvy_trainer *t)
{
    char dir[640];
    int is_best = 0;
    const char *metric = t->session.job->checkpoint.best;
    const cvy_tree *state = t->folder.resume.state, *node = cvy_tree_get(state, "is_best");
    if (!metric || !is_of(state, "best_metric", metric))
        return CVY_OK;
    CVY_TRY(state_real(state, "best", &t->state.best));
    t->best.safe = t->state.best;
    if (node)
        CVY_TRY(cvy_tree_bool(node, &is_best));
    join_path(t, CVY_RUN_CHECKPOINTS, dir);
    return is_best && is_root(t) ? cvy_checkpoint_mark_best(dir, t->folder.resume.step) : CVY_OK;
}

static cvy_status restore_sums(cvy_trainer *t)
{
    const struct {
        const char *key;
        double *to;
    } sums[] = {{"epoch_loss", &t->state.epoch_loss},
                {"epoch_samples", &t->state.epoch_samples},
                {"epoch_train_seconds", &t->state.epoch_train_s},
                {"epoch_seconds", &t->state.epoch_s}};
    for (int i = 0; i < CVY_COUNT(sums); i++)
        if (cvy_tree_get(t->folder.resume.state, sums[i].key))
            CVY_TRY(state_real(t->folder.resume.state, sums[i].key, sums[i].to));
    CVY_TRY(cvy_trainer_restore_turn_losses(t));
    CVY_TRY(restore_best(t));
    return restore_stop(t);
}

cvy_status cvy_trainer_restore(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    CVY_TRY(cvy_comm_agree(comm, check_sampling(t)));
    CVY_TRY(cvy_checkpoint_load(&t->folder.resume, comm, cvy_program_vars(t->session.program), 1));
    cvy_program_release(t->session.program);
    t->step = t->first_step = t->save.safe_step = t->save.begun_step = t->folder.resume.step;
    t->session.context->saved_step = t->folder.resume.step;
    CVY_TRY(cvy_comm_agree(comm, restore_sums(t)));
    return cvy_trainer_restore_pending(t);
}

/* ---- writing ---- */

static cvy_status write_text(const cvy_trainer *t, const char *name, const char *text)
{
    char path[CVY_RUN_PATH];
    join_path(t, name, path);
    return cvy_file_replace(path, text, strlen(text));
}

void cvy_trainer_write_status(const cvy_trainer *t, const char *word, const char *why)
{
    char text[1400], now[32];
    cvy_clock_text(now);
    snprintf(text, sizeof text, "%s step %lld of %lld at %s%s%s\n", word, (long long)t->step,
             (long long)t->order.last_step, now, why ? ": " : "", why ? why : "");
    if (is_root(t) && t->folder.path[0] && write_text(t, CVY_RUN_STATUS, text) != CVY_OK)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", cvy_error_text());
}

/* Warns if a resumed run has another job. Call it before job.resolved.yaml is replaced. Without a readable old file
 * there is no warning. */
static void warn_of_changes(const cvy_trainer *t, const char *job)
{
    char path[CVY_RUN_PATH];
    cvy_text changes = {0};
    join_path(t, CVY_RUN_JOB, path);
    if (t->opts->resume && cvy_job_changes(path, job, &changes) == CVY_OK && changes.bytes > 0)
        cvy_log(t->session.context, CVY_LOG_WARN,
                "%s was started with another job and continues with this one; changes: %s", t->folder.path,
                changes.data);
    cvy_text_free(&changes);
}

/* If the last run ended without writing a final STATUS, warns and names the rank whose heartbeats ended first. Then it
 * removes the heartbeat file, so that it begins anew. */
static void report_last_run(const cvy_trainer *t)
{
    char path[CVY_RUN_PATH], text[320], *status = NULL;
    size_t bytes = 0;
    join_path(t, CVY_RUN_STATUS, path);
    if (t->opts->resume && cvy_file_read(path, 4096, &status, &bytes) == CVY_OK && strncmp(status, "running", 7) == 0) {
        status[strcspn(status, "\n")] = 0;
        join_path(t, CVY_HEARTBEAT_FILE, path);
        const int found =
            cvy_heartbeat_first_gone(path, cvy_watchdog_fresh_s(t->session.job->watchdog.timeout_s), text, sizeof text);
        cvy_log(t->session.context, CVY_LOG_WARN, "the last run in %s ended without a final status (\"%s\")%s%s",
                t->folder.path, status, found ? "; " : "", found ? text : "");
    }
    cvy_mem_free(&status);
    join_path(t, CVY_HEARTBEAT_FILE, path);
    unlink(path);
}

cvy_status cvy_trainer_write_head(cvy_trainer *t)
{
    char *job = NULL, path[CVY_RUN_PATH];
    for (int k = 0; k < t->task.nturn && is_root(t); k++)
        CVY_TRY(cvy_program_price_task(t->session.program, t->task.turn[k].full));
    CVY_TRY(cvy_program_print(t->session.program, t->task.full, "json", &t->folder.plan_json));
    if (!is_root(t))
        return CVY_OK;
    CVY_TRY(cvy_job_print(t->session.job, &job));
    warn_of_changes(t, job);
    report_last_run(t);
    cvy_trainer_write_status(t, "running", NULL); /* first, so that a folder with any file in it has a STATUS */
    cvy_status status = write_text(t, CVY_RUN_JOB, job);
    cvy_mem_free(&job);
    if (status == CVY_OK)
        status = write_text(t, CVY_RUN_PLAN, t->folder.plan_json);
    join_path(t, CVY_RUN_METRICS, path);
    if (status == CVY_OK)
        status = cvy_metrics_log_open(path, t->opts->resume ? t->step : -1, &t->folder.log);
    if (status == CVY_OK && t->session.job->log.trace)
        status = cvy_file_replace(t->session.job->log.trace, "",
                                  0); /* finds out before the training whether the trace can be written */
    return status;
}

void cvy_trainer_write_line(cvy_trainer *t, cvy_json *json)
{
    if (t->folder.log && cvy_metrics_log_add(t->folder.log, json) != CVY_OK)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", cvy_error_text());
    cvy_trainer_write_scalars(t, json);
    cvy_text_free(&json->text);
}

void cvy_trainer_end(cvy_trainer *t, cvy_status status)
{
    char why[1024], early[CVY_EARLY_STOP_TEXT], job[CVY_RUN_PATH];
    snprintf(why, sizeof why, "%s", cvy_error_text());
    cvy_trainer_mlperf_stop(t, 0);
    join_path(t, CVY_RUN_JOB, job);
    if (t->folder.has_begun && t->session.job && is_root(t) && !cvy_file_exists(job))
        cvy_log(t->session.context, CVY_LOG_WARN,
                "%s does not exist any more: the run's folder was removed or moved during the training, and contains "
                "only what was written after that",
                job);
    if (t->folder.is_new && !t->folder.has_begun)
        (void)!cvy_file_remove_tree(t->folder.path); /* a job that did not begin leaves no folder */
    else if (t->session.job && t->folder.has_begun)
        cvy_trainer_write_status(t,
                                 status == CVY_OK        ? "finished"
                                 : status == CVY_STOPPED ? "stopped"
                                                         : "failed",
                                 status < 0                                                              ? why
                                 : status == CVY_OK && cvy_trainer_stopped_early(t, early, sizeof early) ? early
                                                                                                         : NULL);
    cvy_run_unlock(t->folder.path, &t->folder.lock);
    cvy_mem_free(&t->folder.plan_json);
    if (status < 0)
        cvy_error_set(status, "%s", why);
}
