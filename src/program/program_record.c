/*
 * program_record.c: says what of a step on a device is recorded (plan_record.h), or why nothing is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_record.h"
#include "program/program_impl.h"

static void note_plan(const cvy_program *p, const cvy_program_task *s, cvy_plan *plan)
{
    cvy_recorded recorded;
    if (!plan || !plan->records || !cvy_plan_recorded(plan, &recorded))
        return;
    if (recorded.why)
        cvy_log(p->context, CVY_LOG_WARN, "%s: steps are not recorded, and kernels are launched one by one: %s",
                p->context->device, recorded.why);
    else
        cvy_log(p->context, CVY_LOG_INFO, "%s: %d launches of a %s step with a batch of %lld are in %d recording%s",
                p->context->device, recorded.parts, s->training ? "training" : "forward", (long long)s->batch,
                recorded.recordings, recorded.recordings == 1 ? "" : "s");
}

void cvy_program_note_records(const cvy_program *p, const cvy_program_task *s)
{
    note_plan(p, s, s->plan);
    note_plan(p, s, s->alternate);
}

int cvy_program_count_records(const cvy_program *p, const int *task, int ntask, int *instr_out, int *all_out)
{
    int n = 0;
    *instr_out = *all_out = 0;
    for (int i = 0; i < ntask && cvy_records_are_wanted(&p->context->space); i++) {
        int instr = 0;
        n += cvy_plan_count_records(p->task[task[i]]->plan, &instr);
        *instr_out += instr;
        *all_out += p->task[task[i]]->plan->ninstr;
    }
    return n;
}
