/*
 * train_idle.c: finds keys of the job that have no effect on this training: those that depend on its length, its data
 * or its network. Keys that other keys make idle are in job_idle_keys.c. The run begins in spite of them, with a
 * warning for each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "job/job_table.h"
#include "kernel/kernel_library.h"
#include "optim/optim.h"
#include "train/trainer.h"

static int has_layer(const cvy_model *m, const char *op)
{
    for (int i = 0; i < m->nlayer; i++)
        if (strcmp(m->layer[i].op->name, op) == 0)
            return 1;
    return 0;
}

/* The longest time from a turn of the job to its next one, in steps. */
static int64_t longest_turn(const cvy_trainer *t)
{
    int64_t every = 0;
    for (int k = 0; k < t->task.nturn; k++)
        every = CVY_MAX(t->task.turn[k].every, every);
    return every;
}

/* Why plan.tf32 has no effect; NULL: it has one. */
static const char *why_no_tf32(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    cvy_kernels kernels = cvy_job_kernels(job);
    kernels.space = &t->session.context->space;
    return job->program.dtype != CVY_DTYPE_F32    ? "only f32 is rounded to TF32, and train.dtype is another"
           : cvy_kernels_tf32(&kernels) == CVY_OK ? NULL
                                                  : cvy_error_text();
}

static void say_keys(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    const int64_t steps = t->order.last_step, epoch = t->order.steps_per_epoch, every = job->train.validate_every,
                  histograms = job->log.tensorboard ? job->log.tensorboard_histograms : 0,
                  patience = t->validation.source ? job->train.stop.patience : 0;
    const char *no_tf32 = job->program.tf32 ? why_no_tf32(t) : NULL;
    const struct {
        int idle;
        const char *section, *key, *what;
        int64_t value;
        const char *why;
    } keys[] = {
        {patience > 0 && patience * epoch >= steps, "train", "stop", "patience", patience,
         "the training ends before so many epochs can pass without a better value"},
        {every > 0 && every % epoch == 0, "train", "validate_every", NULL, every,
         "the validation data are scored at the end of each epoch anyway, and between them never"},
        {every > 0 && every % epoch != 0 && every >= steps, "train", "validate_every", NULL, every,
         "the training has not more steps"},
        {histograms > 0 && histograms * epoch > steps, "log", "tensorboard_histograms", NULL, histograms,
         "the training has fewer epochs"},
        {job->program.batch_norm_group != 32 && !job->deterministic && !has_layer(t->session.model, "batch_norm"),
         "batch_norm", "group", NULL, 0, "the network has no layer batch_norm"},
        {longest_turn(t) >= steps && steps > 1, "train", "turns", "every", longest_turn(t),
         "it is not shorter than the training, so the turn is taken in the first step alone"},
        {no_tf32 != NULL, "plan", "tf32", NULL, 0, no_tf32},
    };
    for (int i = 0; i < CVY_COUNT(keys); i++) {
        char value[32] = "";
        if (!keys[i].idle)
            continue;
        if (keys[i].value > 0)
            snprintf(value, sizeof value, " %lld", (long long)keys[i].value);
        cvy_log(t->session.context, CVY_LOG_WARN, "%s: %s.%s%s%s%s has no effect here: %s",
                cvy_job_where(job, keys[i].section, keys[i].key), keys[i].section, keys[i].key, keys[i].what ? "." : "",
                keys[i].what ? keys[i].what : "", value, keys[i].why);
    }
}

static void say_scores(const cvy_trainer *t)
{
    cvy_scores scores;
    if (!t->validation.source || cvy_scorer_names(&t->validation.scorer, &scores) != CVY_OK)
        return;
    for (int i = 0; i < scores.count; i++)
        if (scores.at[i].why[0])
            cvy_log(t->session.context, CVY_LOG_WARN, "%s: train.metrics: %s: %s",
                    cvy_job_where(t->session.job, "train", "metrics"), scores.at[i].name, scores.at[i].why);
}

cvy_status cvy_trainer_say_idle(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    cvy_text text = {0};
    cvy_schedule_list_idle(t->schedule, t->order.last_step, &text);
    if (text.bytes)
        cvy_log(t->session.context, CVY_LOG_WARN, "%s: train.schedule: %s", cvy_job_where(job, "train", "schedule"),
                text.data);
    const cvy_status status = text.status;
    cvy_text_free(&text);
    say_keys(t);
    say_scores(t);
    return status;
}
