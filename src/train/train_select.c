/*
 * train_select.c: decisions that depend on scores: which checkpoint is the best, and when a run stops early. They are
 * taken at the end of an epoch, from scores that are equal on all ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_table.h"
#include "job/job_table.h"
#include "train/trainer.h"

static int find_score(const cvy_scores *scores, const char *metric, double *value_out, int *higher_out)
{
    if (strncmp(metric, "val_", 4) == 0)
        metric += 4;
    *value_out = scores->loss;
    *higher_out = 0;
    if (strcmp(metric, "loss") == 0)
        return 1;
    for (int i = 0; i < scores->count; i++)
        if (strcmp(scores->at[i].name, metric) == 0) {
            *value_out = scores->at[i].value;
            *higher_out = scores->at[i].higher_is_better;
            return 1;
        }
    return 0;
}

static int is_better(double value, double best, int higher)
{
    return isnan(best) || (higher ? value > best : value < best);
}

cvy_status cvy_trainer_need_score(const cvy_trainer *t, const char *where, const char *key, const char *metric,
                                  int *higher_out)
{
    const char *names[CVY_COUNT(((cvy_scores *)0)->at) + 1] = {"loss"};
    cvy_scores scores;
    double value = 0;
    CVY_TRY(cvy_scorer_names(&t->validation.scorer, &scores));
    for (int k = 0; k < scores.count; k++)
        names[k + 1] = scores.at[k].name;
    CVY_CHECK(find_score(&scores, metric, &value, higher_out), CVY_E_CONFIG,
              "%s: %s: validation has no score '%s'%s; name other metrics in train.metrics", where, key, metric,
              cvy_hint_name('\'', metric, names, scores.count + 1).text);
    return CVY_OK;
}

cvy_status cvy_trainer_check_scores(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    const struct {
        const char *section, *key, *metric;
    } watched[] = {{"checkpoint", "best", job->checkpoint.best},
                   {"train", "stop", job->train.stop.patience > 0 ? job->train.stop.metric : NULL}};
    cvy_scores scores;
    int higher = 0;
    if (!t->validation.source)
        return CVY_OK;
    CVY_TRY(cvy_scorer_names(&t->validation.scorer, &scores)); /* the metrics fit the data, or it says why not */
    for (int i = 0; i < CVY_COUNT(watched); i++) {
        char key[64];
        if (!watched[i].metric)
            continue;
        snprintf(key, sizeof key, "%s.%s", watched[i].section, watched[i].key);
        CVY_TRY(cvy_trainer_need_score(t, cvy_job_where(job, watched[i].section, watched[i].key), key,
                                       watched[i].metric, &higher));
    }
    return CVY_OK;
}

void cvy_trainer_select(cvy_trainer *t, const cvy_scores *val)
{
    const cvy_job *job = t->session.job;
    double value = 0;
    int higher = 0;
    if (job->checkpoint.best && find_score(val, job->checkpoint.best, &value, &higher) &&
        is_better(value, t->state.best, higher)) {
        t->state.best = value;
        t->best.is_new = 1;
    }
    if (job->train.stop.patience > 0 && find_score(val, job->train.stop.metric, &value, &higher)) {
        higher = job->train.stop.mode == CVY_STOP_AUTO ? higher : job->train.stop.mode == CVY_STOP_MAX;
        if (is_better(value, t->state.stop_best, higher)) {
            t->state.stop_best = value;
            t->state.stop_bad_epochs = 0;
        } else if (++t->state.stop_bad_epochs >= job->train.stop.patience) {
            t->stop_early = 1;
        }
    }
}

/* A generator gives nearly equal samples at its beginning, too, so only a fall is worth a word; and one from more than
 * the data have is none. */
void cvy_trainer_watch_diversity(cvy_trainer *t, const cvy_scores *val)
{
    char text[320];
    double value = 0, *most = &t->validation.most_diverse;
    int higher = 0;
    if (!find_score(val, "diversity", &value, &higher) || isnan(value))
        return;
    if (value < 0.5 * CVY_MIN(*most, 1)) {
        snprintf(text, sizeof text,
                 "epoch %lld: generated samples differ from each other only %.2g times as much as the data, after %.2g "
                 "times before: the generator may have collapsed to few samples (mode collapse); lower the learning "
                 "rates, train the discriminator less, or continue from an earlier checkpoint",
                 (long long)((t->step + t->order.steps_per_epoch - 1) / t->order.steps_per_epoch), value, *most);
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", text);
        *most = 0; /* once for each fall */
    }
    *most = CVY_MAX(*most, value);
}

int cvy_trainer_stopped_early(const cvy_trainer *t, char *text, size_t room)
{
    const struct cvy_job_stop *stop = &t->session.job->train.stop;
    const char *metric = stop->metric && strncmp(stop->metric, "val_", 4) == 0 ? stop->metric + 4 : stop->metric;
    if (!t->stop_early || t->step >= t->order.last_step)
        return 0;
    snprintf(text, room,
             "early stop in epoch %lld of %g: the validation %s has not become better than %.6g for %lld epoch%s "
             "(train.stop)",
             (long long)((t->step + t->order.steps_per_epoch - 1) / t->order.steps_per_epoch), t->epochs, metric,
             t->state.stop_best, (long long)t->state.stop_bad_epochs, t->state.stop_bad_epochs == 1 ? "" : "s");
    return 1;
}

void cvy_trainer_say_early_stop(cvy_trainer *t)
{
    char text[CVY_EARLY_STOP_TEXT];
    cvy_json json = {0};
    if (!cvy_trainer_stopped_early(t, text, sizeof text))
        return;
    cvy_trainer_say(t, text);
    if (t->step == t->first_step) /* the run had stopped before, and its log says so */
        return;
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "kind", "early_stop");
    cvy_json_int(&json, "step", t->step);
    cvy_json_real(&json, "epoch", (double)t->step / (double)t->order.steps_per_epoch);
    cvy_json_string(&json, "metric", t->session.job->train.stop.metric);
    cvy_json_real(&json, "best", t->state.stop_best);
    cvy_json_int(&json, "patience", t->session.job->train.stop.patience);
    cvy_json_string(&json, "text", text);
    cvy_json_close(&json, '}');
    cvy_trainer_write_line(t, &json);
}
