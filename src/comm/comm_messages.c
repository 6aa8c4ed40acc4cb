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
    CVY_CHECK(cvy_messages_find(set, key) < 0, CVY_E_INTERNAL, "message %d of micro-batch %d is made twice", key->tag,
              key->micro);
    CVY_TRY(cvy_mem_reserve(&set->slot, &set->room, set->n, sizeof *set->slot));
    cvy_message_slot *slot = &set->slot[set->n];
    *slot = (cvy_message_slot){.key = *key, .peer = peer, .range = {data, bytes}};
    if (!cvy_space_is_host(set->space))
        CVY_TRY(cvy_stage_make(&slot->stage, set->space, NULL, bytes));
    set->n++;
    const cvy_range range = {slot->stage.host ? slot->stage.host : data, bytes};
    return set->comm->message->create(set->comm, &range, 1, &slot->message);
}

/* What was received before must have been copied, and the memory must not be in use, when the copy comes in. */
static cvy_status prepare_receive(const cvy_message_slot *slot)
{
    int there = 0;
    if (!slot->stage.host)
        return CVY_OK;
    if (slot->was_copied)
        CVY_TRY(cvy_stage_is_reached(&slot->stage, 1, &there));
    return cvy_stage_follow(&slot->stage);
}

cvy_status cvy_messages_start(cvy_messages *set, int number)
{
    cvy_message_slot *slot = &set->slot[number];
    const cvy_comm_message_ops *ops = set->comm->message;
    slot->active = 1;
    set->nactive++;
    if (slot->key.receives) {
        CVY_TRY(prepare_receive(slot));
        return ops->receive(slot->message, slot->peer, slot->key.tag);
    }
    slot->is_leaving = slot->stage.host != NULL;
    return slot->is_leaving ? cvy_stage_out(&slot->stage, 0, slot->range.data, slot->range.bytes)
                            : ops->send(slot->message, slot->peer, slot->key.tag);
}

/* Sends what has come out of the device. The messages are in the order in which they are started, and messages with one
 * tag must be sent in that order; so the first that is not there yet keeps the others. */
static cvy_status send_copies(const cvy_messages *set, int wait)
{
    int there = 1;
    for (int i = 0; i < set->n && there; i++) {
        cvy_message_slot *slot = &set->slot[i];
        if (!slot->is_leaving)
            continue;
        CVY_TRY(cvy_stage_is_reached(&slot->stage, wait, &there));
        if (there)
            CVY_TRY(set->comm->message->send(slot->message, slot->peer, slot->key.tag));
        slot->is_leaving = !there;
    }
    return CVY_OK;
}

cvy_status cvy_messages_settle(cvy_messages *set)
{
    return set && set->nactive > 0 && !cvy_space_is_host(set->space) ? send_copies(set, 1) : CVY_OK;
}

/* Called when a message is done. */
static cvy_status take(cvy_message_slot *slot)
{
    if (!slot->stage.host || !slot->key.receives)
        return CVY_OK;
    slot->was_copied = 1;
    return cvy_stage_in(&slot->stage, slot->range.data, 0, slot->range.bytes);
}

cvy_status cvy_messages_progress(cvy_messages *set)
{
    if (!cvy_space_is_host(set->space))
        CVY_TRY(send_copies(set, 0));
    for (int i = 0, seen = 0, nactive = set->nactive; i < set->n && seen < nactive; i++) {
        cvy_message_slot *slot = &set->slot[i];
        int done = 0;
        if (!slot->active)
            continue;
        seen++;
        if (slot->is_leaving)
            continue;
        CVY_TRY(set->comm->message->test(slot->message, &done, NULL));
        if (done)
            CVY_TRY(take(slot));
        slot->active = !done;
        set->nactive -= done;
    }
    return CVY_OK;
}

cvy_status cvy_messages_await(const cvy_messages *set, int number)
{
    const cvy_message_slot *slot = &set->slot[number];
    return slot->stage.host && slot->key.receives ? cvy_stage_await(&slot->stage) : CVY_OK;
}

int cvy_comm_simulates_copy(const cvy_comm *comm, size_t bytes)
{
    if (comm->simulated_cores > 0)
        cvy_clock_sleep((double)bytes * comm->simulated_copy_s);
    return comm->simulated_cores > 0;
}

void cvy_messages_free(cvy_messages *set)
{
    for (int i = 0; i < set->n; i++) {
        set->comm->message->destroy(&set->slot[i].message);
        cvy_stage_free(&set->slot[i].stage);
    }
    cvy_mem_free(&set->slot);
    set->n = 0;
}
