/*
 * cmd_launch.h: how this process was started: by which launcher, and whether as one of its tasks.
 *
 * The variables of a launcher outlive it: the shell of `srun --pty`, a program that a rank starts, and a shell start-up
 * file pass them on. So they count only for a task: a process that the launcher itself has started, at most with
 * scripts and commands such as `timeout` in between, none of which is an interactive shell. Once MPI has started, its
 * rank and size are asked and not the variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_LAUNCH_H
#define CMD_LAUNCH_H

#include "cmd_launchers.h"

typedef enum cmd_launch_kind {
    CMD_LAUNCH_ALONE,   /* there are no variables of a launcher */
    CMD_LAUNCH_STALE,   /* there are, but no launcher is among the processes above this one */
    CMD_LAUNCH_BATCH,   /* the script of a Slurm job did, which was submitted in a shell with these variables */
    CMD_LAUNCH_SHELL,   /* an interactive shell below the launcher started it */
    CMD_LAUNCH_CHILD,   /* a program with MPI below the launcher did: one of its ranks */
    CMD_LAUNCH_PROGRAM, /* another program below the launcher did, which may be a wrapper or not */
    CMD_LAUNCH_TASK     /* the launcher did */
} cmd_launch_kind;

typedef struct cmd_launch {
    cmd_launch_kind kind;
    const cmd_launcher *by; /* whose variables there are; NULL: nobody's */
    long launcher;          /* the process of the launcher above this one; 0: there is none */
    int is_certain;         /* STALE: all processes above this one were seen */
    int has_terminal;       /* the launcher's stdout is a terminal */
    int size, rank;         /* what the variables say; size may be a lower bound */
    char variable[96];      /* "SLURM_STEP_NUM_TASKS=4", or the one with the rank if none has the number of processes */
    char parent[64];        /* the name of the process that is no part of a launch, for messages */
} cmd_launch;

/* Looked up at the first call, which must be before MPI_Init: in a process without a launcher, Open MPI's MPI_Init sets
 * the variables of one. */
const cmd_launch *cmd_launch_here(void);
/* Removes what would make an MPI library take this process for a task of the launcher, if it is none for certain: Open
 * MPI would refuse to start in the shell of `srun --pty`, and in the child of a rank. */
void cmd_launch_forget(void);
/* When this process's session began, in seconds since 1970; 0: unknown. A batch system starts a session for each job.
 */
double cmd_launch_session_begin(void);
/* From now on cmd_launch_rank() asks MPI. */
void cmd_launch_ask_mpi(int (*rank)(void));

#endif
