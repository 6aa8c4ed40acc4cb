/*
 * plan_timer.c: see plan_timer.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_timer.h"

cvy_status cvy_stopwatch_open(const cvy_space *space, cvy_stopwatch *out)
{
    *out = (cvy_stopwatch){.space = space};
    cvy_status status = cvy_mark_create(space, &out->from);
    if (status == CVY_OK)
        status = cvy_mark_create(space, &out->to);
    if (status != CVY_OK)
        cvy_stopwatch_close(out);
    return status;
}

void cvy_stopwatch_close(cvy_stopwatch *watch)
{
    cvy_mark_destroy(watch->space, &watch->from);
    cvy_mark_destroy(watch->space, &watch->to);
}

cvy_status cvy_stopwatch_start(cvy_stopwatch *watch)
{
    CVY_TRY(cvy_mark_put(watch->space, CVY_LANE_COMPUTE, watch->from));
    watch->start_s = cvy_clock_s();
    return CVY_OK;
}

cvy_status cvy_stopwatch_stop(cvy_stopwatch *watch, double *s_out)
{
    int reached;
    if (cvy_space_is_host(watch->space)) {
        *s_out = cvy_clock_s() - watch->start_s;
        return CVY_OK;
    }
    CVY_TRY(cvy_mark_put(watch->space, CVY_LANE_COMPUTE, watch->to));
    CVY_TRY(cvy_mark_reached(watch->space, watch->to, 1, &reached));
    return cvy_mark_elapsed(watch->space, watch->from, watch->to, s_out);
}

/* ---- the instructions of a plan ---- */

cvy_status cvy_plan_time_instructions(cvy_plan *plan)
{
    cvy_plan_times *t = &plan->times;
    if (cvy_space_is_host(plan->opts.space) || t->mark)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *t->mark * ((size_t)plan->ninstr + 1), &t->mark));
    cvy_status status = CVY_OK;
    for (int i = 0; i <= plan->ninstr && status == CVY_OK; i++)
        status = cvy_mark_create(plan->opts.space, &t->mark[i]);
    if (status != CVY_OK)
        cvy_plan_free_marks(plan);
    return status;
}

void cvy_plan_free_marks(cvy_plan *plan)
{
    for (int i = 0; i <= plan->ninstr && plan->times.mark; i++)
        cvy_mark_destroy(plan->opts.space, &plan->times.mark[i]);
    cvy_mem_free(&plan->times.mark);
}

cvy_status cvy_plan_mark(cvy_plan *plan, int i)
{
    return plan->times.mark ? cvy_mark_put(plan->opts.space, CVY_LANE_COMPUTE, plan->times.mark[i + 1]) : CVY_OK;
}

cvy_status cvy_plan_read_marks(cvy_plan *plan, int first, int end)
{
    const cvy_plan_times *t = &plan->times;
    int reached;
    if (!t->mark || end <= first)
        return CVY_OK;
    CVY_TRY(cvy_mark_reached(plan->opts.space, t->mark[end], 1, &reached));
    for (int i = first; i < end; i++) {
        double s = 0;
        CVY_TRY(cvy_mark_elapsed(plan->opts.space, t->mark[first], t->mark[i + 1], &s));
        t->end_s[i] = t->end_s[first - 1] + s;
    }
    return CVY_OK;
}
