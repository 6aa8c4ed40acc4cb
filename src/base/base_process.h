/*
 * base_process.h: the process that the library's threads and its MPI belong to, and how its threads are started.
 *
 * fork() copies a process, but only one of its threads. In the copy a lock may be held by a thread that is not there, a
 * team of OpenMP waits for such threads for ever, and MPI's connections are those of the parent. So the library notes
 * the process in which it first has several threads or MPI, and refuses to work in a process that was forked after
 * that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_PROCESS_H
#define CVY_BASE_PROCESS_H

#include <pthread.h>

#include "base/base_status.h"

/* The library has several threads or MPI in this process from now on. */
void cvy_process_bind(void);
/* Whether the library may work in this process: it is not a fork of the bound one. Signal handlers may ask. */
int cvy_process_is_ours(void);
/* The same as a status: CVY_E_UNSUPPORTED. */
cvy_status cvy_process_check(void);
/* Binds the process and starts a thread in it. The thread blocks all signals: they are for threads of the program, not
 * of the library. Returns what pthread_create() does: 0, or the number of an error. */
int cvy_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
