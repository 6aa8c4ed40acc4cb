/*
 * kernel_library.h: which library of kernels this process uses, and the instructions that it may use.
 */
#ifndef CVY_KERNEL_LIBRARY_H
#define CVY_KERNEL_LIBRARY_H

#include <stddef.h>

/* "oneDNN 2.6.3 instructions 0xfff", or "no oneDNN": times that were measured hold for one such text. */
void cvy_kernel_library(char *text, size_t room);

#endif
