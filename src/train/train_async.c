/*
 * train_async.c: the steps of a run whose workers do not wait for each other (update: parameter_server with a
 * staleness other than 0). They run from one synchronisation of all ranks to the next. A synchronisation is the end of
 * an epoch, a checkpoint, or a request of any worker.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "train/trainer.h"

static cvy_status next_step(cvy_trainer *t)
{
    const cvy_rows *rows = NULL;
    double waited = 0;
    int ready = 0;
    cvy_watchdog_kick(t->session.watchdog, t->step, "a training step");
    cvy_trainer_time_iteration(t);
    if (cvy_trainer_has_request(t))
        cvy_program_async(t->session.program)->request_sync(t->session.program);
    cvy_status status = cvy_trainer_get_rows(t, &rows, &waited, &ready);
    if (status == CVY_OK)
        status = cvy_trainer_step(t, rows, waited, ready);
    if (rows)
        cvy_loader_release(t->data.loader, rows);
    if (status == CVY_OK && !cvy_trainer_synchronises(t))
        cvy_trainer_say(t, NULL);
    return status;
}

/* A worker that cannot continue leaves too. Its status reaches all ranks in the agreement that follows, and ends the
 * run. */
cvy_status cvy_trainer_run_free(cvy_trainer *t)
{
    cvy_program *p = t->session.program;
    const cvy_update_async *async = cvy_program_async(p);
    cvy_watchdog_kick(t->session.watchdog, t->step, "serving");
    if (async->serves(p))
        return async->serve(p, &t->step);
    cvy_status status = CVY_OK;
    do
        status = next_step(t);
    while (status == CVY_OK && !cvy_trainer_synchronises(t) && t->step != async->next_sync(p));
    const cvy_status left = async->leave(p, t->step);
    cvy_watchdog_kick(t->session.watchdog, t->step, "a barrier of all ranks");
    return status == CVY_OK ? left : status;
}
