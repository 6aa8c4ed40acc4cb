/*
 * data_cache.h: a cache of samples in memory, between a data set and its reader.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_CACHE_H
#define CVY_DATA_CACHE_H

#include "data/data_reader.h"

/* Wraps *reader and *state in a cache, which then owns them; budget is borrowed. On an error nothing has changed. */
cvy_status cvy_cache_wrap(const cvy_reader_info *info, cvy_cache_budget *budget, int decoded,
                          const cvy_reader_def **reader, void **state);

#endif
