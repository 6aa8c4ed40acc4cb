/*
 * base_machine.h: the machine that this process runs on: its processor, the cores that the process may use, and memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_MACHINE_H
#define CVY_BASE_MACHINE_H

#include "base/base_status.h"

/* The processor's own name, or "unknown". */
void cvy_machine_cpu(char *text, size_t room);
/* The number of cores that this process may use if it is alone on them, by its affinity mask, the quotas of its control
 * groups and the batch system; at least 1. */
int cvy_machine_cores(void);

/* The number of bytes that this process could still allocate, by the system's estimate and the limits of its control
 * groups; -1: unknown. */
int64_t cvy_mem_left(void);
/* The same, and writes which file says so. */
int64_t cvy_mem_left_by(char *source, size_t room);
/* The largest resident memory of the process, in bytes, since it began or since the last reset (if the system allows a
 * reset). */
int64_t cvy_mem_peak(void);
void cvy_mem_peak_reset(void);

#endif
