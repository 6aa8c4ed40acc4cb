/*
 * comm_messages.c: the messages between the stages of a pipeline; see comm_messages.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_messages.h"

#include "base/base_mem.h"
#include "base/machine/base_clock.h"

int cvy_messages_find(const cvy_messages *set, const cvy_message_key *key)
{
    for (int i = 0; i < set->n; i++)
        if (set->slot[i].key.receives == key->receives && set->slot[i].key.tag == key->tag &&
            set->slot[i].key.micro == key->micro)
            return i;
    return -1;
}

cvy_status cvy_messages_add(cvy_messages *set, const cvy_message_key *key, int peer, void *data, size_t bytes)
{
    const cvy_range range = {data, bytes};
    CVY_CHECK(cvy_messages_find(set, key) < 0, CVY_E_INTERNAL, "message %d of micro-batch %d is made twice", key->tag,
              key->micro);
    CVY_TRY(cvy_mem_reserve(&set->slot, &set->room, set->n, sizeof *set->slot));
    cvy_message_slot *slot = &set->slot[set->n];
    *slot = (cvy_message_slot){.key = *key, .peer = peer};
    CVY_TRY(set->comm->message->create(set->comm, &range, 1, &slot->message));
    set->n++;
    return CVY_OK;
}

cvy_status cvy_messages_start(cvy_messages *set, int number)
{
    cvy_message_slot *slot = &set->slot[number];
    const cvy_comm_message_ops *ops = set->comm->message;
    slot->active = 1;
    set->nactive++;
    return slot->key.receives ? ops->receive(slot->message, slot->peer, slot->key.tag)
                              : ops->send(slot->message, slot->peer, slot->key.tag);
}

cvy_status cvy_messages_progress(cvy_messages *set)
{
    for (int i = 0, seen = 0, nactive = set->nactive; i < set->n && seen < nactive; i++) {
        cvy_message_slot *slot = &set->slot[i];
        int done = 0;
        if (!slot->active)
            continue;
        seen++;
        CVY_TRY(set->comm->message->test(slot->message, &done, NULL));
        slot->active = !done;
        set->nactive -= done;
    }
    return CVY_OK;
}

int cvy_comm_simulates_copy(const cvy_comm *comm, size_t bytes)
{
    if (comm->simulated_cores > 0)
        cvy_clock_sleep((double)bytes * comm->simulated_copy_s);
    return comm->simulated_cores > 0;
}

void cvy_messages_free(cvy_messages *set)
{
    for (int i = 0; i < set->n; i++)
        set->comm->message->destroy(&set->slot[i].message);
    cvy_mem_free(&set->slot);
    set->n = 0;
}
