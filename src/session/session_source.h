/* session_source.h: a data source as it is written on the command line. */
#ifndef CVY_SESSION_SOURCE_H
#define CVY_SESSION_SOURCE_H

#include "data/data.h"

/* source: a path, or YAML: a map "{path: ..., format: ...}" or a list of sources. The tree can be given to
 * cvy_dataset_open(). */
cvy_status cvy_job_parse_source(cvy_pool *pool, const char *source, cvy_tree **out);
/* Opens the data set of a source, without augmentation. */
cvy_status cvy_job_open_source(cvy_pool *pool, const char *source, cvy_dataset **out);

#endif
