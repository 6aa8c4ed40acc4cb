/*
 * job_settle.c: ways to update that are not in sync all the time: when a training run brings its weights up to date, and what a checkpoint keeps
 * of an update that is still to come.
 *
 * In the step: behind it. A pipelined run begins in sync (weights change most at first) and cools down in sync (a gradient that is a step late keeps the
 * loss from settling).
 */
#include <convoy/program.h>

#include "job/job_table.h"
#include "job/job_trainer.h"

static int is_pipelined(const cvy_trainer *t, int64_t step)
{
    const struct cvy_job_update *u = &t->session.job->update;
    const int64_t steps = t->order.last_step, epoch = t->order.steps_per_epoch;
    return u->mode == CVY_UPDATE_PIPELINED && step >= cvy_stretch_steps(&u->warm_up, steps, epoch) && step < steps - cvy_stretch_steps(&u->cool_down, steps, epoch);
}

/* An update waits for the next step only where both are pipelined; local steps count from the start of an epoch. */
cvy_status cvy_trainer_settle(cvy_trainer *t, int64_t step)
{
    const struct cvy_job_update *u = &t->session.job->update;
    const int64_t in_epoch = step % t->order.steps_per_epoch + 1;
    int waits = step + 1 != t->order.last_step;
    if (u->mode == CVY_UPDATE_LOCAL)
        waits = waits && in_epoch % u->every != 0 && in_epoch != t->order.steps_per_epoch;
    else if (u->mode == CVY_UPDATE_PIPELINED)
        waits = waits && is_pipelined(t, step) && is_pipelined(t, step + 1);
    else
        waits = 1;                     /* there is nothing to do, or it is not due behind each step */
    return waits ? CVY_OK : cvy_program_settle(t->session.program);
}

const char *cvy_trainer_mode(const cvy_trainer *t, int64_t step)
{
    const int mode = t->session.job->update.mode;
    return cvy_job_modes[mode == CVY_UPDATE_PIPELINED && !is_pipelined(t, step) ? CVY_UPDATE_SYNC : mode].name;
}

void cvy_trainer_say_mode(cvy_trainer *t)
{
    const struct cvy_job_update *u = &t->session.job->update;
    const int64_t steps = t->order.last_step, epoch = t->order.steps_per_epoch;
    const int64_t warm = cvy_stretch_steps(&u->warm_up, steps, epoch), cool = cvy_stretch_steps(&u->cool_down, steps, epoch);
    if (u->mode == CVY_UPDATE_LOCAL)
        cvy_text_add(&t->session.notes, "update: local: ranks take their average every %lld steps and at each epoch's end; results depend on the number of ranks\n", (long long)u->every);
    if (u->mode != CVY_UPDATE_PIPELINED)
        return;
    cvy_text_add(&t->session.notes, "update: pipelined in %lld of %lld steps: the first %lld and the last %lld are in sync%s\n",
                 (long long)CVY_MAX(steps - warm - cool, 0), (long long)steps, (long long)warm, (long long)cool,
                 steps - warm - cool > 0 ? "" : ", which leaves none");
    const cvy_tree *optimizer = t->session.job->train.optimizer_tree;
    if (!cvy_tree_is_null(cvy_tree_get(optimizer, "momentum")) && cvy_tree_is_null(cvy_tree_get(optimizer, "lookahead")))
        cvy_text_add(&t->session.notes, "update: pipelined: late gradients and momentum bear lower rates only; sgd with nesterov, a momentum of 0.98, a fifth of the"
                     " rate of 0.9 and lookahead: 1 bears what sync does\n");
}

/* ---- checkpoints ---- */

void cvy_trainer_add_pending(const cvy_trainer *t, cvy_json *json)
{
    const cvy_pending *pending = &t->session.program->pending;
    if (!pending->plan)
        return;
    cvy_json_open(json, "pending", '{');
    cvy_json_real(json, "learning_rate", pending->lr);
    cvy_json_int(json, "number", pending->number);
    cvy_json_bool(json, "tail", t->step_tail >= 0 && pending->step == t->session.program->step[t->step_tail]);
    cvy_json_close(json, '}');
}

static cvy_status read_pending(const cvy_tree *node, double *lr, int64_t *number, int *tail)
{
    const cvy_tree *const at[] = {cvy_tree_get(node, "learning_rate"), cvy_tree_get(node, "number"), cvy_tree_get(node, "tail")};
    CVY_CHECK(at[0] && at[1] && at[2], CVY_E_FORMAT, "%s: `pending` lacks learning_rate, number or tail", cvy_tree_where(node));
    CVY_TRY(cvy_tree_real(at[0], lr));
    CVY_TRY(cvy_tree_int(at[1], number));
    return cvy_tree_bool(at[2], tail);
}

/* The variables that are to be filled; NULL: nothing is pending. */
static cvy_status prepare_pending(cvy_trainer *t, cvy_vars **sums_out)
{
    const cvy_tree *node = cvy_tree_get(t->resume.state, "pending");
    double lr = 0;
    int64_t number = 0;
    int tail = 0;
    if (!node || node->kind != CVY_TREE_MAP)
        return CVY_OK;
    CVY_CHECK(t->session.job->update.mode == CVY_UPDATE_PIPELINED, CVY_E_CONFIG,
              "%s was saved with an update pending, but this job is not pipelined: resume with update: pipelined, which may cool down at once "
              "(cool_down: 100 %%), or start anew with train.init: %s", t->resume.path, t->resume.weights_path[0]);
    CVY_TRY(read_pending(node, &lr, &number, &tail));
    CVY_CHECK(!tail || t->step_tail >= 0, CVY_E_FORMAT, "%s: an update of a tail batch is pending, but this job has none", cvy_tree_where(node));
    return cvy_pipeline_resume(t->session.program, tail ? t->step_tail : t->step_full, lr, number, sums_out);
}

cvy_status cvy_trainer_restore_pending(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    cvy_vars *sums = NULL;
    cvy_status status = cvy_comm_agree(comm, prepare_pending(t, &sums));
    if (status == CVY_OK && sums)
        status = cvy_checkpoint_load_pending(&t->resume, comm, sums);
    cvy_vars_destroy(&sums);
    return status;
}
