/*
 * comm_mpi_watch.h: finds out for which ranks a rank waits, if it waits longer than a limit.
 *
 * It needs no thread and no file. A rank that waits in a call of the library looks now and then whether its limit has
 * passed. If so, it asks all ranks by a message what they do. Ranks that wait, too, answer, because they look for
 * questions. A rank that does not answer is the one that does not come. A rank that does not wait pays nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_MPI_WATCH_H
#define CVY_COMM_MPI_WATCH_H

#include "comm/mpi/comm_mpi_impl.h"

void cvy_mpi_watch_free(cvy_mpi *mpi);
/* A rank that waits in a function of comm calls this between two rounds of tests, and holds the lock of MPI; round
 * counts them from 0 and begins anew after each progress. Nothing happens if the ranks are not watched. */
void cvy_mpi_watch_look(const cvy_comm *comm, int round);

#endif
