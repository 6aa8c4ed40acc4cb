/*
 * stream_reservoir.h: what a stream needs of a reservoir.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_STREAM_RESERVOIR_H
#define CVY_STREAM_RESERVOIR_H

#include <convoy/stream.h>

#include "stream/stream_fields.h"

const cvy_sample_fields *cvy_reservoir_fields(const cvy_reservoir *reservoir);
/* No more fields may be added. */
void cvy_reservoir_freeze(cvy_reservoir *reservoir);
/* Adds n samples. */
void cvy_reservoir_add_records(cvy_reservoir *reservoir, const char *record, int64_t n);

#endif
