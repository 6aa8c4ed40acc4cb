/*
 * context_topology.c: finds where the ranks run: from their affinity masks, the variables of the batch system and the
 * mask of the launcher. context_topology_text.c prints it.
 *
 * A core is a physical core, whatever the number of its hardware threads. Masks contain hardware threads, as Linux
 * numbers them. No code here derives a rank's place from its number: nodes may be filled in any order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "context/context_topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/machine/base_core_limits.h"
#include "base/machine/base_team.h"

/* ---- this rank ---- */

/* For each hardware thread in the mask: the first hardware thread of its core. */
static cpu_set_t cores_of(const cpu_set_t *mask)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        char path[96];
        int first = i;
        if (!CPU_ISSET(i, mask))
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        FILE *file = fopen(path, "r");
        if (file && (fscanf(file, "%d", &first) != 1 || first < 0 || first >= CPU_SETSIZE))
            first = i;
        if (file)
            fclose(file);
        CPU_SET(first, &cores);
    }
    return cores;
}

/* The hardware threads that the system would allow this thread to use. It asks for all, reads what it got, and restores
 * the former mask. */
static cpu_set_t granted(void)
{
    cpu_set_t mine, all;
    CPU_ZERO(&mine);
    memset(&all, 0xff, sizeof all);
    if (!cvy_affinity_get(0, &mine) || !cvy_affinity_set(&all))
        return mine;
    (void)cvy_affinity_get(0, &all);
    (void)cvy_affinity_set(&mine);
    return all;
}

/* Reads name and parent of a process; returns 0 if there is no such process. */
static int read_process(long pid, char *name, size_t room, long *parent_out)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    const char *begin = strchr(text, '('), *end = strrchr(text, ')'); /* "pid (name) state ppid" */
    if (!begin || !end || end < begin || strlen(end) < 5)
        return 0;
    snprintf(name, room, "%.*s", (int)(end - begin - 1), begin + 1);
    *parent_out = strtol(end + 4, NULL, 10);
    return 1;
}

/* Finds the launcher: the parent of this rank, or one of the processes above it, since shells may be in between. The
 * launcher's mask is the mask of the job, if the batch system binds jobs by masks. */
static cvy_launcher find_launcher(cpu_set_t *mask_out)
{
    static const struct {
        const char *name;
        cvy_launcher launcher;
    } known[] = {{"orted", CVY_LAUNCHER_OPEN_MPI},        {"prted", CVY_LAUNCHER_OPEN_MPI},
                 {"prterun", CVY_LAUNCHER_OPEN_MPI},      {"orterun", CVY_LAUNCHER_OPEN_MPI},
                 {"hydra_pmi_proxy", CVY_LAUNCHER_HYDRA}, {"slurmstepd", CVY_LAUNCHER_SLURM},
                 {"mpiexec", CVY_LAUNCHER_OPEN_MPI},      {"mpirun", CVY_LAUNCHER_OPEN_MPI}};
    long pid = (long)getppid();
    char name[64];
    for (int up = 0; up < 8 && pid > 1; up++) {
        const long at = pid;
        if (!read_process(at, name, sizeof name, &pid))
            break;
        for (int i = 0; i < CVY_COUNT(known); i++)
            if (strncmp(name, known[i].name, strlen(known[i].name)) == 0) {
                if (!cvy_affinity_get(at, mask_out))
                    memset(mask_out, 0xff, sizeof *mask_out);
                return known[i].launcher;
            }
    }
    memset(mask_out, 0xff, sizeof *mask_out);
    return CVY_LAUNCHER_UNKNOWN;
}

/* The hardware threads that the batch system gave to the job on this node; 0: unknown. */
static int64_t find_allotted(void)
{
    cvy_core_limit limit[CVY_CORE_LIMITS_MAX];
    double least = 0;
    const int n = cvy_core_limits("", limit);
    for (int i = 0; i < n; i++)
        if (limit[i].kind == CVY_LIMIT_NODE && limit[i].cores > 0)
            least = least > 0 ? CVY_MIN(least, limit[i].cores) : limit[i].cores;
    return (int64_t)least;
}

cvy_rank_topology cvy_topology_here(const cvy_context *context)
{
    cvy_rank_topology p = {.node = context->comm->node, .threads = context->threads};
    const int64_t allotted = find_allotted();
    cpu_set_t launcher, permitted;
    CPU_ZERO(&p.mask);
    if (gethostname(p.host, sizeof p.host - 1) != 0)
        snprintf(p.host, sizeof p.host, "unknown");
    (void)cvy_team_mask(&p.mask);
    p.cores = cores_of(&p.mask);
    p.domains = cvy_affinity_domains("", &p.mask);
    p.launcher = find_launcher(&launcher);
    permitted = granted();
    CPU_AND(&permitted, &permitted, &launcher);
    CPU_OR(&permitted, &permitted, &p.mask);
    p.permitted = cores_of(&permitted);
    if (allotted > 0 && CPU_COUNT(&permitted) > 0) /* batch systems count hardware threads */
        p.allotted = (allotted * CPU_COUNT(&p.permitted) + CPU_COUNT(&permitted) - 1) / CPU_COUNT(&permitted);
    return p;
}

cvy_status cvy_topology_gather(const cvy_context *context, cvy_rank_topology *all_out)
{
    const cvy_rank_topology mine = cvy_topology_here(context);
    return context->comm->ops->allgather(context->comm, &mine, sizeof mine, all_out);
}

/* ---- of a run ---- */

static void warn(const cvy_context *context, const cvy_text *bad)
{
    for (const char *line = bad->data; line && *line; line = strchr(line, '\n') + 1)
        cvy_log(context, CVY_LOG_WARN, "%.*s", (int)strcspn(line, "\n"), line);
}

cvy_status cvy_topology_note(const cvy_context *context, cvy_text *notes)
{
    cvy_comm *comm = context->comm;
    cvy_rank_topology *all = NULL;
    cvy_text bad = {0};
    if (comm->simulated_cores > 0 ||
        (comm->nranks == 1 && __builtin_popcountll(cvy_topology_here(context).domains) == 1))
        return CVY_OK;
    CVY_TRY(cvy_comm_alloc(comm, sizeof *all * (size_t)comm->nranks, &all));
    cvy_status status = cvy_topology_gather(context, all);
    if (status == CVY_OK && comm->rank == 0) {
        if (comm->nranks > 1)
            status = cvy_topology_print(all, comm->nranks, notes);
        if (status == CVY_OK)
            status = cvy_topology_check(all, comm->nranks, &bad);
        if (status == CVY_OK)
            warn(context, &bad);
    }
    cvy_text_free(&bad);
    cvy_mem_free(&all);
    return cvy_comm_agree(comm, status);
}
