/* SPDX-License-Identifier: BSD-3-Clause */
/* base_index.c: a hash table of names with linear probing, at most half full. */
#include "base/base_index.h"

#include <string.h>

#include "base/base_hash.h"

/* The slot that has the name, or else the free slot for it; room is a power of two. */
static cvy_index_slot *slot_of(cvy_index_slot *slot, int room, const char *name)
{
    uint64_t at = cvy_hash(name, strlen(name));
    for (;; at++) {
        cvy_index_slot *s = &slot[at & (uint64_t)(room - 1)];
        if (!s->name || strcmp(s->name, name) == 0)
            return s;
    }
}

int cvy_index_find(const cvy_index *index, const char *name)
{
    const cvy_index_slot *s = index->room ? slot_of(index->slot, index->room, name) : NULL;
    return s && s->name ? s->number : -1;
}

static cvy_status grow(cvy_index *index)
{
    const int room = index->room ? 2 * index->room : 64;
    cvy_index_slot *slot = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *slot * (size_t)room, &slot));
    for (int i = 0; i < index->room; i++)
        if (index->slot[i].name)
            *slot_of(slot, room, index->slot[i].name) = index->slot[i];
    cvy_mem_free(&index->slot);
    index->slot = slot;
    index->room = room;
    return CVY_OK;
}

cvy_status cvy_index_add(cvy_index *index, const char *name, int number)
{
    if (2 * (index->count + 1) > index->room)
        CVY_TRY(grow(index));
    cvy_index_slot *s = slot_of(index->slot, index->room, name);
    if (s->name)
        return CVY_OK;
    *s = (cvy_index_slot){name, number};
    index->count++;
    return CVY_OK;
}

void cvy_index_free(cvy_index *index)
{
    cvy_mem_free(&index->slot);
    *index = (cvy_index){0};
}

int cvy_keys_find(const cvy_keys *keys, const char *text)
{
    return cvy_index_find(&keys->index, text);
}

cvy_status cvy_keys_add(cvy_keys *keys, const char *text, int *number_out)
{
    const int have = cvy_keys_find(keys, text);
    if (have >= 0) {
        *number_out = have;
        return CVY_OK;
    }
    CVY_TRY(cvy_mem_reserve(&keys->text, &keys->room, keys->count, sizeof *keys->text));
    char **own = &keys->text[keys->count];
    CVY_TRY(cvy_mem_strdup(text, own));
    const cvy_status status = cvy_index_add(&keys->index, *own, keys->count);
    if (status != CVY_OK) {
        cvy_mem_free(own);
        return status;
    }
    *number_out = keys->count++;
    return CVY_OK;
}

void cvy_keys_free(cvy_keys *keys)
{
    for (int i = 0; i < keys->count; i++)
        cvy_mem_free(&keys->text[i]);
    cvy_mem_free(&keys->text);
    cvy_index_free(&keys->index);
    *keys = (cvy_keys){0};
}
