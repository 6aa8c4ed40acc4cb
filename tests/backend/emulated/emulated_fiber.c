/*
 * emulated_fiber.c: fibers: stacks that are switched by a few instructions on x86-64 and aarch64, else by ucontext.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/emulated/emulated_fiber.h"

#include <string.h>
#include <sys/mman.h>

#include "backend/emulated/emulated_parts.h"

#if defined(__SANITIZE_ADDRESS__)
#define EMULATED_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATED_ASAN 1
#endif
#endif
#ifdef EMULATED_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

enum {
    STACK = 96 << 10,
    GAP = 32 << 10, /* which has no access rights */
    /* Stacks begin at different places of a page, else all would compete for the same lines of the cache. */
    COLOURS = 128,
    COLOUR = 256
};

static char *stack_of(int number)
{
    static char *stacks;
    if (!stacks) {
        const size_t each = STACK + GAP, bytes = EMULATED_THREADS * each;
        stacks = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED)
            emulated_fail("there is no memory for stacks");
        for (int i = 0; i < EMULATED_THREADS; i++)
            if (mprotect(stacks + (size_t)i * each + GAP, STACK, PROT_READ | PROT_WRITE) != 0)
                emulated_fail("there is no memory for stacks");
    }
    return stacks + (size_t)number * (STACK + GAP) + GAP;
}

static emulated_fiber *begins; /* the fiber that is entered for the first time */

static void enter(void)
{
    emulated_fiber *self = begins;
#ifdef EMULATED_ASAN
    __sanitizer_finish_switch_fiber(NULL, &self->scheduler->stack, &self->scheduler->stack_bytes);
#endif
    emulated_fiber_body(self->number);
    self->is_done = 1;
    emulated_fiber_switch(self, self->scheduler);
    __builtin_unreachable();
}

#if defined(__x86_64__)
/* Saves the registers that a function must keep, and loads those of the other stack. */
void emulated_switch_stack(void **save, void *load);
__asm__(".text\n"
        ".globl emulated_switch_stack\n"
        ".type emulated_switch_stack, @function\n"
        "emulated_switch_stack:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    pop %rcx\n    jmp *%rcx\n" /* no ret: the processor would predict another place */
        ".size emulated_switch_stack, . - emulated_switch_stack\n");

/* A stack from which the switch returns to `enter`, aligned as after a call. */
static void *first_stack(char *end)
{
    void **top = (void **)end - 1;
    *--top = (void *)enter;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    return top;
}
#elif defined(__aarch64__)
void emulated_switch_stack(void **save, void *load);
__asm__(".text\n"
        ".globl emulated_switch_stack\n"
        ".type emulated_switch_stack, %function\n"
        "emulated_switch_stack:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size emulated_switch_stack, . - emulated_switch_stack\n");

static void *first_stack(char *end)
{
    void **top = (void **)(end - 160);
    memset(top, 0, 160);
    top[11] = (void *)enter; /* x30 */
    return top;
}
#endif

void emulated_fiber_make(emulated_fiber *fiber, int number, emulated_fiber *scheduler)
{
    char *stack = stack_of(number);
    *fiber = (emulated_fiber){.number = number, .scheduler = scheduler, .stack = stack, .stack_bytes = STACK};
#if defined(__x86_64__) || defined(__aarch64__)
    fiber->stack_pointer = NULL;
#else
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = STACK;
    makecontext(&fiber->context, enter, 0);
#endif
}

void emulated_fiber_switch(emulated_fiber *from, emulated_fiber *to)
{
#ifdef EMULATED_ASAN
    __sanitizer_start_switch_fiber(from->is_done ? NULL : &from->fake_stack, to->stack, to->stack_bytes);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    if (!to->stack_pointer) { /* a scheduler has saved its own before anybody goes on with it */
        begins = to;
        to->stack_pointer = first_stack((char *)(uintptr_t)to->stack + STACK - to->number % COLOURS * COLOUR);
    }
    emulated_switch_stack(&from->stack_pointer, to->stack_pointer);
#else
    begins = to;
    swapcontext(&from->context, &to->context);
#endif
#ifdef EMULATED_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}
