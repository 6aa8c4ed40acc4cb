/*
 * clock.c: waits instead of computing. A sleep takes some tens of microseconds longer than requested, and many kernels
 * are shorter than that. So the time that remains is carried over to the next kernel, and the time of a step is right.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/clock/clock.h"

#include "base/number/base_rng.h"

#define SLICE_S 20e-6       /* interval of calls to `meanwhile` while it is busy */
#define LEFT_LEAST_S 1e-8   /* a shorter rest is not slept */
#define SLEEP_LEAST_S 50e-6 /* what the system adds to a sleep; shorter times are added up until they reach it */

static void begin_step(cvy_clock *c)
{
    const cvy_rng rng = cvy_rng_make(c->seed, "clock", (uint64_t)c->rank, c->step++);
    double noise = c->noise > 0 ? cvy_rng_normal(&rng, 0) : 0;
    for (int i = 1; c->noise > 0 && i < c->ranks; i++)
        noise = CVY_MAX(noise, cvy_rng_normal(&rng, (uint64_t)i));
    c->factor = c->scale * CVY_MAX(1 + c->noise * noise, 0.0);
    c->owed_s = CVY_MAX(c->owed_s, -SLEEP_LEAST_S); /* a delay in one step does not make the next step shorter */
}

static cvy_status sleep_on(const cvy_clock_wait *wait, double seconds)
{
    const double end = cvy_clock_s() + seconds;
    for (double left = seconds; left > LEFT_LEAST_S; left = end - cvy_clock_s()) {
        int busy = 0;
        CVY_TRY(wait->meanwhile(wait->user, &busy));
        left = end - cvy_clock_s();
        cvy_clock_sleep(busy ? CVY_MIN(left, SLICE_S) : left);
    }
    return CVY_OK;
}

cvy_status cvy_clock_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const cvy_clock_wait *wait = state;
    cvy_clock *c = wait->clock;
    (void)src, (void)dst, (void)scratch;
    if (wait->begins_step)
        begin_step(c);
    c->owed_s += wait->seconds * c->factor;
    if (c->owed_s < SLEEP_LEAST_S)
        return CVY_OK;
    const double begin = cvy_clock_s();
    if (wait->meanwhile)
        CVY_TRY(sleep_on(wait, c->owed_s));
    else
        cvy_clock_sleep(c->owed_s);
    c->owed_s -= cvy_clock_s() - begin;
    return CVY_OK;
}
