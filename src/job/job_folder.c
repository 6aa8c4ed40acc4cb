/*
 * job_folder.c: the run folder: what a training run writes and what a resumed one reads. Only rank 0 writes.
 */
#include <math.h>
#include <string.h>

#include "job/job_trainer.h"

static int is_root(const cvy_trainer *t)
{
    return t->session.context->comm->rank == 0;
}

static cvy_status join_path(const cvy_trainer *t, const char *name, char path[640])
{
    snprintf(path, 640, "%s/%s", t->out, name);
    return CVY_OK;
}

/* ---- making and finding it ---- */

static cvy_status new_folder(cvy_trainer *t)
{
    if (t->opts->out) {
        CVY_CHECK(strlen(t->opts->out) < sizeof t->out, CVY_E_ARGUMENT, "the run folder's name is longer than %zu characters", sizeof t->out - 1);
        snprintf(t->out, sizeof t->out, "%s", t->opts->out);
        CVY_CHECK(!cvy_file_exists(t->out) || t->opts->resume, CVY_E_IO, "%s exists already: choose another --out, or go on in it with --resume", t->out);
        CVY_CHECK(cvy_file_exists(t->out) || !t->opts->resume, CVY_E_IO, "%s does not exist, so there is nothing to resume", t->out);
        return cvy_file_make_folder(t->out);
    }
    CVY_CHECK(!t->opts->resume, CVY_E_ARGUMENT, "to resume, name the run folder with --out");
    for (int n = 1; n < 1000000; n++) {
        snprintf(t->out, sizeof t->out, "runs/%.200s-%03d", t->session.job->name, n);
        if (!cvy_file_exists(t->out))
            return cvy_file_make_folder(t->out);
    }
    return cvy_error_set(CVY_E_IO, "runs/ is full of runs of %s", t->session.job->name);
}

static cvy_status find_checkpoint(cvy_trainer *t, const char *which)
{
    char path[640];
    join_path(t, "checkpoints", path);
    const cvy_status status = cvy_checkpoint_find(path, which, &t->resume);
    for (int i = 0; i < t->resume.nmessage; i++)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", t->resume.message[i]);
    if (status == CVY_END)
        return cvy_error_set(CVY_E_IO, "%s holds no checkpoint, so there is nothing to resume; start the job anew with another --out", t->out);
    return status;
}

cvy_status cvy_trainer_open_folder(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    char which[32] = "";
    cvy_status status = is_root(t) ? new_folder(t) : CVY_OK;
    if (status == CVY_OK && is_root(t) && t->opts->resume)
        status = find_checkpoint(t, NULL);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->broadcast(comm, t->out, sizeof t->out, 0));
    if (!t->opts->resume)
        return CVY_OK;
    /* All ranks take the set that rank 0 found sound. */
    snprintf(which, sizeof which, "step-%lld", (long long)t->resume.step);
    CVY_TRY(comm->ops->broadcast(comm, which, sizeof which, 0));
    return cvy_comm_agree(comm, is_root(t) ? CVY_OK : find_checkpoint(t, which));
}

static cvy_status state_real(const cvy_tree *state, const char *key, double *out)
{
    const cvy_tree *node = cvy_tree_get(state, key);
    *out = NAN;
    return !node || !node->text || cvy_tree_is_null(node) ? CVY_OK : cvy_tree_real(node, out);
}

cvy_status cvy_trainer_restore(cvy_trainer *t)
{
    const cvy_tree *state = t->resume.state;
    double samples = 0;
    CVY_TRY(cvy_checkpoint_load(&t->resume, t->session.program->vars, 1));
    t->step = t->first_step = t->saved_step = t->resume.step;
    CVY_TRY(state_real(state, "samples", &samples));
    CVY_CHECK((int64_t)samples == cvy_order_samples_before(&t->order, t->step), CVY_E_CONFIG,
              "%s stands at %lld samples after step %lld, this job would have seen %lld: batch or data have changed; start anew with train.init: %s",
              t->resume.path, (long long)samples, (long long)t->step, (long long)cvy_order_samples_before(&t->order, t->step), t->resume.weights_path);
    CVY_TRY(state_real(state, "epoch_loss", &t->state.epoch_loss));
    CVY_TRY(state_real(state, "epoch_samples", &t->state.epoch_samples));
    CVY_TRY(state_real(state, "best", &t->state.best));
    CVY_TRY(state_real(state, "stop_best", &t->state.stop_best));
    const cvy_tree *bad = cvy_tree_get(state, "stop_bad_epochs");
    return bad ? cvy_tree_int(bad, &t->state.stop_bad_epochs) : CVY_OK;
}

/* ---- writing ---- */

static cvy_status write_text(const cvy_trainer *t, const char *name, const char *text)
{
    char path[640];
    join_path(t, name, path);
    return cvy_file_replace(path, text, strlen(text));
}

static void write_status(const cvy_trainer *t, const char *word, const char *why)
{
    char text[1400], now[32];
    cvy_clock_text(now);
    snprintf(text, sizeof text, "%s step %lld of %lld at %s%s%s\n", word, (long long)t->step, (long long)t->order.last_step, now, why ? ": " : "",
             why ? why : "");
    if (is_root(t) && t->out[0] && write_text(t, "STATUS", text) != CVY_OK)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", cvy_error_text());
}

cvy_status cvy_trainer_write_head(cvy_trainer *t)
{
    char *job = NULL, path[640];
    CVY_TRY(cvy_program_print(t->session.program, t->step_full, "json", &t->plan_json));
    if (!is_root(t))
        return CVY_OK;
    CVY_TRY(cvy_job_print(t->session.job, &job));
    cvy_status status = write_text(t, "job.resolved.yaml", job);
    cvy_mem_free(&job);
    if (status == CVY_OK)
        status = write_text(t, "plan.json", t->plan_json);
    join_path(t, "metrics.jsonl", path);
    if (status == CVY_OK)
        status = cvy_metrics_log_open(path, t->opts->resume ? t->step : -1, &t->log);
    if (status == CVY_OK)
        write_status(t, "running", NULL);
    return status;
}

cvy_status cvy_trainer_write_line(cvy_trainer *t, cvy_json *json)
{
    cvy_status status = json->text.status;
    if (status == CVY_OK && t->log && cvy_metrics_log_add(t->log, json) != CVY_OK)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", cvy_error_text());
    cvy_text_free(&json->text);
    return status;
}

static cvy_status save_on_root(cvy_trainer *t)
{
    char path[640], time[32];
    cvy_json json = {0};
    cvy_clock_text(time);
    cvy_json_open(&json, NULL, '{');
    cvy_json_int(&json, "step", t->step);
    cvy_json_int(&json, "samples", cvy_order_samples_before(&t->order, t->step));
    cvy_json_real(&json, "epoch", (double)t->step / (double)t->order.steps_per_epoch);
    cvy_json_int(&json, "classes", cvy_dataset_describe(t->session.train)->nclasses);
    cvy_json_int(&json, "seed", t->session.job->train.seed);
    cvy_json_real(&json, "epoch_loss", t->state.epoch_loss);
    cvy_json_real(&json, "epoch_samples", t->state.epoch_samples);
    cvy_json_real(&json, "best", t->state.best);
    cvy_json_real(&json, "stop_best", t->state.stop_best);
    cvy_json_int(&json, "stop_bad_epochs", t->state.stop_bad_epochs);
    cvy_json_string(&json, "version", cvy_version());
    cvy_json_string(&json, "time", time);
    cvy_json_close(&json, '}');
    join_path(t, "checkpoints", path);
    cvy_status status = json.text.status;
    if (status == CVY_OK)
        status = cvy_checkpoint_save(path, t->step, t->session.program->vars, json.text.data, t->plan_json, (int)t->session.job->checkpoint.keep, NULL);
    if (status == CVY_OK && t->is_new_best)
        status = cvy_checkpoint_mark_best(path, t->step);
    cvy_text_free(&json.text);
    return status;
}

cvy_status cvy_trainer_save(cvy_trainer *t, int last)
{
    cvy_watchdog_kick(t->session.watchdog, t->step, "a checkpoint");
    const cvy_status status = cvy_comm_agree(t->session.context->comm, is_root(t) ? save_on_root(t) : CVY_OK);
    t->saved_s = cvy_clock_s();
    if (status == CVY_OK) {
        t->saved_step = t->step;
        t->is_new_best = 0;
        write_status(t, "running", NULL);
    } else if (!last && t->step < t->order.last_step) {
        cvy_log(t->session.context, CVY_LOG_WARN, "checkpoint of step %lld failed, training goes on: %s", (long long)t->step, cvy_error_text());
        return CVY_OK;
    }
    return status;
}

void cvy_trainer_end(cvy_trainer *t, cvy_status status)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", cvy_error_text());
    if (t->session.job && (status >= 0 || t->plan_json))
        write_status(t, status == CVY_OK ? "finished" : status == CVY_STOPPED ? "stopped" : "failed", status < 0 ? why : NULL);
    cvy_mem_free(&t->plan_json);
    if (status < 0)
        cvy_error_set(status, "%s", why);
}
