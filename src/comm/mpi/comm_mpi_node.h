/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_mpi_node.h: a reduction through the shared memory of a node; see comm_mpi_node.c. */
#ifndef CVY_COMM_MPI_NODE_H
#define CVY_COMM_MPI_NODE_H

#include "comm/mpi/comm_mpi_group.h"
#include "comm/mpi/comm_mpi_window.h"

typedef struct cvy_node_reduction cvy_node_reduction;

/* Takes a slot of the window that holds range->data. part_out: as in cvy_comm_reduce_ops.create. */
cvy_status cvy_node_reduction_create(cvy_comm *comm, cvy_node_window *window, const cvy_allreduce_opts *opts,
                                     const cvy_group_range *range, cvy_part *part_out, cvy_node_reduction **out);
void cvy_node_reduction_start(cvy_node_reduction *s);
cvy_status cvy_node_reduction_progress(cvy_node_reduction *s, int *done_out);
void cvy_node_reduction_destroy(cvy_node_reduction **s);
int64_t cvy_node_reduction_sent(const cvy_node_reduction *s);

#endif
