/* SPDX-License-Identifier: BSD-3-Clause */
/* session_source.h: a data source as it is written on the command line. */
#ifndef CVY_SESSION_SOURCE_H
#define CVY_SESSION_SOURCE_H

#include "data/data.h"

/* source: a path, or YAML: a map "{path: ..., format: ...}" or a list of sources. The tree can be given to
 * cvy_dataset_open(). */
cvy_status cvy_job_parse_source(cvy_pool *pool, const char *source, cvy_tree **out);
/* The same for data that are read as those of the source `like`, the training data of a network. A path alone, also as
 * an item of a list, takes over the options of `like` that say how its reader finds x in a sample; with_targets: also
 * those that say where targets, labels and weights are. It does not take options that choose samples or name files.
 * channels: 1 or 3, to which pictures are decoded; 0: those of the first one. A map stays as it is. */
cvy_status cvy_job_parse_source_like(cvy_pool *pool, const char *source, const cvy_tree *like, int with_targets,
                                     int channels, cvy_tree **out);
/* The value of an option of a source, or of the first of several; NULL: it has none. */
const char *cvy_job_source_option(const cvy_tree *source, const char *key);
/* Opens the data set of a source, without augmentation. */
cvy_status cvy_job_open_source(cvy_pool *pool, const char *source, cvy_dataset **out);

#endif
