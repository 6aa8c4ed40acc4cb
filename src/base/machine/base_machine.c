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

#include "base/machine/base_affinity.h"

/* The number after `key` at the start of a line; -1: there is no such line. With key "" the first word of the file
 * counts. */
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
        if (!*key)
            break;
    }
    if (file)
        fclose(file);
    return value;
}

/* The memory that one group still allows: its limit minus what it uses. Cached files do not count as used, because the
 * system can drop them. -1: no limit. */
static int64_t left_in_group(const char *folder, const char *limit_name, const char *used_name, const char *cached_name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, limit_name);
    const int64_t limit = read_number(path, "");
    snprintf(path, sizeof path, "%s/%s", folder, used_name);
    const int64_t used = read_number(path, "");
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    const int64_t cached = read_number(path, cached_name);
    return limit < 0 || used < 0 ? -1 : CVY_MAX(limit - used + CVY_MAX(cached, 0), 0);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : CVY_MIN(a, b);
}

/* The smallest rest among the process's own group (a path below `mount`) and all groups above it. */
static int64_t left_in_groups(const char *mount, const char *group, int is_v2)
{
    char folder[400];
    int64_t left = -1;
    snprintf(folder, sizeof folder, "%s%s", mount, group);
    for (size_t n = strlen(folder); n >= strlen(mount); folder[--n] = '\0') {
        left = smaller(left, is_v2 ? left_in_group(folder, "memory.max", "memory.current", "inactive_file ")
                                   : left_in_group(folder, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                                   "total_inactive_file "));
        while (n > strlen(mount) && folder[n - 1] != '/')
            folder[--n] = '\0';
        if (n <= strlen(mount))
            break;
    }
    return left;
}

int64_t cvy_mem_left(void)
{
    char line[400];
    const int64_t kib = read_number("/proc/meminfo", "MemAvailable:");
    int64_t left = kib < 0 ? -1 : 1024 * kib;
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        line[strcspn(line, "\n")] = '\0';
        if (group && strncmp(controllers, "::", 2) == 0)
            left = smaller(left, left_in_groups("/sys/fs/cgroup", group + 1, 1));
        else if (group && strncmp(controllers, ":memory:", 8) == 0)
            left = smaller(left, left_in_groups("/sys/fs/cgroup/memory", group + 1, 0));
    }
    if (file)
        fclose(file);
    return left;
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
    cpu_set_t mask;
    return cvy_affinity_get(0, &mask) && CPU_COUNT(&mask) > 0 ? CPU_COUNT(&mask) : 1;
}
