/*
 * cmd_launchers.h: which launcher has started this process, from the environment alone, before MPI_Init.
 *
 * Plain C without another header of convoy and without MPI, so that a program that has yet to choose an MPI can use it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_LAUNCHERS_H
#define CMD_LAUNCHERS_H

/* The MPI that the launcher's own protocol is for. Libraries with MPICH's ABI: MPICH, Intel MPI, Cray MPICH, MVAPICH,
 * ParaStation MPI. */
typedef enum cmd_mpi_family { CMD_MPI_EITHER, CMD_MPI_OPENMPI, CMD_MPI_MPICH } cmd_mpi_family;

typedef struct cmd_launcher {
    const char *marker; /* a variable that it sets in each process that it starts */
    const char *size;   /* the variable with the number of processes; NULL if it has none */
    const char *rank;   /* the variable with this process's rank */
    const char *name;   /* for messages */
    cmd_mpi_family family;
} cmd_launcher;

/* Returns the launcher whose marker is set, and the innermost one if several are; NULL if there is none. Call it before
 * MPI_Init: in a process without a launcher, Open MPI's MPI_Init sets the variables of one. */
const cmd_launcher *cmd_launcher_find(void);
/* Number of processes that it started together. If only the rank is known: the rank plus one, which is a lower bound.
 * 0 for NULL. */
int cmd_launcher_size(const cmd_launcher *launcher);
/* This process's rank; 0 for NULL. */
int cmd_launcher_rank(const cmd_launcher *launcher);

#endif
