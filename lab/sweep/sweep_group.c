/*
 * sweep_group.c: a group of ranks that trains one trial after the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

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

enum { BEGINS, GOES_ON, IS_DONE }; /* what is left to do for a trial */

/* The STATUS of a run; its word is "" if it has none. */
static cvy_run_status read_status(const char *run)
{
    char path[CVY_RUN_PATH], *text = NULL;
    size_t bytes = 0;
    cvy_run_status status = {0};
    cvy_run_path(run, CVY_RUN_STATUS, path);
    if (cvy_file_exists(path) && cvy_file_read(path, 4096, &text, &bytes) == CVY_OK)
        (void)cvy_run_status_parse(text, &status);
    cvy_mem_free(&text);
    return status;
}

/* Whether the trial has ended its rung, and only its report was lost. The log may be ahead of the last save, but STATUS
 * is written after it. */
static int has_ended_rung(const cvy_sweep_run *run, const char *folder)
{
    const cvy_run_status status = read_status(folder);
    const int is_finished = strcmp(status.word, "finished") == 0, is_stopped = strcmp(status.word, "stopped") == 0;
    const int64_t wanted = run->order.epochs;
    double score = NAN, epochs = 0;
    if (!is_finished && !is_stopped)
        return 0;
    if (wanted == 0)
        return is_finished;
    return cvy_sweep_read_score(&run->sweep, folder, wanted, &score, &epochs) == CVY_OK && epochs >= (double)wanted;
}

/* Finds out how the trial goes on. A run without a checkpoint begins again. */
static cvy_status look_at(const cvy_sweep_run *run, const char *folder, int *how_out)
{
    char path[CVY_RUN_PATH];
    cvy_checkpoint found = {0};
    *how_out = BEGINS;
    if (!cvy_file_exists(folder))
        return CVY_OK;
    cvy_run_path(folder, CVY_RUN_CHECKPOINTS, path);
    const cvy_status status = cvy_file_exists(path) ? cvy_checkpoint_find(path, NULL, &found) : CVY_END;
    cvy_checkpoint_close(&found);
    if (status < 0)
        return status;
    if (status == CVY_END)
        return cvy_file_remove_tree(folder);
    *how_out = has_ended_rung(run, folder) ? IS_DONE : GOES_ON;
    return CVY_OK;
}

static cvy_status train(cvy_sweep_run *run, const char *folder, int resumes)
{
    const cvy_trial *trial = &run->sweep.trial[run->order.trial];
    const cvy_job_source job = cvy_sweep_source(&run->sweep.spec, trial->set, run->sweep.nset);
    const cvy_train_opts opts = {.size = sizeof opts,
                                 .out = folder,
                                 .resume = resumes,
                                 .control = &run->control,
                                 .end_time = run->end_time,
                                 .end_source = run->opts->end_source,
                                 .progress = on_progress,
                                 .user = run};
    cvy_train_control_begin(&run->control, run->opts->control);
    cvy_train_control_say_idle(run->opts->control, 0);
    const cvy_status status = cvy_run_train(run->context, &job, &opts, NULL);
    cvy_train_control_say_idle(run->opts->control, 1);
    return status;
}

/* On the leader. A run that was stopped has ended its rung if it has all epochs of it. */
static void fill_report(cvy_sweep_run *run, const char *folder, cvy_status status, int asked, double seconds)
{
    cvy_sweep_report *r = &run->report;
    double score = NAN, epochs = 0;
    *r = (cvy_sweep_report){.trial = run->order.trial, .asked = asked, .score = NAN, .epochs = NAN, .seconds = seconds};
    if (status < 0)
        snprintf(r->error, sizeof r->error, "%s", cvy_error_text());
    const cvy_status readable = cvy_sweep_read_score(&run->sweep, folder, run->order.epochs, &score, &epochs);
    if (readable == CVY_OK) {
        r->score = score;
        r->epochs = epochs;
    } else if (status >= 0) {
        status = readable;
        snprintf(r->error, sizeof r->error, "%s", cvy_error_text());
    }
    const int has_rung = run->order.epochs > 0 && r->epochs >= (double)run->order.epochs;
    r->kind = status < 0                           ? CVY_REPORT_FAILED
              : status == CVY_STOPPED && !has_rung ? CVY_REPORT_STOPPED
                                                   : CVY_REPORT_ENDED;
}

/* Prepares the trial on all ranks of the group: its values, and how it goes on. */
static cvy_status begin_trial(cvy_sweep_run *run, const char *folder, int *how_out)
{
    cvy_comm *comm = run->context->comm;
    cvy_status status = CVY_OK;
    if (run->sweep.spec.search == CVY_SWEEP_POPULATION)
        status = cvy_sweep_place(&run->sweep, run->order.trial, run->order.place);
    if (status == CVY_OK && comm->rank == 0)
        status = look_at(run, folder, how_out);
    status = cvy_comm_agree(comm, status);
    if (status != CVY_E_COMM)
        CVY_TRY(comm->ops->broadcast(comm, how_out, sizeof *how_out, 0));
    return status;
}

/* Returns a fault only if the group cannot go on. */
static cvy_status run_trial(cvy_sweep_run *run)
{
    cvy_comm *comm = run->context->comm;
    char folder[CVY_SWEEP_PATH];
    int how = BEGINS;
    int64_t asked = 0;
    const double begin = cvy_clock_s();
    cvy_sweep_trial_path(run->opts->out, run->order.trial, folder);
    snprintf(run->line, sizeof run->line, "trial %d: ", run->order.trial + 1);
    cvy_status status = begin_trial(run, folder, &how);
    if (status == CVY_OK && how != IS_DONE)
        status = train(run, folder, how == GOES_ON);
    if (status == CVY_E_COMM)
        return status;
    asked = cvy_train_control_wants_stop(run->opts->control);
    CVY_TRY(comm->ops->allreduce(comm, &asked, 1, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    if (comm->rank == 0)
        fill_report(run, folder, status, asked != 0, cvy_clock_s() - begin);
    return CVY_OK;
}

/* ---- the loop ---- */

/* Waits until a message has come. */
static cvy_status await(const cvy_sweep_run *run, cvy_message *m)
{
    int done = 0;
    for (int round = 0; !done; round++) {
        CVY_TRY(run->comm->message->test(m, &done, NULL));
        if (!done)
            cvy_sweep_pause(round);
    }
    return CVY_OK;
}

/* On the leader: reports, and gets the next order. */
static cvy_status ask(cvy_sweep_run *run)
{
    if (run->comm->rank == 0) {
        cvy_sweep_serve_own(run);
        return run->fault == CVY_E_COMM ? cvy_sweep_first_fault(run) : CVY_OK;
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
        CVY_TRY(cvy_sweep_meet(comm, run->group_meeting.request));
        CVY_TRY(comm->ops->broadcast(comm, &run->order, sizeof run->order, 0));
        if (run->order.kind == CVY_ORDER_END)
            return CVY_OK;
        CVY_TRY(run_trial(run));
    }
}
