/*
 * train_save.c: a run's checkpoints: what a set holds, when it is complete, and what it has cost.
 *
 * A save begins after a step, if one is due. The ranks that write make a copy and continue with training. The
 * agreement before a later step finds out that the save has ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/job_table.h"
#include "monitor/monitor_run_layout.h"
#include "network/network_spec.h"
#include "session/session_normalize.h"
#include "train/trainer.h"

/* Mean time between failures of a node, for the interval that the formula of Young and Daly gives. */
#define NODE_MTBF_S (5.0 * 365 * 86400)

static int is_root(const cvy_trainer *t)
{
    return t->session.context->comm->rank == 0;
}

static cvy_status add_state(const cvy_trainer *t, cvy_json *json)
{
    char time[32];
    const cvy_sampling sampling = cvy_trainer_sampling(t);
    const cvy_job *job = t->session.job;
    const cvy_dataset_info *train = cvy_dataset_describe(t->session.train);
    cvy_clock_text(time);
    cvy_json_open(json, NULL, '{');
    cvy_json_int(json, "step", t->step);
    cvy_json_int(json, "samples", cvy_order_samples_before(&t->order, t->step));
    cvy_json_real(json, "epoch", (double)t->step / (double)t->order.steps_per_epoch);
    cvy_json_int(json, "classes", train->nclasses);
    cvy_json_open(json, "class_names", '[');
    for (int64_t i = 0; i < train->nclasses && train->class_name; i++)
        cvy_json_string(json, NULL, train->class_name[i]);
    cvy_json_close(json, ']');
    cvy_json_int(json, "train_samples", sampling.samples);
    cvy_json_int(json, "batch", sampling.batch);
    cvy_json_int(json, "accumulate", sampling.accumulate);
    cvy_json_int(json, "seed", sampling.seed);
    cvy_json_int(json, "shuffle", sampling.shuffle);
    cvy_json_int(json, "window", sampling.window);
    cvy_json_int(json, "balance", sampling.balance);
    cvy_json_int(json, "tail", sampling.tail);
    cvy_json_string(json, "train_data", sampling.data);
    cvy_job_add_normalize(job, json);
    cvy_json_real(json, "epoch_loss", t->state.epoch_loss);
    cvy_json_real(json, "epoch_samples", t->state.epoch_samples);
    cvy_json_real(json, "epoch_train_seconds", t->state.epoch_train_s);
    cvy_json_real(json, "epoch_seconds", cvy_clock_s() - t->time.epoch_start_s);
    cvy_json_real(json, "best", t->state.best);
    cvy_json_string(json, "best_metric", job->checkpoint.best ? job->checkpoint.best : "");
    cvy_json_bool(json, "is_best", t->best.is_new);
    cvy_json_real(json, "stop_best", t->state.stop_best);
    cvy_json_string(json, "stop_metric", job->train.stop.metric ? job->train.stop.metric : "");
    cvy_json_int(json, "stop_bad_epochs", t->state.stop_bad_epochs);
    cvy_trainer_add_pending(t, json);
    cvy_trainer_add_turn_losses(t, json);
    cvy_json_string(json, "version", cvy_version());
    cvy_json_string(json, "time", time);
    cvy_json_close(json, '}');
    return json->text.status;
}

/* ---- the end of a save ---- */

static void log_save(cvy_trainer *t, const cvy_saved *saved)
{
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "kind", "save");
    cvy_json_int(&json, "step", saved->step);
    cvy_json_int(&json, "bytes", saved->bytes);
    cvy_json_int(&json, "writers", saved->writers);
    cvy_json_bool(&json, "background", saved->copied);
    cvy_json_real(&json, "seconds_stall", saved->stall_s);
    cvy_json_real(&json, "seconds", saved->total_s);
    cvy_json_close(&json, '}');
    cvy_trainer_write_line(t, &json);
}

/* A best set may be lost because its save fails. Later scores are then compared with the best set that is complete. The
 * lost score counts again only if the run ends at the same step, because then that step is saved once more. */
static void end_best(cvy_trainer *t, int64_t step, int is_lost)
{
    t->best.is_saving = 0;
    if (!is_lost) {
        t->best.safe = t->best.saving;
        return;
    }
    t->best.lost_step = step;
    if (!t->best.is_new)
        t->state.best = t->best.safe;
}

/* Records a save that has ended. A failed save is only a warning while training continues. */
static cvy_status take(cvy_trainer *t, const cvy_saved *saved, int last)
{
    const int is_lost = saved->status != CVY_OK;
    if (is_lost)
        t->save.begun_step = -1; /* if the run ends at this step, it saves once more, as its last save */
    if (t->best.is_saving)
        end_best(t, saved->step, is_lost);
    if (is_lost && (last || saved->status == CVY_E_NUMERIC))
        return saved->status;
    if (is_lost) {
        cvy_log(t->session.context, CVY_LOG_WARN, "checkpoint of step %lld failed, training continues: %s",
                (long long)saved->step, cvy_error_text());
        return CVY_OK;
    }
    t->save.safe_step = t->session.context->saved_step = saved->step;
    t->save.slowest_s = CVY_MAX(t->save.slowest_s, saved->total_s);
    t->save.done.count++;
    t->save.done.bytes = saved->bytes;
    /* the last save always waits for the disk, so it counts only if there is no other */
    if (!t->save.is_last || t->save.done.timed == 0) {
        t->save.done.timed++;
        t->save.done.stall_s += saved->stall_s;
    }
    log_save(t, saved);
    cvy_trainer_write_status(t, "running", NULL);
    return CVY_OK;
}

cvy_status cvy_trainer_advance_save(cvy_trainer *t)
{
    cvy_saved saved;
    int ended = 0;
    CVY_TRY(cvy_saver_advance(t->save.saver, &ended, &saved));
    return ended ? take(t, &saved, 0) : CVY_OK;
}

cvy_status cvy_trainer_finish_save(cvy_trainer *t, int last)
{
    cvy_saved saved;
    int ended = 0;
    if (!t->save.saver || !cvy_saver_is_on(t->save.saver))
        return CVY_OK;
    t->save.is_last |= last;
    cvy_watchdog_kick_long(t->session.watchdog, t->step, "a checkpoint");
    CVY_TRY(cvy_saver_finish(t->save.saver, &ended, &saved));
    return ended ? take(t, &saved, last) : CVY_OK;
}

/* ---- the start of a save ---- */

static cvy_status begin(cvy_trainer *t, const cvy_vars *pending, int background)
{
    const cvy_program *p = t->session.program;
    const cvy_grid *grid = cvy_program_grid(p);
    char path[CVY_RUN_PATH];
    cvy_json json = {0};
    cvy_text network = {0};
    cvy_run_path(t->folder.path, CVY_RUN_CHECKPOINTS, path);
    cvy_status status = cvy_network_spec_write(t->session.job, t->session.train, &network);
    if (status == CVY_OK && is_root(t))
        status = add_state(t, &json);
    status = cvy_comm_agree(t->session.context->comm, status);
    const cvy_save_opts opts = {.dir = path,
                                .step = t->step,
                                .vars = cvy_program_vars(p),
                                .pending = pending,
                                .state_json = json.text.data,
                                .plan_json = t->folder.plan_json,
                                .network = network.data,
                                .keep = (int)t->session.job->checkpoint.keep,
                                .must_be_finite = 1,
                                .is_best = t->best.is_new,
                                .grid = cvy_grid_is_used(grid) ? grid : NULL};
    const cvy_status begun =
        status == CVY_OK
            ? cvy_saver_begin(t->save.saver, &opts, !pending && !cvy_program_update(p)->saves_on_root, background)
            : status;
    cvy_text_free(&json.text);
    cvy_text_free(&network);
    return begun;
}

/* A save in the background advances in the agreements of the ranks. If workers do not wait for each other, the next
 * agreement may be an epoch away, so such a save blocks. */
static int runs_in_background(const cvy_trainer *t, int last)
{
    return t->session.job->checkpoint.background && !last && !cvy_program_async(t->session.program);
}

cvy_status cvy_trainer_save(cvy_trainer *t, int last)
{
    const int background = runs_in_background(t, last);
    cvy_vars *pending = NULL;
    t->save.is_last |= last;
    CVY_TRY(cvy_trainer_finish_save(t, 0)); /* only one save at a time */
    cvy_watchdog_kick_long(t->session.watchdog, t->step, "a checkpoint");
    if (t->best.lost_step == t->step && !t->best.is_new) {
        t->best.is_new = 1;
        t->state.best = t->best.saving;
    }
    cvy_status status = cvy_program_collect(t->session.program, &pending);
    if (status == CVY_OK)
        status = begin(t, pending, background);
    cvy_vars_destroy(&pending);
    cvy_program_release(t->session.program);
    t->save.latest_s = cvy_clock_s();
    t->save.begun_step = t->step;
    t->best.is_saving = t->best.is_new;
    t->best.saving = t->state.best;
    t->best.is_new = 0;
    if (status == CVY_OK)
        return cvy_saver_is_on(t->save.saver) && !background ? cvy_trainer_finish_save(t, last) : CVY_OK;
    const cvy_saved failed = {.status = status, .step = t->step};
    return status == CVY_E_COMM ? status : take(t, &failed, last);
}

/* ---- the cost of saves ---- */

/* Below either limit nobody would change the interval. */
int cvy_saves_are_noticeable(double stall_s, double run_s)
{
    return stall_s >= 1 && stall_s >= 0.01 * run_s;
}

void cvy_trainer_say_saves(cvy_trainer *t)
{
    char text[320];
    const double stall_s = t->save.done.timed ? t->save.done.stall_s / (double)t->save.done.timed : 0,
                 mtbf_s = NODE_MTBF_S / t->session.context->comm->nnodes;
    if (!t->save.done.count || !cvy_saves_are_noticeable(t->save.done.stall_s, cvy_clock_s() - t->time.start_s))
        return;
    snprintf(text, sizeof text,
             "%lld checkpoint%s of %.1f MB: each blocked training for %.3f s (%.3f %% of the time if one is saved "
             "every 10 min) and was complete within %.2f s; Young and Daly would save"
             " every %.0f min, if a node fails once in 5 years",
             (long long)t->save.done.count, t->save.done.count == 1 ? "" : "s", 1e-6 * (double)t->save.done.bytes,
             stall_s, 100 * stall_s / 600, t->save.slowest_s, CVY_MAX(sqrt(2 * stall_s * mtbf_s) - stall_s, 60) / 60);
    cvy_trainer_say(t, text);
}
