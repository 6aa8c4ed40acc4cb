/*
 * data_public.h: the inside of the public API's data set (convoy/data.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_PUBLIC_H
#define CVY_DATA_PUBLIC_H

#include <convoy/data.h>

#include "data/data.h"

struct cvy_data {
    cvy_pool *pool; /* holds the trees that describe the set */
    cvy_dataset *set;
};

/* Parses a source from text: a path, or a map or list in YAML. */
cvy_status cvy_data_parse_source(cvy_pool *pool, const char *source, cvy_tree **out);

#endif
