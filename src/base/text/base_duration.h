/*
 * base_duration.h: durations of a run ("500 steps", "1 epoch", "10 min") and parts of a run ("20 %").
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_DURATION_H
#define CVY_BASE_DURATION_H

#include <convoy/base.h>

typedef enum { CVY_DURATION_STEPS, CVY_DURATION_SAMPLES, CVY_DURATION_EPOCHS, CVY_DURATION_SECONDS } cvy_duration_unit;
typedef struct cvy_duration {
    double amount;
    cvy_duration_unit unit;
} cvy_duration;
/* Parses a number and a unit: step(s), sample(s), epoch(s), s, min, h. CVY_E_ARGUMENT: the message says what was
 * expected. */
cvy_status cvy_duration_parse(const char *text, cvy_duration *out);

/* A part of a run: a share ("20 %"), or a number of steps or epochs. */
typedef struct cvy_stretch {
    double share;
    cvy_duration length; /* used if share is negative */
} cvy_stretch;
/* CVY_E_CONFIG: the message is `is "x", expected ...`; the caller puts the key before it. */
cvy_status cvy_stretch_parse(const char *text, cvy_stretch *out);
/* The number of steps of this part, rounded, in a run of `steps` steps. */
int64_t cvy_stretch_steps(const cvy_stretch *s, int64_t steps, int64_t steps_per_epoch);

#endif
