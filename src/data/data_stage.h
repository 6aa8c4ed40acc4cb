/*
 * data_stage.h: copies of data sets on each node's own disk or memory, for the time of a run.
 */
#ifndef CVY_DATA_STAGE_H
#define CVY_DATA_STAGE_H

#include "base/base_text.h"
#include "data/data.h"

typedef struct cvy_stage cvy_stage;

/* folder: on each node, made if it is not there. keep: copies stay when the run ends. */
cvy_status cvy_stage_create(cvy_comm *comm, const char *folder, int keep, cvy_stage **out);
/* Copies what the source's paths name, all ranks of a node helping, and gives the source with the paths of the copies
 * (in pool). A line for each goes to `report`. Generated data have no path and stay as they are. Collective: the source
 * is the same on all ranks. */
cvy_status cvy_stage_source(cvy_stage *s, cvy_pool *pool, const cvy_tree *source, const cvy_tree **out,
                            cvy_text *report);
/* Removes the copies, unless they are to stay or another run of this node uses them. */
void cvy_stage_destroy(cvy_stage **s);

#endif
