/* session_source.h: a data source as the command names it. */
#ifndef CVY_SESSION_SOURCE_H
#define CVY_SESSION_SOURCE_H

#include "data/data.h"

/* A path, or in YAML a map "{path: ..., format: ...}" or a list of sources; the tree is what cvy_dataset_open() takes.
 */
cvy_status cvy_job_parse_source(cvy_pool *pool, const char *source, cvy_tree **out);
/* The data set of a source, without augmentation. */
cvy_status cvy_job_open_source(cvy_pool *pool, const char *source, cvy_dataset **out);

#endif
