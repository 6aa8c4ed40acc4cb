/*
 * train_control.c: when a run saves and when it ends. This depends on the job (checkpoint.every), on requests from
 * outside (cvy_train_control), and on the end of the allocation.
 *
 * The ranks agree before each step. Any rank may get a request, and only rank 0 watches the end of the allocation.
 * Therefore all ranks combine what they know in one small all-reduce, and all of them act on the result at the same
 * step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "train/trainer.h"

/* Assumed speed of a slow file system in bytes per second, for a save that was not measured yet. */
#define WRITE_BYTES_S 50e6
/* Seconds for what follows the last save: the report and the end of MPI. */
#define LEAVE_S 5.0

/* The values that the ranks exchange before each step. The all-reduce takes the maximum. */
enum { SAY_STOP, SAY_SAVE, SAY_END, SAY_SAVING, SAY_SLOWEST, SAY_FASTEST, SAY_COUNT };

static int is_due(const cvy_trainer *t, const cvy_duration *every)
{
    const int64_t amount = (int64_t)llround(every->amount);
    switch (every->unit) {
    case CVY_DURATION_STEPS: return amount > 0 && t->step % amount == 0;
    case CVY_DURATION_SAMPLES:
        return amount > 0 && cvy_order_samples_before(&t->order, t->step) / amount !=
                                 cvy_order_samples_before(&t->order, t->step - 1) / amount;
    case CVY_DURATION_EPOCHS: {
        const double spe = (double)t->order.steps_per_epoch * every->amount;
        return spe > 0 && floor((double)t->step / spe) != floor((double)(t->step - 1) / spe);
    }
    default: return 0;
    }
}

int cvy_trainer_is_due(const cvy_trainer *t)
{
    return is_due(t, &t->session.job->checkpoint.every);
}

int cvy_trainer_ends_epoch(const cvy_trainer *t)
{
    return t->step % t->order.steps_per_epoch == 0 || t->step == t->order.last_step;
}

int cvy_trainer_synchronises(const cvy_trainer *t)
{
    return cvy_trainer_ends_epoch(t) || cvy_trainer_is_due(t);
}

/* ---- the end of the allocation ---- */

/* Estimated seconds for a save: the slowest one so far, or an estimate from the size of the variables. */
static double save_s(const cvy_trainer *t)
{
    const cvy_vars *vars = cvy_program_vars(t->session.program);
    double bytes = 0;
    for (int i = 0; i < vars->count; i++)
        bytes += (double)vars->at[i]->bytes;
    return t->save.slowest_s > 0 ? t->save.slowest_s : bytes / WRITE_BYTES_S;
}

/* Seconds that the run must keep in reserve for one more iteration and a save after it. A run can stop only when the
 * weights of all ranks are up to date, so steps until the next flush count too. */
static double reserved_s(const cvy_trainer *t)
{
    const int64_t more = cvy_trainer_steps_to_flush(t);
    return 1.5 * (save_s(t) + t->time.iteration_s + (double)more * (t->time.busy_s + t->time.sync_s)) + LEAVE_S;
}

static int is_ending(const cvy_trainer *t)
{
    return t->opts->end_time > 0 && t->session.context->comm->rank == 0 &&
           cvy_clock_wall_s() + reserved_s(t) > t->opts->end_time;
}

/* " (SLURM_JOB_END_TIME)", or "" if nobody has said where the end comes from. */
static const char *end_source(const cvy_trainer *t, char *text, size_t room)
{
    const char *source = t->opts->end_source;
    snprintf(text, room, "%s%s%s", source ? " (" : "", source ? source : "", source ? ")" : "");
    return text;
}

void cvy_trainer_say_end(cvy_trainer *t)
{
    char text[32] = "?", source[120];
    const time_t end = (time_t)t->opts->end_time;
    struct tm tm;
    if (t->opts->end_time <= 0)
        return;
    if (localtime_r(&end, &tm))
        strftime(text, sizeof text, "%H:%M:%S", &tm);
    cvy_text_add(
        &t->session.notes,
        "the allocation ends at %s, in %.0f s%s: the run saves and stops in time if it has not finished before\n", text,
        t->opts->end_time - cvy_clock_wall_s(), end_source(t, source, sizeof source));
}

static void say_allocation_ends(cvy_trainer *t)
{
    char text[320], source[120];
    snprintf(text, sizeof text,
             "the allocation ends in %.0f s%s: the run saves and stops (a save %s %.1f s, an iteration took up to "
             "%.1f s)",
             t->opts->end_time - cvy_clock_wall_s(), end_source(t, source, sizeof source),
             t->save.slowest_s > 0 ? "took" : "is expected to take", save_s(t), t->time.iteration_s);
    cvy_trainer_say(t, text);
}

static void say_stop_requested(cvy_trainer *t, int rank)
{
    char text[96];
    snprintf(text, sizeof text, "rank %d was asked to stop, by a signal or its program: the run saves and stops", rank);
    cvy_trainer_say(t, text);
}

/* ---- the agreement ---- */

int cvy_trainer_has_request(const cvy_trainer *t)
{
    cvy_train_control *control = t->opts->control;
    const cvy_duration *every = &t->session.job->checkpoint.every;
    return cvy_train_control_wants_stop(control) || cvy_train_control_wants_save(control) || is_ending(t) ||
           (every->unit == CVY_DURATION_SECONDS && t->session.context->comm->rank == 0 &&
            cvy_clock_s() - t->save.latest_s > every->amount);
}

/* Collects what this rank tells the others. This clears a request to save. */
static void collect(cvy_trainer *t, int64_t mine[SAY_COUNT])
{
    cvy_train_control *control = t->opts->control;
    const cvy_duration *every = &t->session.job->checkpoint.every;
    mine[SAY_STOP] = cvy_train_control_wants_stop(control) ? t->session.context->comm->rank + 1 : 0;
    mine[SAY_END] = is_ending(t);
    mine[SAY_SAVE] = every->unit == CVY_DURATION_SECONDS && t->session.context->comm->rank == 0 &&
                     cvy_clock_s() - t->save.latest_s > every->amount;
    if (cvy_train_control_take_save(control))
        mine[SAY_SAVE] = 1;
    mine[SAY_SAVING] = cvy_saver_is_busy(t->save.saver);
    mine[SAY_SLOWEST] = llround(1e9 * t->time.busy_s);
    mine[SAY_FASTEST] = -mine[SAY_SLOWEST];
}

/* Ranks leave a step together. A rank that was busy for less time than the slowest one has waited for it, either in the
 * all-reduces of the step or in this agreement. */
static void note_slowest(cvy_trainer *t, const int64_t mine[SAY_COUNT])
{
    const double slowest_s = 1e-9 * (double)mine[SAY_SLOWEST], fastest_s = -1e-9 * (double)mine[SAY_FASTEST];
    t->window.slowest_s += CVY_MIN(CVY_MAX(slowest_s - t->time.busy_s, 0), t->time.sync_s);
    t->window.spread_s += slowest_s - fastest_s;
}

void cvy_trainer_time_iteration(cvy_trainer *t)
{
    const double now = cvy_clock_s();
    if (t->time.checked_s > 0 && t->step > t->first_step)
        t->time.iteration_s = CVY_MAX(t->time.iteration_s, now - t->time.checked_s);
    t->time.checked_s = now;
    cvy_train_control_say_longest(t->opts->control, t->time.iteration_s);
}

cvy_status cvy_trainer_agree(cvy_trainer *t, cvy_status fault, cvy_control_request *request_out)
{
    cvy_comm *comm = t->session.context->comm;
    const double begin = cvy_clock_s();
    int64_t mine[SAY_COUNT];
    CVY_TRY(cvy_comm_agree(comm, fault));
    cvy_trainer_time_iteration(t);
    collect(t, mine);
    CVY_TRY(comm->ops->allreduce(comm, mine, SAY_COUNT, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    const double sync_s = cvy_clock_s() - begin;
    t->time.sync_s += sync_s;
    t->window.comm_s += sync_s;
    t->axes.epoch.agree_s += sync_s;
    note_slowest(t, mine);
    *request_out = (cvy_control_request){.stop = mine[SAY_STOP] || mine[SAY_END], .save = mine[SAY_SAVE] != 0};
    if (mine[SAY_END] && !t->is_ending) {
        t->is_ending = 1;
        say_allocation_ends(t);
    }
    if (mine[SAY_STOP] && !t->is_ending) {
        t->is_ending = 1;
        say_stop_requested(t, (int)mine[SAY_STOP] - 1);
    }
    if (request_out->stop)
        cvy_train_control_say_stopping(t->opts->control);
    return cvy_saver_is_on(t->save.saver) && !mine[SAY_SAVING] ? cvy_trainer_advance_save(t) : CVY_OK;
}
