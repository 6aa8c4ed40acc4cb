/*
 * plan_extents.c: extents in the order of their offsets, in blocks of some hundred.
 *
 * A network of a hundred thousand layers has as many buffers, and a walk over all of them for each one would take
 * minutes. So each block says what it holds, and is passed over as a whole if none of its extents meets a lifetime, or
 * if all do and no gap between them is wide enough.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_extents.h"

#include <limits.h>
#include <string.h>

enum { BLOCK = 256 };

struct cvy_extent_block {
    cvy_extent at[BLOCK];
    int n;
    int min_first, max_first, min_last, max_last;
    size_t end, gap; /* the highest end; the widest gap behind the first extent, if all of them count */
};

static void summarise(cvy_extent_block *b)
{
    b->min_first = b->min_last = INT_MAX;
    b->max_first = b->max_last = INT_MIN;
    b->end = b->gap = 0;
    for (int i = 0; i < b->n; i++) {
        const cvy_extent *e = &b->at[i];
        b->min_first = CVY_MIN(b->min_first, e->first);
        b->max_first = CVY_MAX(b->max_first, e->first);
        b->min_last = CVY_MIN(b->min_last, e->last);
        b->max_last = CVY_MAX(b->max_last, e->last);
        if (i > 0 && e->offset > b->end)
            b->gap = CVY_MAX(b->gap, e->offset - b->end);
        b->end = CVY_MAX(b->end, e->end);
    }
}

size_t cvy_extents_lowest(const cvy_extents *x, size_t bytes, int first, int last)
{
    size_t at = 0;
    for (int k = 0; k < x->nblock; k++) {
        const cvy_extent_block *b = x->block[k];
        if (b->max_last < first || last < b->min_first)
            continue;
        if (first <= b->min_last && b->max_first <= last && b->gap < bytes && at + bytes > b->at[0].offset) {
            at = CVY_MAX(at, b->end);
            continue;
        }
        for (int i = 0; i < b->n; i++) {
            const cvy_extent *e = &b->at[i];
            if (e->last < first || last < e->first)
                continue;
            if (at + bytes <= e->offset)
                return at;
            at = CVY_MAX(at, e->end);
        }
    }
    return at;
}

/* The block to which an extent of this offset belongs: the last one that does not begin behind it. */
static int find_block(const cvy_extents *x, size_t offset)
{
    int low = 0;
    for (int high = x->nblock; low < high;) {
        const int middle = low + (high - low) / 2;
        if (x->block[middle]->at[0].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return CVY_MAX(low - 1, 0);
}

static cvy_status insert_block(cvy_extents *x, int k)
{
    cvy_extent_block *fresh = NULL;
    CVY_TRY(cvy_mem_reserve(&x->block, &x->room, x->nblock, sizeof *x->block));
    CVY_TRY(cvy_mem_alloc(sizeof *fresh, &fresh));
    memmove(&x->block[k + 1], &x->block[k], sizeof *x->block * (size_t)(x->nblock - k));
    x->block[k] = fresh;
    x->nblock++;
    return CVY_OK;
}

/* Moves the upper half of a full block to a new one behind it. */
static cvy_status split(cvy_extents *x, int k)
{
    CVY_TRY(insert_block(x, k + 1));
    cvy_extent_block *b = x->block[k], *upper = x->block[k + 1];
    upper->n = b->n / 2;
    b->n -= upper->n;
    memcpy(upper->at, b->at + b->n, sizeof *b->at * (size_t)upper->n);
    summarise(b);
    summarise(upper);
    return CVY_OK;
}

cvy_status cvy_extents_add(cvy_extents *x, cvy_extent extent)
{
    if (x->nblock == 0)
        CVY_TRY(insert_block(x, 0));
    int k = find_block(x, extent.offset), i = 0;
    if (x->block[k]->n == BLOCK) {
        CVY_TRY(split(x, k));
        k = find_block(x, extent.offset);
    }
    cvy_extent_block *b = x->block[k];
    for (i = b->n; i > 0 && b->at[i - 1].offset > extent.offset; i--)
        b->at[i] = b->at[i - 1];
    b->at[i] = extent;
    b->n++;
    summarise(b);
    return CVY_OK;
}

void cvy_extents_free(cvy_extents *x)
{
    for (int k = 0; k < x->nblock; k++)
        cvy_mem_free(&x->block[k]);
    cvy_mem_free(&x->block);
    *x = (cvy_extents){0};
}
