/*
 * train_ahead.c: while a device computes a step, the host fills the feeds with the rows of the next step and sends them
 * to the device, where they wait. So the device does not wait for the host between two steps.
 *
 * It is done if nothing else can happen between the two steps that reads data: both have whole batches of one epoch. If
 * the device is done first, the next step gets its rows as on the host, and waits for them there. All ranks agree on
 * each step as before; rows that were sent in vain are never used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <time.h>

#include "job/job_table.h"
#include "train/trainer.h"

int cvy_trainer_can_go_ahead(const cvy_trainer *t)
{
    const cvy_session *s = &t->session;
    return s->job->train.nturn == 0 && cvy_program_can_send(s->program, t->task.full) &&
           cvy_session_data_threads(s->context, s->job) > 0;
}

static int is_followed(const cvy_trainer *t, int task)
{
    const int64_t next = t->step + 1;
    return task == t->task.full && next < t->order.last_step && next % t->order.steps_per_epoch != 0 &&
           cvy_order_batch(&t->order, next) == t->order.batch;
}

/* A fault of the loader is left to the next step, which asks again. */
static cvy_status send(cvy_trainer *t, int task)
{
    const cvy_session *s = &t->session;
    const cvy_rows *rows = NULL;
    t->data.sent_ready = cvy_loader_ready(t->data.loader);
    if (cvy_loader_get(t->data.loader, t->step + 1, &rows, NULL) != CVY_OK)
        return CVY_OK;
    t->data.sent = rows;
    CVY_TRY(cvy_session_fill(s, task, cvy_dataset_describe(s->train), rows, t->data.part));
    return cvy_program_send_feeds(s->program, task);
}

cvy_status cvy_trainer_go_ahead(cvy_trainer *t, int task)
{
    const cvy_program *p = t->session.program;
    const struct timespec pause = {.tv_nsec = 20000};
    t->data.ahead_s = 0;
    if (!cvy_trainer_can_go_ahead(t) || !is_followed(t, task))
        return CVY_OK;
    while (!cvy_loader_has_next(t->data.loader)) {
        if (cvy_program_step_is_done(p, task))
            return CVY_OK;
        nanosleep(&pause, NULL);
    }
    const double begin = cvy_clock_s();
    const int computes = !cvy_program_step_is_done(p, task);
    const cvy_status status = send(t, task);
    if (computes && cvy_program_step_is_done(p, task)) /* since when is not known: it counts as time for data */
        t->data.ahead_s = cvy_clock_s() - begin;
    return status;
}

cvy_status cvy_trainer_get_rows(cvy_trainer *t, const cvy_rows **rows_out, double *waited_s_out, int *ready_out)
{
    *rows_out = t->data.sent;
    *waited_s_out = 0;
    *ready_out = t->data.sent_ready;
    if (t->data.sent)
        return CVY_OK;
    *ready_out = cvy_loader_ready(t->data.loader);
    return cvy_loader_get(t->data.loader, t->step, rows_out, waited_s_out);
}
