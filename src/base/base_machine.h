/*
 * base_machine.h: the machine that this process runs on: its processor, the cores that are ours, memory.
 */
#ifndef CVY_BASE_MACHINE_H
#define CVY_BASE_MACHINE_H

#include "base/base_status.h"

/* The processor's own name, or "unknown". */
void cvy_machine_cpu(char *text, size_t room);
/* Cores that this process may use, by its affinity mask; at least 1. */
int cvy_machine_cores(void);

/* Bytes that this process could still take by the system's own estimate and the limits of its control groups; -1:
 * unknown. */
int64_t cvy_mem_left(void);
/* The most resident memory that the process has held since it began, or since the last reset (where the system allows
 * one), in bytes. */
int64_t cvy_mem_peak(void);
void cvy_mem_peak_reset(void);

#endif
