/*
 * clock.h: a backend that computes nothing: an instruction waits for as long as its kernel was once measured to take.
 *
 * Communication around it is real, so steps of more ranks than there are cores can be timed; in the simulated build
 * (docs/guide/simulate.md) the wait moves the simulated time. Which kernels a plan would have, and their times, are
 * found in src/plan as for any other step.
 */
#ifndef CVY_CLOCK_H
#define CVY_CLOCK_H

#include "base/base_clock.h"
#include "base/base_status.h"

typedef struct cvy_clock {
    double scale; /* on all times: 0.1 is a node ten times as fast */
    double noise; /* a step's times are multiplied by 1 + noise times a normal number of (seed, rank, step) */
    uint64_t seed;
    int rank;
    uint64_t step; /* begun so far */
    double factor; /* of this step: scale and noise */
    double owed_s; /* not yet waited for; below zero where a wait has lasted too long */
} cvy_clock;

typedef struct cvy_clock_wait { /* of one instruction */
    cvy_clock *clock;
    double seconds; /* at scale 1 */
    int begins_step;
    cvy_status (*meanwhile)(
        void *user,
        int *busy_out); /* NULL, or what another core does while this one computes; busy: and will go on doing */
    void *user;
} cvy_clock_wait;

/* Runs like a kernel; state is a cvy_clock_wait. */
cvy_status cvy_clock_run(void *state, void *const *src, void *const *dst, void *scratch);

#endif
