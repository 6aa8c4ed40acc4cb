/*
 * train_validate.c: scores within an epoch (train.validate_every), and how scores are written.
 *
 * At the end of an epoch trainer.c scores the validation data. With train.validate_every it does so between, too. These
 * scores are for the log: the best checkpoint and early stopping go by the epochs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "base/machine/base_clock.h"
#include "job/job_table.h"
#include "program/program_update.h"
#include "train/trainer.h"

void cvy_trainer_add_score(const cvy_trainer *t, const char *name, double value, cvy_json *json, cvy_text *text)
{
    char key[80];
    snprintf(key, sizeof key, "%s_%s", t->validation.source, name);
    cvy_json_real(json, key, value);
    cvy_text_add(text, ", %s %s ", t->validation.source, name);
    cvy_text_add_score(text, value);
}

int cvy_trainer_validates(const cvy_trainer *t)
{
    const int64_t every = t->session.job->train.validate_every;
    return every > 0 && t->validation.source && t->step % every == 0 && !cvy_trainer_ends_epoch(t);
}

/* In other modes ranks do not have all updates, or not the same ones, between the ends of epochs. */
cvy_status cvy_trainer_check_validation(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    const cvy_update_def *def = job->update.def;
    const int forward = job->program.overlap == CVY_OVERLAP_FORWARD;
    CVY_CHECK(!job->train.validate_every ||
                  (!def->job.flush_due && !def->job.flush_every && !def->no_replicas && !forward),
              CVY_E_CONFIG,
              "%s: train.validate_every is %lld, but with %s the ranks have all updates only at the end of an epoch: "
              "leave it out, or take update: sync",
              cvy_job_where(job, "train", "validate_every"), (long long)job->train.validate_every,
              forward ? "comm.overlap: forward" : def->name);
    return CVY_OK;
}

/* Nobody looks for requests during the pass. It is only known how long earlier ones took, but a forward step takes at
 * most as long as a training step. */
cvy_status cvy_trainer_score(cvy_trainer *t, cvy_scores *out)
{
    const double expected_s = (double)t->validation.scorer.order.last_step * t->time.busy_s;
    cvy_train_control_say_longest(t->opts->control, CVY_MAX(t->time.iteration_s, expected_s));
    cvy_trainer_mlperf_validation(t, NULL);
    CVY_TRY(cvy_scorer_run(&t->validation.scorer, out, NULL, NULL, NULL));
    cvy_trainer_mlperf_validation(t, out);
    return CVY_OK;
}

cvy_status cvy_trainer_validate(cvy_trainer *t)
{
    cvy_scores scores;
    cvy_json json = {0};
    cvy_text text = {0};
    const double begin = cvy_clock_s();
    CVY_TRY(cvy_trainer_score(t, &scores));
    cvy_text_add(&text, "step %lld", (long long)t->step);
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "kind", "validation");
    cvy_json_int(&json, "step", t->step);
    cvy_json_real(&json, "epoch", (double)t->step / (double)t->order.steps_per_epoch);
    cvy_trainer_add_score(t, "loss", scores.loss, &json, &text);
    for (int i = 0; i < scores.count; i++)
        cvy_trainer_add_score(t, scores.at[i].name, scores.at[i].value, &json, &text);
    if (scores.nskipped > 0)
        cvy_trainer_add_score(t, "skipped", (double)scores.nskipped, &json, &text);
    cvy_json_close(&json, '}');
    if (text.status == CVY_OK)
        cvy_trainer_say(t, text.data);
    cvy_text_free(&text);
    cvy_trainer_write_line(t, &json);
    t->window.start_s += cvy_clock_s() - begin; /* the time is not that of the steps */
    return CVY_OK;
}
