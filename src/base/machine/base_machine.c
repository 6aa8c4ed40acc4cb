/*
 * base_machine.c: the machine as the system describes it: the processor's name and cores, the memory that the process
 * could still allocate, and the largest memory that it has held.
 *
 * On Linux the sources are /proc/cpuinfo, the affinity mask, /proc/meminfo, the limits of the process's control groups
 * (cgroups v1 and v2; each group up to the root counts), and VmHWM of /proc/self/status. Elsewhere there is no /proc:
 * the memory that is left is unknown, and getrusage gives the largest one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "base/machine/base_core_limits.h"
#include "base/machine/base_groups.h"
#include "base/machine/base_team.h"

/* The number after `key` at the start of a line; -1: there is no such line. */
static int64_t read_number(const char *path, const char *key)
{
    char line[256];
    int64_t value = -1;
    FILE *file = fopen(path, "r");
    while (file && value < 0 && fgets(line, sizeof line, file)) {
        const size_t n = strlen(key);
        char *end = NULL;
        if (strncmp(line, key, n) != 0)
            continue;
        const long long x = strtoll(line + n, &end, 10);
        value = end != line + n ? x : -1;
    }
    if (file)
        fclose(file);
    return value;
}

struct memory {
    int64_t left;
    char *source;
    size_t room;
};

static void take_smaller(struct memory *m, int64_t left, const char *folder, const char *file)
{
    if (left < 0 || (m->left >= 0 && m->left <= left))
        return;
    m->left = left;
    snprintf(m->source, m->room, "%s/%s", folder, file);
}

/* The memory that one group still allows: its limit minus what it uses. Cached files do not count as used, because the
 * system can drop them. */
static void visit_group(void *memory, const char *folder, int is_v2)
{
    char path[8400];
    const char *name = is_v2 ? "memory.max" : "memory.limit_in_bytes";
    const int64_t limit = cvy_group_number(folder, name);
    const int64_t used = cvy_group_number(folder, is_v2 ? "memory.current" : "memory.usage_in_bytes");
    if (limit < 0 || used < 0)
        return;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    const int64_t cached = read_number(path, is_v2 ? "inactive_file " : "total_inactive_file ");
    take_smaller(memory, CVY_MAX(limit - used + CVY_MAX(cached, 0), 0), folder, name);
}

int64_t cvy_mem_left_by(char *source, size_t room)
{
    const int64_t kib = read_number("/proc/meminfo", "MemAvailable:");
    struct memory m = {-1, source, room};
    *source = '\0';
    take_smaller(&m, kib < 0 ? -1 : 1024 * kib, "/proc", "meminfo");
    cvy_groups_visit("", "memory", visit_group, &m);
    return m.left;
}

int64_t cvy_mem_left(void)
{
    char source[256];
    return cvy_mem_left_by(source, sizeof source);
}

void cvy_mem_peak_reset(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file);
        fclose(file);
    }
}

int64_t cvy_mem_peak(void)
{
    struct rusage usage;
    const int64_t kib = read_number("/proc/self/status", "VmHWM:");
    if (kib >= 0)
        return 1024 * kib;
#if defined(__APPLE__)
    const int64_t unit = 1;
#else
    const int64_t unit = 1024;
#endif
    return getrusage(RUSAGE_SELF, &usage) == 0 ? unit * (int64_t)usage.ru_maxrss : 0;
}

#if defined(__APPLE__)

void cvy_machine_cpu(char *text, size_t room)
{
    size_t bytes = room;
    if (sysctlbyname("machdep.cpu.brand_string", text, &bytes, NULL, 0) != 0)
        snprintf(text, room, "unknown");
}

#else

void cvy_machine_cpu(char *text, size_t room)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(text, room, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(text, room, "%s", colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

#endif

int cvy_machine_cores(void)
{
    cvy_core_limit limit[CVY_CORE_LIMITS_MAX];
    cpu_set_t mask;
    double cores = cvy_team_mask(&mask) ? CPU_COUNT(&mask) : 1;
    const int n = cvy_core_limits("", limit);
    for (int i = 0; i < n; i++)
        if (limit[i].cores > 0 && limit[i].kind != CVY_LIMIT_OPENMP)
            cores = CVY_MIN(cores, limit[i].cores);
    return CVY_MAX((int)cores, 1);
}
