/*
 * selftest_clocks.c: the monotonic clock goes forward and is fine enough to time a step, and the wall clocks of the
 * ranks agree.
 *
 * Ranks leave a barrier at nearly the same moment. The smallest difference of several barriers counts, because a rank
 * may have been late.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "base/machine/base_clock.h"
#include "health/selftest/selftest.h"

enum { READINGS = 20000, BARRIERS = 8 };
/* A resolution that is too coarse to time kernels by; a difference of wall clocks that people notice in logs. */
#define COARSE_S 1e-3
#define APART_S 1.0

/* Returns how often the clock went back; *step_out is the smallest step that it made. */
static int64_t read_clock(double *step_out)
{
    int64_t back = 0;
    double last_s = cvy_clock_s(), step_s = INFINITY;
    for (int i = 0; i < READINGS; i++) {
        const double now_s = cvy_clock_s();
        back += now_s < last_s;
        if (now_s > last_s)
            step_s = fmin(step_s, now_s - last_s);
        last_s = now_s;
    }
    *step_out = step_s;
    return back;
}

/* The difference of this rank's wall clock from that of rank 0. */
static cvy_status compare_with_rank_0(cvy_comm *comm, double *apart_out)
{
    double apart_s = INFINITY;
    for (int i = 0; i < BARRIERS; i++) {
        CVY_TRY(comm->ops->barrier(comm));
        const double now_s = cvy_clock_wall_s();
        double first_s = now_s;
        CVY_TRY(comm->ops->broadcast(comm, &first_s, sizeof first_s, 0));
        if (fabs(now_s - first_s) < fabs(apart_s))
            apart_s = now_s - first_s;
    }
    *apart_out = apart_s;
    return CVY_OK;
}

cvy_status cvy_selftest_clocks(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    double step_s = 0, apart_s = 0;
    if (comm->simulated_cores > 0) {
        cvy_selftest_skip(t, "time is simulated");
        return CVY_OK;
    }
    const double begin_s = cvy_clock_s(), begin_wall_s = cvy_clock_wall_s();
    const int64_t back = read_clock(&step_s);
    cvy_clock_sleep(0.01);
    const double slept_s = cvy_clock_s() - begin_s, slept_wall_s = cvy_clock_wall_s() - begin_wall_s;
    CVY_TRY(compare_with_rank_0(comm, &apart_s));
    double most_s = fabs(apart_s);
    CVY_TRY(comm->ops->allreduce(comm, &most_s, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    if (back > 0)
        cvy_selftest_fail(t,
                          "the monotonic clock went back %lld times in %d readings: see "
                          "/sys/devices/system/clocksource/clocksource0, and do not use this node",
                          (long long)back, READINGS);
    if (isinf(step_s))
        cvy_selftest_fail(t,
                          "the monotonic clock stood still for %d readings: steps cannot be timed; see "
                          "/sys/devices/system/clocksource/clocksource0",
                          READINGS);
    else if (!(step_s < COARSE_S))
        cvy_selftest_fail(t,
                          "the monotonic clock moves in steps of %.3g s, expected less than %.0g s: steps cannot be "
                          "timed; see /sys/devices/system/clocksource/clocksource0",
                          step_s, COARSE_S);
    if (slept_s < 0.009)
        cvy_selftest_fail(t, "after a sleep of 10 ms the monotonic clock has moved by %.3g ms: do not use this node",
                          1e3 * slept_s);
    if (fabs(slept_wall_s - slept_s) > APART_S)
        cvy_selftest_note(t, "the wall clock was set by %.1f s while this ran", slept_wall_s - slept_s);
    if (fabs(apart_s) > APART_S)
        cvy_selftest_fail(
            t,
            "the wall clock is %.1f s %s that of rank 0 on %s: time limits and file times go wrong: have a "
            "time service (chrony, ntpd) set it",
            fabs(apart_s), apart_s > 0 ? "ahead of" : "behind", t->host[0]);
    if (comm->nranks > 1)
        cvy_selftest_pass(t, "go forward, in steps of %.0f ns; those of the ranks differ by %.3g ms at most",
                          1e9 * step_s, 1e3 * most_s);
    else
        cvy_selftest_pass(t, "go forward, in steps of %.0f ns", 1e9 * step_s);
    return CVY_OK;
}
