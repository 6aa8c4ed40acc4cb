/*
 * base_processor.c: the processor's name, from Linux's /proc: for plan.json, and for what measured times hold; its cores.
 */
#include "base/base_processor.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

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

int cvy_machine_cores(void)
{
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0 ? CPU_COUNT(&mask) : 1;
}
