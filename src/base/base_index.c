/* base_index.c: a hash table of names with linear probing, at most half full. */
#include <string.h>

#include "base/base_index.h"
#include "base/base_util.h"

/* The slot that holds the name, or the free one where it belongs; room is a power of two. */
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
