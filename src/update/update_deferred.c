/*
 * update_deferred.c: deferred updates (opts.overlap: forward): gradient reductions also overlap with the next step's
 * forward pass. A weight is updated just before the next step reads it, so the results are those of `sync`, to the bit.
 *
 * A training step has two plans on two sets of gradients, as in delayed updates (update_delayed.c). Here the update
 * phase of one plan runs in pieces between the instructions of the other, in the order that plan_deferred.c has made.
 * All other code that reads weights must flush first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "update/update_delayed.h"

#include "program/program_impl.h"

/* Runs the pieces of the update that the plan's instruction `at` and those before it need. These pieces see the number
 * of their own step. Forward and backward around them see the number of the current step, by which dropout draws its
 * masks. */
static cvy_status update_upto(const cvy_pending *pending, int *done, int at, cvy_step_time *time)
{
    cvy_plan *pending_plan = pending->plan;
    int64_t *number = pending->task->feed.number;
    const int64_t now = number ? *number : 0;
    int end = *done;
    while (end < pending_plan->ninstr && pending_plan->update.need[end - pending_plan->update.first] <= at)
        end++;
    if (end == *done)
        return CVY_OK;
    CVY_TRY(cvy_pending_feed(pending));
    CVY_TRY(cvy_plan_run_part(pending_plan, *done, end, time));
    *done = end;
    return cvy_pending_set(pending_plan, number, &now);
}

cvy_status cvy_deferred_run(cvy_plan *plan, const cvy_pending *pending, cvy_step_time *time)
{
    const cvy_plan *pending_plan = pending->plan;
    int done = pending_plan->update.first;
    for (int at = 0, next; at < plan->update.first; at = next) {
        CVY_TRY(update_upto(pending, &done, at, time));
        next = done < pending_plan->ninstr
                   ? CVY_MIN(pending_plan->update.need[done - pending_plan->update.first], plan->update.first)
                   : plan->update.first;
        CVY_TRY(cvy_plan_run_part(plan, at, next, time));
    }
    return update_upto(pending, &done, plan->update.first, time);
}

/* ---- the mode ---- */

static int is_asked_for(const cvy_program_opts *opts)
{
    return opts->overlap == CVY_OVERLAP_FORWARD && opts->shards == 0 &&
           !opts->gradients_only; /* those modes reject it */
}

static cvy_status check(const cvy_program *p)
{
    CVY_CHECK(p->opts.update_mode == CVY_UPDATE_SYNC && cvy_pass_is_on(p->opts.passes_off, "overlap"), CVY_E_CONFIG,
              "opts.overlap: forward goes with opts.update_mode: sync and the pass overlap");
    return CVY_OK;
}

/* In a pipeline the first stage would wait for the norm before its forward pass, and the others for the first stage. On
 * a tensor axis the norm is a blocking sum that would lie between those of the forward pass, at a place that depends on
 * the kernels of each rank. */
static cvy_status check_task(const cvy_program *p, const cvy_optimise_opts *optimise)
{
    const cvy_op_def *op = cvy_op_find(optimise->op);
    CVY_CHECK(
        p->grid.length[CVY_AXIS_TENSOR] == 1 || !(optimise->clip_norm > 0 || (op && op->flags & CVY_OP_LAYER_NORMS)),
        CVY_E_CONFIG,
        "opts.overlap: forward does not go with opts.tensor and %s%s: norms are summed over the tensor axis before "
        "the update, and here updates run during the forward pass, which has sums of its own: leave one of them "
        "out",
        optimise->clip_norm > 0 ? "clip_norm" : "optimizer ", optimise->clip_norm > 0 ? "" : optimise->op);
    CVY_CHECK(p->grid.nstages == 1 || !(optimise->clip_norm > 0), CVY_E_CONFIG,
              "opts.overlap: forward does not go with clip_norm in a pipeline, because the norm needs the gradients of "
              "all stages before the next forward pass: leave one of the two out");
    return CVY_OK;
}

static void shape(const cvy_program *p, cvy_update_shape *shape)
{
    (void)p;
    shape->gradient_sets = 2;
    shape->deferred = 1;
    shape->shares_weights = 0;
    shape->newest_first = 1;
}

static cvy_status save(cvy_program *p, cvy_vars **pending_out)
{
    (void)pending_out;
    return cvy_program_flush(p);
}

CVY_UPDATE_DEFINE(deferred) = {
    .name = "deferred",
    .summary = "as sync; gradient reductions overlap with the next step's forward pass too",
    .mode = -1,
    .asked_for = is_asked_for,
    .many_ranks = 1,
    .any_space = 1,
    .flush_before_forward = 1,
    .meets_in = 2,
    .plan.check = check,
    .plan.check_task = check_task,
    .plan.create = cvy_delayed_create,
    .plan.shape = shape,
    .plan.planned = cvy_delayed_planned,
    .step = cvy_delayed_step,
    .forward = cvy_delayed_forward,
    .flush = cvy_delayed_flush,
    .abandon = cvy_delayed_abandon,
    .save.begin = save,
    .destroy = cvy_delayed_destroy,
};
