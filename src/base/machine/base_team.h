/*
 * base_team.h: the OpenMP team of a step. Its size is set for the duration of the step and restored afterwards, because
 * the caller may use OpenMP too; traps and rounding of its threads are, too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_TEAM_H
#define CVY_BASE_TEAM_H

#include "base/base_status.h"
#include "base/machine/base_affinity.h"

/* The caller's setting, to be restored. */
typedef struct cvy_team {
    int threads, dynamic;
    int masked; /* size of the team whose traps this call masks; 0: none */
} cvy_team;

/* The hardware threads on which a team of the calling thread may run: those of OpenMP's places if it binds threads
 * (OMP_PROC_BIND, OMP_PLACES), in which case the mask of the calling thread is one place alone; otherwise that mask.
 * Returns 0 if the set is empty or unknown. */
int cvy_team_mask(cpu_set_t *out);
/* What these hardware threads come from, for messages. */
const char *cvy_team_mask_source(void);
/* The largest team, up to `threads`, that OpenMP lets the calling thread have. why_out: what limits it, or "". */
int cvy_team_limit(int threads, const char **why_out);
/* CVY_E_ARGUMENT if the team would be smaller: oneDNN's kernels are made for one size, and their threads would wait for
 * ever for those that are missing. */
cvy_status cvy_team_check(int threads);
/* The same, and sets the calling thread's team. */
cvy_status cvy_team_enter(int threads, cvy_team *before_out);
void cvy_team_leave(const cvy_team *before);
/* Starts the team as the host program would, since threads keep the traps and the rounding with which they are started,
 * and looks whether they have some. */
void cvy_team_start(int threads);
/* Starts the team that was set and counts it, for limits that OpenMP does not tell. */
cvy_status cvy_team_count(int threads);

#endif
