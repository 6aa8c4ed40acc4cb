/*
 * emulated_kernel.h: what tools/make_kernels.sh writes for the emulated device: the kernels of each source, which the
 * compiler of the host has compiled, with their parameters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EMULATED_KERNEL_H
#define CVY_EMULATED_KERNEL_H

#include <stddef.h>

#include <convoy/base.h>

struct cvy_emulated_kernel {
    const char *name;
    void (*call)(void *const *args); /* runs one thread; args: the address of each argument */
    const size_t *bytes;             /* of each argument; 0: a pointer into the device's memory */
    int nargs, waits;                /* waits: it has barriers */
};

struct cvy_emulated_module {
    const char *source; /* the name of the file, without .c */
    cvy_dtype act;
    const struct cvy_emulated_kernel *kernels;
    int nkernel;
    char *shared_begin, *shared_end; /* the memory of a block, of all kernels of the module; NULL: none */
};

/* All modules; the last one is NULL. */
extern const struct cvy_emulated_module *const cvy_emulated_modules[];

#endif
