/*
 * base_entry.c: the environment of a thread within the library. Source: uselocale(3), whose locale holds for the
 * calling thread alone.
 *
 * The locale is "C" in all categories: LC_NUMERIC decides how strtod() and printf() write a number, LC_CTYPE what a
 * letter is, LC_MESSAGES the language of strerror(). That covers the libraries that we call, too. glibc and musl keep
 * this locale ready, so that newlocale() neither allocates nor fails.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_entry.h"

#include <stddef.h>

static _Thread_local cvy_entry *outermost; /* NULL: the thread is in the host program */

void cvy_entry_begin(cvy_entry *e)
{
    e->is_outermost = !outermost;
    if (!e->is_outermost)
        return;
    outermost = e;
    e->own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    e->host = e->own ? uselocale(e->own) : (locale_t)0;
}

void cvy_entry_end(cvy_entry *e)
{
    if (!e->is_outermost)
        return;
    if (e->own) {
        uselocale(e->host);
        freelocale(e->own);
    }
    outermost = NULL;
}

void cvy_callback_begin(cvy_callback *c)
{
    c->entry = outermost;
    if (!c->entry)
        return;
    outermost = NULL;
    c->own = c->entry->own ? uselocale(c->entry->host) : (locale_t)0;
}

/* The host program may have changed its own settings meanwhile. */
void cvy_callback_end(cvy_callback *c)
{
    if (!c->entry)
        return;
    outermost = c->entry;
    if (c->entry->own)
        c->entry->host = uselocale(c->own);
}
