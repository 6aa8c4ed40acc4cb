/*
 * traps.h: a host program that traps every exception of floating-point numbers, in all its threads. Inexact results are
 * trapped, too: so a single operation outside of the library's environment ends the test, whatever its numbers are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_TRAPS_H
#define CVY_TEST_TRAPS_H

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "test_util.h"

#if defined(__GLIBC__)
enum { THREADS = 4 };

static char trap_doing[200] = "before the first call"; /* what the message of a trap names */
static sigjmp_buf trap_on_purpose;
static volatile sig_atomic_t is_trap_on_purpose;
static volatile double trap_zero;

static void on_trap(int number)
{
    static const char text[] = "FAILED a trap was sprung: ";
    (void)number;
    if (is_trap_on_purpose)
        siglongjmp(trap_on_purpose, 1);
    (void)!write(1, text, sizeof text - 1);
    (void)!write(1, trap_doing, strlen(trap_doing));
    (void)!write(1, "\n", 1);
    _exit(1);
}

static void trap(int exceptions)
{
    fedisableexcept(FE_ALL_EXCEPT);
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(exceptions);
}

/* Whether 1/0 ends the program that has such traps. */
static int is_trapped(void)
{
    int is_sprung = 1;
    is_trap_on_purpose = 1;
    if (sigsetjmp(trap_on_purpose, 1) == 0) {
        trap_zero = 1 / trap_zero;
        is_sprung = 0;
    }
    is_trap_on_purpose = 0;
    return is_sprung;
}

/* A call of the library by a host that traps everything. */
#define TRAPPED(status, call)                                                                                          \
    do {                                                                                                               \
        trap(FE_ALL_EXCEPT);                                                                                           \
        (status) = (call);                                                                                             \
        const int left_ = fegetexcept(), raised_ = fetestexcept(FE_ALL_EXCEPT);                                        \
        trap(0);                                                                                                       \
        EXPECT_INT(left_, FE_ALL_EXCEPT);                                                                              \
        EXPECT_INT(raised_, 0);                                                                                        \
    } while (0)
#define TRAPPED_OK(call)                                                                                               \
    do {                                                                                                               \
        cvy_status status_ = CVY_OK;                                                                                   \
        TRAPPED(status_, call);                                                                                        \
        EXPECT_OK(status_);                                                                                            \
    } while (0)

/* The threads of the host's own loops trap, too. */
static void trap_in_team(int exceptions)
{
#if defined(_OPENMP)
#pragma omp parallel num_threads(THREADS)
    if (omp_get_thread_num() > 0)
        trap(exceptions);
#else
    (void)exceptions;
#endif
}

/* Returns 0, and says so, on a processor that cannot trap. */
static int traps_begin(void)
{
    signal(SIGFPE, on_trap);
    trap(FE_ALL_EXCEPT);
    const int caught = fegetexcept() == FE_ALL_EXCEPT && is_trapped();
    trap(0);
    if (!caught)
        printf("this processor does not trap\n");
    return caught;
}
#endif

#endif
