/*
 * comm_messages.h: the messages that a plan sends between the stages of a pipeline: which are under way, progress and
 * waits.
 *
 * A message is known by its direction, its tag and its micro-batch. One instruction starts it, and a later one waits
 * for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_MESSAGES_H
#define CVY_COMM_MESSAGES_H

#include "comm/comm.h"

typedef struct cvy_message_key {
    int receives; /* 0: this rank sends it */
    int tag, micro;
} cvy_message_key;

typedef struct cvy_message_slot {
    cvy_message_key key;
    int peer; /* rank in the communicator */
    int active;
    cvy_message *message;
} cvy_message_slot;

typedef struct cvy_messages { /* zero-initialise it and set comm */
    cvy_comm *comm;
    cvy_message_slot *slot;
    int n, room, nactive;
} cvy_messages;

/* Adds a message from or into this memory. */
cvy_status cvy_messages_add(cvy_messages *set, const cvy_message_key *key, int peer, void *data, size_t bytes);
/* The number of the message with this key; -1: there is none. */
int cvy_messages_find(const cvy_messages *set, const cvy_message_key *key);
/* The memory belongs to the message until it is done. */
cvy_status cvy_messages_start(cvy_messages *set, int number);
/* Tests all messages under way. MPI libraries without a progress thread need such calls. */
cvy_status cvy_messages_progress(cvy_messages *set);
static inline int cvy_messages_is_active(const cvy_messages *set, int number)
{
    return set->slot[number].active;
}
/* No message may be under way. */
void cvy_messages_free(cvy_messages *set);

#endif
