/*
 * data_stage.h: copies of data sets on each node's own disk or in its memory, for the duration of a run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_STAGE_H
#define CVY_DATA_STAGE_H

#include "base/text/base_text.h"
#include "data/data.h"

typedef struct cvy_stage cvy_stage;

/* folder: a path on each node, created if it does not exist. */
cvy_status cvy_stage_create(cvy_comm *comm, const char *folder, cvy_stage **out);
/* Copies the files at the source's paths (all ranks of a node take part) and returns the source with the paths of the
 * copies, in pool. Adds a line for each copy to `report`. Generated data have no path and stay as they are. Collective:
 * the source is the same on all ranks. */
cvy_status cvy_stage_source(cvy_stage *s, cvy_pool *pool, const cvy_tree *source, const cvy_tree **out,
                            cvy_text *report);
/* Removes the copies, unless another run on this node uses them. */
void cvy_stage_destroy(cvy_stage **s);

#endif
