/* SPDX-License-Identifier: BSD-3-Clause */
/* base_round.h: sizes in whole cache lines, so that what is laid behind one another begins on a line of its own. */
#ifndef CVY_BASE_ROUND_H
#define CVY_BASE_ROUND_H

#include <stddef.h>

enum { CVY_LINE_BYTES = 64 };

static inline size_t cvy_round_to_line(size_t bytes)
{
    return (bytes + CVY_LINE_BYTES - 1) / CVY_LINE_BYTES * CVY_LINE_BYTES;
}

#endif
