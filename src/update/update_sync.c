/*
 * update_sync.c: synchronous updates: gradients are summed over all ranks in every step, and each rank updates all
 * weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_guard.h"
#include "program/program_impl.h"

CVY_UPDATE_DEFINE(sync) = {
    .name = "sync",
    .summary = "all ranks together, every step",
    .mode = CVY_UPDATE_SYNC,
    .any_space = 1,
    .takes_turns = 1,
    .fuses_updates = 1,
    .meets_in = 1,
    .step = cvy_guarded_step,
    .end = cvy_guarded_end,
};
