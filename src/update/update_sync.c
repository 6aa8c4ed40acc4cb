/*
 * update_sync.c: synchronous updates: gradients are summed over all ranks in every step, and each rank updates all
 * weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_guard.h"

#include "program/program_impl.h"

static cvy_status sync_step(cvy_program *p, cvy_program_task *s, double lr)
{
    (void)lr;
    return cvy_guarded_step(p, s);
}

CVY_UPDATE_DEFINE(sync) = {
    .name = "sync",
    .summary = "all ranks together, every step",
    .mode = CVY_UPDATE_SYNC,
    .any_space = 1,
    .takes_turns = 1,
    .fuses_updates = 1,
    .meets_in = 1,
    .step = sync_step,
};
