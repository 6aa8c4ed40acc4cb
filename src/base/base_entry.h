/*
 * base_entry.h: what a thread of the host program has set for itself, and the library must not depend on: its locale,
 * and traps, rounding and exceptions of floating-point numbers. Public functions begin with CVY_ENTRY(), which
 * tools/check_layers holds; so do functions that run in threads of the library. Functions of the host program are
 * called after CVY_CALLBACK().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_ENTRY_H
#define CVY_BASE_ENTRY_H

#include <fenv.h>
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

/* What the host program's thread had when it called the library. */
typedef struct cvy_entry {
    int is_outermost; /* 0: a public function that another one calls, for which nothing changes */
    const char *function;
    locale_t own, host;
    fenv_t math;
} cvy_entry;

void cvy_entry_begin(cvy_entry *e, const char *function);
void cvy_entry_end(cvy_entry *e);
/* The public function that the host program's thread has called, for messages; "" in other threads. */
const char *cvy_entry_function(void);

/* A function of the host program that the library calls. */
typedef struct cvy_callback {
    cvy_entry *entry; /* NULL: the thread is not in a public function */
} cvy_callback;

void cvy_callback_begin(cvy_callback *c);
void cvy_callback_end(cvy_callback *c);

/* A thread of a team, which has what the host program has set. */
typedef struct cvy_team_math {
    int is_set; /* 0: the thread has what the library needs */
    fenv_t host;
} cvy_team_math;

void cvy_team_math_begin(cvy_team_math *m);
void cvy_team_math_end(cvy_team_math *m);

/* Notes whether the calling thread traps floating-point exceptions, flushes denormals or does not round to nearest. */
void cvy_math_look(void);
/* Whether a thread of this process did, when it called the library or was looked at. */
int cvy_math_was_unusual(void);

/* From here to the end of the function, the thread has the locale "C", rounds to nearest and traps no exception. The
 * exceptions that it raises are forgotten. */
#define CVY_ENTRY()                                                                                                    \
    __attribute__((cleanup(cvy_entry_end))) cvy_entry entry_;                                                          \
    cvy_entry_begin(&entry_, __func__)

/* In a region of OpenMP that is neither in cvy_parallel_for() nor between cvy_team_enter() and cvy_team_leave(): from
 * here to the end of the block, this thread of the team traps nothing and rounds to nearest. */
#define CVY_TEAM_MATH()                                                                                                \
    __attribute__((cleanup(cvy_team_math_end))) cvy_team_math team_math_;                                              \
    cvy_team_math_begin(&team_math_)

/* From here to the end of the block, the thread has what the host program has set. */
#define CVY_CALLBACK()                                                                                                 \
    __attribute__((cleanup(cvy_callback_end))) cvy_callback callback_;                                                 \
    cvy_callback_begin(&callback_)

#endif
