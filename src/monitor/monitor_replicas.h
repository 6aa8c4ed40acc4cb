/*
 * monitor_replicas.h: checks that all ranks still have the same weights. Without it, a flipped bit or a wrong sum on
 * one rank would stay unnoticed.
 *
 * The trainer calls it after the update, every watchdog.replicas steps.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_REPLICAS_H
#define CVY_MONITOR_REPLICAS_H

#include "comm/comm.h"
#include "graph/graph.h"

/* Compares the weights by their hashes. once_on_node: the ranks of a node share one copy, so only the first rank of
 * each node sends a hash. Collective. Errors: CVY_E_DISAGREE, the same on all ranks, with the first rank, by
 * its number in the job, that differs from the majority and the first variable that differs; CVY_E_MEMORY, CVY_E_COMM.
 */
cvy_status cvy_replicas_compare(cvy_comm *comm, const cvy_vars *vars, int once_on_node);

#endif
