/*
 * base_groups.h: the control groups of this process (cgroups v1 and v2), whose limits on memory and processor time hold
 * for all processes in them together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_GROUPS_H
#define CVY_BASE_GROUPS_H

#include <stdint.h>

/* folder: of a group, with its limits as files. */
typedef void cvy_group_fn(void *user, const char *folder, int is_v2);

/* Visits the groups of this process that may limit a controller ("cpu", "memory"): its own ones and all above them, in
 * each hierarchy. A folder may not exist, and may be visited again by another name. root: "", or the folder of a
 * described machine that has copies of proc/self/cgroup and sys/fs/cgroup. */
void cvy_groups_visit(const char *root, const char *controller, cvy_group_fn *visit, void *user);
/* A number that tells the folder of a group from all others of this system; 0 if it does not exist. */
uint64_t cvy_group_id(const char *folder);
/* The first number of a file in the folder; -1: there is no such file, or it begins with another word ("max"). */
int64_t cvy_group_number(const char *folder, const char *file);

#endif
