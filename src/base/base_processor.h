/*
 * base_processor.h: what this machine's processor is called.
 */
#ifndef CVY_BASE_PROCESSOR_H
#define CVY_BASE_PROCESSOR_H

#include <stddef.h>

/* The processor's own name, or "unknown". */
void cvy_machine_cpu(char *text, size_t room);

#endif
