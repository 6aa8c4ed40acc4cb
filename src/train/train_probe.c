/*
 * train_probe.c: finds out whether a job can be trained, without a run folder, memory for tensors or a step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_hash.h"
#include "job/job_table.h"
#include "train/trainer.h"

/* Of the names, roles and shapes of all that a checkpoint keeps. */
static uint64_t hash_variables(const cvy_vars *vars)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        cvy_hash_add(&h, v->name, strlen(v->name) + 1);
        cvy_hash_add(&h, &v->role, sizeof v->role);
        cvy_hash_add(&h, v->shape.dim, sizeof *v->shape.dim * (size_t)v->shape.ndim);
    }
    return cvy_hash_end(&h);
}

static cvy_status probe(cvy_trainer *t, const char *who, const char *metric, int *higher_out, uint64_t *variables_out)
{
    cvy_session *s = &t->session;
    cvy_comm *comm = s->context->comm;
    CVY_TRY(cvy_session_open_training_data(s, 0));
    CVY_TRY(cvy_session_compare(s));
    CVY_CHECK(s->val || !metric, CVY_E_CONFIG,
              "%s: metric is %s, but %s has no validation data: add data.val, such as 10%% of the training data", who,
              metric, s->job->file);
    CVY_TRY(cvy_trainer_choose_grid(t));
    CVY_TRY(cvy_comm_agree(comm, cvy_trainer_make_program(t, NULL)));
    if (!metric && !variables_out)
        return CVY_OK;
    CVY_TRY(cvy_job_translate(cvy_program_prepare(s->program)));
    if (variables_out)
        *variables_out = hash_variables(cvy_program_vars(s->program));
    if (!metric)
        return CVY_OK;
    CVY_TRY(cvy_trainer_check(t));
    return cvy_comm_agree(comm, cvy_trainer_need_score(t, who, "metric", metric, higher_out));
}

cvy_status cvy_trainer_probe(cvy_context *context, const cvy_job_source *job, const char *who, const char *metric,
                             int *higher_out, uint64_t *variables_out)
{
    cvy_train_opts opts = {.size = sizeof opts};
    cvy_trainer t = {.opts = &opts};
    cvy_status status = cvy_session_open_job(context, job, &t.session);
    if (status == CVY_OK)
        status = probe(&t, who, metric, higher_out, variables_out);
    cvy_schedule_destroy(&t.schedule);
    cvy_session_close(&t.session);
    return status;
}
