/*
 * plan_extents.h: the buffers that are placed in an arena already, each with a range of memory and a lifetime, and the
 * lowest gap for the next one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_EXTENTS_H
#define CVY_PLAN_EXTENTS_H

#include "base/base_mem.h"

typedef struct cvy_extent {
    size_t offset, end; /* range in memory */
    int first, last;    /* lifetime: both instructions are in it */
} cvy_extent;

typedef struct cvy_extent_block cvy_extent_block;

typedef struct cvy_extents {
    cvy_extent_block **block; /* in the order of offsets */
    int nblock, room;
} cvy_extents; /* {0} is empty */

/* The lowest offset at which so many bytes are free from instruction `first` to `last`. */
size_t cvy_extents_lowest(const cvy_extents *x, size_t bytes, int first, int last);
/* Adds an extent after all with an offset that is not larger. */
cvy_status cvy_extents_add(cvy_extents *x, cvy_extent extent);
void cvy_extents_free(cvy_extents *x);

#endif
