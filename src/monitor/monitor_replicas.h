/*
 * monitor_replicas.h: do all ranks still have the same weights? A flipped bit, or a sum that went wrong on one rank,
 * would otherwise be trained on unseen.
 *
 * In the step: behind the update, every watchdog.replicas steps.
 */
#ifndef CVY_MONITOR_REPLICAS_H
#define CVY_MONITOR_REPLICAS_H

#include "comm/comm.h"
#include "graph/graph.h"

/* Compares the weights by their hashes. once_on_node: they lie once on each node, so the first rank of each speaks for
 * it. Collective. Errors: CVY_E_DISAGREE, the same on all ranks: names the ranks that differ from most others and the
 * first variable; CVY_E_MEMORY, CVY_E_COMM. */
cvy_status cvy_replicas_compare(cvy_comm *comm, const cvy_vars *vars, int once_on_node);

#endif
