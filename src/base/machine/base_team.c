/*
 * base_team.c: sets the size of the OpenMP team and checks that it can be had. Source: OpenMP 5.0, 2.6.1, which says
 * how many threads a parallel region gets.
 *
 * The size and `dynamic`, with which OpenMP may choose a smaller team, belong to the calling thread alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_team.h"

#if CVY_HAVE_OPENMP
#include <omp.h>

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
    const cvy_team before = {omp_get_max_threads(), omp_get_dynamic()};
    if (before.dynamic)
        omp_set_dynamic(0);
    const cvy_status status = cvy_team_check(threads);
    if (status == CVY_OK)
        omp_set_num_threads(threads);
    else
        cvy_team_leave(&before);
    *before_out = before;
    return status;
}

void cvy_team_leave(const cvy_team *before)
{
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
    *before_out = (cvy_team){threads, 0};
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
