/*
 * context_topology.h: where the ranks are: hosts, cores, threads and binding, a line for each node; and what of that is
 * bad, with its cure.
 *
 * Before the first step: every rank tells its place, all hear it, rank 0 prints. Used by train and doctor.
 */
#ifndef CVY_CONTEXT_TOPOLOGY_H
#define CVY_CONTEXT_TOPOLOGY_H

#include <sched.h>

#include "base/base_text.h"
#include "context/context.h"

typedef enum { CVY_LAUNCHER_UNKNOWN, CVY_LAUNCHER_OPEN_MPI, CVY_LAUNCHER_HYDRA, CVY_LAUNCHER_SLURM } cvy_launcher;

typedef struct cvy_rank_topology {
    char host[64];
    int64_t node, threads;
    int64_t allotted; /* cores that the batch system gave the job on this node, 0: it does not say */
    cvy_launcher launcher;
    cpu_set_t mask;      /* hardware threads that this rank is tied to */
    cpu_set_t cores;     /* of each of their cores the first one */
    cpu_set_t permitted; /* likewise of what it could have on this node */
} cvy_rank_topology;

/* This rank's own. */
cvy_rank_topology cvy_topology_here(const cvy_context *context);
/* Those of all ranks into all_out[nranks]. Collective. */
cvy_status cvy_topology_gather(const cvy_context *context, cvy_rank_topology *all_out);

/* "node cn01: ranks 0-3, 8 cores, 2 threads each, bound to 0-1 2-3 4-5 6-7", a line for each node, of many nodes one
 * for those that are equal. */
cvy_status cvy_topology_print(const cvy_rank_topology *place, int nranks, cvy_text *out);
/* What is bad, a line each; of nodes that are equal, the first one is named. */
cvy_status cvy_topology_check(const cvy_rank_topology *place, int nranks, cvy_text *out);
/* "0-3,8-11"; cut off by ".." where there is no room. */
void cvy_cores_text(const cpu_set_t *cores, char *text, size_t room);

/* Both of this run's ranks: lines among `notes`, which is bad in the log. With one rank nothing. Collective. */
cvy_status cvy_topology_note(const cvy_context *context, cvy_text *notes);

#endif
