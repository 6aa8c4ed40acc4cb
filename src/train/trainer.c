/*
 * trainer.c: cvy_run_train(): the step loop, from a job file into a run folder.
 *
 * One iteration gets rows from the loader, agrees with all ranks to continue, takes the learning rate from the
 * schedule, runs one planned step and writes the log. At the end of an epoch it validates. Everything that must
 * survive (step number, best score, sums of the epoch) is in the state of each checkpoint, so a resumed run gives the
 * same bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_hash.h"
#include "base/base_opts.h"
#include "context/context_device.h"
#include "context/context_topology.h"
#include "data/data_seen.h"
#include "job/job_table.h"
#include "monitor/monitor_heartbeat.h"
#include "monitor/monitor_replicas.h"
#include "monitor/monitor_run_layout.h"
#include "monitor/monitor_trace.h"
#include "optim/optim.h"
#include "program/program_fill.h"
#include "session/session_normalize.h"
#include "train/trainer.h"

/* ---- planning ---- */

/* Sets the number of steps. Their samples must fit into an int64_t, too. */
static cvy_status count_steps(cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    const double steps =
        job->train.steps ? (double)job->train.steps : job->train.epochs * (double)t->order.steps_per_epoch;
    CVY_CHECK(steps * (double)t->order.batch < 9e15, CVY_E_CONFIG,
              "%s: train.%s: %.3g steps of %lld samples are more than can be counted (9e15 samples)",
              cvy_job_where(job, "train", job->train.steps ? "steps" : "epochs"), job->train.steps ? "steps" : "epochs",
              steps, (long long)t->order.batch);
    t->order.last_step = job->train.steps ? job->train.steps : CVY_MAX(llround(steps), 1);
    return CVY_OK;
}

static cvy_status add_steps(cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    cvy_session *s = &t->session;
    const cvy_dataset_info *info = cvy_dataset_describe(s->train);
    int64_t batch = 0;
    cvy_training_opts opts;
    CVY_CHECK(info->nsamples > 0, CVY_E_FORMAT, "%s: the data set is empty", info->path);
    CVY_TRY(cvy_job_batch(job, cvy_program_nworkers(s->program), &batch));
    CVY_TRY(cvy_job_training_opts(job, &opts));
    const int drop = job->data.tail == CVY_TAIL_DROP;
    t->order = cvy_order_make(info->nsamples, batch, job->train.accumulate, drop, 0, 0, s->context->comm);
    t->order.nranks = cvy_program_nworkers(s->program);
    t->order.rank = cvy_program_grid(s->program)->data_rank;
    t->order.shards = cvy_job_shards(job);
    CVY_TRY(count_steps(t));
    t->epochs = (double)t->order.last_step / (double)t->order.steps_per_epoch;
    if (batch > info->nsamples)
        cvy_log(s->context, CVY_LOG_WARN,
                "train.batch is %lld, but there are %lld samples to train on: every step takes all of them",
                (long long)batch, (long long)info->nsamples);
    CVY_TRY(cvy_trainer_add_turns(t, &opts, drop ? 0 : info->nsamples % t->order.batch));
    t->validation.source = s->val ? "val" : s->test ? "test" : NULL;
    return t->validation.source ? cvy_scorer_add(s, s->val ? s->val : s->test, s->model, &t->validation.scorer)
                                : CVY_OK;
}

cvy_status cvy_trainer_make_program(cvy_trainer *t, const char *plan_file)
{
    cvy_session *s = &t->session;
    cvy_program_opts opts;
    CVY_TRY(cvy_job_model(s->job, s->context, cvy_dataset_describe(s->train), CVY_LOSSES_NEEDED, &s->model));
    CVY_TRY(cvy_session_report_unused(s));
    CVY_CHECK(
        !cvy_job_kernels(s->job).by_clock, CVY_E_CONFIG,
        "%s: plan.kernels is clock, which computes nothing, so nothing would be trained: use it with convoy bench",
        cvy_job_where(s->job, "plan", "kernels"));
    opts = cvy_job_program_opts(s->job, plan_file);
    CVY_TRY(cvy_job_translate(cvy_program_create(s->context, &opts, &s->program)));
    cvy_job_group_variables(s->job, s->program);
    return add_steps(t);
}

/* Uses the plan that was saved with the checkpoint, so that the resumed run computes the same bits. */
static cvy_status take_plan(const cvy_trainer *t)
{
    const char *text = t->folder.resume.plan_json;
    return text ? cvy_program_take_plan(t->session.program, "the checkpoint's plan", text) : CVY_OK;
}

/* ---- the end of an epoch ---- */

/* Counts the samples skipped since the last epoch's end, over all ranks. Each rank logs its latest one. */
static cvy_status count_skipped(cvy_trainer *t, int64_t *skipped_out)
{
    cvy_comm *comm = t->session.context->comm;
    const int64_t bad = cvy_loader_nbad(t->data.loader);
    /* all stages, and all ranks that share samples, read the same */
    const cvy_grid *grid = cvy_program_grid(t->session.program);
    *skipped_out = grid->stage == 0 && cvy_grid_is_first_part(grid) ? bad - t->data.nbad : 0;
    t->data.nbad = bad;
    if (*skipped_out > 0) {
        char text[512];
        cvy_loader_bad_text(t->data.loader, text, sizeof text);
        cvy_log_local(t->session.context, CVY_LOG_WARN,
                      "rank %d skipped %lld bad samples in this epoch; the latest: %s", comm->rank,
                      (long long)*skipped_out, text);
    }
    return comm->ops->allreduce(comm, skipped_out, 1, CVY_DTYPE_I64, CVY_REDUCE_SUM);
}

static cvy_status end_epoch(cvy_trainer *t)
{
    cvy_scores scores;
    int64_t skipped = 0;
    const double begin = cvy_clock_s();
    double bubble = -1;
    CVY_TRY(count_skipped(t, &skipped));
    CVY_TRY(cvy_trainer_say_weights(t, cvy_trainer_epoch(t)));
    CVY_TRY(cvy_trainer_end_epoch_axes(t, cvy_trainer_epoch(t), &bubble));
    if (t->validation.source)
        CVY_TRY(cvy_trainer_score(t, &scores));
    CVY_TRY(cvy_trainer_compare_copies(t));
    if (t->session.val) { /* test data is never used to select a checkpoint or to stop early */
        cvy_trainer_select(t, &scores);
        t->validation.loss = scores.loss;
    }
    if (t->validation.source)
        cvy_trainer_watch_diversity(t, &scores);
    CVY_TRY(cvy_trainer_write_histograms(t, cvy_trainer_epoch(t)));
    cvy_trainer_log_epoch(t, t->validation.source ? &scores : NULL, skipped, bubble);
    cvy_trainer_mlperf_epoch(t, 0);
    t->state.epoch_loss = t->state.epoch_samples = t->state.epoch_train_s = 0;
    t->time.epoch_start_s = cvy_clock_s();
    /* leave the time of the validation out; the samples of the window still count */
    t->window.start_s += t->time.epoch_start_s - begin;
    return CVY_OK;
}

/* ---- the loop ---- */

/* Ends the run after a fault that all ranks have. All-reduces in progress must end before their memory is freed, and a
 * save in progress is completed. */
static cvy_status end_together(cvy_trainer *t, cvy_status fault)
{
    char text[1024];
    if (fault == CVY_OK || fault == CVY_E_COMM)
        return fault;
    snprintf(text, sizeof text, "%s", cvy_error_text());
    (void)!cvy_program_abandon(t->session.program);
    (void)!cvy_trainer_finish_save(t, 0);
    return cvy_error_set(fault, "%s", text);
}

cvy_status cvy_trainer_step(cvy_trainer *t, const cvy_rows *rows, double waited_s, int ready)
{
    const double begin = cvy_clock_s();
    const int64_t n = cvy_order_batch(&t->order, t->step);
    const double lr = cvy_schedule_lr(t->schedule, (double)cvy_order_samples_before(&t->order, t->step));
    cvy_step_time time = {0};
    CVY_TRY(cvy_trainer_take_turns(t, rows, lr, &time));
    cvy_trainer_note_weights(t, rows);
    CVY_TRY(cvy_trainer_flush(t, t->step));
    const double data_s = waited_s + cvy_clock_s() - begin - time.total; /* what was not in the turns */
    t->step++;
    t->state.epoch_loss += t->latest.loss * (double)n;
    t->state.epoch_samples += (double)n;
    t->window.steps++;
    t->window.samples += n;
    t->window.wait_s += waited_s;
    t->window.ready += ready;
    t->window.data_s += data_s;
    t->window.compute_s += time.total - time.exposed_comm;
    t->window.comm_s += time.exposed_comm;
    t->window.hidden_s += time.hidden_comm;
    cvy_trainer_note_axes(t, &time, data_s);
    t->time.sync_s = time.exposed_comm;
    t->time.busy_s = data_s + time.total - time.exposed_comm;
    const double seconds = waited_s + cvy_clock_s() - begin;
    t->state.epoch_train_s += seconds;
    if (t->step > t->first_step + 1) { /* the first step also waits until the loader has started */
        t->time.data_wait_s += waited_s;
        t->time.loop_s += seconds;
    }
    if (t->step == t->first_step + 1) {
        char text[96];
        int n = snprintf(text, sizeof text, "first step after %.2f s", cvy_clock_s() - t->time.start_s);
        if (t->first_step > 0)
            snprintf(text + n, sizeof text - (size_t)n, ", resumed after step %lld of %lld", (long long)t->first_step,
                     (long long)t->order.last_step);
        cvy_trainer_say(t, text);
    }
    if (t->step % t->session.job->log.every == 0 || t->step == t->order.last_step)
        cvy_trainer_log_step(t, lr);
    cvy_trainer_compare_forecast(t, &time, n == t->order.batch);
    cvy_trainer_watch_cores(t);
    return CVY_OK;
}

/* Runs the next step, if all ranks agree to continue. */
static cvy_status one_step(cvy_trainer *t, cvy_control_request *request)
{
    const cvy_rows *rows = NULL;
    double waited = 0;
    int ready = 0;
    cvy_watchdog_kick(t->session.watchdog, t->step, "waiting for samples");
    cvy_status status = cvy_trainer_get_rows(t, &rows, &waited, &ready);
    cvy_watchdog_kick(t->session.watchdog, t->step, "a training step");
    status = end_together(t, cvy_trainer_agree(t, status, request));
    if (!cvy_program_is_flushed(t->session.program))
        request->stop = 0; /* not yet: ranks do not have the same weights to save */
    if (status == CVY_OK && !request->stop)
        status = cvy_trainer_step(t, rows, waited, ready);
    /* all ranks have this fault at the same time, because losses and gradients are sums over ranks */
    if (status == CVY_E_NUMERIC)
        status = end_together(t, status);
    if (rows)
        cvy_loader_release(t->data.loader, rows);
    return status;
}

/* Checks that all ranks have the same weights. In some modes they are never the same: parameter servers hold the
 * weights of their workers. With local SGD they are the same only after an average. */
static cvy_status compare_replicas(cvy_trainer *t)
{
    const cvy_program *p = t->session.program;
    const int64_t every = t->session.job->watchdog.replicas;
    if (every == 0 || t->step % every != 0 || cvy_program_update(p)->no_replicas || !cvy_program_is_flushed(p))
        return CVY_OK;
    cvy_comm *all = t->session.context->comm, *data = cvy_program_grid(p)->data;
    cvy_status status = cvy_replicas_compare(data, cvy_program_vars(p), cvy_program_shares_weights(p));
    if (status != CVY_OK)
        status = cvy_error_prefix(status, "at step %lld", (long long)t->step);
    if (data->nranks < all->nranks) /* the ranks that have other weights end, too */
        status = cvy_comm_agree(all, status);
    return end_together(t, status);
}

/* One iteration: a step or, if workers do not wait for each other, the steps up to their next synchronisation.
 * *stopped_out is set if the run was asked to stop. */
static cvy_status iterate(cvy_trainer *t, int *stopped_out)
{
    cvy_control_request request = {0};
    const int free = cvy_program_async(t->session.program) != NULL;
    CVY_TRY(free ? end_together(t, cvy_trainer_agree(t, cvy_trainer_run_free(t), &request)) : one_step(t, &request));
    *stopped_out = request.stop;
    if (*stopped_out && !free)
        return CVY_OK;
    CVY_TRY(compare_replicas(t));
    if (cvy_trainer_ends_epoch(t))
        CVY_TRY(end_together(t, end_epoch(t)));
    else if (cvy_trainer_validates(t))
        CVY_TRY(end_together(t, cvy_trainer_validate(t)));
    if (t->stop_early)
        CVY_TRY(cvy_program_flush(t->session.program));
    t->save.is_due |= request.save || cvy_trainer_is_due(t) || t->best.is_new;
    if (t->save.is_due && cvy_program_is_flushed(t->session.program)) {
        CVY_TRY(end_together(t, cvy_trainer_save(t, 0)));
        t->save.is_due = 0;
    }
    cvy_trainer_say(t, NULL);
    return CVY_OK;
}

/* Prints the notes: one line each about what was done before the first step. */
static void say_notes(cvy_trainer *t)
{
    char *line = t->session.notes.data;
    for (char *end; line && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        cvy_trainer_say(t, line);
    }
}

/* Warns if the slowest rank waited for samples for more than 3 % of its time. */
static cvy_status hint_at_data(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    double seconds[] = {t->time.data_wait_s, t->time.loop_s};
    CVY_TRY(comm->ops->allreduce(comm, seconds, CVY_COUNT(seconds), CVY_DTYPE_F64, CVY_REDUCE_MAX));
    if (seconds[0] > 0.03 * seconds[1] && seconds[0] > 0.1)
        cvy_log(t->session.context, CVY_LOG_WARN,
                "data is the bottleneck: steps waited %.0f %% of their time for samples; try more data.threads (now "
                "%d%s), data.cache: memory, or a packed set (convoy convert)",
                100 * seconds[0] / seconds[1], cvy_session_data_threads(t->session.context, t->session.job),
                t->session.context->threads >= t->session.context->cores_each ? "; --threads leaves them no core" : "");
    return CVY_OK;
}

static void watch_steps(const cvy_trainer *t)
{
    char heartbeat_path[CVY_RUN_PATH];
    cvy_run_path(t->folder.path, CVY_HEARTBEAT_FILE, heartbeat_path);
    cvy_watchdog_steps(t->session.watchdog, t->session.program, heartbeat_path);
}

/* The section `log` may differ between ranks, and all ranks take part in a trace: rank 0 decides. */
static cvy_status write_trace(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    const char *path = t->session.job->log.trace;
    int is_wanted = path != NULL;
    CVY_TRY(comm->ops->broadcast(comm, &is_wanted, sizeof is_wanted, 0));
    return is_wanted ? cvy_trace_write(t->session.program, t->task.latest, path) : CVY_OK;
}

static cvy_status loop(cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    cvy_loader_opts opts = {.shuffle = (cvy_shuffle)job->data.shuffle,
                            .balance = job->data.balance == CVY_BALANCE_CLASS,
                            .window = job->data.window,
                            .seed = job->program.seed,
                            .threads = cvy_session_data_threads(t->session.context, t->session.job),
                            .depth = (int)CVY_MAX(job->data.prefetch, 1),
                            .held = cvy_trainer_can_go_ahead(t) ? 2 : 1,
                            .skip_bad = job->data.on_bad_sample == CVY_BAD_SAMPLE_SKIP,
                            .needs = cvy_trainer_row_needs(t),
                            .first_step = t->step,
                            .share = cvy_order_share,
                            .share_user = &t->order};
    int stopped = 0;
    cvy_trainer_find_parts(t, t->data.part);
    memcpy(opts.part, t->data.part, sizeof opts.part);
    CVY_TRY(cvy_comm_agree(t->session.context->comm, cvy_saver_create(t->session.context, &t->save.saver)));
    CVY_TRY(cvy_comm_agree(t->session.context->comm, cvy_trainer_watch_copies(t)));
    CVY_TRY(cvy_comm_agree(t->session.context->comm, cvy_loader_create(t->session.train, &opts, &t->data.loader)));
    cvy_trainer_say_mode(t);
    cvy_trainer_say_end(t);
    say_notes(t);
    t->window.sent_bytes = cvy_program_sent_bytes(t->session.program);
    t->window.start_s = t->save.latest_s = cvy_clock_s();
    t->time.epoch_start_s = t->window.start_s - t->state.epoch_s;
    watch_steps(t);
    while (t->step < t->order.last_step && !stopped && !t->stop_early) {
        cvy_trainer_mlperf_epoch(t, 1);
        CVY_TRY(iterate(t, &stopped));
    }
    cvy_trainer_mlperf_stop(t, !stopped);
    cvy_train_control_say_stopping(t->opts->control); /* from here on the run saves and ends in any case */
    if (t->window.steps > 0)                          /* the run ended between two logged steps */
        cvy_trainer_log_step(t, cvy_schedule_lr(t->schedule, (double)cvy_order_samples_before(&t->order, t->step - 1)));
    cvy_trainer_say_early_stop(t);
    cvy_trainer_say_no_best(t);
    CVY_TRY(t->save.begun_step == t->step ? cvy_trainer_finish_save(t, 1) : cvy_trainer_save(t, 1));
    cvy_trainer_say_saves(t);
    if (t->step > t->first_step)
        CVY_TRY(write_trace(t));
    CVY_TRY(hint_at_data(t));
    return stopped ? CVY_STOPPED : CVY_OK;
}

/* These options decide which collectives a rank calls, so they must be the same on all ranks. */
static uint64_t hash_command(const cvy_train_opts *o)
{
    const char *const texts[] = {o->out ? o->out : "", o->resume ? "--resume" : "", o->plan_file ? o->plan_file : ""};
    cvy_hasher h;
    cvy_hash_begin(&h);
    for (int i = 0; i < CVY_COUNT(texts); i++)
        cvy_hash_add(&h, texts[i], strlen(texts[i]) + 1);
    return cvy_hash_end(&h);
}

static cvy_status make_schedule(cvy_trainer *t)
{
    const struct cvy_job_train *train = &t->session.job->train;
    const cvy_order *o = &t->order;
    const cvy_schedule_run run = {.lr = train->lr,
                                  .batch_factor = cvy_job_lr_factor(t->session.job, o->batch),
                                  .total_samples = (double)cvy_order_samples_before(o, o->last_step),
                                  .epoch_samples = (double)cvy_order_samples_before(o, o->steps_per_epoch),
                                  .batch = (double)o->batch};
    CVY_TRY(cvy_schedule_create(train->schedule, &run, &t->schedule));
    if (run.batch_factor > 0)
        cvy_text_add(&t->session.notes,
                     "learning rate %g for a batch of %lld: %g for %lld, times %.4g (train.lr_rule: %s)\n",
                     train->lr * run.batch_factor, (long long)o->batch, train->lr, (long long)train->base_batch,
                     run.batch_factor, train->lr_rule == CVY_LR_LINEAR ? "linear" : "sqrt");
    if (cvy_schedule_warmup(t->schedule) >= run.total_samples)
        cvy_text_add(
            &t->session.notes,
            "train.schedule: the warm-up takes %.0f samples and the run %.0f: the full rate is never reached\n",
            cvy_schedule_warmup(t->schedule), run.total_samples);
    return t->session.notes.status;
}

cvy_status cvy_trainer_check(cvy_trainer *t)
{
    cvy_session *s = &t->session;
    const cvy_job *job = s->job;
    cvy_program_describe_update(s->program, t->task.full, &s->notes);
    cvy_program_describe_grid(s->program, t->task.full, &s->notes);
    cvy_trainer_note_defaults(t);
    CVY_TRY(cvy_job_check_groups(job, s->program));
    CVY_TRY(cvy_trainer_check_turns(t));
    CVY_TRY(cvy_trainer_check_outputs(t));
    CVY_TRY(cvy_comm_agree(s->context->comm, cvy_trainer_check_scores(t)));
    CVY_TRY(cvy_comm_agree(s->context->comm, cvy_trainer_check_validation(t)));
    CVY_TRY(cvy_comm_agree(s->context->comm, make_schedule(t)));
    return cvy_comm_agree(s->context->comm, cvy_trainer_say_idle(t));
}

static cvy_status prepare(cvy_trainer *t)
{
    cvy_session *s = &t->session;
    cvy_comm *comm = s->context->comm;
    CVY_CHECK(!s->job->data_absent, CVY_E_IO,
              "%s: without its data the network can be planned, and not trained; --set data.train=DATA gives others",
              s->job->data_absent);
    cvy_watchdog_kick(s->watchdog, 0, "reading the data");
    CVY_TRY(cvy_session_same(s, "--out, --resume or --plan", hash_command(t->opts)));
    CVY_TRY(cvy_topology_note(s->context, &s->notes));
    cvy_device_note(s->context, s->job->device, &s->notes);
    if (t->opts->resume) { /* first, because the checkpoint decides how the data are normalised */
        CVY_TRY(cvy_trainer_open_folder(t));
        CVY_TRY(cvy_comm_agree(comm, cvy_job_keep_normalize(s->job, t->folder.resume.state)));
    }
    CVY_TRY(cvy_trainer_find_start(t));
    t->time.data_s = cvy_clock_s();
    CVY_TRY(cvy_session_open_training_data(s, 1));
    CVY_TRY(cvy_session_compare(s));
    CVY_TRY(cvy_comm_agree(comm, cvy_trainer_compare_start(t)));
    if (!t->opts->resume)
        CVY_TRY(cvy_trainer_open_folder(t));
    cvy_watchdog_kick(s->watchdog, 0, "choosing a process grid");
    CVY_TRY(cvy_trainer_choose_grid(t));
    CVY_TRY(cvy_comm_agree(comm, cvy_trainer_make_program(t, t->opts->plan_file)));
    CVY_TRY(cvy_comm_agree(comm, take_plan(t)));
    cvy_watchdog_kick(s->watchdog, 0, "planning");
    CVY_TRY(cvy_job_translate(cvy_program_plan(s->program)));
    if (s->job->log.trace)
        CVY_TRY(cvy_program_time_instructions(s->program));
    CVY_TRY(cvy_program_warn_of_host(s->program, &t->task.turn[0].full, 1));
    CVY_TRY(cvy_trainer_check(t));
    cvy_trainer_look_at_values(t);
    cvy_watchdog_kick(s->watchdog, 0, "setting the first weights");
    CVY_TRY(t->opts->resume ? cvy_trainer_restore(t) : cvy_trainer_initialise(t));
    CVY_TRY(cvy_comm_agree(comm, cvy_trainer_write_head(t)));
    CVY_TRY(cvy_trainer_open_events(t));
    CVY_TRY(cvy_comm_agree(comm, cvy_trainer_open_mlperf(t)));
    t->folder.has_begun = 1;
    return CVY_OK;
}

cvy_status cvy_run_train(cvy_context *context, const cvy_job_source *source, const cvy_train_opts *opts,
                         cvy_train_result *result_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_train_opts own;
    cvy_status status = CVY_OPTS_READ(cvy_train_opts, opts, &own);
    if (status == CVY_OK)
        status = CVY_RESULT_CHECK(cvy_train_result, result_out);
    if (status == CVY_OK && own.control)
        status = cvy_handle_check(own.control, CVY_HANDLE_TRAIN_CONTROL, "opts.control");
    CVY_TRY(cvy_comm_agree(context->comm, status));
    cvy_trainer t = {.opts = &own,
                     .latest = {.loss = NAN, .images_per_s = NAN, .epoch_loss = NAN},
                     .validation = {.loss = NAN},
                     .time = {.start_s = cvy_clock_s()},
                     .save = {.safe_step = -1, .begun_step = -1},
                     .folder = {.lock = -1}};
    t.state.best = t.state.stop_best = t.best.safe = NAN;
    t.best.lost_step = -1;
    t.session.is_watched = 1;
    t.session.stop_flag = cvy_train_control_stop_flag(own.control);
    status = cvy_session_open_job(context, source, &t.session);
    if (status == CVY_OK)
        status = prepare(&t);
    if (status == CVY_OK)
        status = cvy_device_explain(context, loop(&t));
    cvy_trainer_end(&t, status);
    char why[1024]; /* what is freed below may have faults of its own, on a device that is lost */
    snprintf(why, sizeof why, "%s", cvy_error_text());
    if (result_out && status >= 0) {
        cvy_train_result result = {.size = sizeof result,
                                   .steps = t.step,
                                   .seconds = cvy_clock_s() - t.time.start_s,
                                   .train_loss = t.state.epoch_samples > 0 ? t.state.epoch_loss / t.state.epoch_samples
                                                                           : t.latest.epoch_loss,
                                   .val_loss = t.validation.loss,
                                   .has_test = t.session.job->data.test != NULL,
                                   .new_steps = t.step - t.first_step};
        snprintf(result.out, sizeof result.out, "%s", t.folder.path);
        cvy_result_write(result_out, &result, sizeof result);
    }
    cvy_saver_destroy(&t.save.saver);
    cvy_loader_destroy(&t.data.loader);
    cvy_schedule_destroy(&t.schedule);
    cvy_trainer_close_events(&t);
    const int reason = cvy_metrics_log_close(&t.folder.log);
    if (reason != 0)
        cvy_log(context, CVY_LOG_WARN, "%s/%s: cannot close: %s; its last lines may be missing", t.folder.path,
                CVY_RUN_METRICS, strerror(reason));
    const int mlperf = cvy_mlperf_close(&t.folder.mlperf);
    if (mlperf != 0)
        cvy_log(context, CVY_LOG_WARN, "%s/%s: cannot close: %s; its last lines may be missing", t.folder.path,
                CVY_RUN_MLPERF, strerror(mlperf));
    cvy_network_spec_end(&t.start.spec);
    cvy_text_free(&t.start.said);
    cvy_checkpoint_close(&t.start.set);
    cvy_checkpoint_close(&t.folder.resume);
    cvy_session_close(&t.session);
    cvy_seen_destroy(&t.copies.train);
    cvy_seen_destroy(&t.copies.other);
    return status < 0 ? cvy_error_set(status, "%s", why) : status;
}
