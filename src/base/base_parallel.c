/*
 * base_parallel.c: how a loop is spread over the compute team.
 *
 * In the step: every kernel of our own runs its loops through this function, so the team is the one OpenMP team that
 * oneDNN uses as well. A loop takes either the whole team or the calling thread alone: a team that changes its size
 * from loop to loop would start and end threads in the step.
 *
 * Within a loop numbers below the smallest normal one count as zero, if the processor can do so. A momentum whose
 * gradient stays zero decays until rounding holds it at a denormal number, and each operation on it then takes a
 * hundred cycles: the update of a network with dead units would be many times slower. The thread gets its own setting
 * back.
 *
 * If items are single numbers, threads begin at whole vectors. A compiler may fuse other products and sums in the
 * remainder of a loop than in its vectors, so the last bits of a number must not depend on where a thread's part of the
 * loop ends.
 */
#include "base/base_parallel.h"

#if defined(__SSE2__)
#include <immintrin.h>

#define FLUSH 0x8040u /* flush results to zero, take sources for zero */

static unsigned flush_begin(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | FLUSH);
    return before;
}

/* And what was stored past the cache is there before other threads go on. */
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

enum { VECTORS = 64, NUMBERS = 1024 }; /* items; with this grain or more they are taken for numbers */

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
