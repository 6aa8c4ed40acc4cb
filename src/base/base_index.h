/*
 * base_index.h: finds the number that goes with a name: layers, values and variables in their arrays, measured times.
 *
 * Graphs of deep networks have a hundred thousand names; searching the arrays for each would take a minute. A hash
 * table with open addressing; nothing is removed.
 */
#ifndef CVY_BASE_INDEX_H
#define CVY_BASE_INDEX_H

#include "base/base_mem.h"

typedef struct cvy_index_slot {
    const char *name;
    int number;
} cvy_index_slot;
typedef struct cvy_index {
    cvy_index_slot *slot;
    int room, count;
} cvy_index; /* {0} is empty */

/* The number of this name, -1: it is not there. */
int cvy_index_find(const cvy_index *index, const char *name);
/* The text is borrowed and must outlive the index. A name that is there keeps its number. number: 0 or more. */
cvy_status cvy_index_add(cvy_index *index, const char *name, int number);
void cvy_index_free(cvy_index *index);

/* An index with texts of its own, numbered in the order in which they arrive. The caller keeps what belongs to a text
 * in an array of its own, by number. */
typedef struct cvy_keys {
    cvy_index index;
    char **text;
    int count, room;
} cvy_keys; /* {0} is empty */

/* The number of a text, -1 if it is not there. */
int cvy_keys_find(const cvy_keys *keys, const char *text);
/* The number that it has, or the next one, which is the count before the call. The text is copied. */
cvy_status cvy_keys_add(cvy_keys *keys, const char *text, int *number_out);
void cvy_keys_free(cvy_keys *keys);

#endif
