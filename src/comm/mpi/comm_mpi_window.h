/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_mpi_window.h: memory with flags that the ranks of a node share; see comm_mpi_window.c. */
#ifndef CVY_COMM_MPI_WINDOW_H
#define CVY_COMM_MPI_WINDOW_H

#include <stdatomic.h>

#include "comm/comm.h"

struct cvy_mpi;

enum { CVY_WINDOW_SLOTS = 4096 }; /* number of reductions that a window serves; slot 0 is for barriers */
struct cvy_flag {                 /* flags of one rank in one reduction: a cache line that only its owner writes */
    _Alignas(64) _Atomic uint64_t posted; /* number of the reduction for which this rank's operand is ready */
    _Atomic uint64_t done; /* number of the last reduction in which this rank has read and written all it had to */
};
typedef struct cvy_node_window {
    struct cvy_node_window *next;
    char *memory; /* this rank's memory, at the address where its owner mapped it */
    size_t bytes;
    int nranks, rank, nslots;
    char **of;              /* each rank's memory, at its address in this process */
    struct cvy_flag **flag; /* each rank's flags, an array with one element for each slot */
} cvy_node_window;

/* The window that holds this range, or NULL. */
cvy_node_window *cvy_node_window_find(const struct cvy_mpi *mpi, const void *data, size_t bytes);
/* Whether every rank of the node has posted this number in this slot. */
int cvy_node_window_all_posted(const cvy_node_window *w, int slot, uint64_t number);

#endif
