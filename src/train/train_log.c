/*
 * train_log.c: what a training says while it runs: the lines of metrics.jsonl for steps and epochs, and the state of
 * the run for the caller's progress function.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/base_entry.h"
#include "train/trainer.h"

void cvy_trainer_say(cvy_trainer *t, const char *event)
{
    const cvy_train_opts *o = t->opts;
    const double now = cvy_clock_s(), run = now - t->time.start_s;
    const int64_t done = t->step - t->first_step, left = t->order.last_step - t->step;
    if (!o->progress || t->session.context->comm->rank != 0)
        return;
    const cvy_progress progress = {.size = sizeof progress,
                                   .step = t->step,
                                   .steps = t->order.last_step,
                                   .epoch = (double)t->step / (double)t->order.steps_per_epoch,
                                   .epochs = t->epochs,
                                   .loss = t->latest.loss,
                                   .images_per_s = t->latest.images_per_s,
                                   .elapsed_s = run,
                                   .left_s = done > 0 ? run / (double)done * (double)left : NAN,
                                   .event = event};
    CVY_CALLBACK();
    o->progress(o->user, &progress);
}

void cvy_trainer_log_step(cvy_trainer *t, double lr)
{
    cvy_json json = {0};
    const double now = cvy_clock_s(), seconds = now - t->window.start_s;
    t->latest.images_per_s = seconds > 0 ? (double)t->window.samples / seconds : NAN;
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "kind", "step");
    cvy_json_int(&json, "step", t->step);
    cvy_json_real(&json, "epoch", (double)t->step / (double)t->order.steps_per_epoch);
    cvy_json_int(&json, "samples", cvy_order_samples_before(&t->order, t->step));
    cvy_json_real(&json, "loss", t->latest.loss);
    cvy_trainer_log_turns(t, &json);
    cvy_json_real(&json, "learning_rate", lr);
    cvy_json_string(&json, "update", cvy_trainer_mode(t, t->step - 1));
    cvy_json_real(&json, "images_per_s", t->latest.images_per_s);
    cvy_json_real(&json, "seconds_data", t->window.data_s / (double)t->window.steps);
    cvy_json_real(&json, "seconds_data_wait", t->window.wait_s / (double)t->window.steps);
    cvy_json_real(&json, "steps_ready", (double)t->window.ready / (double)t->window.steps);
    cvy_json_real(&json, "seconds_compute", t->window.compute_s / (double)t->window.steps);
    cvy_json_real(&json, "seconds_exposed_comm", t->window.comm_s / (double)t->window.steps);
    cvy_json_real(&json, "seconds_hidden_comm", t->window.hidden_s / (double)t->window.steps);
    cvy_json_real(&json, "seconds_wait_slowest", t->window.slowest_s / (double)t->window.steps);
    cvy_json_real(&json, "seconds_spread", t->window.spread_s / (double)t->window.steps);
    cvy_trainer_log_axes(t, &json);
    const int64_t sent_bytes = cvy_program_sent_bytes(t->session.program);
    cvy_json_real(&json, "bytes_wire", (double)(sent_bytes - t->window.sent_bytes) / (double)t->window.steps);
    const cvy_update_async *async = cvy_program_async(t->session.program);
    if (async) {
        double mean = 0;
        int64_t most = 0;
        async->staleness(t->session.program, &mean, &most);
        cvy_json_real(&json, "staleness_mean", mean);
        cvy_json_int(&json, "staleness_max", most);
    }
    cvy_json_close(&json, '}');
    t->window = (struct cvy_log_window){.start_s = now, .sent_bytes = sent_bytes};
    cvy_trainer_write_line(t, &json);
}

int64_t cvy_trainer_epoch(const cvy_trainer *t)
{
    return (t->step + t->order.steps_per_epoch - 1) / t->order.steps_per_epoch;
}

void cvy_trainer_log_epoch(cvy_trainer *t, const cvy_scores *scores, int64_t skipped, double bubble)
{
    cvy_json json = {0};
    cvy_text text = {0};
    const int64_t epoch = cvy_trainer_epoch(t);
    const double seconds = cvy_clock_s() - t->time.epoch_start_s, loss = t->state.epoch_loss / t->state.epoch_samples;
    t->latest.epoch_loss = loss;
    cvy_text_add(&text, "epoch %lld: %.1f s, train loss ", (long long)epoch, seconds);
    cvy_text_add_score(&text, loss);
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "kind", "epoch");
    cvy_json_int(&json, "step", t->step);
    cvy_json_int(&json, "epoch", epoch);
    cvy_json_real(&json, "train_loss", loss);
    if (scores)
        cvy_trainer_add_score(t, "loss", scores->loss, &json, &text);
    for (int i = 0; scores && i < scores->count; i++)
        cvy_trainer_add_score(t, scores->at[i].name, scores->at[i].value, &json, &text);
    if (skipped > 0) {
        cvy_json_int(&json, "train_skipped", skipped);
        cvy_text_add(&text, ", %lld bad sample%s skipped", (long long)skipped, skipped == 1 ? "" : "s");
    }
    if (t->session.cache) {
        const cvy_cache_state kept = cvy_cache_budget_state(t->session.cache);
        cvy_json_int(&json, "cached_samples", kept.samples);
        cvy_json_int(&json, "cached_bytes", kept.bytes);
        cvy_text_add(&text, ", %lld samples in memory (%.1f MB%s)", (long long)kept.samples, 1e-6 * (double)kept.bytes,
                     kept.full ? ", no room for more" : "");
    }
    if (scores && scores->nskipped > 0)
        cvy_trainer_add_score(t, "skipped", (double)scores->nskipped, &json, &text);
    if (bubble >= 0) {
        cvy_json_real(&json, "bubble", bubble);
        cvy_text_add(&text, ", %.0f %% of the steps idle (bubble)", 100 * bubble);
    }
    cvy_json_real(&json, "seconds", seconds);
    cvy_json_real(&json, "images_per_s",
                  t->state.epoch_train_s > 0 ? t->state.epoch_samples / t->state.epoch_train_s : NAN);
    cvy_json_close(&json, '}');
    if (text.status == CVY_OK)
        cvy_trainer_say(t, text.data);
    cvy_text_free(&text);
    cvy_trainer_write_line(t, &json);
}
