/*
 * context_team.h: sets the size of the OpenMP team for the duration of a step and restores it afterwards, because the
 * caller may use OpenMP too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CONTEXT_TEAM_H
#define CVY_CONTEXT_TEAM_H

#if CVY_HAVE_OPENMP
#include <omp.h>
#endif

/* Returns the previous size. */
static inline int cvy_team_enter(int threads)
{
#if CVY_HAVE_OPENMP
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    return before;
#else
    (void)threads;
    return 1;
#endif
}

static inline void cvy_team_leave(int before)
{
#if CVY_HAVE_OPENMP
    omp_set_num_threads(before);
#else
    (void)before;
#endif
}

#endif
