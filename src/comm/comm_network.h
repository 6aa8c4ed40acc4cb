/*
 * comm_network.h: what exchanges between ranks cost, computed from the latency and bandwidth of their links. A search
 * over process grids uses it before the ranks exist.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_NETWORK_H
#define CVY_COMM_NETWORK_H

#include "comm/comm_allreduce.h"

/* The links between ranks. Ranks r with the same r / node_ranks are on one node. */
typedef struct cvy_network {
    int node_ranks;
    cvy_link inside, across; /* of messages between ranks of a node, and between nodes */
    cvy_comm_cost memory;    /* of a reduction through the shared memory of a node */
    double copy_s;           /* for each byte that a rank reads and writes: copies, zeros, additions in place */
} cvy_network;

/* The time of an exchange. */
typedef struct cvy_exchange_time {
    double work_s; /* the rank itself copies and adds */
    double wire_s; /* messages are under way, and the rank may compute */
} cvy_exchange_time;

/* Ranks of one node, with the speeds of a recent processor: for plans without other figures. */
cvy_network cvy_network_of_node(int node_ranks);
/* The link between two ranks. */
const cvy_link *cvy_network_link(const cvy_network *network, int a, int b);
/* The time of an all-reduce over some ranks, the slowest of which is ranks[0]. by_memory: ranks of a node reduce in
 * shared memory. algorithm: NULL, or one of comm_allreduce.h for the messages; NULL and "library" stand for the
 * fastest. crowd: ranks of a node that send at the same time, because other groups reduce too; they share its link. */
cvy_status cvy_network_allreduce(const cvy_network *network, const int *ranks, int nranks, int64_t bytes, int by_memory,
                                 const char *algorithm, int crowd, cvy_exchange_time *out);

#endif
