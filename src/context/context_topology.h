/*
 * context_topology.h: the hosts, cores, threads and binding of the ranks as text, a line for each node; and what is
 * wrong with them, with a remedy.
 *
 * Before the first step, all ranks exchange this information and rank 0 prints it. `train` and `doctor` use it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CONTEXT_TOPOLOGY_H
#define CVY_CONTEXT_TOPOLOGY_H

#include "base/machine/base_affinity.h"
#include "base/text/base_text.h"
#include "context/context.h"

typedef enum { CVY_LAUNCHER_UNKNOWN, CVY_LAUNCHER_OPEN_MPI, CVY_LAUNCHER_HYDRA, CVY_LAUNCHER_SLURM } cvy_launcher;

typedef struct cvy_rank_topology {
    char host[64];
    int64_t node, threads;
    uint64_t domains; /* the NUMA domains that the mask reaches: cvy_affinity_domains() */
    int64_t allotted; /* cores that the batch system gave to the job on this node; 0: unknown */
    cvy_launcher launcher;
    cpu_set_t mask;      /* the hardware threads to which this rank is bound */
    cpu_set_t cores;     /* the first hardware thread of each of their cores */
    cpu_set_t permitted; /* the same for the cores that it could have on this node */
} cvy_rank_topology;

/* The topology of this rank. */
cvy_rank_topology cvy_topology_here(const cvy_context *context);
/* Gathers those of all ranks into all_out[nranks]. Collective. */
cvy_status cvy_topology_gather(const cvy_context *context, cvy_rank_topology *all_out);

/* Prints "node cn01: ranks 0-3, 8 cores, 2 threads each, bound to 0-1 2-3 4-5 6-7", a line for each node. With many
 * nodes, equal ones share a line. */
cvy_status cvy_topology_print(const cvy_rank_topology *place, int nranks, cvy_text *out);
/* Prints what is wrong, a line for each problem. Of equal nodes, the first one is named. */
cvy_status cvy_topology_check(const cvy_rank_topology *place, int nranks, cvy_text *out);
/* Writes "0-3,8-11"; if there is no room, the text ends in "..". */
void cvy_cores_text(const cpu_set_t *cores, char *text, size_t room);

/* Does both for the ranks of this run: the lines go to `notes`, the problems to the log as warnings. With one rank
 * there are no lines, and warnings only if it may use several NUMA domains. Collective. */
cvy_status cvy_topology_note(const cvy_context *context, cvy_text *notes);

#endif
