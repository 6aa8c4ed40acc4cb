/*
 * base_cores.c: see base_cores.h. The times of the cores are those of /proc/stat, the process's own those of getrusage.
 * Time that a hypervisor took away is not counted, because no program of this system used it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_cores.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base_status.h"
#include "base/machine/base_clock.h"
#include "base/machine/base_team.h"

static double seconds_of(const struct timeval *t)
{
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

/* Adds the busy time of the cores in the mask, in clock ticks. Returns the number of cores found. */
static int add_busy(FILE *file, const cpu_set_t *mask, double *ticks)
{
    char line[512];
    int found = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned cpu = 0;
        unsigned long long user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu", &cpu, &user, &nice, &system, &idle, &iowait, &irq,
                   &softirq) != 8 ||
            cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, mask))
            continue;
        *ticks += (double)(user + nice + system + irq + softirq);
        found++;
    }
    return found;
}

cvy_cores_use cvy_cores_use_now(void)
{
    cvy_cores_use use = {0};
    struct rusage own;
    cpu_set_t mask;
    FILE *file = fopen("/proc/stat", "r");
    if (file && cvy_team_mask(&mask) && getrusage(RUSAGE_SELF, &own) == 0 &&
        add_busy(file, &mask, &use.busy_s) == CPU_COUNT(&mask)) {
        use.busy_s /= (double)sysconf(_SC_CLK_TCK);
        use.own_s = seconds_of(&own.ru_utime) + seconds_of(&own.ru_stime);
        use.at_s = cvy_clock_s();
    }
    if (file)
        fclose(file);
    return use;
}

int cvy_cores_used(const cvy_cores_use *begin, const cvy_cores_use *end, double *busy_out, double *others_out)
{
    const double seconds = end->at_s - begin->at_s;
    if (begin->at_s <= 0 || seconds <= 0)
        return 0;
    *busy_out = (end->busy_s - begin->busy_s) / seconds;
    *others_out = CVY_MAX(*busy_out - (end->own_s - begin->own_s) / seconds, 0);
    return 1;
}
