/*
 * train_mlperf.c: when a training writes lines into mlperf.log, and the lines about its course.
 *
 * The clock of MLPerf starts before the first data are read. So "run_start" has the time at which the data sets were
 * opened, and planning counts as a part of the run. It stops with the validation that reaches the target of train.stop,
 * before the last save.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "base/machine/base_clock.h"
#include "monitor/monitor_run_layout.h"
#include "train/trainer.h"

static void add(cvy_trainer *t, const cvy_mlperf_line *line)
{
    if (cvy_mlperf_add(t->folder.mlperf, line) != CVY_OK)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s", cvy_error_text());
}

static void add_point(cvy_trainer *t, const char *key, const char *value)
{
    add(t, &(cvy_mlperf_line){.key = key, .value = value});
}

/* The time by the wall clock at which the monotonic clock showed this. */
static double wall_at(double clock_s)
{
    return cvy_clock_wall_s() - (cvy_clock_s() - clock_s);
}

/* The epoch in which the last step was, or the next one is. */
static void add_in_epoch(cvy_trainer *t, cvy_mlperf_kind kind, const char *key, const char *value, int is_next)
{
    add(t, &(cvy_mlperf_line){.kind = kind,
                              .key = key,
                              .value = value,
                              .epoch = is_next ? t->step / t->order.steps_per_epoch + 1 : cvy_trainer_epoch(t),
                              .step = t->step});
}

/* ---- the head ---- */

static void write_head(cvy_trainer *t)
{
    const double data_s = wall_at(t->time.data_s);
    add(t, &(cvy_mlperf_line){.kind = CVY_MLPERF_START, .key = "init_start", .wall_s = wall_at(t->time.start_s)});
    cvy_trainer_mlperf_job(t, add_point);
    add(t, &(cvy_mlperf_line){.kind = CVY_MLPERF_END, .key = "init_stop", .wall_s = data_s});
    add(t, &(cvy_mlperf_line){.kind = CVY_MLPERF_START, .key = "run_start", .wall_s = data_s});
}

/* The score that is logged; NULL: the first of the validation. */
static const char *metric_of(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    return job->log.mlperf.metric ? job->log.mlperf.metric : job->train.stop.metric;
}

static cvy_status check(const cvy_trainer *t)
{
    const char *metric = metric_of(t), *where = cvy_tree_where(t->session.job->log.mlperf_tree);
    int higher = 0;
    CVY_CHECK(t->session.val, CVY_E_CONFIG,
              "%s: log.mlperf: a log of MLPerf has a score after each epoch, and there is no validation data; give "
              "data.val, such as 10%%",
              where);
    return metric ? cvy_trainer_need_score(t, where, "log.mlperf", metric, &higher) : CVY_OK;
}

/* Whether the resumed run has nothing left to do: its log stays as it is. */
static int is_over(const cvy_trainer *t)
{
    return t->opts->resume && (t->step >= t->order.last_step || t->stop_early);
}

cvy_status cvy_trainer_open_mlperf(cvy_trainer *t)
{
    char path[CVY_RUN_PATH];
    if (!t->session.job->log.mlperf.benchmark)
        return CVY_OK;
    CVY_TRY(check(t));
    if (t->session.context->comm->rank != 0 || is_over(t))
        return CVY_OK;
    cvy_run_path(t->folder.path, CVY_RUN_MLPERF, path);
    CVY_TRY(cvy_mlperf_open(path, t->opts->resume ? t->step : -1, t->step % t->order.steps_per_epoch != 0,
                            &t->folder.mlperf));
    if (!t->folder.mlperf)
        cvy_log(t->session.context, CVY_LOG_WARN,
                "log.mlperf: %s does not say when this run began, so the resumed run does not write it: it would show "
                "too short a time",
                path);
    else if (!cvy_mlperf_is_running(t->folder.mlperf))
        write_head(t);
    return CVY_OK;
}

/* ---- the course ---- */

void cvy_trainer_mlperf_epoch(cvy_trainer *t, int begins)
{
    if (!t->folder.mlperf || cvy_mlperf_is_in_epoch(t->folder.mlperf) == begins)
        return;
    if (begins)
        add_in_epoch(t, CVY_MLPERF_START, "epoch_start", NULL, 1);
    else
        add_in_epoch(t, CVY_MLPERF_END, "epoch_stop", NULL, 0);
}

void cvy_trainer_mlperf_validation(cvy_trainer *t, const cvy_scores *scores)
{
    const char *metric = metric_of(t);
    char value[40] = "null";
    cvy_score score;
    if (!t->folder.mlperf)
        return;
    if (!scores) {
        add_in_epoch(t, CVY_MLPERF_START, "eval_start", NULL, 0);
        return;
    }
    add_in_epoch(t, CVY_MLPERF_END, "eval_stop", NULL, 0);
    score = scores->count > 0 ? scores->at[0] : cvy_scores_loss(scores);
    if (metric)
        (void)cvy_trainer_find_score(scores, metric, &score);
    if (isfinite(score.value))
        snprintf(value, sizeof value, "%.9g", score.value);
    add_in_epoch(t, CVY_MLPERF_POINT, score.higher_is_better ? "eval_accuracy" : "eval_error", value, 0);
}

void cvy_trainer_mlperf_stop(cvy_trainer *t, int is_done)
{
    const struct cvy_job_stop *stop = t->session.job ? &t->session.job->train.stop : NULL;
    if (!cvy_mlperf_is_running(t->folder.mlperf))
        return;
    const int reached = is_done && (!stop->has_target || t->validation.is_reached);
    add(t, &(cvy_mlperf_line){.kind = CVY_MLPERF_END, .key = "run_stop", .status = reached ? "success" : "aborted"});
}
