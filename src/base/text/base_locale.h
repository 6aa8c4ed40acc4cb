/*
 * base_locale.h: numbers are read and written with a decimal point, whatever the locale of the calling program is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_LOCALE_H
#define CVY_BASE_LOCALE_H

#include <locale.h>

typedef struct cvy_locale {
    locale_t own, before;
} cvy_locale;

/* From begin to end, this thread uses the decimal point. */
static inline cvy_locale cvy_locale_begin(void)
{
    cvy_locale l = {.own = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0)};
    if (l.own)
        l.before = uselocale(l.own);
    return l;
}

static inline void cvy_locale_end(cvy_locale *l)
{
    if (!l->own)
        return;
    uselocale(l->before);
    freelocale(l->own);
}

#endif
