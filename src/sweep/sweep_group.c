/*
 * sweep_group.c: a group of ranks that trains one trial after the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "checkpoint/checkpoint.h"
#include "monitor/monitor_run_layout.h"
#include "sweep/sweep_run.h"

/* ---- while a trial trains ---- */

/* Whether rank 0 has told this leader to stop. */
static int is_told_to_stop(cvy_sweep_run *run)
{
    int done = 0;
    if (run->get_notice && !run->is_noticed) {
        cvy_sweep_note_fault(run, run->comm->message->test(run->get_notice, &done, NULL));
        run->is_noticed = done;
    }
    return run->is_noticed || run->fault != CVY_OK;
}

/* The leader of a group gets here after each step. The rung of a trial ends by a stop, so that it can be resumed. */
static void on_progress(void *user, const cvy_progress *p)
{
    cvy_sweep_run *run = user;
    const double epochs = (double)run->order.epochs;
    if (run->comm->rank == 0)
        cvy_sweep_serve(run);
    else if (is_told_to_stop(run))
        cvy_train_control_request(&run->control, CVY_TRAIN_STOP);
    if (epochs > 0 && epochs < p->epochs && p->epoch >= epochs - 1e-9)
        cvy_train_control_request(&run->control, CVY_TRAIN_STOP);
}

/* ---- one trial ---- */

/* Finds out how the trial goes on: *resumes_out, or *is_done_out if it has ended its rung and only its report was lost.
 * A run without a checkpoint begins again. */
static cvy_status look_at(const cvy_sweep_run *run, const char *folder, int *resumes_out, int *is_done_out)
{
    char path[CVY_RUN_PATH];
    cvy_checkpoint found = {0};
    double score = NAN, epochs = 0;
    *resumes_out = *is_done_out = 0;
    if (!cvy_file_exists(folder))
        return CVY_OK;
    cvy_run_path(folder, CVY_RUN_CHECKPOINTS, path);
    const cvy_status status = cvy_file_exists(path) ? cvy_checkpoint_find(path, NULL, &found) : CVY_END;
    cvy_checkpoint_close(&found);
    if (status < 0)
        return status;
    *resumes_out = status == CVY_OK;
    if (status == CVY_END)
        return cvy_file_remove_tree(folder);
    if (run->order.epochs > 0 &&
        cvy_sweep_read_score(&run->sweep, folder, run->order.epochs, &score, &epochs) == CVY_OK)
        *is_done_out = epochs >= (double)run->order.epochs;
    return CVY_OK;
}

static cvy_status train(cvy_sweep_run *run, const char *folder, int resumes)
{
    const cvy_trial *trial = &run->sweep.trial[run->order.trial];
    const cvy_job_source job = cvy_sweep_source(&run->sweep.spec, trial->set, run->sweep.nset);
    cvy_train_control_begin(&run->control, run->opts->control);
    cvy_train_control_say_idle(run->opts->control, 0);
    const cvy_train_opts opts = {.size = sizeof opts,
                                 .out = folder,
                                 .resume = resumes,
                                 .control = &run->control,
                                 .end_time = run->opts->end_time,
                                 .progress = on_progress,
                                 .user = run};
    const cvy_status status = cvy_run_train(run->context, &job, &opts, NULL);
    cvy_train_control_say_idle(run->opts->control, 1);
    return status;
}

/* On the leader. A run that was stopped has ended its rung if it has all epochs of it. */
static void fill_report(cvy_sweep_run *run, const char *folder, cvy_status status, double seconds)
{
    cvy_sweep_report *r = &run->report;
    const double before = run->sweep.trial[run->order.trial].epochs;
    *r = (cvy_sweep_report){.trial = run->order.trial, .score = NAN, .epochs = before, .seconds = seconds};
    if (status < 0)
        snprintf(r->error, sizeof r->error, "%s", cvy_error_text());
    if (status >= 0 && cvy_sweep_read_score(&run->sweep, folder, run->order.epochs, &r->score, &r->epochs) != CVY_OK) {
        status = CVY_E_IO;
        snprintf(r->error, sizeof r->error, "%s", cvy_error_text());
    }
    const int has_rung = run->order.epochs > 0 && r->epochs >= (double)run->order.epochs;
    r->kind = status < 0                           ? CVY_REPORT_FAILED
              : status == CVY_STOPPED && !has_rung ? CVY_REPORT_STOPPED
                                                   : CVY_REPORT_ENDED;
    r->asked = cvy_train_control_wants_stop(run->opts->control);
}

static cvy_status run_trial(cvy_sweep_run *run)
{
    cvy_comm *comm = run->context->comm;
    char folder[CVY_SWEEP_PATH];
    int how[2] = {0};
    const double begin = cvy_clock_s();
    cvy_sweep_trial_path(run->opts->out, run->order.trial, folder);
    snprintf(run->line, sizeof run->line, "trial %d: ", run->order.trial + 1);
    cvy_status status = cvy_comm_agree(comm, comm->rank == 0 ? look_at(run, folder, &how[0], &how[1]) : CVY_OK);
    CVY_TRY(comm->ops->broadcast(comm, how, sizeof how, 0));
    if (status == CVY_OK && !how[1])
        status = train(run, folder, how[0]);
    if (status == CVY_E_COMM)
        return status;
    if (comm->rank == 0)
        fill_report(run, folder, status, cvy_clock_s() - begin);
    return CVY_OK;
}

/* ---- the loop ---- */

/* Waits until a message has come. */
static cvy_status await(cvy_sweep_run *run, cvy_message *m)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int done = 0;;) {
        CVY_TRY(run->comm->message->test(m, &done, NULL));
        if (done)
            return CVY_OK;
        nanosleep(&pause, NULL);
    }
}

/* On the leader: reports, and gets the next order. */
static cvy_status ask(cvy_sweep_run *run)
{
    if (run->comm->rank == 0) {
        cvy_sweep_serve_own(run);
        return run->fault == CVY_E_COMM ? cvy_error_set(run->fault, "%s", run->fault_text) : CVY_OK;
    }
    const cvy_comm_message_ops *ops = run->comm->message;
    CVY_TRY(ops->receive(run->get_order, 0, CVY_TAG_ORDER));
    CVY_TRY(ops->send(run->send_report, 0, CVY_TAG_REPORT));
    CVY_TRY(await(run, run->send_report));
    CVY_TRY(await(run, run->get_order));
    return run->order.kind == CVY_ORDER_END ? await(run, run->get_notice) : CVY_OK;
}

cvy_status cvy_sweep_work(cvy_sweep_run *run)
{
    cvy_comm *comm = run->context->comm;
    run->report = (cvy_sweep_report){.kind = CVY_REPORT_FREE, .trial = -1};
    for (;;) {
        if (comm->rank == 0)
            CVY_TRY(ask(run));
        if (run->together)
            CVY_TRY(cvy_sweep_meet(comm, run->together));
        CVY_TRY(comm->ops->broadcast(comm, &run->order, sizeof run->order, 0));
        if (run->order.kind == CVY_ORDER_END)
            return CVY_OK;
        CVY_TRY(run_trial(run));
    }
}
