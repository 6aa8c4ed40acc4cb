/*
 * base_team.c: sets the size of the OpenMP team and checks that it can be had; where it may run. Source:
 * OpenMP 5.0, 2.6.1, which says how many threads a parallel region gets.
 *
 * The threads of the team are those of the caller's own loops. They may trap floating-point exceptions, or not round to
 * nearest, and would do so in loops of oneDNN, too. Once a thread of the process was found to do that, the team's
 * threads are set for each step. A thread that OpenMP starts has what its starter has: this is the host program's
 * environment, which it keeps.
 *
 * The size and `dynamic`, with which OpenMP may choose a smaller team, belong to the calling thread alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_team.h"

#if CVY_HAVE_OPENMP
#include <fenv.h>
#include <omp.h>

#include "base/base_entry.h"

static _Thread_local int masked_threads; /* of the calling thread's team; 0: none */
static _Thread_local fenv_t host_math;   /* what another thread of the team had before */

/* Returns the size of the team if this call masks it: steps call oneDNN, which enters the team again. */
static int mask_team(int threads)
{
    if (threads <= masked_threads || threads == 1 || !cvy_math_was_unusual())
        return 0;
    masked_threads = threads;
    CVY_CALLBACK(); /* the host's environment, for threads that are started now */
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() > 0) {
        fegetenv(&host_math);
        fesetenv(FE_DFL_ENV);
    }
    return threads;
}

static void unmask_team(int threads)
{
    if (threads == 0)
        return;
    masked_threads = 0;
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() > 0)
        fesetenv(&host_math);
}

/* The number of places to which OpenMP binds threads; 0: it binds none. */
static int count_places(void)
{
    return omp_get_proc_bind() == omp_proc_bind_false ? 0 : omp_get_num_places();
}

const char *cvy_team_mask_source(void)
{
    return count_places() > 0 ? "OpenMP's places (OMP_PLACES, OMP_PROC_BIND)" : "the affinity mask";
}

int cvy_team_mask(cpu_set_t *out)
{
    CPU_ZERO(out);
    for (int p = 0, n = count_places(); p < n; p++) {
        int id[CPU_SETSIZE];
        const int count = omp_get_place_num_procs(p);
        if (count > CPU_SETSIZE)
            continue;
        omp_get_place_proc_ids(p, id);
        for (int i = 0; i < count; i++)
            if (id[i] >= 0 && id[i] < CPU_SETSIZE)
                CPU_SET(id[i], out);
    }
    return CPU_COUNT(out) > 0 || (cvy_affinity_get(0, out) && CPU_COUNT(out) > 0);
}

static int count_team(int threads)
{
    int team = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp master
        team = omp_get_num_threads();
    }
    return team;
}

void cvy_team_start(int threads)
{
    CVY_CALLBACK();
#pragma omp parallel num_threads(threads) if (threads > 1)
    cvy_math_look();
}

int cvy_team_limit(int threads, const char **why_out)
{
    int team = threads;
    *why_out = "";
    if (threads > 1 && omp_get_active_level() >= omp_get_max_active_levels()) {
        team = 1;
        *why_out = omp_in_parallel()
                       ? "it is called within a parallel region, and OMP_MAX_ACTIVE_LEVELS allows no region within it"
                       : "OMP_MAX_ACTIVE_LEVELS is 0";
    } else if (threads > omp_get_thread_limit()) {
        team = omp_get_thread_limit();
        *why_out = "OMP_THREAD_LIMIT is smaller";
    } else if (threads > 1 && omp_in_parallel() && (team = count_team(threads)) < threads) {
        *why_out = "it is called within a parallel region, whose threads count for OMP_THREAD_LIMIT";
    }
    return team;
}

static cvy_status compare(int threads, int team, const char *why)
{
    CVY_CHECK(team >= threads, CVY_E_ARGUMENT,
              "%d compute threads were asked for, and OpenMP gives a team of %d: %s; ask for %d, or change the limit",
              threads, team, why, team);
    return CVY_OK;
}

cvy_status cvy_team_check(int threads)
{
    const char *why = "";
    const int team = cvy_team_limit(threads, &why);
    return compare(threads, team, why);
}

cvy_status cvy_team_enter(int threads, cvy_team *before_out)
{
    cvy_team before = {omp_get_max_threads(), omp_get_dynamic(), 0};
    if (before.dynamic)
        omp_set_dynamic(0);
    const cvy_status status = cvy_team_check(threads);
    if (status == CVY_OK) {
        omp_set_num_threads(threads);
        before.masked = mask_team(threads);
    } else {
        cvy_team_leave(&before);
    }
    *before_out = before;
    return status;
}

void cvy_team_leave(const cvy_team *before)
{
    unmask_team(before->masked);
    if (omp_get_max_threads() != before->threads)
        omp_set_num_threads(before->threads);
    if (before->dynamic)
        omp_set_dynamic(1);
}

cvy_status cvy_team_count(int threads)
{
    return compare(threads, count_team(threads), "a limit of its run-time library");
}

#else

void cvy_team_start(int threads)
{
    (void)threads;
}

const char *cvy_team_mask_source(void)
{
    return "the affinity mask";
}

int cvy_team_mask(cpu_set_t *out)
{
    CPU_ZERO(out);
    return cvy_affinity_get(0, out) && CPU_COUNT(out) > 0;
}

int cvy_team_limit(int threads, const char **why_out)
{
    *why_out = "";
    return threads;
}

cvy_status cvy_team_check(int threads)
{
    (void)threads;
    return CVY_OK;
}

cvy_status cvy_team_enter(int threads, cvy_team *before_out)
{
    *before_out = (cvy_team){threads, 0, 0};
    return CVY_OK;
}

void cvy_team_leave(const cvy_team *before)
{
    (void)before;
}

cvy_status cvy_team_count(int threads)
{
    (void)threads;
    return CVY_OK;
}

#endif
