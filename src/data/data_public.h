/*
 * data_public.h: the data set of the public API (convoy/data.h) from the inside.
 */
#ifndef CVY_DATA_PUBLIC_H
#define CVY_DATA_PUBLIC_H

#include <convoy/data.h>

#include "data/data.h"

struct cvy_data {
    cvy_pool *pool; /* of the trees that the set was described by */
    cvy_dataset *set;
};

/* A source as text: a path, or a map or list in YAML. */
cvy_status cvy_data_parse_source(cvy_pool *pool, const char *source, cvy_tree **out);

#endif
