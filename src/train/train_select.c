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

/* Jobs may name a score with or without "val_". */
static const char *name_of(const char *metric)
{
    return strncmp(metric, "val_", 4) == 0 ? metric + 4 : metric;
}

int cvy_trainer_find_score(const cvy_scores *scores, const char *metric, cvy_score *out)
{
    metric = name_of(metric);
    *out = cvy_scores_loss(scores);
    if (strcmp(metric, out->name) == 0)
        return 1;
    for (int i = 0; i < scores->count; i++)
        if (strcmp(scores->at[i].name, metric) == 0) {
            *out = scores->at[i];
            return 1;
        }
    return 0;
}

/* A value that is not finite is never better. */
static int is_better(double value, double best, int higher)
{
    return isfinite(value) && (isnan(best) || (higher ? value > best : value < best));
}

/* ---- the scores that decisions depend on ---- */

enum { BEST, STOP, NWATCHED };
typedef struct watched {
    const char *section, *key, *metric; /* metric NULL: the job does not watch it */
} watched;

static void list_watched(const cvy_job *job, watched out[NWATCHED])
{
    out[BEST] = (watched){"checkpoint", "best", job->checkpoint.best};
    out[STOP] = (watched){"train", "stop", job->train.stop.metric};
}

cvy_status cvy_trainer_need_score(const cvy_trainer *t, const char *where, const char *key, const char *metric,
                                  int *higher_out)
{
    const char *names[CVY_COUNT(((cvy_scores *)0)->at) + 1] = {"loss"};
    cvy_scores scores;
    cvy_score score;
    CVY_TRY(cvy_scorer_names(&t->validation.scorer, &scores));
    for (int k = 0; k < scores.count; k++)
        names[k + 1] = scores.at[k].name;
    if (!cvy_trainer_find_score(&scores, metric, &score)) {
        char all[512] = "";
        for (int k = 0; k <= scores.count; k++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", k ? ", " : "", names[k]);
        const cvy_name_hint hint = cvy_hint_name('\'', metric, names, scores.count + 1);
        return cvy_error_set(CVY_E_CONFIG, "%s: %s: validation has no score '%s'%s%s it has %s (train.metrics)", where,
                             key, metric, hint.text, *hint.text ? "" : ",", all);
    }
    *higher_out = score.higher_is_better;
    return CVY_OK;
}

cvy_status cvy_trainer_check_scores(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    watched watch[NWATCHED];
    cvy_scores scores;
    int higher = 0;
    if (!t->validation.source)
        return CVY_OK;
    CVY_TRY(cvy_scorer_names(&t->validation.scorer, &scores)); /* the metrics fit the data, or it says why not */
    list_watched(job, watch);
    for (int i = 0; i < NWATCHED; i++) {
        char key[64];
        if (!watch[i].metric)
            continue;
        snprintf(key, sizeof key, "%s.%s", watch[i].section, watch[i].key);
        CVY_TRY(cvy_trainer_need_score(t, cvy_job_where(job, watch[i].section, watch[i].key), key, watch[i].metric,
                                       &higher));
    }
    return CVY_OK;
}

static long long epoch_of(const cvy_trainer *t)
{
    return (long long)((t->step + t->order.steps_per_epoch - 1) / t->order.steps_per_epoch);
}

/* What depends on a score, as a text; "": nothing does. */
static const char *depends_on(const watched watch[NWATCHED], const char *name)
{
    static const char *const texts[] = {"", "checkpoint.best depends on it", "train.stop depends on it",
                                        "checkpoint.best and train.stop depend on it"};
    int which = 0;
    for (int i = 0; i < NWATCHED; i++)
        which |= (watch[i].metric && strcmp(name_of(watch[i].metric), name) == 0) << i;
    return texts[which];
}

/* Says once of each score that it is not finite, and why. */
static void say_not_finite(cvy_trainer *t, const watched watch[NWATCHED], const cvy_scores *val)
{
    char where[64], then[256];
    snprintf(where, sizeof where, "epoch %lld: the validation ", epoch_of(t));
    for (int i = 0; i <= val->count; i++) {
        const cvy_score score = i < val->count ? val->at[i] : cvy_scores_loss(val);
        const char *depends = depends_on(watch, score.name);
        if (isfinite(score.value) || t->validation.said >> i & 1)
            continue;
        t->validation.said |= (uint64_t)1 << i;
        snprintf(then, sizeof then,
                 "; %s: such a score is never the best and counts as no progress. Correct data.val, or name another "
                 "score",
                 depends);
        cvy_score_say_not_finite(t->session.context, where, &score, *depends ? then : "");
    }
}

static int is_stop_higher(const cvy_job *job, int is_metric_higher)
{
    const int mode = job->train.stop.mode;
    return mode == CVY_STOP_AUTO ? is_metric_higher : mode == CVY_STOP_MAX;
}

/* Decides by the best score so far, and by the epochs since then, whether train.stop ends the run. */
static void decide_stop(cvy_trainer *t, int higher)
{
    const struct cvy_job_stop *stop = &t->session.job->train.stop;
    const double best = t->state.stop_best;
    t->validation.is_reached =
        stop->has_target && isfinite(best) && (higher ? best >= stop->target : best <= stop->target);
    t->stop_early = t->validation.is_reached || (stop->patience > 0 && t->state.stop_bad_epochs >= stop->patience);
}

void cvy_trainer_select(cvy_trainer *t, const cvy_scores *val)
{
    const cvy_job *job = t->session.job;
    watched watch[NWATCHED];
    cvy_score score;
    list_watched(job, watch);
    say_not_finite(t, watch, val);
    if (watch[BEST].metric && cvy_trainer_find_score(val, watch[BEST].metric, &score) &&
        is_better(score.value, t->state.best, score.higher_is_better)) {
        t->state.best = score.value;
        t->best.is_new = 1;
    }
    if (watch[STOP].metric && cvy_trainer_find_score(val, watch[STOP].metric, &score)) {
        const int higher = is_stop_higher(job, score.higher_is_better);
        if (is_better(score.value, t->state.stop_best, higher)) {
            t->state.stop_best = score.value;
            t->state.stop_bad_epochs = 0;
        } else {
            t->state.stop_bad_epochs++;
        }
        decide_stop(t, higher);
    }
}

cvy_status cvy_trainer_restore_stop(cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    int higher = 0;
    if (!job->train.stop.metric || !t->validation.source)
        return CVY_OK;
    CVY_TRY(
        cvy_trainer_need_score(t, cvy_job_where(job, "train", "stop"), "train.stop", job->train.stop.metric, &higher));
    decide_stop(t, is_stop_higher(job, higher));
    return CVY_OK;
}

void cvy_trainer_say_no_best(cvy_trainer *t)
{
    const char *metric = t->session.job->checkpoint.best;
    if (metric && t->validation.said && isnan(t->state.best))
        cvy_log(t->session.context, CVY_LOG_WARN,
                "no checkpoint is marked as the best (checkpoint.best): the validation %s was finite in no epoch. Who "
                "asks for the best one gets the newest",
                name_of(metric));
}

/* A generator gives nearly equal samples at its beginning, too, so only a fall is worth a word; and one from more than
 * the data have is none. */
void cvy_trainer_watch_diversity(cvy_trainer *t, const cvy_scores *val)
{
    char text[320];
    double *most = &t->validation.most_diverse;
    cvy_score score;
    if (!cvy_trainer_find_score(val, "diversity", &score) || isnan(score.value))
        return;
    const double value = score.value;
    if (value < 0.5 * CVY_MIN(*most, 1)) {
        snprintf(text, sizeof text,
                 "epoch %lld: generated samples differ from each other only %.2g times as much as the data, after %.2g "
                 "times before: the generator may have collapsed to few samples (mode collapse); lower the learning "
                 "rates, train the discriminator less, or continue from an earlier checkpoint",
                 epoch_of(t), value, *most);
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", text);
        *most = 0; /* once for each fall */
    }
    *most = CVY_MAX(*most, value);
}

int cvy_trainer_stopped_early(const cvy_trainer *t, char *text, size_t room)
{
    const struct cvy_job_stop *stop = &t->session.job->train.stop;
    if (!t->stop_early || t->step >= t->order.last_step)
        return 0;
    if (t->validation.is_reached) {
        snprintf(text, room, "stop in epoch %lld of %g: the validation %s is %.6g, and the target is %.6g (train.stop)",
                 epoch_of(t), t->epochs, name_of(stop->metric), t->state.stop_best, stop->target);
        return 1;
    }
    char progress[64] = "been finite";
    if (!isnan(t->state.stop_best))
        snprintf(progress, sizeof progress, "become better than %.6g", t->state.stop_best);
    snprintf(text, room, "early stop in epoch %lld of %g: the validation %s has not %s for %lld epoch%s (train.stop)",
             epoch_of(t), t->epochs, name_of(stop->metric), progress, (long long)t->state.stop_bad_epochs,
             t->state.stop_bad_epochs == 1 ? "" : "s");
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
    if (t->session.job->train.stop.patience > 0)
        cvy_json_int(&json, "patience", t->session.job->train.stop.patience);
    if (t->session.job->train.stop.has_target)
        cvy_json_real(&json, "target", t->session.job->train.stop.target);
    cvy_json_string(&json, "text", text);
    cvy_json_close(&json, '}');
    cvy_trainer_write_line(t, &json);
}
