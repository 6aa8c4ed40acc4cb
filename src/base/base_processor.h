/*
 * base_processor.h: what this machine's processor is called, and how much of it is ours.
 */
#ifndef CVY_BASE_PROCESSOR_H
#define CVY_BASE_PROCESSOR_H

#include <stddef.h>

/* The processor's own name, or "unknown". */
void cvy_machine_cpu(char *text, size_t room);
/* Cores that this process may use, by its affinity mask; at least 1. */
int cvy_machine_cores(void);

#endif
