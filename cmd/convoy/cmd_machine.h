/*
 * cmd_machine.h: what the command asks the system for under other names on Linux and macOS: its own file, the cores
 * that processes may use, a timer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_MACHINE_H
#define CMD_MACHINE_H

#include <stddef.h>

/* Writes the path of this program's file and returns its length; 0: it is not known. */
size_t cmd_self(char *path, size_t room);

typedef struct cmd_cores {
    unsigned char bits[128]; /* a bit for each hardware thread; MPI combines sets of several ranks as bytes */
} cmd_cores;

/* Reads the hardware threads that a process may use; 0 is this one. Returns 1, or 0 with an empty set if the system
 * does not tell. macOS binds no process: there this process may use all. */
int cmd_cores_get(long pid, cmd_cores *out);
/* Binds this process. Returns 1, or 0 if the system does not do it. */
int cmd_cores_bind(const cmd_cores *cores);
int cmd_cores_count(const cmd_cores *cores);

/* Calls on_end() once, after so many seconds, in a signal handler (SIGVTALRM) or in a thread. Returns 1, or 0 if no
 * timer could be started. There is one timer. */
int cmd_timer_start(int seconds, void (*on_end)(int));
void cmd_timer_stop(void);

#endif
