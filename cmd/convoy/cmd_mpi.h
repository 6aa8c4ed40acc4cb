/*
 * cmd_mpi.h: for the two files of the command that see MPI: bodies that run inside it, on the world or on a part of it.
 */
#ifndef CMD_MPI_H
#define CMD_MPI_H

#include <convoy/mpi.h>

#include "cmd.h"

/* Starts MPI, runs `body` on all ranks, and ends it; gives the exit code. */
int cmd_in_mpi(const cmd_line *line, int (*body)(const cmd_line *line, void *user), void *user);
/* A context over the communicator's ranks with so many threads each (0: as many as there are), for `body`. */
int cmd_on_comm(const cmd_line *line, MPI_Comm comm, int threads, int verbose, cmd_body_fn body, void *user);
/* Processes that the launcher says it started together, 0 if it says nothing. */
int cmd_launched(const char **by_out);

#endif
