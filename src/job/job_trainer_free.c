/*
 * job_trainer_free.c: the steps of a run whose workers do not wait for each other (update: parameter_server with staleness other than 0), from one
 * meeting of all ranks to the next: the end of an epoch, a checkpoint, or a wish of any worker.
 */
#include "job/job_trainer.h"
#include "run/run_server.h"

static cvy_status next_step(cvy_trainer *t)
{
    const cvy_rows *rows = NULL;
    double waited = 0;
    cvy_watchdog_kick(t->session.watchdog, t->step, "a training step");
    cvy_trainer_time_turn(t);
    if (cvy_trainer_wishes(t))
        cvy_server_wish(t->session.program->server);
    const int ready = cvy_loader_ready(t->loader);
    cvy_status status = cvy_loader_get(t->loader, t->step, &rows, &waited);
    if (status == CVY_OK)
        status = cvy_trainer_step(t, rows, waited, ready);
    if (rows)
        cvy_loader_release(t->loader, rows);
    if (status == CVY_OK && !cvy_trainer_meets(t))
        cvy_trainer_say(t, NULL);
    return status;
}

/* A worker that cannot go on leaves too, and what it says at the meeting ends the run on all ranks. */
cvy_status cvy_trainer_run_free(cvy_trainer *t)
{
    cvy_server *server = t->session.program->server;
    cvy_watchdog_kick(t->session.watchdog, t->step, "serving");
    if (cvy_server_serves(server))
        return cvy_server_serve(server, &t->step);
    cvy_status status = CVY_OK;
    do
        status = next_step(t);
    while (status == CVY_OK && !cvy_trainer_meets(t) && t->step != cvy_server_meeting(server));
    const cvy_status left = cvy_server_leave(server, t->step);
    cvy_watchdog_kick(t->session.watchdog, t->step, "a meeting of all ranks");
    return status == CVY_OK ? left : status;
}
