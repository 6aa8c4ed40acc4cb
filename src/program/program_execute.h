/* program_execute.h: the executor. */
#ifndef CVY_PROGRAM_EXECUTE_H
#define CVY_PROGRAM_EXECUTE_H

#include "base/base_json.h"
#include "plan/plan.h"

typedef struct cvy_step_time { /* of the latest step, seconds */
    double total;
    double exposed_comm; /* spent in waits, meetings and blocking sums */
    double hidden_comm;  /* spent in computing while sums were under way */
} cvy_step_time;

/* Runs every instruction of a bound plan once. Allocates nothing. A fault names the node. */
cvy_status cvy_plan_execute(cvy_plan *plan, cvy_step_time *time_out);
/* Runs one instruction of it, as that does: for who runs a part of a plan. */
cvy_status cvy_plan_run(cvy_plan *plan, int instr);
/* Instructions first to end - 1, with their times, which are added to *time. */
cvy_status cvy_plan_run_part(cvy_plan *plan, int first, int end, cvy_step_time *time);
/* What an instruction is, for people: its node's name, or what else it does. */
const char *cvy_instr_text(const cvy_instr *instr);
/* Chrome trace events of the latest step ("X" events, microseconds since base_s), as members of an open JSON list; pid
 * is the rank. */
void cvy_plan_trace(const cvy_plan *plan, double base_s, cvy_json *json);

#endif
