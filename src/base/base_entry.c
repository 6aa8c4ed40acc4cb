/*
 * base_entry.c: the environment of a thread within the library. Sources: uselocale(3), whose locale holds for the
 * calling thread alone; C11, 7.6, for the environment of floating-point numbers.
 *
 * The locale is "C" in all categories: LC_NUMERIC decides how strtod() and printf() write a number, LC_CTYPE what a
 * letter is, LC_MESSAGES the language of strerror(). That covers the libraries that we call, too. glibc and musl keep
 * this locale ready, so that newlocale() neither allocates nor fails.
 *
 * Kernels overflow and divide by zero on their way to right results: exp() of a large number in a sigmoid, or a lane of
 * a vector that is not used. A host program that traps these exceptions would end in the middle of a kernel. One that
 * is compiled with -ffast-math flushes denormal numbers to zero; sums over ranks, which keep them, would depend on the
 * thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_entry.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static _Thread_local cvy_entry *outermost; /* NULL: the thread is in the host program */
static atomic_int was_unusual;

#if defined(__SSE2__)
#include <immintrin.h>

static int has_usual_math(void)
{
    return (_mm_getcsr() & 0xffc0) == 0x1f80;
}
#elif defined(__aarch64__)
static int has_usual_math(void)
{
    uint64_t control = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (control & 0x3c09f00) == 0;
}
#else
static int has_usual_math(void)
{
    return 0; /* not known */
}
#endif

void cvy_math_look(void)
{
    if (!has_usual_math())
        atomic_store_explicit(&was_unusual, 1, memory_order_relaxed);
}

int cvy_math_was_unusual(void)
{
    return atomic_load_explicit(&was_unusual, memory_order_relaxed);
}

/* Puts the calling thread into the state of the library, and keeps that of the host program. */
static void enter_library(cvy_entry *e)
{
    cvy_math_look();
    fegetenv(&e->math);
    fesetenv(FE_DFL_ENV);
    if (e->own)
        e->host = uselocale(e->own);
}

/* Puts it back into the state of the host program. */
static void enter_host(const cvy_entry *e)
{
    fesetenv(&e->math);
    if (e->own)
        uselocale(e->host);
}

void cvy_entry_begin(cvy_entry *e, const char *function)
{
    e->is_outermost = !outermost;
    e->function = function;
    if (!e->is_outermost)
        return;
    outermost = e;
    e->own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    enter_library(e);
}

void cvy_entry_end(cvy_entry *e)
{
    if (!e->is_outermost)
        return;
    enter_host(e);
    if (e->own)
        freelocale(e->own);
    outermost = NULL;
}

void cvy_team_math_begin(cvy_team_math *m)
{
    m->is_set = !has_usual_math();
    if (m->is_set) {
        fegetenv(&m->host);
        fesetenv(FE_DFL_ENV);
    }
}

void cvy_team_math_end(cvy_team_math *m)
{
    if (m->is_set)
        fesetenv(&m->host);
}

const char *cvy_entry_function(void)
{
    return outermost ? outermost->function : "";
}

void cvy_callback_begin(cvy_callback *c)
{
    c->entry = outermost;
    if (!c->entry)
        return;
    outermost = NULL;
    enter_host(c->entry);
}

/* The host program may have changed its own settings meanwhile. */
void cvy_callback_end(cvy_callback *c)
{
    cvy_entry *e = c->entry;
    if (!e)
        return;
    outermost = e;
    enter_library(e);
}
