/*
 * comm_pretend.h: communicators of ranks that do not exist, for planning the program of one rank without the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_PRETEND_H
#define CVY_COMM_PRETEND_H

#include "comm/comm_network.h"

/* A communicator of nranks ranks on this network, as rank `rank` sees it. comm->pretended is 1. */
cvy_status cvy_comm_create_pretended(const cvy_network *network, int nranks, int rank, cvy_comm **out);
/* A part of it: the ranks with these numbers, ascending; rank is the index of this one. */
cvy_status cvy_comm_create_pretended_part(const cvy_comm *all, const int *ranks, int nranks, int rank, cvy_comm **out);

#endif
