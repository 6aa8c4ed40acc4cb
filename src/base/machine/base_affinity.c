/*
 * base_affinity.c: see base_affinity.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_affinity.h"

#if defined(__linux__)

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

enum { DOMAINS_MAX = 1024 }; /* some systems leave out numbers */

int cvy_affinity_get(long pid, cpu_set_t *out)
{
    cpu_set_t large[64];
    if (sched_getaffinity((pid_t)pid, sizeof *out, out) == 0)
        return 1;
    if (errno != EINVAL || sched_getaffinity((pid_t)pid, sizeof large, large) != 0)
        return 0;
    *out = large[0]; /* the system has more hardware threads than one set; the first ones count */
    return CPU_COUNT(out) > 0;
}

int cvy_affinity_set(const cpu_set_t *set)
{
    return sched_setaffinity(0, sizeof *set, set) == 0;
}

/* Reads a list such as "0-23,48-71". Returns how many numbers it has; *meets_out: whether one is in the set. */
static int64_t read_list(const char *list, const cpu_set_t *set, int *meets_out)
{
    int64_t count = 0;
    *meets_out = 0;
    for (char *end = NULL;; list = end + 1) {
        const long first = strtol(list, &end, 10);
        if (end == list || first < 0)
            return count;
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long i = first; i <= last && i < CPU_SETSIZE; i++, count++)
            *meets_out |= CPU_ISSET((int)i, set) != 0;
        if (*end != ',')
            return count;
    }
}

uint64_t cvy_affinity_domains(const char *root, const cpu_set_t *set)
{
    uint64_t domains = 0;
    for (int i = 0, k = 0; i < DOMAINS_MAX && k < 64; i++) {
        char path[1024], text[4096];
        int meets = 0;
        snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/cpulist", root, i);
        FILE *list = fopen(path, "r");
        if (list && fgets(text, sizeof text, list) && read_list(text, set, &meets) > 0)
            domains |= (uint64_t)meets << k++;
        if (list)
            fclose(list);
    }
    return domains ? domains : 1;
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

uint64_t cvy_affinity_domains(const char *root, const cpu_set_t *set)
{
    (void)root;
    (void)set;
    return 1;
}

#endif
