/*
 * plan_measure.h: measures the time of one call of a lowered graph on its own, before the first step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_MEASURE_H
#define CVY_PLAN_MEASURE_H

#include "plan/plan.h"

/* The memory in which calls are timed. It grows with the largest call; cvy_meter_destroy() frees all of it. */
typedef struct cvy_meter cvy_meter;

/* patient: 1 for more repetitions. */
cvy_status cvy_meter_create(const cvy_plan_opts *opts, int patient, cvy_meter **out);
void cvy_meter_destroy(cvy_meter **meter);
typedef struct cvy_metered {
    double ms;
    int varied; /* 1: the shortest time was not confirmed by another run at first, and the call was measured again */
} cvy_metered;

/* Gives the shortest time of a first run, which warms up, and some more. If the best time so far exceeds hopeless_ms,
 * it stops. The time is INFINITY if the kernel cannot be created or fails. CVY_NOT_APPLICABLE: there is no memory to
 * time it in. */
cvy_status cvy_meter_time(cvy_meter *meter, cvy_lowered *lowered, cvy_call *call, double hopeless_ms, cvy_metered *out);

#endif
