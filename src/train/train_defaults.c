/*
 * train_defaults.c: a line of the log about defaults that decide the results of a run and that differ from those of
 * PyTorch, as far as the job leaves them open. docs/guide/coming-from-pytorch.md explains them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fnmatch.h>
#include <string.h>

#include "job/job_table.h"
#include "train/trainer.h"

static int is_given(const cvy_job *job, const char *path)
{
    return cvy_tree_at(job->given, path) != NULL;
}

static int has_running_statistics(const cvy_program *p)
{
    for (int i = 0; i < p->vars->count; i++)
        if (p->vars->at[i]->role == CVY_ROLE_STATISTIC && fnmatch("*.running_var", p->vars->at[i]->name, 0) == 0)
            return 1;
    return 0;
}

void cvy_trainer_note_defaults(cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    const struct cvy_job_batch_norm *norm = &job->batch_norm;
    const cvy_tree *own = job->train.optimizer_options, *momentum = cvy_tree_get(own, "momentum");
    cvy_text line = {0};
    double decay = 0;
    if (strcmp(job->train.optimizer, "sgd") == 0 && !momentum)
        cvy_text_add(&line, "momentum %s (train.optimizer.momentum)",
                     cvy_tree_get(job->train.optimizer_tree, "momentum")->text);
    if (cvy_tree_get(own, "weight_decay") && cvy_tree_real(cvy_tree_get(own, "weight_decay"), &decay) == CVY_OK &&
        decay > 0 && !is_given(job, "train.optimizer.decay_on"))
        cvy_text_add(&line, "%sno weight decay on biases and norms (train.optimizer.decay_on)", line.bytes ? ", " : "");
    if (norm->group_by == CVY_NORM_GROUP_SAMPLES && norm->group < t->order.batch &&
        !is_given(job, "batch_norm.group") && has_running_statistics(t->session.program))
        cvy_text_add(&line, "%sbatch norm by groups of %lld samples (batch_norm.group)", line.bytes ? ", " : "",
                     (long long)norm->group);
    if (line.bytes)
        cvy_text_add(&t->session.notes, "by default: %s\n", line.data);
    cvy_text_free(&line);
}
