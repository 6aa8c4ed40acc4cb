/*
 * data_guard.h: a zone of known bytes around each field of a sample while it is read.
 *
 * The rows of a step lie one behind the other, so a reader that writes past its row changes the next sample and nobody
 * notices. Builds for tests (without NDEBUG) read into guarded memory, and copy the fields if the zones are untouched.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_GUARD_H
#define CVY_DATA_GUARD_H

#include "data/data_reader.h"

#ifdef NDEBUG
enum { CVY_SAMPLES_GUARDED = 0 };
#else
enum { CVY_SAMPLES_GUARDED = 1 };
#endif

typedef struct cvy_guard { /* of one sample */
    unsigned char *memory;
    int nfield;
    size_t bytes[CVY_FIELD_MAX], at[CVY_FIELD_MAX], total;
} cvy_guard;

/* Makes memory for fields of these sizes, with zones around them, in `room`. Fields that are NULL in `to` stay NULL. */
cvy_status cvy_guard_begin(cvy_guard *g, cvy_bytes *room, int nfield, const size_t *bytes, void *const *to,
                           void **field_out);
/* Copies the fields to `to`. CVY_E_INTERNAL, with the number of the field, if a zone was written. */
cvy_status cvy_guard_take(const cvy_guard *g, void *const *to);

#endif
