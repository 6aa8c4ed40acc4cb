/* rows: clang asan minimal */
/*
 * test_plan_measure.c: the shortest time of a call counts if another run confirms it; otherwise the call is measured
 * again, within limits. A call that is hopeless or fails is measured no further.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_measure.h"

#include <math.h>

#include "base/machine/base_clock.h"
#include "test_util.h"

static int slow_first, slow_last, runs; /* the runs from slow_first to slow_last are slow; runs so far */
static int fails;

/* Takes 0.5 ms, or 20 ms if it is slow. */
static cvy_status waiting_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const double end = cvy_clock_s() + (runs >= slow_first && runs <= slow_last ? 20e-3 : 0.5e-3);
    (void)state, (void)src, (void)dst, (void)scratch;
    runs++;
    while (cvy_clock_s() < end)
        continue;
    return fails ? cvy_error_set(CVY_E_INTERNAL, "it fails") : CVY_OK;
}

static const cvy_kernel_def waiting = {.name = "test.wait", .op = "none", .run = waiting_run};

static cvy_metered measure(int first, int last, double hopeless_ms)
{
    const cvy_plan_opts opts = {.threads = 1};
    cvy_lowered u = {0};
    cvy_call call = {.kind = CVY_CALL_KERNEL, .kernel = &waiting};
    cvy_meter *m = NULL;
    cvy_metered out = {0};
    slow_first = first, slow_last = last, runs = 0;
    EXPECT_OK(cvy_meter_create(&opts, 0, &m));
    EXPECT_OK(cvy_meter_time(m, &u, &call, hopeless_ms, &out));
    cvy_meter_destroy(&m);
    return out;
}

static void measured_again(void)
{
    const cvy_metered out = measure(1, 2, (double)INFINITY); /* after two slow runs the time is confirmed */
    EXPECT(out.varied);
    EXPECT(runs >= 4);
    EXPECT(out.ms >= 0.5 && out.ms < 20);
}

static void never_confirmed(void)
{
    const cvy_metered out = measure(1, 1000, (double)INFINITY);
    EXPECT(out.varied);
    EXPECT(runs > 3 && runs < 20);
    EXPECT(out.ms >= 0.5 && out.ms < 20);
}

static void hopeless(void)
{
    const cvy_metered out = measure(0, 1000, 1);
    EXPECT(!out.varied);
    EXPECT_INT(runs, 1);
    EXPECT(out.ms >= 20);
}

static void failing(void)
{
    fails = 1;
    const cvy_metered out = measure(0, 1000, (double)INFINITY);
    fails = 0;
    EXPECT(!out.varied && isinf(out.ms));
    EXPECT_INT(runs, 1);
}

int main(void)
{
    TEST(measured_again);
    TEST(never_confirmed);
    TEST(hopeless);
    TEST(failing);
    return test_end();
}
