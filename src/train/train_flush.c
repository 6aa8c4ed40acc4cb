/*
 * train_flush.c: update modes that do not bring all weights up to date in every step. This file says when a training
 * run flushes, and what a checkpoint keeps of a pending update. The mode decides (program/program_update.h).
 *
 * The trainer calls cvy_trainer_flush() after each step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/job_table.h"
#include "train/trainer.h"

static cvy_update_run run_of(const cvy_trainer *t)
{
    return (cvy_update_run){.steps = t->order.last_step,
                            .steps_per_epoch = t->order.steps_per_epoch,
                            .optimizer = t->session.job->train.optimizer_tree};
}

cvy_status cvy_trainer_flush(cvy_trainer *t, int64_t step)
{
    const struct cvy_job_update *u = &t->session.job->update;
    const cvy_update_run run = run_of(t);
    return u->def->job.flush_due && u->def->job.flush_due(u->options, &run, step)
               ? cvy_program_flush(t->session.program)
               : CVY_OK;
}

int64_t cvy_trainer_steps_to_flush(const cvy_trainer *t)
{
    const struct cvy_job_update *u = &t->session.job->update;
    return u->def->job.flush_every ? CVY_MIN(u->def->job.flush_every(u->options), t->order.steps_per_epoch) - 1 : 0;
}

const char *cvy_trainer_mode(const cvy_trainer *t, int64_t step)
{
    const struct cvy_job_update *u = &t->session.job->update;
    const cvy_update_run run = run_of(t);
    return u->def->job.in_sync && u->def->job.in_sync(u->options, &run, step) ? "sync" : u->def->name;
}

void cvy_trainer_say_mode(cvy_trainer *t)
{
    const struct cvy_job_update *u = &t->session.job->update;
    const cvy_update_run run = run_of(t);
    if (u->def->job.describe_run)
        u->def->job.describe_run(u->options, &run, &t->session.notes);
}

/* ---- checkpoints ---- */

void cvy_trainer_add_pending(const cvy_trainer *t, cvy_json *json)
{
    const cvy_pending *pending = cvy_program_pending(t->session.program);
    if (!pending)
        return;
    cvy_json_open(json, "pending", '{');
    cvy_json_real(json, "learning_rate", pending->lr);
    cvy_json_int(json, "number", pending->number);
    cvy_json_bool(json, "tail", t->task.tail >= 0 && cvy_program_pending_task(t->session.program) == t->task.tail);
    cvy_json_close(json, '}');
}

static cvy_status read_pending(const cvy_tree *node, double *lr, int64_t *number, int *tail)
{
    const cvy_tree *const at[] = {cvy_tree_get(node, "learning_rate"), cvy_tree_get(node, "number"),
                                  cvy_tree_get(node, "tail")};
    CVY_CHECK(at[0] && at[1] && at[2], CVY_E_FORMAT, "%s: `pending` lacks learning_rate, number or tail",
              cvy_tree_where(node));
    CVY_TRY(cvy_tree_real(at[0], lr));
    CVY_TRY(cvy_tree_int(at[1], number));
    return cvy_tree_bool(at[2], tail);
}

/* *sums_out: the variables to fill from the checkpoint; NULL: nothing is pending. */
static cvy_status prepare_pending(cvy_trainer *t, cvy_vars **sums_out)
{
    const cvy_tree *node = cvy_tree_get(t->folder.resume.state, "pending");
    double lr = 0;
    int64_t number = 0;
    int tail = 0;
    if (!node || node->kind != CVY_TREE_MAP)
        return CVY_OK;
    CVY_CHECK(t->session.job->update.def->save.resume, CVY_E_CONFIG,
              "%s was saved with an update pending, but this job's updates are not delayed: resume with update: "
              "delayed, which can return to sync at once (cool_down: 100 %%), or start a new run with train.init: %s",
              t->folder.resume.path, t->folder.resume.weights_path[0]);
    CVY_TRY(read_pending(node, &lr, &number, &tail));
    CVY_CHECK(!tail || t->task.tail >= 0, CVY_E_FORMAT,
              "%s: an update of a tail batch is pending, but this job has none", cvy_tree_where(node));
    return cvy_program_resume_pending(t->session.program, tail ? t->task.tail : t->task.full, lr, number, sums_out);
}

cvy_status cvy_trainer_restore_pending(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    const cvy_grid *grid = cvy_program_grid(t->session.program);
    cvy_vars *sums = NULL;
    cvy_status status = cvy_comm_agree(comm, prepare_pending(t, &sums));
    if (status == CVY_OK && sums)
        status = cvy_comm_agree(
            comm, cvy_checkpoint_load_pending(&t->folder.resume, grid->data, sums, cvy_grid_is_used(grid)));
    cvy_vars_destroy(&sums);
    return status;
}
