/*
 * base_parallel.c: splits a loop over the team of compute threads.
 *
 * All our own kernels run their loops through this function. The team is the OpenMP team that oneDNN uses as well. A
 * loop uses either the whole team or only the calling thread: if the team changed its size from loop to loop, threads
 * would be started and ended during the step.
 *
 * Within a loop, numbers below the smallest normal number count as zero, if the processor can do so. The reason: a
 * momentum whose gradient stays zero decays until rounding keeps it at a denormal number, and each operation on it then
 * takes a hundred cycles. The update of a network with dead units would be many times slower. Threads of the host
 * program may trap exceptions (base_entry.h); within a loop they do not. The setting of the thread is restored after
 * the loop.
 *
 * If the items are single numbers, the part of each thread begins at a whole vector. A compiler may fuse other products
 * and sums in the remainder of a loop than in its vectors, and the last bits of a number must not depend on where the
 * part of a thread ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_parallel.h"

#if defined(__SSE2__)
#include <immintrin.h>

#define FLUSH 0x8040u /* denormal results become zero, denormal operands count as zero */
#define USUAL 0x1f80u /* no traps, rounding to nearest */

static unsigned flush_begin(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(USUAL | FLUSH);
    return before;
}

/* The fence makes stores that bypass the cache visible before other threads continue. */
static void flush_end(unsigned before)
{
    _mm_setcsr(before);
    _mm_sfence();
}
#else
static unsigned flush_begin(void)
{
    return 0;
}

static void flush_end(unsigned before)
{
    (void)before;
}
#endif

static void run_range(cvy_range_fn body, int64_t first, int64_t last, void *arg)
{
    const unsigned before = flush_begin();
    body(first, last, arg);
    flush_end(before);
}

#if CVY_HAVE_OPENMP
#include <omp.h>

enum { VECTORS = 64, NUMBERS = 1024 }; /* items; with a grain of NUMBERS or more they are single numbers */

static int64_t begin_of(int64_t me, int64_t team, int64_t n, int64_t grain)
{
    const int64_t at = n * me / team;
    return grain >= NUMBERS && me < team ? at / VECTORS * VECTORS : at;
}
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
            const int64_t first = begin_of(me, team, n, grain), last = begin_of(me + 1, team, n, grain);
            if (first < last)
                run_range(body, first, last, arg);
        }
        return;
    }
#else
    (void)threads;
    (void)grain;
#endif
    run_range(body, 0, n, arg);
}
