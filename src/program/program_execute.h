/* SPDX-License-Identifier: BSD-3-Clause */
/* program_execute.h: the executor. */
#ifndef CVY_PROGRAM_EXECUTE_H
#define CVY_PROGRAM_EXECUTE_H

#include "plan/plan_call.h"

typedef struct cvy_step_time { /* of the latest step, in seconds */
    double total;
    double exposed_comm;          /* spent in waits, barriers and blocking reductions */
    double hidden_comm;           /* spent in computing while reductions were under way */
    double beside[CVY_COMM_AXES]; /* the parts of exposed_comm on axes other than the data axis, which has the rest */
    double bubble;                /* the part of exposed_comm spent waiting for other stages of the pipeline */
} cvy_step_time;

/* The part of exposed_comm on this axis. */
static inline double cvy_step_time_axis(const cvy_step_time *time, cvy_comm_axis axis)
{
    double rest = time->exposed_comm;
    for (int a = CVY_COMM_DATA + 1; a < CVY_COMM_AXES; a++)
        rest -= time->beside[a];
    return axis == CVY_COMM_DATA ? rest : time->beside[axis];
}

/* Adds the times of another task, which ran after it. */
static inline void cvy_step_time_join(cvy_step_time *sum, const cvy_step_time *more)
{
    sum->total += more->total;
    sum->exposed_comm += more->exposed_comm;
    sum->hidden_comm += more->hidden_comm;
    for (int a = 0; a < CVY_COMM_AXES; a++)
        sum->beside[a] += more->beside[a];
    sum->bubble += more->bubble;
}

/* Adds time that was spent outside of instructions. */
static inline void cvy_step_time_add(cvy_step_time *time, cvy_comm_axis axis, double seconds)
{
    time->total += seconds;
    time->exposed_comm += seconds;
    time->beside[axis] += axis == CVY_COMM_DATA ? 0 : seconds;
    time->bubble += axis == CVY_COMM_PIPELINE ? seconds : 0;
}

/* Runs every instruction of a bound plan once. It allocates nothing. An error message names the node. */
cvy_status cvy_plan_execute(cvy_plan *plan, cvy_step_time *time_out);
/* Runs one instruction in the same way, for callers that run a part of a plan. */
cvy_status cvy_plan_run(cvy_plan *plan, int instr);
/* Runs the instructions first to end - 1 and adds their times to *time. */
cvy_status cvy_plan_run_part(cvy_plan *plan, int first, int end, cvy_step_time *time);
/* Describes an instruction that belongs to a message between stages, as "wait to receive from stage 1: relu2,
 * micro-batch 0". Returns 0 for all others. */
int cvy_instr_message(const cvy_instr *instr, char *text, size_t room);
/* "data", "pipeline", "tensor" or "spatial". */
const char *cvy_comm_axis_text(cvy_comm_axis axis);

#endif
