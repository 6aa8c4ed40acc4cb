/*
 * cmd_mpi.h: for the two files of the command that call MPI: functions that run a body on MPI_COMM_WORLD or on a part
 * of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_MPI_H
#define CMD_MPI_H

#include <convoy/mpi.h>

#include "cmd.h"

/* Starts MPI, runs `body` on all ranks, and ends MPI. Returns the exit code. */
int cmd_in_mpi(const cmd_line *line, int (*body)(const cmd_line *line, void *user), void *user);
/* Creates a context over the ranks of `comm` with `threads` compute threads each (0: all cores), and runs `body` in
 * it. */
int cmd_on_comm(const cmd_line *line, MPI_Comm comm, const cmd_ranks *ranks, cmd_body_fn body, void *user);
/* Ends the job with the name of this rank if `rc`, the result of an MPI call, is an error. `doing`: what the call was
 * for. The command asks MPI to return errors, so each of its own calls that communicates is checked. */
void cmd_mpi_check(int rc, const char *doing);

#endif
