/*
 * base_affinity.h: sets of hardware threads, and the set that a process may use (its affinity mask).
 *
 * The sets are those of Linux: cpu_set_t with CPU_ZERO(), CPU_COUNT() and so on, in <sched.h>. Other systems, such as
 * macOS, do not bind processes. There the same names are defined here, and a process may use every hardware thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_AFFINITY_H
#define CVY_BASE_AFFINITY_H

#include <sched.h>
#include <stdint.h>

#if !defined(__linux__)

#include <string.h>

#define CPU_SETSIZE 1024

typedef struct cpu_set {
    uint64_t word[CPU_SETSIZE / 64];
} cpu_set_t;

static inline void CPU_ZERO(cpu_set_t *set)
{
    memset(set, 0, sizeof *set);
}

static inline void CPU_SET(int i, cpu_set_t *set)
{
    set->word[i / 64] |= (uint64_t)1 << i % 64;
}

static inline int CPU_ISSET(int i, const cpu_set_t *set)
{
    return (int)(set->word[i / 64] >> i % 64 & 1);
}

static inline int CPU_COUNT(const cpu_set_t *set)
{
    int n = 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        n += CPU_ISSET(i, set);
    return n;
}

static inline int CPU_EQUAL(const cpu_set_t *a, const cpu_set_t *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static inline void CPU_AND(cpu_set_t *out, const cpu_set_t *a, const cpu_set_t *b)
{
    for (int i = 0; i < CPU_SETSIZE / 64; i++)
        out->word[i] = a->word[i] & b->word[i];
}

static inline void CPU_OR(cpu_set_t *out, const cpu_set_t *a, const cpu_set_t *b)
{
    for (int i = 0; i < CPU_SETSIZE / 64; i++)
        out->word[i] = a->word[i] | b->word[i];
}

#endif

/* Reads the affinity mask of a process; 0 is the calling thread. Returns 1, or 0 if the system does not tell. */
int cvy_affinity_get(long pid, cpu_set_t *out);
/* Binds the calling thread. Returns 1, or 0 if the system does not allow it or cannot bind threads. */
int cvy_affinity_set(const cpu_set_t *set);
/* The NUMA domains in which the hardware threads of the set are: bit k for the k-th domain that has any. 1 if the
 * system does not tell. root: "", or the folder of a described machine that has a copy of Linux's
 * sys/devices/system/node. */
uint64_t cvy_affinity_domains(const char *root, const cpu_set_t *set);

#endif
