/*
 * update_delayed.h: what delayed and deferred updates have in common: the gradients of one step are pending while the
 * next step runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_UPDATE_DELAYED_H
#define CVY_UPDATE_DELAYED_H

#include "program/program_update.h"

cvy_status cvy_delayed_create(cvy_program *p);
cvy_status cvy_delayed_planned(cvy_program *p);
cvy_status cvy_delayed_step(cvy_program *p, cvy_program_task *s, double lr);
cvy_status cvy_delayed_forward(cvy_program *p, cvy_program_task *s);
cvy_status cvy_delayed_flush(cvy_program *p);
cvy_status cvy_delayed_abandon(cvy_program *p);
const cvy_pending *cvy_delayed_pending(const cvy_program *p);
void cvy_delayed_destroy(cvy_program *p);
/* Feeds the learning rate and the step number of the pending gradients, for the update that applies them. */
cvy_status cvy_pending_feed(const cvy_pending *pending);
/* Sets a number of the step, of 8 bytes, where the plan reads it, after all that reads the one before. feed: the task's
 * address of it, or NULL. */
cvy_status cvy_pending_set(const cvy_plan *plan, void *feed, const void *value);
/* Runs forward and backward of `plan`. The pending update runs between the instructions in pieces, each just before its
 * weights are read: update_deferred.c. */
cvy_status cvy_deferred_run(cvy_plan *plan, const cvy_pending *pending, cvy_step_time *time);

#endif
