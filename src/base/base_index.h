/*
 * base_index.h: finds the number that belongs to a name: for layers, values and variables in their arrays, and for
 * measured times.
 *
 * Graphs of deep networks have a hundred thousand names. A linear search for each of them would take a minute. This is
 * a hash table with open addressing; entries are never removed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
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

/* The number of this name; -1: not found. */
int cvy_index_find(const cvy_index *index, const char *name);
/* Adds a name. The text is borrowed and must outlive the index. A name that is there already keeps its number. number:
 * 0 or more. */
cvy_status cvy_index_add(cvy_index *index, const char *name, int number);
void cvy_index_free(cvy_index *index);

/* An index that owns copies of its texts and numbers them in the order in which they arrive. The caller keeps what
 * belongs to a text in its own array, indexed by the number. */
typedef struct cvy_keys {
    cvy_index index;
    char **text;
    int count, room;
} cvy_keys; /* {0} is empty */

/* The number of a text; -1: not found. */
int cvy_keys_find(const cvy_keys *keys, const char *text);
/* Returns the number of a text. A new text is copied and gets the next number, which is the count before the call. */
cvy_status cvy_keys_add(cvy_keys *keys, const char *text, int *number_out);
void cvy_keys_free(cvy_keys *keys);

#endif
