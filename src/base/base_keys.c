/*
 * base_keys.c: numbered texts in a hash table with open addressing and linear probing.
 */
#include "base/base_keys.h"

#include <string.h>

/* The slot that holds the text, or the free one where it belongs. */
static int find_slot(const cvy_keys *keys, const char *text)
{
    const uint64_t mask = (uint64_t)keys->nslot - 1;
    uint64_t at = cvy_hash(text, strlen(text)) & mask;
    while (keys->slot[at] && strcmp(keys->text[keys->slot[at] - 1], text) != 0)
        at = (at + 1) & mask;
    return (int)at;
}

int cvy_keys_find(const cvy_keys *keys, const char *text)
{
    return keys->nslot ? keys->slot[find_slot(keys, text)] - 1 : -1;
}

static cvy_status grow(cvy_keys *keys)
{
    const int nslot = keys->nslot ? 2 * keys->nslot : 64;
    int *slot = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)nslot * sizeof *slot, &slot));
    cvy_mem_free(&keys->slot);
    keys->slot = slot;
    keys->nslot = nslot;
    for (int i = 0; i < keys->count; i++)
        keys->slot[find_slot(keys, keys->text[i])] = i + 1;
    return CVY_OK;
}

cvy_status cvy_keys_add(cvy_keys *keys, const char *text, int *number_out)
{
    const int have = cvy_keys_find(keys, text);
    if (have >= 0) {
        *number_out = have;
        return CVY_OK;
    }
    if (2 * (keys->count + 1) > keys->nslot)
        CVY_TRY(grow(keys));
    CVY_TRY(cvy_mem_reserve(&keys->text, &keys->room, keys->count, sizeof *keys->text));
    CVY_TRY(cvy_mem_strdup(text, &keys->text[keys->count]));
    keys->slot[find_slot(keys, text)] = keys->count + 1;
    *number_out = keys->count++;
    return CVY_OK;
}

void cvy_keys_free(cvy_keys *keys)
{
    for (int i = 0; i < keys->count; i++)
        cvy_mem_free(&keys->text[i]);
    cvy_mem_free(&keys->text);
    cvy_mem_free(&keys->slot);
    *keys = (cvy_keys){0};
}
