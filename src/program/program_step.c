/*
 * program_step.c: running a task: its inputs, a step of it, and the flush of updates that are under way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/machine/base_team.h"
#include "context/context_device.h"
#include "program/program_guard.h"
#include "program/program_impl.h"

cvy_program_task *cvy_program_find_task(const cvy_program *p, int task)
{
    return task >= 0 && task < p->ntask && p->task[task]->plan ? p->task[task] : NULL;
}

int64_t cvy_program_rows(const cvy_program *p, int task)
{
    CVY_ENTRY();
    if (CVY_KNOWN(PROGRAM, p) != CVY_OK)
        return 0;
    const cvy_program_task *s = cvy_program_find_task(p, task);
    return s ? s->plan->rows : 0;
}

int64_t cvy_program_first_row(const cvy_program *p, int task)
{
    CVY_ENTRY();
    if (CVY_KNOWN(PROGRAM, p) != CVY_OK)
        return 0;
    const cvy_program_task *s = cvy_program_find_task(p, task);
    return s ? s->split.first_row : 0;
}

/* Sets the error text: the task has no such input, but these. */
static void set_no_input(const cvy_plan *plan, int task, const char *input)
{
    char names[400] = "";
    size_t used = 0;
    for (int i = 0; i < plan->feeds.count && used < sizeof names; i++)
        if (!plan->feeds.feed[i].per_step)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", plan->feeds.feed[i].name);
    cvy_error_set(CVY_E_ARGUMENT, "task %d has no input \"%s\"; its inputs are %s", task, input, names);
}

void *cvy_program_feed(cvy_program *p, int task, const char *input)
{
    CVY_ENTRY();
    if (CVY_LIVE(PROGRAM, p) != CVY_OK)
        return NULL;
    if (!input) {
        cvy_error_set(CVY_E_ARGUMENT, "cvy_program_feed() needs the name of an input");
        return NULL;
    }
    cvy_program_task *s = cvy_program_find_task(p, task);
    cvy_plan_feed *feed = s ? cvy_plan_find_feed(s->plan, input) : NULL;
    if (feed && p->allocated)
        return feed->data;
    if (s && p->allocated)
        set_no_input(s->plan, task, input);
    else
        cvy_error_set(CVY_E_ARGUMENT,
                      "task %d has no feed \"%s\": the program has %d tasks, and cvy_program_plan() comes first", task,
                      input, p->ntask);
    return NULL;
}

/* Counts the updates of a step's optimiser state by all tasks that share it: the tail batch continues the count of the
 * full batches. */
static int64_t updates_done(const cvy_program *p, const cvy_program_task *s)
{
    int64_t sum = 0;
    for (int j = 0; j < p->ntask; j++)
        sum += s->shares >> j & 1 ? p->task[j]->count : 0;
    return sum;
}

void cvy_program_set_updates(cvy_program *p, int task, int64_t updates)
{
    for (int j = 0; j < p->ntask; j++)
        if (p->task[task]->shares >> j & 1)
            p->task[j]->count = 0;
    p->task[task]->count = updates;
}

/* A step cannot be undone in the middle, and the other ranks are waiting, so the fault is reported as fatal. */
cvy_status cvy_program_report_fault(const cvy_program *p, cvy_status status)
{
    status = cvy_device_explain(p->context, status);
    if (status != CVY_OK && status != CVY_E_NUMERIC && p->context->opts.fatal) { /* all ranks know of CVY_E_NUMERIC */
        CVY_CALLBACK();
        p->context->opts.fatal(p->context->opts.fatal_user, status, cvy_error_text());
    }
    return status;
}

static void count_step(const cvy_program *p, cvy_program_task *s)
{
    const int steps = p->update.def->meets_in;
    s->count++;
    cvy_program_note_records(p, s);
    if (s->training && steps > 0 && s->count >= steps) {
        cvy_comm_met(p->context->comm);
        p->context->comm->met_step -= steps - 1;
    }
}

cvy_status cvy_program_step_begin(cvy_program *p, int task, double learning_rate)
{
    cvy_program_task *s = cvy_program_find_task(p, task);
    CVY_CHECK(s && p->allocated, CVY_E_ARGUMENT, "step %d is not planned", task);
    CVY_CHECK(!s->training || isfinite(learning_rate), CVY_E_ARGUMENT, "a learning rate of %g in step %d",
              learning_rate, task);
    CVY_TRY(cvy_context_check_idle(p->context, p));
    if (s->feed.lr)
        *s->feed.lr = learning_rate;
    if (s->feed.norm)
        *s->feed.norm = (double)s->batch;
    if (s->feed.number)
        *s->feed.number = updates_done(p, s);
    const cvy_update_def *update = p->update.def;
    if (update->flush_before_forward && !s->training)
        CVY_TRY(cvy_program_flush(p));
    cvy_team before;
    p->context->comm->step = s->count + 1;
    CVY_TRY(cvy_program_report_fault(p, cvy_team_enter(p->context->threads, &before)));
    const cvy_status status = s->training       ? update->step(p, s, learning_rate)
                              : update->forward ? update->forward(p, s)
                                                : cvy_plan_execute(s->plan, &s->time);
    cvy_team_leave(&before);
    return cvy_program_report_fault(p, status);
}

cvy_status cvy_program_step_end(cvy_program *p, int task)
{
    cvy_program_task *s = p->task[task];
    cvy_status status = CVY_OK;
    if (s->training && p->update.def->end && !cvy_space_is_host(&p->context->space)) {
        cvy_team before;
        CVY_TRY(cvy_program_report_fault(p, cvy_team_enter(p->context->threads, &before)));
        status = p->update.def->end(p, s);
        cvy_team_leave(&before);
    }
    if (status == CVY_OK)
        count_step(p, s);
    return cvy_program_report_fault(p, status);
}

int cvy_program_step_is_done(const cvy_program *p, int task)
{
    return cvy_guarded_is_done(p->task[task]);
}

cvy_status cvy_program_step(cvy_program *p, int task, double learning_rate)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_TRY(cvy_program_step_begin(p, task, learning_rate));
    return cvy_program_step_end(p, task);
}

int cvy_program_can_send(const cvy_program *p, int task)
{
    return p->task[task]->plan->feeds.ahead_bytes > 0;
}

cvy_status cvy_program_send_feeds(cvy_program *p, int task)
{
    return cvy_program_report_fault(p, cvy_plan_send_feeds(p->task[task]->plan));
}

cvy_status cvy_program_flush(cvy_program *p)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_CHECK(p->allocated, CVY_E_ARGUMENT, "plan the program first");
    CVY_TRY(cvy_context_check_idle(p->context, p));
    cvy_team before;
    CVY_TRY(cvy_program_report_fault(p, cvy_team_enter(p->context->threads, &before)));
    const cvy_status status = p->update.def->flush ? p->update.def->flush(p) : CVY_OK;
    cvy_team_leave(&before);
    return cvy_program_report_fault(p, status);
}
