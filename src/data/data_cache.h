/*
 * data_cache.h: samples kept in memory, between a data set and its reader.
 */
#ifndef CVY_DATA_CACHE_H
#define CVY_DATA_CACHE_H

#include "data/data_reader.h"

/* Puts a cache before *reader, which it takes over; room is borrowed. On a fault nothing has changed. */
cvy_status cvy_cache_wrap(const cvy_reader_info *info, cvy_cache_room *room, int decoded, const cvy_reader_def **reader,
                          void **state);

#endif
