/*
 * base_keys.h: texts that are numbered in the order in which they arrive, and found again by hash.
 *
 * The caller keeps what belongs to a text in an array of its own, by number. Texts are never taken out.
 */
#ifndef CVY_BASE_KEYS_H
#define CVY_BASE_KEYS_H

#include "base/base_util.h"

typedef struct cvy_keys {
    char **text;
    int count, room;
    int *slot; /* open addressing: number + 1, 0 where free; nslot is a power of two, at least twice count */
    int nslot;
} cvy_keys;

/* The number of a text, -1 if it is not there. */
int cvy_keys_find(const cvy_keys *keys, const char *text);
/* The number that it has, or the next one, which is the count before the call. The text is copied. */
cvy_status cvy_keys_add(cvy_keys *keys, const char *text, int *number_out);
void cvy_keys_free(cvy_keys *keys);

#endif
