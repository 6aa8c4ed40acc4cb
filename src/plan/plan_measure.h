/*
 * plan_measure.h: the time of one call of a unit, taken by itself before the step.
 */
#ifndef CVY_PLAN_MEASURE_H
#define CVY_PLAN_MEASURE_H

#include "plan/plan.h"

/* Memory that calls are timed in; grows to the largest call, and is given back whole. */
typedef struct cvy_meter cvy_meter;

/* patient: more repetitions. */
cvy_status cvy_meter_create(const cvy_plan_opts *opts, int patient, cvy_meter **out);
void cvy_meter_destroy(cvy_meter **meter);
/* The best of some runs behind a first one that warms up; no more runs where that one takes longer than hopeless_ms.
 * INFINITY if the kernel cannot be made or fails. CVY_NOT_APPLICABLE if there is no memory to time it in. */
cvy_status cvy_meter_time(cvy_meter *meter, cvy_lowered *unit, cvy_call *call, double hopeless_ms, double *ms_out);

#endif
