/*
 * base_affinity.c: see base_affinity.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_affinity.h"

#if defined(__linux__)

#include <sys/types.h>

int cvy_affinity_get(long pid, cpu_set_t *out)
{
    return sched_getaffinity((pid_t)pid, sizeof *out, out) == 0;
}

int cvy_affinity_set(const cpu_set_t *set)
{
    return sched_setaffinity(0, sizeof *set, set) == 0;
}

#else

#include <unistd.h>

int cvy_affinity_get(long pid, cpu_set_t *out)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (pid != 0 || online < 1)
        return 0;
    CPU_ZERO(out);
    for (int i = 0; i < online && i < CPU_SETSIZE; i++)
        CPU_SET(i, out);
    return 1;
}

int cvy_affinity_set(const cpu_set_t *set)
{
    (void)set;
    return 0;
}

#endif
