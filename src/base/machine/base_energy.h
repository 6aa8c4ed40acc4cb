/*
 * base_energy.h: the energy that the processors of a node have used, where the system tells it (RAPL).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_ENERGY_H
#define CVY_BASE_ENERGY_H

#include "base/base_status.h"

enum { CVY_ENERGY_PACKAGES = 64 };

typedef struct cvy_energy { /* counters of all packages, in J; n is 0 if they cannot be read */
    double joules[CVY_ENERGY_PACKAGES];
    double range[CVY_ENERGY_PACKAGES]; /* at which a counter begins again at 0 */
    int n;
} cvy_energy;

/* Reads the counters below /sys/class/powercap, or the folder that CONVOY_POWERCAP names. They count what all programs
 * on the node use. Many systems let only root read them. */
cvy_energy cvy_energy_read(void);
/* The energy between two readings, in J; NaN: unknown. Each counter may begin again once in between, which takes
 * minutes at least. */
double cvy_energy_between(const cvy_energy *from, const cvy_energy *to);

#endif
