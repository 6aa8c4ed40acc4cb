/*
 * clock.h: a kernel clock: an instruction computes nothing and waits for the measured time of its kernel.
 *
 * Communication around it is real, so steps of more ranks than there are cores can be timed. In the simulated build
 * (docs/guide/speed.md) the wait advances the simulated time. src/plan finds the kernels that a plan would have, and
 * their times, as for any other step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CLOCK_H
#define CVY_CLOCK_H

#include "base/base_status.h"
#include "base/machine/base_clock.h"

typedef struct cvy_clock {
    double scale; /* factor for all times: 0.1 is a node ten times as fast */
    double noise; /* a step's times are multiplied by 1 + noise * a normal random number of (seed, rank, step) */
    int ranks;    /* for which this simulated one stands: the slowest of so many draws counts; 0: one */
    uint64_t seed;
    int rank;
    uint64_t step; /* steps begun so far */
    double factor; /* of this step, from scale and noise */
    double owed_s; /* time not yet waited for; negative after a wait that was too long */
} cvy_clock;

typedef struct cvy_clock_wait { /* for one instruction */
    cvy_clock *clock;
    double seconds; /* at scale 1 */
    int begins_step;
    cvy_status (*meanwhile)(
        void *user, int *busy_out); /* NULL, or what another core does during the wait; *busy_out: it has more to do */
    void *user;
} cvy_clock_wait;

/* Has the signature of a kernel's run; state is a cvy_clock_wait. */
cvy_status cvy_clock_run(void *state, void *const *src, void *const *dst, void *scratch);

#endif
