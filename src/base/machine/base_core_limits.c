/*
 * base_core_limits.c: see base_core_limits.h. Batch systems set the variables that are read here in each job; a shell
 * or a program may pass them on to processes outside the job, so messages name them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_core_limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_status.h"
#include "base/machine/base_groups.h"

struct limits {
    cvy_core_limit *at;
    int n;
};

CVY_PRINTF(3, 4) static void add(struct limits *l, cvy_core_limit limit, const char *source, ...)
{
    va_list args;
    va_start(args, source);
    vsnprintf(limit.source, sizeof limit.source, source, args);
    va_end(args);
    if (l->n < CVY_CORE_LIMITS_MAX)
        l->at[l->n++] = limit;
}

/* ---- control groups ---- */

/* Version 2: cpu.max has "QUOTA PERIOD" or "max PERIOD". Version 1: cpu.cfs_quota_us and cpu.cfs_period_us, and a
 * quota of -1 is none. Both are in microseconds. */
static void add_quota(void *limits, const char *folder, int is_v2)
{
    struct limits *l = limits;
    const char *name = is_v2 ? "cpu.max" : "cpu.cfs_quota_us";
    const int64_t quota = cvy_group_number(folder, name);
    int64_t period = is_v2 ? 100000 : cvy_group_number(folder, "cpu.cfs_period_us");
    char path[8400];
    if (quota <= 0)
        return;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    FILE *file = is_v2 ? fopen(path, "r") : NULL;
    long long second = 0;
    if (file && fscanf(file, "%*s %lld", &second) == 1)
        period = second;
    if (file)
        fclose(file);
    const uint64_t id = cvy_group_id(folder);
    for (int i = 0; i < l->n; i++)
        if (l->at[i].kind == CVY_LIMIT_GROUP && l->at[i].group == id)
            return;
    const int skipped = CVY_MAX((int)strlen(folder) - 200, 0);
    if (period > 0)
        add(l, (cvy_core_limit){CVY_LIMIT_GROUP, 0, (double)quota / (double)period, id, ""}, "%s%s/%s",
            skipped ? ".." : "", folder + skipped, name);
}

/* ---- variables ---- */

/* The number at the beginning of a text, up to one of the ends or the text's; 0: there is none. */
static int64_t count_in(const char *text, const char *ends)
{
    char *end = NULL;
    const long long n = strtoll(text, &end, 10);
    const char *next = end + strspn(end, " ");
    return end != text && n > 0 && n < 1000000 && (!*next || strchr(ends, *next) || strchr(ends, *end)) ? n : 0;
}

static void add_variable(struct limits *l, cvy_core_limit_kind kind, int is_exact, const char *name, const char *ends)
{
    const char *text = getenv(name);
    if (text && *text)
        add(l, (cvy_core_limit){kind, is_exact, (double)count_in(text, ends), 0, ""}, "%s=%.100s", name, text);
}

/* Whether a batch system's name of a host is that of this one; either may lack the domain. */
static int is_here(const char *name, size_t n)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        return 0;
    const size_t given = strcspn(name, ". \t\n"), own = strcspn(host, ".");
    return CVY_MIN(given, n) == own && strncmp(name, host, own) == 0;
}

/* LSB_MCPU_HOSTS has "HOST SLOTS HOST SLOTS ..". With an affinity string a slot may be several cores. */
static void add_lsf(struct limits *l)
{
    const char *text = getenv("LSB_MCPU_HOSTS");
    if (getenv("LSB_AFFINITY_HOSTFILE"))
        return;
    for (const char *at = text ? text + strspn(text, " ") : ""; *at;) {
        const size_t n = strcspn(at, " ");
        const char *slots = at + n + strspn(at + n, " ");
        if (is_here(at, n)) {
            add(l, (cvy_core_limit){CVY_LIMIT_NODE, 1, (double)count_in(slots, " "), 0, ""}, "LSB_MCPU_HOSTS=%.100s",
                text);
            return;
        }
        at = slots + strcspn(slots, " ");
        at += strspn(at, " ");
    }
    if (!text)
        add_variable(l, CVY_LIMIT_NODE, 1, "LSB_DJOB_NUMPROC", "");
}

/* Grid Engine: NSLOTS counts the slots of all hosts; PE_HOSTFILE has a line "HOST SLOTS QUEUE .." for each. */
static void add_grid_engine(struct limits *l)
{
    const char *hosts = getenv("NHOSTS"), *path = getenv("PE_HOSTFILE");
    char line[512];
    if (!getenv("NSLOTS") || !getenv("JOB_ID"))
        return;
    if (!hosts || atoi(hosts) <= 1) {
        add_variable(l, CVY_LIMIT_NODE, 1, "NSLOTS", "");
        return;
    }
    FILE *file = path ? fopen(path, "r") : NULL;
    while (file && fgets(line, sizeof line, file)) {
        const size_t n = strcspn(line, " ");
        if (!is_here(line, n))
            continue;
        add(l, (cvy_core_limit){CVY_LIMIT_NODE, 1, (double)count_in(line + n, " \n"), 0, ""}, "PE_HOSTFILE=%.200s",
            path);
        break;
    }
    if (file)
        fclose(file);
}

int cvy_core_limits(const char *root, cvy_core_limit limit_out[CVY_CORE_LIMITS_MAX])
{
    struct limits l = {limit_out, 0};
    add_variable(&l, CVY_LIMIT_OPENMP, 1, "OMP_NUM_THREADS", ","); /* a list is for nested regions */
    add_variable(&l, CVY_LIMIT_PROCESS, 1, "SLURM_CPUS_PER_TASK", "");
    add_variable(&l, CVY_LIMIT_NODE, 0, "SLURM_CPUS_ON_NODE", ""); /* both hardware threads of a core may count */
    if (getenv("PBS_JOBID")) {
        add_variable(&l, CVY_LIMIT_PROCESS, 1, "NCPUS", "");    /* PBS Pro */
        add_variable(&l, CVY_LIMIT_NODE, 1, "PBS_NUM_PPN", ""); /* Torque */
    }
    add_lsf(&l);
    add_grid_engine(&l);
    cvy_groups_visit(root, "cpu", add_quota, &l);
    return l.n;
}
