/*
 * monitor_owner.h: the guard of a run's folder on a file system without locks: a file that names the process which uses
 * the folder.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MONITOR_OWNER_H
#define CVY_MONITOR_OWNER_H

#include "base/base_status.h"

#define CVY_RUN_OWNER "lock.owner"

typedef enum { CVY_OWNER_NONE, CVY_OWNER_LIVES, CVY_OWNER_GONE, CVY_OWNER_ELSEWHERE } cvy_owner_state;

/* What is known of the process that the folder's file names. A process of another host cannot be asked. */
cvy_owner_state cvy_owner_look(const char *folder);
/* Names this process, if the one that is named is gone, or of another host. Returns 1, or 0 if a process lives that
 * uses the folder. If the file cannot be written, there is no guard, and 1. */
int cvy_owner_take(const char *folder);
/* Removes the file if it names this process. */
void cvy_owner_drop(const char *folder);

#endif
