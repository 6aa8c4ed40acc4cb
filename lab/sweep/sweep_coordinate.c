/*
 * sweep_coordinate.c: rank 0 of a search: it keeps the state, gives trials to groups that are free, and stops them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/machine/base_clock.h"
#include "sweep/sweep_run.h"

/* ---- messages ---- */

static cvy_status make(cvy_sweep_run *run, void *data, size_t bytes, cvy_message **out)
{
    const cvy_range range = {data, bytes};
    return run->comm->message->create(run->comm, &range, 1, out);
}

static cvy_status open_leader(cvy_sweep_run *run)
{
    CVY_TRY(make(run, &run->report, sizeof run->report, &run->send_report));
    CVY_TRY(make(run, &run->order, sizeof run->order, &run->get_order));
    CVY_TRY(make(run, &run->notice, sizeof run->notice, &run->get_notice));
    return run->comm->message->receive(run->get_notice, 0, CVY_TAG_NOTICE);
}

static cvy_status open_coordinator(cvy_sweep_run *run)
{
    int others = 0;
    for (int g = 0; g < run->ngroups; g++) {
        cvy_sweep_group *group = &run->group[g];
        if (group->leader == 0)
            continue;
        others++;
        CVY_TRY(make(run, &group->order, sizeof group->order, &group->send_order));
        CVY_TRY(make(run, &run->notice, sizeof run->notice, &group->send_notice));
    }
    if (!others)
        return CVY_OK;
    CVY_TRY(make(run, &run->inbox, sizeof run->inbox, &run->get_report));
    return run->comm->message->receive(run->get_report, CVY_ANY_RANK, CVY_TAG_REPORT);
}

cvy_status cvy_sweep_open_messages(cvy_sweep_run *run)
{
    if (run->comm->rank == 0)
        return open_coordinator(run);
    return run->context && run->context->comm->rank == 0 ? open_leader(run) : CVY_OK;
}

void cvy_sweep_close_messages(cvy_sweep_run *run)
{
    const cvy_comm_message_ops *ops = run->comm->message;
    if (!ops)
        return;
    for (int g = 0; run->group && g < run->ngroups; g++) {
        ops->destroy(&run->group[g].send_order);
        ops->destroy(&run->group[g].send_notice);
    }
    if (run->get_report)
        (void)!ops->cancel(run->get_report); /* no group reports any more */
    if (run->get_notice)
        (void)!ops->cancel(run->get_notice); /* it has come, unless the search did not begin */
    ops->destroy(&run->get_report);
    ops->destroy(&run->send_report);
    ops->destroy(&run->get_order);
    ops->destroy(&run->get_notice);
}

/* ---- faults ---- */

void cvy_sweep_note_fault(cvy_sweep_run *run, cvy_status fault)
{
    if (fault == CVY_OK || run->fault != CVY_OK)
        return;
    run->fault = fault;
    snprintf(run->fault_text, sizeof run->fault_text, "%s", cvy_error_text());
    run->stops = run->is_asked = 1;
}

cvy_status cvy_sweep_first_fault(const cvy_sweep_run *run)
{
    return run->fault == CVY_OK ? CVY_OK : cvy_error_set(run->fault, "%s", run->fault_text);
}

/* ---- state ---- */

/* Releases the line. */
static void say(const cvy_sweep_run *run, cvy_text *line)
{
    if (line->status == CVY_OK && run->opts->line) {
        CVY_CALLBACK();
        run->opts->line(run->opts->user, line->data);
    }
    cvy_text_free(line);
}

static void save(cvy_sweep_run *run)
{
    cvy_sweep_note_fault(run, cvy_sweep_save(&run->sweep, run->opts->out));
}

static int count_open(const cvy_sweep *s)
{
    int n = 0;
    for (int i = 0; i < s->ntrials; i++)
        n += s->trial[i].state == CVY_TRIAL_WAITING || s->trial[i].state == CVY_TRIAL_RUNNING;
    return n;
}

void cvy_sweep_add_values(const cvy_sweep *s, int trial, cvy_text *line)
{
    for (int k = 0; k < s->spec.nkey; k++)
        cvy_text_add(line, "%s%s %s", k ? ", " : "", s->spec.key[k].name, s->trial[trial].value[k]);
}

/* "trial 7 (train.batch 32): val_accuracy 0.8125 after 3 epochs, 12.3 s" */
static void add_result(const cvy_sweep *s, const cvy_sweep_report *r, cvy_text *line)
{
    cvy_text_add(line, "trial %d (", r->trial + 1);
    cvy_sweep_add_values(s, r->trial, line);
    cvy_text_add(line, ")");
    if (r->kind == CVY_REPORT_FAILED) {
        cvy_text_add(line, " failed: %s", r->error);
    } else if (r->kind == CVY_REPORT_STOPPED) {
        cvy_text_add(line, " is saved and stopped after %.4g epochs", r->epochs);
    } else {
        cvy_text_add(line, ": val_%s ", s->spec.metric);
        cvy_text_add_score(line, r->score);
        cvy_text_add(line, " after %.4g epochs, %.1f s", r->epochs, r->seconds);
    }
}

int cvy_sweep_advance(cvy_sweep_run *run)
{
    int is_done = 0;
    cvy_sweep_note_fault(run, cvy_sweep_settle(&run->sweep, &is_done));
    if (run->fault == CVY_OK)
        cvy_sweep_note_fault(run, cvy_sweep_copy_runs(&run->sweep, run->opts->out));
    return is_done;
}

static void note_result(cvy_sweep_run *run, const cvy_sweep_report *r)
{
    cvy_trial *trial = &run->sweep.trial[r->trial];
    trial->seconds += r->seconds;
    trial->epochs = isfinite(r->epochs) ? r->epochs : trial->epochs;
    trial->tries = 0;
    if (r->kind == CVY_REPORT_ENDED)
        cvy_sweep_note(&run->sweep, r->trial, r->score);
    else if (r->kind == CVY_REPORT_FAILED)
        cvy_sweep_note_fault(run, cvy_sweep_note_failure(&run->sweep, r->trial, r->error));
    else
        trial->state = CVY_TRIAL_WAITING;
}

/* The score is saved before run folders of a population are copied: afterwards it might not be found in the folder. */
static void take_report(cvy_sweep_run *run, int g, const cvy_sweep_report *r)
{
    const cvy_sweep *s = &run->sweep;
    const int copied = s->copied;
    cvy_text line = {0};
    run->group[g].waits = 1;
    run->is_asked |= r->asked;
    run->stops |= r->kind == CVY_REPORT_STOPPED || r->asked;
    if (r->kind == CVY_REPORT_FREE)
        return;
    add_result(s, r, &line); /* first, because the values of a population may change now */
    note_result(run, r);
    save(run);
    run->is_done = cvy_sweep_advance(run);
    if (s->copied != copied)
        save(run);
    cvy_text_add(&line, "; %d of %d trials are left", count_open(s), s->ntrials);
    say(run, &line);
}

/* ---- orders ---- */

/* The time that a trial takes for so many more epochs (0: all of its job), as the slowest one so far; 0: unknown. */
static double expected_s(const cvy_sweep *s, const cvy_trial *trial, int64_t epochs)
{
    double epoch_s = 0, whole_s = 0;
    for (int i = 0; i < s->ntrials; i++) {
        const cvy_trial *other = &s->trial[i];
        if (other->nscores && other->epochs > 0)
            epoch_s = fmax(epoch_s, other->seconds / other->epochs);
        if (other->nscores)
            whole_s = fmax(whole_s, other->seconds);
    }
    return epochs ? epoch_s * ((double)epochs - trial->epochs) : whole_s;
}

/* Whether the allocation leaves time for this trial. A group may always begin its first one: a trial that is longer
 * than an allocation would otherwise never begin. A trial that is resumed may always go on. */
static int has_time(const cvy_sweep_run *run, const cvy_sweep_group *group, int trial, int64_t epochs)
{
    const cvy_trial *t = &run->sweep.trial[trial];
    if (run->end_time <= 0 || !group->has_begun || t->epochs > 0)
        return 1;
    return cvy_clock_wall_s() + expected_s(&run->sweep, t, epochs) < run->end_time;
}

static void say_no_time(const cvy_sweep_run *run)
{
    const char *source = run->opts->end_source;
    cvy_text line = {0};
    cvy_text_add(&line, "the allocation ends in %.0f s%s%s%s, and a trial takes longer: no more trials are begun",
                 run->end_time - cvy_clock_wall_s(), source ? " (" : "", source ? source : "", source ? ")" : "");
    say(run, &line);
}

static cvy_sweep_order next_order(cvy_sweep_run *run, int g)
{
    cvy_sweep_order order = {.kind = CVY_ORDER_END, .trial = -1};
    cvy_sweep_group *group = &run->group[g];
    if (run->stops || run->is_done)
        return order;
    const int number = cvy_sweep_next(&run->sweep, &order.epochs);
    if (number < 0) {
        order.kind = CVY_ORDER_NONE; /* until a rung is decided */
        return order;
    }
    if (!has_time(run, group, number, order.epochs)) {
        run->stops = 1;
        say_no_time(run);
        return order;
    }
    cvy_trial *trial = &run->sweep.trial[number];
    order.kind = CVY_ORDER_TRAIN;
    order.trial = number;
    memcpy(order.place, trial->place, sizeof *order.place * (size_t)run->sweep.spec.nkey);
    group->has_begun = 1;
    trial->state = CVY_TRIAL_RUNNING;
    trial->tries++;
    save(run);
    return order;
}

/* Tells all groups to stop, once. */
static void send_notices(cvy_sweep_run *run)
{
    if (run->is_noticed)
        return;
    run->is_noticed = 1;
    for (int g = 0; g < run->ngroups; g++)
        if (run->group[g].send_notice && !run->group[g].has_ended)
            cvy_sweep_note_fault(
                run, run->comm->message->send(run->group[g].send_notice, run->group[g].leader, CVY_TAG_NOTICE));
    cvy_train_control_request(&run->control, CVY_TRAIN_STOP);
}

static void send_order(cvy_sweep_run *run, int g, cvy_sweep_order order)
{
    cvy_sweep_group *group = &run->group[g];
    const cvy_comm_message_ops *ops = run->comm->message;
    int done = 0;
    while (!done && run->fault != CVY_E_COMM) /* the last order has come: the leader has reported since */
        cvy_sweep_note_fault(run, ops->test(group->send_order, &done, NULL));
    group->order = order;
    group->waits = 0;
    group->has_ended = order.kind == CVY_ORDER_END;
    if (group->has_ended && !run->is_noticed)
        cvy_sweep_note_fault(run, ops->send(group->send_notice, group->leader, CVY_TAG_NOTICE));
    cvy_sweep_note_fault(run, ops->send(group->send_order, group->leader, CVY_TAG_ORDER));
}

static void receive(cvy_sweep_run *run)
{
    for (;;) {
        int done = 0, from = 0;
        cvy_sweep_note_fault(run, run->comm->message->test(run->get_report, &done, &from));
        if (!done || run->fault == CVY_E_COMM)
            return;
        const cvy_sweep_report report = run->inbox;
        cvy_sweep_note_fault(run, run->comm->message->receive(run->get_report, CVY_ANY_RANK, CVY_TAG_REPORT));
        for (int g = 0; g < run->ngroups; g++)
            if (run->group[g].leader == from)
                take_report(run, g, &report);
    }
}

void cvy_sweep_serve(cvy_sweep_run *run)
{
    if (cvy_train_control_wants_stop(run->opts->control))
        run->stops = run->is_asked = 1;
    if (run->get_report)
        receive(run);
    if (run->is_asked)
        send_notices(run);
    for (int g = 0; g < run->ngroups && run->fault != CVY_E_COMM; g++) {
        if (!run->group[g].waits || run->group[g].leader == 0)
            continue;
        const cvy_sweep_order order = next_order(run, g);
        if (order.kind != CVY_ORDER_NONE)
            send_order(run, g, order);
    }
}

/* Whether all messages to other groups have left, and all of them have got their last order. */
static int others_have_ended(cvy_sweep_run *run)
{
    for (int g = 0; g < run->ngroups; g++) {
        cvy_sweep_group *group = &run->group[g];
        int sent[2] = {1, 1};
        if (group->leader == 0)
            continue;
        cvy_sweep_note_fault(run, run->comm->message->test(group->send_order, &sent[0], NULL));
        cvy_sweep_note_fault(run, run->comm->message->test(group->send_notice, &sent[1], NULL));
        if (!group->has_ended || !sent[0] || !sent[1])
            return 0;
    }
    return 1;
}

void cvy_sweep_serve_own(cvy_sweep_run *run)
{
    if (run->mine == 0)
        take_report(run, 0, &run->report);
    run->order = (cvy_sweep_order){.kind = CVY_ORDER_END};
    for (int round = 0; run->fault != CVY_E_COMM; round++) {
        cvy_sweep_serve(run);
        if (run->mine == 0) {
            run->order = next_order(run, 0);
            if (run->order.kind == CVY_ORDER_TRAIN)
                return;
        }
        const int ends = run->mine != 0 || run->order.kind == CVY_ORDER_END;
        if (ends && others_have_ended(run))
            return;
        cvy_sweep_pause(round);
    }
}
