/*
 * job_folder.c: the run folder: what a training run writes and what a resumed one reads. Only rank 0 writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "job/job_normalize.h"
#include "job/job_table.h"
#include "job/job_trainer.h"
#include "run/run_server.h"

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

/* Two runs would mix in one folder: a job that was submitted again while the first goes on. The first may be about to end: it gets three seconds. The
 * lock ends with the process. Where the file system knows no locks, nothing is refused. */
static cvy_status lock_folder(cvy_trainer *t)
{
    enum { TRIES = 30 };
    const struct timespec pause = {0, 100 * 1000 * 1000};
    t->lock = open(t->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; t->lock >= 0 && flock(t->lock, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK)
            return CVY_OK;
        CVY_CHECK(i < TRIES, CVY_E_IO, "%s: another run is at work in this folder; wait for its end, or name another --out", t->out);
        nanosleep(&pause, NULL);
    }
    return CVY_OK;
}

/* The next free number; made at once, so that two jobs that start together do not share one. */
static cvy_status new_numbered_folder(cvy_trainer *t)
{
    CVY_TRY(cvy_file_make_folder("runs"));
    for (int n = 1; n < 1000000; n++) {
        snprintf(t->out, sizeof t->out, "runs/%.200s-%03d", t->session.job->name, n);
        if (mkdir(t->out, 0777) == 0)
            return CVY_OK;
        CVY_CHECK(errno == EEXIST, CVY_E_IO, "%s: cannot make the folder: %s; name another with --out", t->out, strerror(errno));
    }
    return cvy_error_set(CVY_E_IO, "runs/ is full of runs of %s: name another folder with --out", t->session.job->name);
}

static cvy_status take_folder(cvy_trainer *t)
{
    const char *out = t->opts->out;
    CVY_CHECK(out || !t->opts->resume, CVY_E_ARGUMENT, "to resume, name the run folder with --out");
    if (!out) {
        t->is_new_folder = 1;
        return new_numbered_folder(t);
    }
    CVY_CHECK(*out, CVY_E_ARGUMENT, "the run folder's name is empty");
    CVY_CHECK(strlen(out) < sizeof t->out, CVY_E_ARGUMENT, "the run folder's name is longer than %zu characters", sizeof t->out - 1);
    CVY_CHECK(!cvy_file_exists(out) || t->opts->resume, CVY_E_IO, "%s exists already: choose another --out, or go on in it with --resume", out);
    CVY_CHECK(cvy_file_exists(out) || !t->opts->resume, CVY_E_IO, "%s does not exist, so there is nothing to resume", out);
    snprintf(t->out, sizeof t->out, "%s", out);
    t->is_new_folder = !t->opts->resume;
    return cvy_file_make_folder(out);
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
    cvy_status status = is_root(t) ? take_folder(t) : CVY_OK;
    if (status == CVY_OK && is_root(t))
        status = lock_folder(t);
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

/* What decides which samples a step sees; a checkpoint keeps it, and a resumed run must have the same. */
struct course { int64_t samples, batch, accumulate, seed, shuffle, window, balance; char data[24]; };

static struct course course_of(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    struct course c = {t->order.nsamples, t->order.batch, t->order.accumulate, job->train.seed, job->data.shuffle, job->data.window, job->data.balance, ""};
    snprintf(c.data, sizeof c.data, "%016llx", (unsigned long long)cvy_dataset_hash(t->session.train));
    return c;
}

static cvy_status check_course(const cvy_trainer *t)
{
    const struct course now = course_of(t);
    const struct { const char *key, *what; int64_t now; } numbers[] = {
        {"train_samples", "a number of training samples of", now.samples}, {"batch", "train.batch", now.batch}, {"accumulate", "train.accumulate", now.accumulate},
        {"seed", "train.seed", now.seed}, {"shuffle", "data.shuffle (0 false, 1 true, 2 window)", now.shuffle},
        {"window", "data.window", now.window}, {"balance", "data.balance (0 none, 1 class)", now.balance}};
    const cvy_tree *data = cvy_tree_get(t->resume.state, "train_data");
    for (int i = 0; i < CVY_COUNT(numbers); i++) {
        const cvy_tree *node = cvy_tree_get(t->resume.state, numbers[i].key);
        int64_t then = numbers[i].now;
        if (node)
            CVY_TRY(cvy_tree_int(node, &then));
        CVY_CHECK(then == numbers[i].now, CVY_E_CONFIG, "%s was saved with %s %lld, this job has %lld: resume with the job as it was, or start anew with train.init: %s",
                  t->resume.path, numbers[i].what, (long long)then, (long long)numbers[i].now, t->resume.weights_path);
    }
    CVY_CHECK(!data || !data->text || strcmp(data->text, now.data) == 0, CVY_E_CONFIG,
              "%s was saved with other training data than this job has: resume with the data as they were, or start anew with train.init: %s", t->resume.path,
              t->resume.weights_path);
    return CVY_OK;
}

cvy_status cvy_trainer_restore(cvy_trainer *t)
{
    const cvy_tree *state = t->resume.state;
    CVY_TRY(check_course(t));
    CVY_TRY(cvy_checkpoint_load(&t->resume, t->session.program->vars, 1));
    cvy_shard_drop(t->session.program);
    t->step = t->first_step = t->saved_step = t->resume.step;
    CVY_TRY(state_real(state, "epoch_loss", &t->state.epoch_loss));
    CVY_TRY(state_real(state, "epoch_samples", &t->state.epoch_samples));
    CVY_TRY(state_real(state, "best", &t->state.best));
    CVY_TRY(state_real(state, "stop_best", &t->state.stop_best));
    const cvy_tree *bad = cvy_tree_get(state, "stop_bad_epochs");
    if (bad)
        CVY_TRY(cvy_tree_int(bad, &t->state.stop_bad_epochs));
    return cvy_trainer_restore_pending(t);
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

/* Before job.resolved.yaml is replaced. A folder without a readable one says nothing. */
static void warn_of_changes(const cvy_trainer *t, const char *job)
{
    char path[640];
    cvy_text changes = {0};
    join_path(t, "job.resolved.yaml", path);
    if (t->opts->resume && cvy_job_changes(path, job, &changes) == CVY_OK && changes.bytes > 0)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s was begun with another job, and goes on with this one: %s", t->out, changes.data);
    cvy_text_free(&changes);
}

cvy_status cvy_trainer_write_head(cvy_trainer *t)
{
    char *job = NULL, path[640];
    CVY_TRY(cvy_program_print(t->session.program, t->step_full, "json", &t->plan_json));
    if (!is_root(t))
        return CVY_OK;
    CVY_TRY(cvy_job_print(t->session.job, &job));
    warn_of_changes(t, job);
    cvy_status status = write_text(t, "job.resolved.yaml", job);
    cvy_mem_free(&job);
    if (status == CVY_OK)
        status = write_text(t, "plan.json", t->plan_json);
    join_path(t, "metrics.jsonl", path);
    if (status == CVY_OK)
        status = cvy_metrics_log_open(path, t->opts->resume ? t->step : -1, &t->log);
    if (status == CVY_OK && t->session.job->log.trace)
        status = cvy_file_replace(t->session.job->log.trace, "", 0);   /* that it cannot be written is known before the training */
    if (status == CVY_OK)
        write_status(t, "running", NULL);
    return status;
}

void cvy_trainer_write_line(cvy_trainer *t, cvy_json *json)
{
    if (t->log && cvy_metrics_log_add(t->log, json) != CVY_OK)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", cvy_error_text());
    cvy_text_free(&json->text);
}

/* A run that has lost its way must not replace the weights that it had before. */
static cvy_status check_finite(const cvy_vars *vars)
{
    for (int k = 0; k < vars->count; k++) {
        const cvy_variable *v = vars->at[k];
        const int64_t n = v->dtype == CVY_DTYPE_F32 || v->dtype == CVY_DTYPE_F64 ? (int64_t)(v->bytes / cvy_dtype_bytes(v->dtype)) : 0;
        int finite = 1;
        for (int64_t i = 0; i < n; i++)
            finite &= isfinite(v->dtype == CVY_DTYPE_F64 ? ((const double *)v->data)[i] : ((const float *)v->data)[i]) != 0;
        CVY_CHECK(finite, CVY_E_NUMERIC, "%s %s holds a number that is not finite, so it is not saved: lower train.optimizer.lr, or set train.clip_norm", v->name,
                  cvy_shape_text(&v->shape));
    }
    return CVY_OK;
}

static cvy_status save_on_root(cvy_trainer *t, const cvy_vars *pending)
{
    char path[640], time[32];
    cvy_json json = {0};
    const struct course course = course_of(t);
    const cvy_dataset_info *train = cvy_dataset_describe(t->session.train);
    CVY_TRY(check_finite(t->session.program->vars));
    if (pending)
        CVY_TRY(check_finite(pending));
    cvy_clock_text(time);
    cvy_json_open(&json, NULL, '{');
    cvy_json_int(&json, "step", t->step);
    cvy_json_int(&json, "samples", cvy_order_samples_before(&t->order, t->step));
    cvy_json_real(&json, "epoch", (double)t->step / (double)t->order.steps_per_epoch);
    cvy_json_int(&json, "classes", train->nclasses);
    cvy_json_open(&json, "class_names", '[');
    for (int64_t i = 0; i < train->nclasses && train->class_name; i++)
        cvy_json_string(&json, NULL, train->class_name[i]);
    cvy_json_close(&json, ']');
    cvy_json_int(&json, "train_samples", course.samples);
    cvy_json_int(&json, "batch", course.batch);
    cvy_json_int(&json, "accumulate", course.accumulate);
    cvy_json_int(&json, "seed", course.seed);
    cvy_json_int(&json, "shuffle", course.shuffle);
    cvy_json_int(&json, "window", course.window);
    cvy_json_int(&json, "balance", course.balance);
    cvy_json_string(&json, "train_data", course.data);
    cvy_job_add_normalize(t->session.job, &json);
    cvy_json_real(&json, "epoch_loss", t->state.epoch_loss);
    cvy_json_real(&json, "epoch_samples", t->state.epoch_samples);
    cvy_json_real(&json, "best", t->state.best);
    cvy_json_real(&json, "stop_best", t->state.stop_best);
    cvy_json_int(&json, "stop_bad_epochs", t->state.stop_bad_epochs);
    cvy_trainer_add_pending(t, &json);
    cvy_json_string(&json, "version", cvy_version());
    cvy_json_string(&json, "time", time);
    cvy_json_close(&json, '}');
    join_path(t, "checkpoints", path);
    cvy_status status = json.text.status;
    if (status == CVY_OK)
        status = cvy_checkpoint_save(path, t->step, t->session.program->vars, pending, json.text.data, t->plan_json,
                                     (int)t->session.job->checkpoint.keep, NULL);
    if (status == CVY_OK && t->is_new_best)
        status = cvy_checkpoint_mark_best(path, t->step);
    cvy_text_free(&json.text);
    return status;
}

cvy_status cvy_trainer_save(cvy_trainer *t, int last)
{
    cvy_watchdog_kick(t->session.watchdog, t->step, "a checkpoint");
    cvy_comm *comm = t->session.context->comm;
    cvy_vars *pending = NULL;
    if (t->session.program->late)
        CVY_TRY(cvy_program_settle(t->session.program));
    if (t->session.program->server)
        CVY_TRY(cvy_server_collect(t->session.program->server));
    cvy_status status = cvy_comm_agree(comm, cvy_pipeline_save(t->session.program, &pending));
    if (status == CVY_OK && t->session.program->shard)
        status = cvy_comm_agree(comm, cvy_shard_collect(t->session.program));
    if (status == CVY_OK)
        status = cvy_comm_agree(comm, is_root(t) ? save_on_root(t, pending) : CVY_OK);
    cvy_vars_destroy(&pending);
    cvy_shard_drop(t->session.program);
    t->saved_s = cvy_clock_s();
    if (status == CVY_OK) {
        t->saved_step = t->step;
        t->is_new_best = 0;
        write_status(t, "running", NULL);
    } else if (!last && t->step < t->order.last_step && status != CVY_E_NUMERIC) {
        cvy_log(t->session.context, CVY_LOG_WARN, "checkpoint of step %lld failed, training goes on: %s", (long long)t->step, cvy_error_text());
        return CVY_OK;
    }
    return status;
}

void cvy_trainer_end(cvy_trainer *t, cvy_status status)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", cvy_error_text());
    if (t->is_new_folder && !t->has_begun)
        (void)!cvy_file_remove_tree(t->out);       /* a job that did not begin leaves no folder behind */
    else if (t->session.job && t->has_begun)
        write_status(t, status == CVY_OK ? "finished" : status == CVY_STOPPED ? "stopped" : "failed", status < 0 ? why : NULL);
    if (t->lock >= 0)
        close(t->lock);
    cvy_mem_free(&t->plan_json);
    if (status < 0)
        cvy_error_set(status, "%s", why);
}
