/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_bind.h: what binding puts together: functions that instructions run (plan_run.c) and addresses
 * (plan_address.c). */
#ifndef CVY_PLAN_BIND_H
#define CVY_PLAN_BIND_H

#include "plan/plan_call.h"

/* ---- plan_run.c: for cvy_instr.run ---- */
/* State of an instruction that adds a part to an accumulator, or sets memory to zero. */
struct cvy_filling {
    const cvy_space *space;
    int64_t elems;
    size_t bytes;
    cvy_dtype dtype;
    int threads;
};
cvy_status cvy_accumulate_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_zero_run(void *state, void *const *src, void *const *dst, void *scratch);
/* The state is the plan. */
cvy_status cvy_barrier_run(void *state, void *const *src, void *const *dst, void *scratch);
cvy_status cvy_noop_run(void *state, void *const *src, void *const *dst, void *scratch);

/* ---- plan_address.c ---- */
cvy_status cvy_plan_place_feeds(cvy_plan *plan);
cvy_status cvy_plan_resolve_buffers(cvy_plan *plan, char *arena);
cvy_status cvy_plan_make_copies(cvy_plan *plan);
/* The address of an offset in the arena; offsets of gradients are in this plan's own set. */
char *cvy_plan_in_arena(const cvy_plan *plan, void *arena, size_t offset);

#endif
