/*
 * program_rehearse.c: runs the kernels of a planned step in their order, without exchanges, and times each of them.
 *
 * A kernel that is timed on its own finds its tensors in the caches. In a step most of them were written long before,
 * and come from memory: a step may take a quarter longer than the sum of such times. A rehearsal takes the memory of
 * the step, so it sees what a step sees. Its tensors are zeros, on which kernels for real numbers take the usual time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "base/machine/base_clock.h"
#include "base/machine/base_team.h"
#include "plan/plan_timer.h"
#include "program/program_execute.h"
#include "program/program_impl.h"

enum { ROUNDS = 7 };              /* at most, of which the medians are taken, after one that takes the pages */
static const double enough_s = 1; /* after this time there is no further round */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cvy_status run_round(cvy_plan *plan, double *seconds)
{
    cvy_step_time time = {0};
    CVY_TRY(cvy_plan_run_part(plan, 0, plan->ninstr, &time));
    for (int i = 0; i < plan->ninstr; i++)
        seconds[i] = plan->times.end_s[i] - plan->times.end_s[i - 1];
    return CVY_OK;
}

static cvy_status take_medians(cvy_plan *plan, double *round)
{
    const double begin = cvy_clock_s();
    int n = 0;
    CVY_TRY(run_round(plan, round));
    for (const double ready = cvy_clock_s(); n == 0 || (n < ROUNDS && cvy_clock_s() - ready < enough_s); n++)
        CVY_TRY(run_round(plan, round + (size_t)n * plan->ninstr));
    for (int i = 0; i < plan->ninstr; i++) {
        double taken[ROUNDS];
        for (int k = 0; k < n; k++)
            taken[k] = round[(size_t)k * plan->ninstr + i];
        qsort(taken, (size_t)n, sizeof *taken, by_value);
        plan->times.rehearsed_s[i] = taken[(n - 1) / 2];
    }
    plan->times.rehearsal_s = cvy_clock_s() - begin;
    return CVY_OK;
}

static cvy_status rehearse(cvy_program *p, cvy_program_task *s)
{
    cvy_plan *plan = s->plan;
    double *round = NULL;
    p->memory.arena_bytes = CVY_MAX(p->memory.arena_bytes, 64);
    CVY_TRY(cvy_space_alloc(&p->context->space, p->memory.arena_bytes, 0, &p->memory.arena));
    CVY_TRY(cvy_program_allocate_variables(p));
    CVY_TRY(cvy_plan_bind(plan, (char *)p->memory.arena + cvy_program_arena_offset(p, s)));
    CVY_TRY(cvy_plan_time_instructions(plan));
    CVY_TRY(cvy_mem_alloc(sizeof(double) * ((size_t)plan->ninstr + 1), &plan->times.rehearsed_s));
    CVY_TRY(cvy_mem_alloc(sizeof(double) * ((size_t)plan->ninstr + 1) * ROUNDS, &round));
    const cvy_status status = take_medians(plan, round);
    cvy_mem_free(&round);
    if (status != CVY_OK)
        cvy_mem_free(&plan->times.rehearsed_s);
    return status;
}

cvy_status cvy_program_rehearse(cvy_program *p, int task)
{
    const double left = (double)cvy_space_left(&p->context->space);
    CVY_CHECK(p->context->comm->pretended && !p->memory.arena, CVY_E_INTERNAL,
              "a program can be rehearsed once, and only if its other ranks do not exist");
    CVY_CHECK(left < 0 || (double)cvy_program_need(p) < left, CVY_NOT_APPLICABLE,
              "a rehearsal needs %lld bytes, %.0f are free", (long long)cvy_program_need(p), left);
    cvy_team before;
    CVY_TRY(cvy_team_enter(p->context->threads, &before));
    const cvy_status status = rehearse(p, p->task[task]);
    cvy_team_leave(&before);
    return status;
}
