/*
 * data_guard.c: zones of known bytes around the fields of a sample: see data_guard.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_guard.h"

#include <string.h>

enum { ZONE = 64, MARK = 0xa5 };

cvy_status cvy_guard_begin(cvy_guard *g, cvy_bytes *room, int nfield, const size_t *bytes, void *const *to,
                           void **field_out)
{
    *g = (cvy_guard){.nfield = nfield, .total = ZONE};
    for (int f = 0; f < nfield; f++) {
        g->bytes[f] = to[f] ? bytes[f] : 0;
        g->at[f] = g->total;
        g->total += (g->bytes[f] + ZONE - 1) / ZONE * ZONE + ZONE;
    }
    CVY_TRY(cvy_bytes_need(room, g->total));
    g->memory = room->data;
    memset(g->memory, MARK, g->total);
    for (int f = 0; f < nfield; f++)
        field_out[f] = to[f] ? g->memory + g->at[f] : NULL;
    return CVY_OK;
}

/* Whether the bytes from .. to-1 are untouched. */
static int is_clean(const cvy_guard *g, size_t from, size_t to)
{
    while (from < to && g->memory[from] == MARK)
        from++;
    return from == to;
}

cvy_status cvy_guard_take(const cvy_guard *g, void *const *to)
{
    CVY_CHECK(is_clean(g, 0, ZONE), CVY_E_INTERNAL, "a reader wrote before field 0 of a sample");
    for (int f = 0; f < g->nfield; f++) {
        const size_t end = g->at[f] + g->bytes[f], next = f + 1 < g->nfield ? g->at[f + 1] : g->total;
        CVY_CHECK(is_clean(g, end, next), CVY_E_INTERNAL, "a reader wrote past the %zu bytes of field %d of a sample",
                  g->bytes[f], f);
        if (to[f])
            memcpy(to[f], g->memory + g->at[f], g->bytes[f]);
    }
    return CVY_OK;
}
