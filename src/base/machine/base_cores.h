/*
 * base_cores.h: how much the cores that this process may use have been used since a moment, and by whom.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_CORES_H
#define CVY_BASE_CORES_H

typedef struct cvy_cores_use { /* sums up to a moment, in seconds */
    double at_s;               /* the clock; 0: not known */
    double busy_s;             /* of the cores in this process's affinity mask */
    double own_s;              /* processor time of this process, with all its threads */
} cvy_cores_use;

/* at_s is 0 if the system does not tell (no /proc/stat). */
cvy_cores_use cvy_cores_use_now(void);
/* The mean number of cores that were busy between two moments, and of those that other programs used. Returns 0 if it
 * is not known. */
int cvy_cores_used(const cvy_cores_use *begin, const cvy_cores_use *end, double *busy_out, double *others_out);

#endif
