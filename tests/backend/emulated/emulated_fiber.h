/*
 * emulated_fiber.h: threads of a block that change at barriers, on one thread of the process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EMULATED_FIBER_H
#define CVY_EMULATED_FIBER_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

typedef struct emulated_fiber {
    void *stack_pointer; /* of a fiber that waits */
    int is_done, number;
    struct emulated_fiber *scheduler;
    const void *stack; /* for the address sanitizer */
    size_t stack_bytes;
    void *fake_stack;
#if !defined(__x86_64__) && !defined(__aarch64__)
    ucontext_t context;
#endif
} emulated_fiber;

/* The fiber `number` begins with emulated_fiber_body(number); when that returns, it is done, and the scheduler goes on.
 * Stacks are used again by the next fiber of this number. */
void emulated_fiber_make(emulated_fiber *fiber, int number, emulated_fiber *scheduler);
/* Goes on with `to`; returns when somebody goes on with `from`. */
void emulated_fiber_switch(emulated_fiber *from, emulated_fiber *to);

void emulated_fiber_body(int number); /* of the user */

#endif
