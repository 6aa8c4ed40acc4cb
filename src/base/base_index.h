/*
 * base_index.h: finds the number that goes with a name: places of layers, values and variables in their arrays.
 *
 * Graphs of deep networks have a hundred thousand names; searching the arrays for each would take a minute. Open addressing, no removal.
 */
#ifndef CVY_BASE_INDEX_H
#define CVY_BASE_INDEX_H

#include "base/base_mem.h"

typedef struct cvy_index_slot { const char *name; int number; } cvy_index_slot;
typedef struct cvy_index { cvy_index_slot *slot; int room, count; } cvy_index;   /* {0} is empty */

/* The number of this name, -1: it is not there. */
int cvy_index_find(const cvy_index *index, const char *name);
/* The text is borrowed and must outlive the index. A name that is there keeps its number. number: 0 or more. */
cvy_status cvy_index_add(cvy_index *index, const char *name, int number);
void cvy_index_free(cvy_index *index);

#endif
