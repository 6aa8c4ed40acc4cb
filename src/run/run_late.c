/*
 * run_late.c: sums that are hidden behind the next step's forward pass too (comm.overlap: forward). An update is done just before the next step
 * reads the weight, so the results are those of `sync`, to the bit, and sums have all that time.
 *
 * A training step has two plans on two sets of gradients, as where updates are pipelined (run_pipeline.c): here the update phase of one runs in pieces between
 * the instructions of the other, as plan_late.c has ordered it. Who reads weights otherwise settles first.
 */
#include "run/run_program.h"

/* The pieces of the update that the plan's instruction `at` and those before it need. They see the number of their own step, and forward and backward around
 * them the number of theirs: dropout draws its masks by it. */
static cvy_status update_upto(const cvy_pending *pending, int *done, int at, cvy_step_time *time)
{
    cvy_plan *late = pending->plan;
    int64_t *number = pending->step->step_number;
    const int64_t now = number ? *number : 0;
    int end = *done;
    while (end < late->ninstr && late->need[end - late->update_at] <= at)
        end++;
    if (end == *done)
        return CVY_OK;
    cvy_pending_feed(pending);
    CVY_TRY(cvy_plan_run_part(late, *done, end, time));
    if (number)
        *number = now;
    *done = end;
    return CVY_OK;
}

cvy_status cvy_late_run(cvy_plan *plan, const cvy_pending *pending, cvy_step_time *time)
{
    const cvy_plan *late = pending->plan;
    int done = late->update_at;
    for (int at = 0, next; at < plan->update_at; at = next) {
        CVY_TRY(update_upto(pending, &done, at, time));
        next = done < late->ninstr ? CVY_MIN(late->need[done - late->update_at], plan->update_at) : plan->update_at;
        CVY_TRY(cvy_plan_run_part(plan, at, next, time));
    }
    return update_upto(pending, &done, plan->update_at, time);
}
