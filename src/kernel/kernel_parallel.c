/*
 * kernel_parallel.c: how a kernel spreads a loop over the compute team.
 *
 * In the step: every kernel of our own runs its loops through here, so the team is the one OpenMP team that oneDNN uses
 * as well. A loop takes either the whole team or the calling thread alone: a team that changes its size from loop to
 * loop would start and end threads in the step.
 */
#include "kernel/kernel.h"

#if CVY_HAVE_OPENMP
#include <omp.h>
#endif

void cvy_parallel_for(int threads, int64_t n, int64_t grain, cvy_range_fn body, void *arg)
{
    if (n <= 0)
        return;
#if CVY_HAVE_OPENMP
    if (threads > 1 && n > grain) {
#pragma omp parallel num_threads(threads)
        {
            const int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
            const int64_t first = n * me / team, last = n * (me + 1) / team;
            if (first < last)
                body(first, last, arg);
        }
        return;
    }
#else
    (void)threads;
    (void)grain;
#endif
    body(0, n, arg);
}
