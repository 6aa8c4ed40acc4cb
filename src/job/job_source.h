/* job_source.h: a data source as the command names it. */
#ifndef CVY_JOB_SOURCE_H
#define CVY_JOB_SOURCE_H

#include "data/data.h"

/* A path, or a map in YAML: "{path: ..., format: ...}"; without augmentation. */
cvy_status cvy_job_open_source(cvy_pool *pool, const char *source, cvy_dataset **out);

#endif
