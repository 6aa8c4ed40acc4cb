/*
 * train_async.c: the steps of a run whose workers do not wait for each other (update: parameter_server with staleness
 * other than 0), from one meeting of all ranks to the next: the end of an epoch, a checkpoint, or a wish of any worker.
 */
#include "train/trainer.h"

static cvy_status next_step(cvy_trainer *t)
{
    const cvy_rows *rows = NULL;
    double waited = 0;
    cvy_watchdog_kick(t->session.watchdog, t->step, "a training step");
    cvy_trainer_time_iteration(t);
    if (cvy_trainer_has_request(t))
        cvy_program_async(t->session.program)->request_sync(t->session.program);
    const int ready = cvy_loader_ready(t->loader);
    cvy_status status = cvy_loader_get(t->loader, t->step, &rows, &waited);
    if (status == CVY_OK)
        status = cvy_trainer_step(t, rows, waited, ready);
    if (rows)
        cvy_loader_release(t->loader, rows);
    if (status == CVY_OK && !cvy_trainer_synchronises(t))
        cvy_trainer_say(t, NULL);
    return status;
}

/* A worker that cannot go on leaves too, and what it says at the meeting ends the run on all ranks. */
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
